"""What learn.py measured, as one small file and one picture: python scripts/gpu/curves.py runs/gpu docs/reference/one-gpu

Writes docs/reference/one-gpu.jsonl (teaching, then every run's figures and its curve) and docs/images/one-gpu.svg (success of the
training batches, step by step).
"""

import glob
import json
import os
import sys

COLOURS = {"seed-1": "#4363d8", "seed-2": "#3cb44b", "seed-3": "#f58231", "rate-0": "#808080", "shuffled": "#e6194b"}
NAMES = {"rate-0": "learning rate 0", "shuffled": "shuffled advantages"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 48, 150, 16, 40
KEPT = ("successBefore", "intervalBefore", "successAfter", "intervalAfter", "seconds", "sampledTokens", "trees", "server", "gpu_busy_share", "gpu_memory_gb")


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def gather(folder):
    """Teaching and all runs; a curve is one list per figure, which is shorter."""
    found = {"teaching": read(os.path.join(folder, "teaching.json")), "runs": {}}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        run = read(path)
        if "curve" not in run or "run" not in run:
            continue
        columns = {
            "success": [round(step["success"], 4) for step in run["curve"]],
            "roll": [round(step["seconds"]["roll"], 2) for step in run["curve"]],
            "learn": [round(step["seconds"]["learn"], 2) for step in run["curve"]],
            "difference": [step.get("meanDifference", 0) for step in run["curve"]],
        }
        found["runs"][run["run"]] = {**{key: run[key] for key in KEPT if key in run}, **(columns if run["curve"] else {})}
    return found


def draw(runs):
    steps = max(len(run["success"]) for run in runs.values())

    def x(step):
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (step - 1) / (steps - 1), 1)

    def y(value):
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value), 1)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        "<title>Success of the training batches over steps of GRPO</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for value in (0, 0.25, 0.5, 0.75, 1):
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value)}" y2="{y(value)}" stroke="#dddddd"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y(value) + 4}" text-anchor="end">{value}</text>')
    for step in (1, *range(5, steps + 1, 5)):
        lines.append(f'<text x="{x(step)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{step}</text>')
    for row, (name, run) in enumerate(runs.items()):
        points = " ".join(f"{x(step + 1)},{y(value)}" for step, value in enumerate(run["success"]))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        lines.append(f'<text x="{WIDTH - RIGHT + 12}" y="{TOP + 20 + 18 * row}" fill="{COLOURS[name]}">{NAMES.get(name, name)}</text>')
    lines.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">step</text>')
    return "\n".join([*lines, "</svg>", ""])


def main():
    if len(sys.argv) != 3:
        sys.exit("Usage: curves.py FOLDER_OF_LEARN OUT_WITHOUT_ENDING")
    found = gather(sys.argv[1])
    with open(f"{sys.argv[2]}.jsonl", "w", encoding="utf-8") as file:
        lines = [{"run": "teaching", **found["teaching"]}, *({"run": name, **run} for name, run in found["runs"].items())]
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with open(f"{sys.argv[2]}.svg", "w", encoding="utf-8") as file:
        file.write(draw({name: found["runs"][name] for name in COLOURS if name in found["runs"]}))


if __name__ == "__main__":
    main()
