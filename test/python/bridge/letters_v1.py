"""A small taskset of today's `verifiers`, as packages for it are written: count a letter, then say it again."""

import verifiers.v1 as vf

__all__ = ["LettersTaskset"]

NAMES = ["banana", "strawberry", "mississippi", "pear"]


class LettersConfig(vf.TasksetConfig):
    words: int = 20


class LettersData(vf.TaskData):
    answer: str


class LettersTask(vf.Task[LettersData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float((trace.last_reply or "").strip() == self.data.answer)


class LettersTaskset(vf.Taskset[LettersTask, LettersConfig]):
    def load(self):
        for at in range(self.config.words):
            word = NAMES[at % 4] + "a" * (at // 4)
            prompt = f"How often is a in {word}?"
            yield LettersTask(LettersData(prompt=prompt, answer=str(word.count("a"))), self.config.task)
