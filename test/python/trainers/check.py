"""Ours beside real trainers: the gradient of a tiny model by each trainer's own loss, on the shipped path.

    python check.py FOLDER [--slime DIR] [--rllm DIR] [--only NAME,...]

FOLDER holds what runs.ts wrote. Prints one JSON line per trainer, run and loss: the largest
difference of a slope, as a share of the largest slope. `npm run trainers` does all of it.
"""

import argparse
import json
import logging
import sys
import traceback
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(ROOT / "integrations" / "python"))
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import tiny

SHAPES = ("chains", "cut", "trees", "steps", "condensed", "weighed")
LOSSES = ("ppo", "grpo", "gspo", "cispo")


class Absent(Exception):
    """A trainer, or one of its losses, that is not here."""


def trainers(given):
    """Each trainer as a function of (file, loss) that gives its gradient, what ours is told, and words."""
    import importlib

    found = {}
    for name in ("trl", "verl", "slime", "skyrl", "rllm", "tinker"):
        if given.only and name not in given.only:
            continue
        found[name] = lambda name=name: importlib.import_module(f"with_{name}").open_trainer(given)
    return found


def compare(folder, name, run, given):
    for shape in SHAPES:
        for loss in LOSSES:
            file = folder / shape / f"{name}.{loss}"
            answer = {"trainer": name, "run": shape, "loss": loss}
            if not file.exists():
                reason = Path(f"{file}.refused").read_text()
                print(json.dumps({**answer, "refused": reason}), flush=True)
                continue
            try:
                theirs, options, said = run(str(file), loss)
                ours = getattr(run, "ours", tiny.ours)
                wanted = ours(folder, f"{shape}/ours.{name}", loss, json.dumps(options))
                largest = wanted.abs().max().item()
                apart = (theirs - wanted).abs().max().item() / largest
                size = {"apart": apart, "slope": largest}
                print(json.dumps({**answer, **size, "said": said}), flush=True)
            except Absent as error:
                print(json.dumps({**answer, "absent": str(error)}), flush=True)
            except Exception as error:  # one loss must not hide the others
                if given.trace:
                    traceback.print_exc()
                failed = f"{type(error).__name__}: {error}"
                print(json.dumps({**answer, "failed": failed[:400]}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slime", type=Path)
    parser.add_argument("--rllm", type=Path)
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--score", action="store_true", help="write scores.json and stop")
    parser.add_argument("--trace", action="store_true", help="print where a trainer failed")
    given = parser.parse_args()
    if given.score:
        tiny.score(given.folder)
        return
    for name, load in trainers(given).items():
        try:
            run = load()
        except (ImportError, Absent) as error:
            if given.trace:
                traceback.print_exc()
            print(json.dumps({"trainer": name, "absent": str(error)[:400]}), flush=True)
            continue
        compare(given.folder, name, run, given)


if __name__ == "__main__":
    # Modules of trainers import this one for Absent: it must be one module, not two.
    sys.modules["check"] = sys.modules["__main__"]
    main()
