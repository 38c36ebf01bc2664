"""tiktoken with the same vocabulary and the same pattern, on one thread."""
import json

from side import cannot_run, megabytes_per_second, print_figures, read_work

try:
    import tiktoken
except ImportError as error:
    cannot_run(f"tiktoken is not installed: {error}")

work = read_work()
definition = json.load(open(work["model"] + "/models/tokenizer.json"))


def bytes_of_characters():
    """Byte-level vocabularies write each byte as a printable character."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    table = {chr(byte): byte for byte in plain}
    return table | {chr(256 + index): byte for index, byte in enumerate(others)}


def open_tiktoken():
    table = bytes_of_characters()
    pieces = definition["pre_tokenizer"]["pretokenizers"]
    pattern = next(piece["pattern"]["Regex"] for piece in pieces if "pattern" in piece)
    ranks = {
        bytes(table[character] for character in token): rank
        for token, rank in definition["model"]["vocab"].items()
    }
    return tiktoken.Encoding("bench", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


encode = open_tiktoken().encode_ordinary
for text in work["warm"]:
    encode(text)
figures = {}
for name, documents in work["corpora"].items():
    figures[f"{name}Cold"] = megabytes_per_second(encode, documents)
    figures[f"{name}Again"] = megabytes_per_second(encode, documents)
print_figures("tiktoken", **figures)
