"""How fast espalier_gpu.py is on this GPU: decoding, training, and how far both agree.

    python bench_gpu.py [--profile] [--json FILE] [--rows 64,256] [--tiny]

The model has Qwen3-0.6B's shape and random weights: nothing is downloaded. Decoding counts sampled
tokens over wall-clock seconds, host work included, after the graphs were captured. Training counts
the tokens of rows over the seconds of forward and backward, and its share of the peak is
4 · parameters · tokens per second (LoRA: forward, and backward without the frozen weights' own
gradients; nothing that is computed twice is counted) over 989 TFLOP/s, or --peak.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
import urllib.request

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import espalier_gpu as gpu  # noqa: E402


def source_model(tiny, device):
    """Qwen3-0.6B's shape with random weights; tiny for trying the script on a CPU."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    size = dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
                num_key_value_heads=8, head_dim=128, vocab_size=151936)  # fmt: skip
    if tiny:
        size = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, head_dim=16, vocab_size=1000)  # fmt: skip
    config = Qwen3Config(**size, max_position_embeddings=40960, tie_word_embeddings=True, rope_theta=1e6)
    torch.manual_seed(0)
    with torch.device(device):
        return Qwen3ForCausalLM(config).eval()


def open_engine(options):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    source = source_model(options.tiny, device).to(dtype)
    model = gpu.Model(source, device, dtype, options.context, unembed=not options.no_unembed)
    del source
    if device == "cuda" and not options.eager:
        model.compile()
    state = tempfile.mkdtemp()
    settings = gpu.read_options(["--model", "random-0.6b", "--state", state, "--port", "0", "--micro-batch", str(options.micro_batch)])
    settings.slots, settings.eager = max(options.rows), options.eager
    engine = gpu.Engine(model, settings)
    engine.ends = frozenset()
    return engine


def sync():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def requests_of(count, prompt, new, seed=0, vocabulary=1000):
    draw = np.random.default_rng(seed)
    return [
        gpu.Request(draw.integers(5, vocabulary, prompt).astype(np.int32), "base", new, seed=seed * 1000 + i)
        for i in range(count)
    ]


def decode_speed(engine, count, prompt, new):
    """Sampled tokens per second of `count` sequences, prefill timed apart."""
    sampler = engine.sampler
    for turn in range(2):  # the first compiles and captures
        sampler.forget()
        requests = requests_of(count, prompt, new, seed=turn + count, vocabulary=engine.model.vocabulary)
        sampler.waiting.extend(requests)
        sync()
        began = time.perf_counter()
        while sampler.waiting:
            sampler.admit("base")
        sync()
        filled = time.perf_counter()
        steps = 0
        while sampler.active:
            sampler.decode("base")
            steps += 1
        sync()
        ended = time.perf_counter()
    sampled = sum(len(request.tokens) for request in requests) - count
    speed = sampled / (ended - filled)
    rows = gpu.power_of_two(count, 4)
    return {
        "sequences": count, "prompt": prompt, "new": new, "tokens_per_second": round(speed),
        "prefill_tokens_per_second": round(count * prompt / (filled - began)),
        "step_ms": round((ended - filled) / (new - 1) * 1000, 3), "graph_ms": graph_time(engine, rows),
    }  # fmt: skip


def graph_time(engine, rows):
    """One step's own milliseconds on the GPU, without the host."""
    sampler = engine.sampler
    if sampler.graphs is None:
        return None
    graph = sampler.graphs[(rows, False)][0]
    times = []
    for _ in range(20):
        sampler.step.zero_()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        graph.replay()
        b.record()
        sync()
        times.append(a.elapsed_time(b))
    return round(sorted(times)[10], 3)


def rows_of(count, size, vocabulary):
    draw = np.random.default_rng(count + size)
    rows = []
    for _ in range(count):
        ids = draw.integers(5, vocabulary, size + 1)
        inputs = {"logprobs": np.full(size, -12.0, np.float32), "advantages": np.ones(size, np.float32)}
        rows.append(gpu.Row(ids[:-1], ids[1:], inputs))
    return rows


def train_speed(engine, size, tokens, peak, repeats=3):
    """Trained tokens per second of forward and backward, and of the step."""
    learner = engine.learners["bench"]
    engine.live.name = None
    rows = rows_of(max(1, tokens // size), size, engine.model.vocabulary)
    loss = gpu.Loss("ppo", {})
    engine.trainer.learn(learner, rows[: max(1, engine.trainer.budget // size)], loss, True)
    times = []
    for _ in range(repeats):
        sync()
        began = time.perf_counter()
        engine.trainer.learn(learner, rows, loss, True)
        sync()
        times.append(time.perf_counter() - began)
    began = time.perf_counter()
    engine.trainer.optimise(learner, {"learning_rate": 0.0, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0, "grad_clip_norm": 1})
    sync()
    step = time.perf_counter() - began
    speed = len(rows) * size / sorted(times)[len(times) // 2]
    share = 4 * engine.model.parameters() * speed / (peak * 1e12)
    return {
        "row": size, "tokens": len(rows) * size, "micro_batch": engine.trainer.budget, "tokens_per_second": round(speed),
        "share_of_peak": round(share, 3), "optimise_ms": round(step * 1000, 1),
    }  # fmt: skip


def agreement(engine):
    """How far the sampler's and the trainer's log-probabilities of the same tokens are apart."""
    engine.live.use("base", None)
    requests = requests_of(32, 64, 64, seed=99, vocabulary=engine.model.vocabulary)
    engine.sampler.waiting.extend(requests)
    while engine.sampler.waiting or engine.sampler.active:
        engine.sampler.admit("base")
        engine.sampler.decode("base")
    rows = []
    for request in requests:
        ids = np.concatenate([request.prompt, np.asarray(request.tokens, np.int32)])
        rows.append(gpu.Row(ids[:-1], ids[1:], {"weights": np.ones(len(ids) - 1, np.float32)}))
    nows, _ = engine.trainer.learn(engine.learners["bench"], rows, gpu.Loss("cross_entropy", {}), False)
    off = np.concatenate([np.abs(now[63:] - r.raw) for now, r in zip(nows, requests)])
    return {"tokens": off.size, "mean": float(off.mean()), "largest": float(off.max())}


def over_http(engine, count, prompt, new):
    """Tokens per second as a client sees it, every sequence its own request."""
    server = gpu.Server(engine, engine.options)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    engine.thread.start()
    url = f"http://127.0.0.1:{server.server_port}/generate"
    totals = []

    def one(ids):
        params = {"max_new_tokens": new, "ignore_eos": True}
        body = json.dumps({"input_ids": ids, "return_logprob": True, "sampling_params": params}).encode()
        with urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})) as answer:
            totals.append(len(json.loads(answer.read())["output_ids"]))

    for turn in range(2):  # the first captures the graphs of every size on the way
        totals.clear()
        began = time.perf_counter()
        run_all(one, requests_of(count, prompt, new, 7 + turn, engine.model.vocabulary))
        seconds = time.perf_counter() - began
    return {"sequences": count, "tokens_per_second": round(sum(totals) / seconds)}


def run_all(work, requests):
    threads = [threading.Thread(target=work, args=(r.prompt.tolist(),)) for r in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def profile(title, work):
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
        work()
        sync()
    print(f"-- profile: {title}")
    kernels = [row for row in found.key_averages() if row.device_type == torch.autograd.DeviceType.CUDA]
    rows = sorted(kernels, key=lambda row: -row.self_device_time_total)
    total = sum(row.self_device_time_total for row in rows) or 1
    print(f"   {total / 1000:.2f} ms in {sum(row.count for row in rows)} kernels")
    for row in rows[:30]:
        if row.self_device_time_total:
            print(f"{row.self_device_time_total / total:6.1%} {row.self_device_time_total / 1000:9.2f} ms {row.count:6} × {row.key[:90]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", default="64,256", help="sequences decoded at once")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=384)
    parser.add_argument("--train", default="512,1024", help="lengths of the rows trained on")
    parser.add_argument("--tokens", type=int, default=131072, help="tokens of one training batch")
    parser.add_argument("--micro-batch", type=int, default=32768)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--peak", type=float, default=989, help="TFLOP/s of the GPU in bf16")
    parser.add_argument("--no-unembed", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    options.rows = [int(n) for n in options.rows.split(",")]
    began = time.perf_counter()
    engine = open_engine(options)
    found = {"parameters": engine.model.parameters(), "torch": torch.__version__, "open_seconds": round(time.perf_counter() - began, 1)}
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    print(json.dumps(found), flush=True)
    engine.live.use("base", None)
    parts = ["attn", "mlp"] + ([] if options.no_unembed else ["unembed"])
    engine.learners["bench"] = gpu.Learner("bench", gpu.Adapter(engine.model.sites, options.rank, 0, parts, engine.model.device))
    found["decode"] = []
    for count in options.rows:
        found["decode"].append(decode_speed(engine, count, options.prompt, options.new))
        print("decode", json.dumps(found["decode"][-1]), flush=True)
        if options.profile:
            rows = gpu.power_of_two(count, 4)
            profile(f"one decoding step of {count}", lambda: (engine.sampler.step.zero_(), engine.sampler.forward(rows, False)))
    found["agreement"] = agreement(engine)
    print("agreement", json.dumps(found["agreement"]), flush=True)
    found["train"] = []
    for size in [int(n) for n in options.train.split(",")]:
        found["train"].append(train_speed(engine, size, options.tokens, options.peak))
        print("train", json.dumps(found["train"][-1]), flush=True)
    if options.profile:
        size = int(options.train.split(",")[-1])
        rows = rows_of(max(1, engine.trainer.budget // size), size, engine.model.vocabulary)
        profile("forward and backward of one micro-batch", lambda: engine.trainer.learn(engine.learners["bench"], rows, gpu.Loss("ppo", {}), True))
    engine.live.name = None
    found["http"] = over_http(engine, max(options.rows), options.prompt, options.new)
    print("http", json.dumps(found["http"]), flush=True)
    if torch.cuda.is_available():
        found["peak_memory_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 1)
        print(f"peak memory {found['peak_memory_gb']} GB")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
