"""`espalier train` through espalier_gpu.py on a CPU, with the server killed on the way: python test/python/trainers/gpu_training.py

Needs torch, transformers and the built program (`npm run build`). Prints one line per check and ends with 1
where one failed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
SERVER = os.path.join(ROOT, "integrations/python/espalier_gpu.py")
PORT, STEPS = "18941", 4
failures = []


def check(name, holds, shown=""):
    print(f"{'ok  ' if holds else 'FAIL'} {name}{f'  ({shown})' if shown != '' else ''}", flush=True)
    if not holds:
        failures.append(name)


def start_server(state):
    command = [sys.executable, SERVER, "--model", os.path.join(ROOT, "base-model"), "--device", "cpu", "--state", state,
               "--port", PORT, "--context", "512", "--slots", "64"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while b"sequences of" not in process.stdout.readline():
        if process.poll() is not None:
            sys.exit("FAIL the server did not start")
    return process


def start_training(run):
    url = f"tinker:http://127.0.0.1:{PORT}"
    command = ["node", os.path.join(ROOT, "dist/cli/main.js"), "train", "--policy", url, "--trainer", url, "--model", "base-model",
               "--environment", "desk", "--tasks", "100", "--held-out", "4", "--steps", str(STEPS), "--tasks-per-step", "4", "--group", "8",
               "--learning-rate", "2e-3", "--entropy-bonus", "0", "--max-turns", "10", "--max-new-tokens", "32", "--max-context", "500",
               "--concurrency", "64", "--seed", "1", "--out", run, "--json"]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)


def steps_of(run):
    path = os.path.join(run, "metrics.jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def failed_in(run):
    """The last few events that tell of something that failed."""
    with open(os.path.join(run, "events.jsonl"), encoding="utf-8") as file:
        return [line.strip()[:300] for line in file if "fail" in line][-3:]


def main():
    with tempfile.TemporaryDirectory() as folder:
        state, run = os.path.join(folder, "state"), os.path.join(folder, "run")
        server = start_server(state)
        training = start_training(run)
        try:
            while len(steps_of(run)) < 2 and training.poll() is None:
                time.sleep(0.1)
            server.kill()
            server.wait()
            server = start_server(state)
            output = training.communicate(timeout=600)[0]
        finally:
            training.kill()
            server.kill()
        steps = steps_of(run)
        check("training goes on where its server was killed and started again", training.returncode == 0 and len(steps) == STEPS,
              f"{len(steps)} of {STEPS} steps" if training.returncode == 0 else output[-400:])  # fmt: skip
        rows = [step["trainedRows"] for step in steps]
        learns = bool(rows) and min(rows) > 0
        told = [(step["trainedRows"], step.get("reward"), step.get("unscored")) for step in steps]
        check("every step learns from rows", learns, rows if learns else f"rows, reward, unscored: {told}; {failed_in(run)}")
        off = max((step.get("largestDifference", 1) for step in steps), default=1)
        check("in float32 each trained token has the log-probability it was sampled with", off < 1e-4, f"{off:.1e}")
    print(f"{len(failures)} failed" if failures else "all hold")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
