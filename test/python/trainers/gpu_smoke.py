"""espalier_gpu.py on a CPU, with tiny random models: what it promises, without a GPU.

    python test/python/trainers/gpu_smoke.py [--sdk]      # --sdk: the official Tinker SDK drives it too

Needs torch and transformers; --sdk needs `pip install tinker`. Prints one line per check and ends
with 1 where one failed.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models are tiny
os.environ["TRITON_INTERPRET"] = "1"  # kernels are run by Triton's interpreter, where Triton is installed

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "../../../integrations/python/espalier_gpu.py")
sys.path.insert(0, os.path.dirname(FILE))
import espalier_gpu as gpu  # noqa: E402

torch.manual_seed(0)
failures = []


def check(name, holds, shown=""):
    print(f"{'ok  ' if holds else 'FAIL'} {name}{f'  ({shown})' if shown != '' else ''}", flush=True)
    if not holds:
        failures.append(name)


def make_model(folder, kind="qwen3"):
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(1)
    common = dict(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, max_position_embeddings=256, eos_token_id=2)  # fmt: skip
    made = {
        "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**common, head_dim=16, tie_word_embeddings=True)),
        "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**common)),
        "llama": lambda: LlamaForCausalLM(LlamaConfig(**common)),
        "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=300, n_embd=64, n_layer=2, n_head=4, n_positions=256, eos_token_id=2)),
    }[kind]()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(3)  # sharper than fresh weights, so that mistakes show
    made.save_pretrained(folder)
    return made.float().eval()


class Client:
    def __init__(self, url):
        self.url = url

    def ask(self, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def future(self, path, body):
        status, answer = self.ask(f"/api/v1/{path}", body)
        assert status == 200, (path, status, answer)
        return self.ask("/api/v1/retrieve_future", {"request_id": answer["request_id"]})[1]


def serve(folder, state, *more):
    options = gpu.read_options(["--model", folder, "--state", state, "--port", "0", "--device", "cpu", "--slots", "8", *more])
    engine = gpu.open_engine(options)
    engine.thread.start()
    server = gpu.Server(engine, options)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return engine, server, Client(f"http://127.0.0.1:{server.server_port}")


def truth(model, ids, temperature=1.0):
    """transformers' own log-probabilities of every token but the first."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0].float() / temperature
    return torch.log_softmax(logits[:-1], -1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0].numpy()


def check_sampling(client, model, kind):
    prompts = [[5 + (7 * i + j) % 290 for j in range(20 + i)] for i in range(10)]
    body = {
        "input_ids": prompts, "return_logprob": True,
        "sampling_params": [{"max_new_tokens": 12 + i, "temperature": 0.7, "sampling_seed": i, "ignore_eos": True} for i in range(10)],
    }  # fmt: skip
    _, answers = client.ask("/generate", body)
    worst, sizes = 0.0, []
    for prompt, answer in zip(prompts, answers):
        pairs = answer["meta_info"]["output_token_logprobs"]
        ids = [token for _, token, _ in pairs]
        sizes.append(len(ids))
        expected = truth(model, prompt + ids, 0.7)[len(prompt) - 1 :]
        worst = max(worst, np.abs(expected - [value for value, _, _ in pairs]).max())
    check(f"{kind}: sampled log-probabilities are transformers' at T=0.7", worst < 2e-4, f"{worst:.1e}")
    check(f"{kind}: every sample has the length asked for", sizes == [12 + i for i in range(10)])
    _, again = client.ask("/generate", body)
    check(f"{kind}: the same seeds give the same tokens", [a["output_ids"] for a in answers] == [a["output_ids"] for a in again])
    cached = [a["meta_info"]["cached_tokens"] for a in again]
    longer = prompts[3] + answers[3]["output_ids"] + [9, 8, 7]
    single = {"input_ids": longer, "return_logprob": True, "sampling_params": {"max_new_tokens": 8, "sampling_seed": 4, "ignore_eos": True}}
    _, turn = client.ask("/generate", single)
    pairs = turn["meta_info"]["output_token_logprobs"]
    expected = truth(model, longer + [t for _, t, _ in pairs])[len(longer) - 1 :]
    check(f"{kind}: a second turn over a cached prefix", np.abs(expected - [v for v, _, _ in pairs]).max() < 2e-4,
          f"{turn['meta_info']['cached_tokens']} of {len(longer)} from the cache; a repeated batch {sum(cached)}")  # fmt: skip
    return prompts


def check_limits(client, kind):
    greedy = {"input_ids": [5, 6, 7, 8], "return_logprob": True, "top_logprobs_num": 3,
              "sampling_params": {"max_new_tokens": 6, "temperature": 0, "ignore_eos": True}}  # fmt: skip
    _, answer = client.ask("/generate", greedy)
    meta = answer["meta_info"]
    check(f"{kind}: greedy takes the top candidate", all(row[0][1] == pair[1] for row, pair in zip(meta["output_top_logprobs"], meta["output_token_logprobs"])))
    for setting in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}):
        own = {**greedy, "sampling_params": {"max_new_tokens": 6, "temperature": 1.3, "ignore_eos": True, **setting}}
        _, held = client.ask("/generate", own)
        check(f"{kind}: {setting} leaves one candidate", held["output_ids"] == answer["output_ids"])
    stop = answer["output_ids"][2]
    _, stopped = client.ask("/generate", {**greedy, "sampling_params": {**greedy["sampling_params"], "stop_token_ids": [stop]}})
    check(f"{kind}: stops at an id, which is kept", stopped["output_ids"] == answer["output_ids"][: answer["output_ids"].index(stop) + 1] and stopped["meta_info"]["finish_reason"]["type"] == "stop")


def check_sharing(client, model):
    """A group's prompt is computed once, and so is what all prompts begin with."""
    opening = [5 + (3 * j) % 290 for j in range(90)]
    prompts = [opening + [10 + i // 4] * 70 + [50] for i in range(8)]
    body = {"input_ids": prompts, "return_logprob": True, "sampling_params": {"max_new_tokens": 4, "ignore_eos": True}}
    _, answers = client.ask("/generate", body)
    cached = [answer["meta_info"]["cached_tokens"] for answer in answers]
    worst = 0.0
    for prompt, answer in zip(prompts, answers):
        pairs = answer["meta_info"]["output_token_logprobs"]
        expected = truth(model, prompt + [token for _, token, _ in pairs])[len(prompt) - 1 :]
        worst = max(worst, np.abs(expected - [value for value, _, _ in pairs]).max())
    check("a shared prompt is computed once", sorted(cached) == [0, 90] + [160] * 6 and worst < 2e-4, f"from the cache {cached}; {worst:.1e}")


def check_prefixes():
    """The longest shared beginning that is found by marks, against comparing everything."""
    draw = np.random.default_rng(3)
    sampler = gpu.Sampler.__new__(gpu.Sampler)
    sampler.held, sampler.held_size = np.full((12, 200), -1, np.int32), np.zeros(12, np.int64)
    sampler.held_by, sampler.held_marks, sampler.prefixes = [None] * 12, [[] for _ in range(12)], gpu.Prefixes(200)
    wrong, stem = 0, draw.integers(0, 3, 200)
    for _ in range(400):
        ids = np.concatenate([stem[: draw.integers(0, 150)], draw.integers(0, 3, 50)]).astype(np.int32)
        request = gpu.Request(ids, str(draw.integers(0, 2)), 1, marks=sampler.prefixes.marks(ids[:-1]))
        shared, slot = sampler.longest(request)
        others = [gpu.common_prefix(sampler.held[i, : sampler.held_size[i]], ids[:-1]) for i in range(12) if sampler.held_by[i] == request.adapter]
        best = max(others, default=0)
        # Fewer than sixteen shared tokens are not worth a search; among equals any slot will do.
        wrong += not (shared == best or (best < 16 and shared == 0) or (shared // 16 == best // 16 and shared > 0))
        wrong += shared > 0 and not (sampler.held[slot, :shared] == ids[:shared]).all()
        sampler.hold_in(int(draw.integers(0, 12)), request.adapter, ids)
    check("beginnings that slots share are found", wrong == 0, f"{wrong} of 400 wrong")


def check_crowd(client):
    """Many clients at once, with threads that change as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    statuses = []

    def one(index):
        for turn in range(4):
            body = {"input_ids": [5 + index, 6, 7 + turn], "sampling_params": {"max_new_tokens": 3, "ignore_eos": True}}
            statuses.append(client.ask("/generate", body)[0])

    threads = [threading.Thread(target=one, args=(index,)) for index in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    check("forty clients at once are all answered", statuses == [200] * 160, f"{statuses.count(200)} of 160")


def check_kernels():
    """The GPU's own kernels, by Triton's interpreter, against PyTorch's operations and their slopes."""
    if gpu.triton is None:
        return print("     kernels: Triton is not installed")
    if tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 4):
        # Triton 3.6 takes lists of one number for numbers, which NumPy no longer does.
        return print("     kernels: Triton's interpreter needs numpy<2.4")
    logits, targets, slope = torch.randn(6, 10000) * 3, torch.randint(0, 10000, (6,)), torch.randn(6)
    now, normal, out = torch.empty(6), torch.empty(6), torch.empty(6, 10000)
    gpu.head_sums_kernel[(6,)](logits, targets, now, normal, 10000, BLOCK=4096)
    gpu.head_slope_kernel[(6, 3)](logits, targets, normal, slope, out, 10000, BLOCK=4096)
    leaf = logits.clone().requires_grad_()
    expected = torch.log_softmax(leaf, -1).gather(1, targets[:, None])[:, 0]
    (by_torch,) = torch.autograd.grad(expected, leaf, slope)
    off = max(float((now - expected.detach()).abs().max()), float((out - by_torch).abs().max()))
    check("kernel: log-probabilities and their slope", off < 1e-5, f"{off:.1e}")
    x, y, weight = torch.randn(5, 24, requires_grad=True), torch.randn(5, 24, requires_grad=True), torch.rand(24) + 0.5
    compare("the residual stream's norm", gpu.add_norm(x, y, weight, 1e-6), gpu.AddNorm.apply(x, y, weight, 1e-6), [x, y])
    both, a = torch.randn(4, 20, requires_grad=True), torch.randn(3, 10, requires_grad=True)
    b, frozen = torch.randn(6, 3, requires_grad=True), torch.randn(6, 10)
    weight = torch.cat((frozen, b.detach(), torch.zeros(6, 2)), 1)
    compare("the gated map", [gpu.gated_linear(both, False, weight, (a, b))], [gpu.GatedLinear.apply(both, a, b, weight)], [both, a, b])
    for norms in (True, False):
        qkv, angle = torch.randn(5, 128, requires_grad=True), torch.rand(5, 8) * 6
        layer = {name: torch.rand(16) + 0.5 if norms else None for name in ("q_norm", "k_norm")}
        cos, sin = torch.cat((angle.cos(),) * 2, -1), torch.cat((angle.sin(),) * 2, -1)
        shape = (4, 2, 16, 1e-6)
        ours = gpu.Turn.apply(qkv, layer["q_norm"], layer["k_norm"], cos, sin, shape)
        compare(f"queries and keys turned{', normed' if norms else ''}", gpu.turned(qkv, layer, cos, sin, shape), ours, [qkv])


def compare(name, expected, found, leaves):
    """Values and slopes of the same thing, computed in two ways."""
    torch.manual_seed(2)
    slopes = [torch.randn_like(t) for t in expected]
    pairs = list(zip(expected, found))
    pairs += zip(*(torch.autograd.grad(list(t), leaves, slopes) for t in (expected, found)))
    off = max(float((one - other).abs().max()) for one, other in pairs)
    check(f"kernel: {name}", off < 1e-5, f"{off:.1e}")


def check_stream(client):
    body = {"input_ids": [5, 6, 7], "stream": True, "return_logprob": True, "sampling_params": {"max_new_tokens": 20, "sampling_seed": 3, "ignore_eos": True}}
    request = urllib.request.Request(client.url + "/generate", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        lines = [line[6:] for line in answer.read().decode().split("\n") if line.startswith("data: ")]
    whole = client.ask("/generate", {**body, "stream": False})[1]
    check("streamed events end like the whole answer", lines[-1] == "[DONE]" and json.loads(lines[-2])["output_ids"] == whole["output_ids"], f"{len(lines) - 1} events")


def check_score(client, model):
    ids = [5 + (11 * j) % 290 for j in range(40)]
    body = {"input_ids": ids, "return_logprob": True, "logprob_start_len": 9, "sampling_params": {"max_new_tokens": 1, "ignore_eos": True}}
    pairs = client.ask("/generate", body)[1]["meta_info"]["input_token_logprobs"]
    worst = np.abs(truth(model, ids)[9:] - [v for v, _, _ in pairs[1:]]).max()
    check("scores are transformers'", worst < 2e-4 and pairs[0][0] is None and [t for _, t, _ in pairs] == ids[9:], f"{worst:.1e}")


def check_bad_input(client):
    cases = [
        ("/generate", {}, 400), ("/generate", {"input_ids": []}, 400), ("/generate", {"input_ids": [1, 999]}, 400),
        ("/generate", {"input_ids": [1] * 300}, 400), ("/generate", {"input_ids": [1, -4]}, 400), ("/generate", {"input_ids": "x"}, 400),
        ("/generate", {"input_ids": [1, 2], "sampling_params": {"temperature": "hot"}}, 400),
        ("/generate", {"input_ids": [1, 2], "sampling_params": {"temperature": -1}}, 400),
        ("/generate", {"input_ids": [[1], [2]], "sampling_params": [{}]}, 400), ("/nothing", {}, 404),
        ("/api/v1/create_model", {}, 400), ("/api/v1/create_model", {"session_id": "s", "model_seq_id": 0, "base_model": "other"}, 404),
        ("/api/v1/create_model", {"session_id": "s", "model_seq_id": 0, "lora_config": {"rank": 4096}}, 400),
        ("/api/v1/asample", {"sampling_session_id": "none", "prompt": {"chunks": [{"type": "encoded_text", "tokens": [1]}]}, "sampling_params": {}}, 404),
        ("/api/v1/optim_step", {"model_id": "none", "seq_id": 1, "adam_params": {}}, 404),
        ("/api/v1/retrieve_future", {"request_id": "none"}, 410), ("/api/v1/load_weights", {"path": "tinker://a/../b", "optimizer": True}, 400),
        ("/api/v1/forward_backward", {"model_id": "none", "seq_id": 1, "forward_backward_input": {"data": [], "loss_fn": "ppo"}}, 400),
    ]  # fmt: skip
    wrong = []
    for path, body, expected in cases:
        status, answer = client.ask(path, body)
        if status != expected or not isinstance(answer.get("error"), str):
            wrong.append((path, body, status, answer))
    check(f"{len(cases)} bad requests are answered with 4xx and a reason", not wrong, wrong[:2] or "")
    for data, kind in ((b"{", "application/json"), (b"\x0a\xff", "application/x-protobuf"), (b"\x1f" * 50, "application/x-protobuf")):
        request = urllib.request.Request(client.url + "/api/v1/forward_backward", data, {"content-type": kind})
        try:
            urllib.request.urlopen(request, timeout=10)
            status = 200
        except urllib.error.HTTPError as error:
            status = error.code
        check(f"broken {kind} is answered", status == 400, status)


def datum(ids, **inputs):
    size = len(ids) - 1
    tensors = {"target_tokens": ids[1:], **inputs}
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": ids[:-1]}]},
        "loss_fn_inputs": {k: {"data": list(map(float, v)) if k != "target_tokens" else v, "dtype": "float32", "shape": [size]} for k, v in tensors.items()},
    }


def open_training(client, seq=0, rank=4, **lora):
    session = client.ask("/api/v1/create_session", {"tags": []})[1]["session_id"]
    made = client.future("create_model", {"session_id": session, "model_seq_id": seq, "lora_config": {"rank": rank, "seed": 3, **lora}})
    return session, made["model_id"]


def forward_backward(client, model_id, number, data, loss, config=None, path="forward_backward"):
    return client.future(path, {"model_id": model_id, "seq_id": number, "forward_backward_input": {"data": data, "loss_fn": loss, "loss_fn_config": config or {}}})


def step(client, model_id, number, **params):
    return client.future("optim_step", {"model_id": model_id, "seq_id": number, "adam_params": {"learning_rate": 5e-3, **params}})


def check_training(engine, client, model):
    session, key = open_training(client)
    ids = [5 + (13 * j) % 290 for j in range(30)]
    rows = [datum(ids, weights=[1] * 29), datum(ids[:11], weights=[1] * 10)]
    first = forward_backward(client, key, 1, rows, "cross_entropy")
    now = np.array(first["loss_fn_outputs"][0]["logprobs"]["data"])
    check("training's log-probabilities are transformers'", np.abs(now - truth(model, ids)).max() < 2e-4)
    expected = -truth(model, ids).sum() - truth(model, ids[:11]).sum()
    check("cross_entropy sums", abs(first["metrics"]["loss:sum"] - expected) < 1e-2)
    check_gradient(engine, key, ids)
    for number in range(2, 60, 2):
        last_step = step(client, key, number)
        last = forward_backward(client, key, number + 1, rows, "cross_entropy")
    check("cross_entropy falls", last["metrics"]["loss:sum"] < 0.3 * expected, f"{expected:.1f} to {last['metrics']['loss:sum']:.1f}")
    check("steps tell the gradient's norm", last_step["metrics"]["grad_norm:mean"] > 0)
    published = client.future("save_weights_for_sampler", {"model_id": key, "seq_id": 60, "sampling_session_seq_id": 0})
    sample = {"sampling_session_id": published["sampling_session_id"], "seq_id": 0, "num_samples": 3, "prompt": {"chunks": [{"type": "encoded_text", "tokens": ids[:6]}]},
              "sampling_params": {"max_tokens": 16, "temperature": 1.0, "seed": 1, "stop": []}}  # fmt: skip
    sampled = client.future("asample", sample)
    worst = 0.0
    data = [datum(ids[:6] + s["tokens"], weights=[1] * (5 + len(s["tokens"]))) for s in sampled["sequences"]]
    again = forward_backward(client, key, 61, data, "cross_entropy", path="forward")
    for sequence, output in zip(sampled["sequences"], again["loss_fn_outputs"]):
        worst = max(worst, np.abs(np.array(output["logprobs"]["data"])[5:] - sequence["logprobs"]).max())
    check("what is trained is what was sampled", worst < 1e-5, f"largest difference {worst:.1e}")
    scored = client.future("asample", {**sample, "seq_id": 1, "num_samples": 1, "prompt_logprobs": True})
    check("prompt_logprobs has none first", scored["prompt_logprobs"][0] is None and len(scored["prompt_logprobs"]) == 6)
    return session, key, sample, sampled


def check_gradient(engine, key, ids):
    """The gradient against finite differences of the loss, in one direction."""
    learner = engine.learners[key]
    gradients = learner.gradients
    row = gpu.Row(np.array(ids[:-1]), np.array(ids[1:]), {"weights": np.ones(29, np.float32)})
    short = gpu.Row(np.array(ids[:10]), np.array(ids[1:11]), {"weights": np.ones(10, np.float32)})
    loss = gpu.Loss("cross_entropy", {})
    torch.manual_seed(5)
    ways = [torch.randn_like(t) for t in learner.adapter.trained]
    slope = float(sum((w * g).sum() for w, g in zip(ways, gradients)))

    def at(distance):
        with torch.no_grad():
            torch._foreach_add_(learner.adapter.trained, ways, alpha=distance)
        total = engine.trainer.learn(learner, [row, short], loss, False)[1]
        with torch.no_grad():
            torch._foreach_add_(learner.adapter.trained, ways, alpha=-distance)
        return total

    found = (at(1e-4) - at(-1e-4)) / 2e-4
    check("the gradient is that of finite differences", abs(found - slope) < 0.02 * abs(slope) + 0.05, f"{slope:.3f} and {found:.3f}")


def check_losses(client):
    """Losses by name against their formulas, at ratios away from 1."""
    _, key = open_training(client, seq=7)
    ids = [5 + (17 * j) % 290 for j in range(12)]
    plain = forward_backward(client, key, 1, [datum(ids, weights=[1] * 11)], "cross_entropy", path="forward")
    now = np.array(plain["loss_fn_outputs"][0]["logprobs"]["data"])
    old = now - np.linspace(-0.6, 0.6, 11)
    advantages = np.where(np.arange(11) % 2, 1.0, -0.5)
    ratio = np.exp(now - old)
    held = np.clip(ratio, 0.8, 1.28)
    expected = {
        "importance_sampling": -(ratio * advantages).sum(),
        "ppo": -np.minimum(ratio * advantages, held * advantages).sum(),
        "cispo": -(held * advantages * now).sum(),
    }
    config = {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28}
    for number, (name, value) in enumerate(expected.items()):
        row = datum(ids, logprobs=old, advantages=advantages)
        found = forward_backward(client, key, 2 + number, [row], name, {} if name == "importance_sampling" else config)["metrics"]["loss:sum"]
        check(f"{name} is its formula", abs(found - value) < 1e-3, f"{found:.5f}")
    refused = client.ask("/api/v1/forward_backward", {"model_id": key, "seq_id": 9, "forward_backward_input": {"data": [datum(ids)], "loss_fn": "grpo"}})
    check("an unknown loss is refused by name", refused[0] == 400 and "grpo" in refused[1]["error"])


def check_paths(engine, client):
    """Losses over paths: rows with shared tokens once give the gradient of the full paths."""
    shared, left, right = list(range(5, 25)), [30, 31, 32, 33], [40, 41, 42, 43, 44, 45]
    config = {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28}
    for loss, mean in (("ppo", False), ("ppo", True), ("gspo", True), ("gmpo", True), ("cispo", True)):
        found = []
        for form in ("once", "full"):
            _, key = open_training(client, seq=20)
            learner = engine.learners[key]
            with torch.no_grad():
                for tensor in learner.adapter.trained:
                    tensor.add_(torch.randn(tensor.shape, generator=torch.Generator().manual_seed(tensor.numel())) * 0.05)
            full = [datum(shared + left, logprobs=[-5.0] * 23), datum(shared + right, logprobs=[-5.0] * 25)]
            # The second leaf's row owns only its suffix: its prefix is the first row's.
            second = [[0, 4, 19], [1, 19, 25]] if form == "once" else [[1, 4, 25]]
            paths = [{"spans": [[0, 4, 23]], "advantage": 1.0, "weight": 0.5}, {"spans": second, "advantage": -1.0, "weight": 0.5}]
            text = json.dumps({"mean": mean, "paths": paths})
            own = config if loss != "gspo" else {"clip_low_threshold": 0.01, "clip_high_threshold": 100}
            answer = forward_backward(client, key, 1, full, loss, {**own, "paths": text})
            assert "metrics" in answer, answer
            found.append([g.clone() for g in learner.gradients])
        size = math.sqrt(sum(float((g**2).sum()) for g in found[1]))
        off = math.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(*found))) / size
        check(f"{loss} over paths{' (mean)' if mean else ''}: shared tokens once or in every path", off < 1e-5 and size > 0, f"relative difference {off:.1e}")
    bad = client.ask("/api/v1/forward_backward", {"model_id": key, "seq_id": 2, "forward_backward_input": {"data": full, "loss_fn": "ppo", "loss_fn_config": {"paths": json.dumps({"paths": [{"spans": [[7, 0, 1]], "advantage": 1}]})}}})
    check("a path outside of the data is refused", bad[0] == 400)


def check_memory(engine, client):
    """Memory that runs out: smaller micro-batches, the same gradient."""
    trainer = engine.trainer
    _, key = open_training(client, seq=30)
    learner = engine.learners[key]
    rows = [gpu.Row(np.arange(5, 5 + n), np.arange(6, 6 + n), {"weights": np.ones(n, np.float32)}) for n in (50, 40, 30, 20, 10)]
    loss = gpu.Loss("cross_entropy", {})
    trainer.learn(learner, rows, loss, True)
    whole, learner.gradients = learner.gradients, None
    pack, seen = trainer.pack, []

    def scarce(rows, part):
        seen.append(len(part))
        if len(part) > 1:
            raise torch.cuda.OutOfMemoryError("as on a small GPU")
        return pack(rows, part)

    trainer.pack, budget = scarce, trainer.budget
    trainer.learn(learner, rows, loss, True)
    trainer.pack, trainer.budget = pack, budget
    off = max(float((a - b).abs().max()) for a, b in zip(whole, learner.gradients))
    check("out of memory is survived by halving", seen[:3] == [5, 2, 1] and off < 1e-3, f"micro-batches of {seen}; {off:.1e}")
    learner.gradients = None
    engine.model.checkpoints = True
    trainer.learn(learner, rows, loss, True)
    engine.model.checkpoints = False
    off = max(float((a - b).abs().max()) for a, b in zip(whole, learner.gradients))
    check("activations computed twice give the same gradient", off < 1e-3, f"{off:.1e}")


def check_killed(folder, state):
    """kill -9 after a step: what was learned is there, the numbering goes on."""
    port = "18931"
    command = [sys.executable, FILE, "--model", folder, "--state", state, "--port", port, "--device", "cpu", "--slots", "4", "--gap-seconds", "0"]
    client = Client(f"http://127.0.0.1:{port}")

    def start():
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        process.stdout.readline()
        return process

    process = start()
    try:
        session, key = open_training(client)
        rows = [datum(list(range(5, 30)), weights=[1] * 24)]
        for number in (1, 3, 5):
            forward_backward(client, key, number, rows, "cross_entropy")
            step(client, key, number + 1)
        before = forward_backward(client, key, 7, rows, "cross_entropy", path="forward")["metrics"]["loss:sum"]
        published = client.future("save_weights_for_sampler", {"model_id": key, "seq_id": 8, "sampling_session_seq_id": 0})["sampling_session_id"]
        saved = os.path.join(state, gpu.safe_name(key), "state", "last", "espalier.json")
        for _ in range(200):
            if os.path.exists(saved) and json.load(open(saved))["step"] == 3:
                break
            time.sleep(0.02)
        process.kill()
        process.wait()
        process = start()
        after = forward_backward(client, key, 9, rows, "cross_entropy", path="forward")["metrics"]["loss:sum"]
        check("after kill -9 the last step is there", abs(before - after) < 1e-3, f"loss {before:.3f} and {after:.3f}")
        sample = {"sampling_session_id": published, "seq_id": 0, "prompt": {"chunks": [{"type": "encoded_text", "tokens": [5, 6]}]}, "sampling_params": {"max_tokens": 4}}
        check("and its sampling session too", "sequences" in client.future("asample", sample))
        lost = step(client, key, 10)
        check("a step without its gradient is refused, not taken", "error" in lost and "gradient" in lost["error"])
        forward_backward(client, key, 11, rows, "cross_entropy")
        check("and training goes on", "metrics" in step(client, key, 12))
    finally:
        process.kill()


def check_checkpoints(engine, client, session, key, sample, sampled):
    saved = client.future("save_weights", {"model_id": key, "seq_id": 62, "path": "kept"})["path"]
    made = client.future("load_weights", {"session_id": session, "model_seq_id": 40, "path": saved, "optimizer": True})["model_id"]
    a, b = engine.learners[key], engine.learners[made]
    same = all(torch.equal(x, y) for x, y in zip(a.adapter.trained, b.adapter.trained))
    check("a checkpoint is loaded to the bit, optimiser included", same and all(torch.equal(x[1], y[1]) for x, y in zip(a.moments, b.moments)) and a.step == b.step)
    named = client.future("save_weights_for_sampler", {"model_id": key, "seq_id": 63, "path": "served"})["path"]
    opened = client.ask("/api/v1/create_sampling_session", {"session_id": session, "sampling_session_seq_id": 9, "model_path": named})[1]["sampling_session_id"]
    engine.adapters.clear()
    again = client.future("asample", {**sample, "sampling_session_id": opened})
    check("samples from a named checkpoint equal those before", [s["tokens"] for s in again["sequences"]] == [s["tokens"] for s in sampled["sequences"]])
    try:
        from peft import PeftModel
    except ImportError:
        return
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(engine.options.model, dtype=torch.float32)
    merged = PeftModel.from_pretrained(base, engine.store.find(named)).eval()
    ids = sample["prompt"]["chunks"][0]["tokens"] + sampled["sequences"][0]["tokens"]
    off = np.abs(truth(merged, ids)[5:] - sampled["sequences"][0]["logprobs"]).max()
    check("PEFT opens what was exported", off < 2e-4, f"{off:.1e}")


def check_sdk(client):
    """The official SDK drives the server: protobuf both ways."""
    os.environ["TINKER_API_KEY"] = "tml-none"
    import tinker
    from tinker import types

    service = tinker.ServiceClient(base_url=client.url)
    model = service.get_server_capabilities().supported_models[0].model_name
    trainer = service.create_lora_training_client(base_model=model, rank=4)
    ids = [5 + (13 * j) % 290 for j in range(30)]
    row = types.Datum(model_input=types.ModelInput.from_ints(ids[:-1]), loss_fn_inputs={"target_tokens": np.array(ids[1:]), "weights": np.ones(29, np.float32)})
    losses = []
    for _ in range(12):
        future = trainer.forward_backward([row] * 3, "cross_entropy")
        trainer.optim_step(types.AdamParams(learning_rate=5e-3, grad_clip_norm=1.0)).result()
        losses.append(future.result().metrics["loss:sum"])
    check("SDK: cross_entropy falls", losses[-1] < losses[0], f"{losses[0]:.1f} to {losses[-1]:.1f}")
    sampler = trainer.save_weights_and_get_sampling_client()
    prompt = types.ModelInput.from_ints(ids[:6])
    params = types.SamplingParams(max_tokens=10, seed=1, temperature=1.0, stop=[])
    sampled = sampler.sample(prompt=prompt, num_samples=4, sampling_params=params, include_prompt_logprobs=True).result()
    check("SDK: samples with log-probabilities", [len(s.logprobs) for s in sampled.sequences] == [10] * 4 and sampled.prompt_logprobs[0] is None)
    rows = []
    for sequence in sampled.sequences:
        whole = ids[:6] + list(sequence.tokens)
        rows.append(types.Datum(model_input=types.ModelInput.from_ints(whole[:-1]), loss_fn_inputs={
            "target_tokens": np.array(whole[1:]), "logprobs": np.array([0.0] * 5 + list(sequence.logprobs), np.float32),
            "advantages": np.array([0.0] * 5 + [1.0] * 10, np.float32)}))  # fmt: skip
    found = trainer.forward_backward(rows, "importance_sampling").result()
    check("SDK: importance_sampling at ratio 1", abs(found.metrics["loss:sum"] + 40) < 1e-2, f"{found.metrics['loss:sum']:.4f}")
    found = trainer.forward_backward(rows, "ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28}).result()
    worst = max(np.abs(o["logprobs"].to_numpy()[5:] - s.logprobs).max() for o, s in zip(found.loss_fn_outputs, sampled.sequences))
    check("SDK: sampler and trainer agree on every token", worst < 1e-5, f"{worst:.1e}")
    custom = trainer.forward_backward_custom(rows, lambda data, logprobs: (sum(l.sum() for l in logprobs), {"mine": 1.0}))
    check("SDK: a custom loss", custom.result().metrics["mine"] == 1.0)
    trainer.optim_step(types.AdamParams(learning_rate=1e-4)).result()
    path = trainer.save_state("one").result().path
    check("SDK: a training client from a checkpoint", service.create_training_client_from_state(path).get_info().lora_rank == 4, path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("qwen2", "llama", "gpt2", "qwen3"):
            place = os.path.join(folder, kind)
            model = make_model(place, kind)
            engine, server, client = serve(place, os.path.join(folder, f"{kind}-state"))
            check(f"{kind}: {'our own forward' if engine.model.batched else 'transformers forward'}", engine.model.batched == (kind != "gpt2"))
            check_sampling(client, model, kind)
            check_limits(client, kind)
            if kind == "gpt2":
                check_training(engine, client, model)
        check_sharing(client, model)
        check_prefixes()
        check_crowd(client)
        check_kernels()
        check_stream(client)
        check_score(client, model)
        check_bad_input(client)
        kept = check_training(engine, client, model)
        check_checkpoints(engine, client, *kept)
        check_losses(client)
        check_paths(engine, client)
        check_memory(engine, client)
        if "--sdk" in sys.argv:
            check_sdk(client)
        check_killed(place, os.path.join(folder, "killed"))
        engine.store.writes.join()
    print(f"{len(failures)} failed" if failures else "all hold")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
