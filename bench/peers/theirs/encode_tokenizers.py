"""Hugging Face tokenizers on one thread: text never seen, by a tokenizer just opened, and again."""

from side import cannot_run, megabytes_per_second, print_figures, read_work

work = read_work()


def open_tokenizers():
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(work["model"] + "/models/tokenizer.json")
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


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
    figures[f"{name}Cold"] = megabytes_per_second(encode, documents)
    figures[f"{name}Again"] = megabytes_per_second(encode, documents)
print_figures("tokenizers", **figures)
