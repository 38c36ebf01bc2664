"""A small environment of `verifiers` with a tool, as packages for it are written."""

import verifiers as vf
from datasets import Dataset


def count_letter(word: str, letter: str) -> int:
    """Counts how often a letter is in a word.

    Args:
        word: the word
        letter: one letter
    """
    return word.count(letter)


def load_environment(words: int = 20) -> vf.Environment:
    names = ["banana", "strawberry", "mississippi", "pear"]
    rows = [
        {"question": f"How often is a in {names[at % 4]}{'a' * (at // 4)}?", "answer": str((names[at % 4] + "a" * (at // 4)).count("a"))}
        for at in range(words)
    ]

    def right(completion, answer, **_) -> float:
        return float(str(completion[-1].content).strip() == answer)

    return vf.ToolEnv(
        dataset=Dataset.from_list(rows),
        eval_dataset=Dataset.from_list(rows[:5]),
        tools=[count_letter],
        rubric=vf.Rubric(funcs=[right]),
        max_turns=6,
    )
