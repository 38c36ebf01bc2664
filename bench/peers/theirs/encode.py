"""Hugging Face tokenizers and tiktoken, on one thread each: text never seen, by a tokenizer just opened."""
import time

from side import cannot_run, print_figures, read_work

work = read_work()



def open_tokenizers():
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(work["model"] + "/models/tokenizer.json")
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def measure(encode, documents):
    size = sum(len(text.encode()) for text in documents)
    start = time.perf_counter()
    for text in documents:
        encode(text)
    return size / (time.perf_counter() - start) / 1e6


try:
    import tokenizers  # noqa: F401
except ImportError as error:
    cannot_run(f"tokenizers is not installed: {error}")
warm = open_tokenizers()
for text in work["warm"]:
    warm(text)
figures = {}
for name, documents in work["corpora"].items():
    encode = open_tokenizers()
    figures[f"{name}Cold"] = measure(encode, documents)
    figures[f"{name}Again"] = measure(encode, documents)
print_figures("tokenizers", **figures)
