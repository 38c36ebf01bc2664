"""Two real training steps of TRL over Espalier's rollouts, on a CPU, with a tiny random model.

    python test/python/train_trl.py        # in a Python that has trl

The model is served by this process over SGLang's /generate, rolled by `espalier rollouts` in a
two-turn world, and trained by GRPOTrainer through integrations/python/espalier_trl.py. Checked:
shapes and masks, log-probabilities against the model's own, advantages against the run's, a finite
loss, weights that moved; then the same rows from an export, as TRL's asynchronous GRPO collates
them. Needs node and this checkout; not part of npm test.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "integrations" / "python"))
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
import trl
from datasets import Dataset
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

import espalier_trl
from espalier_client import Client

MODEL = ROOT / "models" / "chatml-bytes"
GENERATIONS = 4
PROMPTS = 2
ESPALIER = ["node", "--import", "tsx", str(ROOT / "src" / "cli" / "main.ts")]


def make_model(tokenizer):
    torch.manual_seed(1)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=512,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


def logprobs_of(model, ids):
    """Log-probabilities of each id after the first."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1].float()
    return logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


class Served:
    """The trainer's own model behind the part of SGLang's protocol that is needed here."""

    def __init__(self, model):
        self.model, self.lock, self.version, self.calls = model, threading.Lock(), 0, 0

    @torch.no_grad()
    def generate(self, ids, parameters):
        generator = torch.Generator().manual_seed(int(parameters["sampling_seed"]))
        stops = set(parameters.get("stop_token_ids") or [])
        ids, sampled = list(ids), []
        while len(sampled) < min(24, parameters["max_new_tokens"]):
            logits = self.model(torch.tensor([ids])).logits[0, -1].float()
            logprobs = (logits / parameters["temperature"]).log_softmax(-1)
            token = int(torch.multinomial(logprobs.exp(), 1, generator=generator))
            sampled.append((float(logprobs[token]), token))
            ids.append(token)
            if token in stops:
                break
        stopped = sampled[-1][1] in stops
        finish = (
            {"type": "stop", "matched": sampled[-1][1]}
            if stopped
            else {"type": "length", "length": len(sampled)}
        )
        return {
            "text": "",
            "output_ids": [token for _, token in sampled],
            "meta_info": {
                "id": "x",
                "finish_reason": finish,
                "prompt_tokens": len(ids) - len(sampled),
                "completion_tokens": len(sampled),
                "cached_tokens": 0,
                "weight_version": str(self.version),
                "output_token_logprobs": [[value, token, None] for value, token in sampled],
            },
        }

    def answer(self, body):
        with self.lock:
            self.calls += 1
            self.model.eval()
            ids, parameters = body["input_ids"], body["sampling_params"]
            if ids and isinstance(ids[0], list):
                return [self.generate(each, own) for each, own in zip(ids, parameters)]
            return self.generate(ids, parameters)


def serve(served):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, value):
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            self.reply({"model_path": str(MODEL), "weight_version": str(served.version)})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
            self.reply(served.answer(body) if self.path == "/generate" else {})

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def start_espalier(policy, run):
    words = ["rollouts", "--policy", f"sglang:{policy}", "--model", str(MODEL), "--json"]
    words += ["--environment", str(ROOT / "test" / "python" / "letters.ts") + "#letters"]
    words += ["--port", "0", "--out", run, "--on-length", "continue", "--max-new-tokens", "24"]
    process = subprocess.Popen([*ESPALIER, *words], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    line = process.stdout.readline()
    if not line:
        raise SystemExit("espalier rollouts did not start")
    return process, json.loads(line)["url"]


class Version(TrainerCallback):
    """Tells the server which step its weights are of."""

    def __init__(self, served):
        self.served = served

    def on_step_end(self, args, state, control, **kwargs):
        self.served.version = state.global_step


class Watched(GRPOTrainer):
    """Keeps what the trainer is about to learn from."""

    seen = []

    def compute_loss(self, model, inputs, *args, **kwargs):
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        value = loss[0] if isinstance(loss, tuple) else loss
        self.seen.append(({k: v for k, v in inputs.items()}, float(value.detach())))
        return loss


def train(model, tokenizer, url, served):
    prompts = [[{"role": "user", "content": text}] for text in ("Say letters.", "Say words.")]
    dataset = Dataset.from_list([{"prompt": prompt} for prompt in prompts] * 4)
    rolled = []
    rollout = espalier_trl.rollout(Client(url))

    def rollout_func(given, trainer):
        output = rollout(given, trainer)
        rolled.append({name: list(values) for name, values in output.items()})
        check_rollout(output, model, trainer.state.global_step)
        return output

    batch = GENERATIONS * PROMPTS
    trainer = Watched(
        model=model,
        processing_class=tokenizer,
        reward_funcs=espalier_trl.reward,
        rollout_func=rollout_func,
        train_dataset=dataset,
        callbacks=[Version(served)],
        args=GRPOConfig(
            output_dir=tempfile.mkdtemp(),
            per_device_train_batch_size=batch,
            num_generations=GENERATIONS,
            max_completion_length=128,
            max_steps=2,
            learning_rate=1e-3,
            beta=0.0,
            loss_type="grpo",
            use_cpu=True,
            bf16=False,
            report_to=[],
            save_strategy="no",
            logging_steps=1,
            shuffle_dataset=False,
            disable_dropout=True,
        ),
    )
    before = [parameter.detach().clone() for parameter in model.parameters()]
    trainer.train()
    moved = max(float((a - b.detach()).abs().max()) for a, b in zip(before, model.parameters()))
    return rolled, moved


def check_rollout(output, model, step):
    """Every sampled token has the log-probability that the model itself gives it."""
    worst = 0.0
    for prompt, completion, logprobs, mask in zip(
        *(output[name] for name in ("prompt_ids", "completion_ids", "logprobs", "env_mask"))
    ):
        assert len(completion) == len(logprobs) == len(mask)
        assert set(mask) == {0, 1}, "two turns have observed tokens between them"
        own = logprobs_of(model, prompt + completion)[len(prompt) - 1 :]
        for token, bit in enumerate(mask):
            if bit:
                worst = max(worst, abs(float(own[token]) - logprobs[token]))
            else:
                assert logprobs[token] == 0.0
    print(f"step {step}: {len(output['prompt_ids'])} rows, {sum(map(sum, output['env_mask']))} sampled "
          f"tokens, log-probabilities within {worst:.1e} of the model's own")
    assert worst < 1e-4


def check_training(rolled):
    """What TRL trained on is what was rolled, with the advantages of the run."""
    assert len(Watched.seen) == 2
    for output, (inputs, loss) in zip(rolled, Watched.seen):
        rows = len(output["prompt_ids"])
        assert math.isfinite(loss)
        assert inputs["completion_ids"].shape[0] == inputs["advantages"].shape[0] == rows
        mask = inputs["completion_mask"] * inputs["tool_mask"]
        theirs = sorted(int(count) for count in mask.sum(1))
        assert theirs == sorted(sum(each) for each in output["env_mask"])
        expected = []
        for start in range(0, rows, GENERATIONS):
            group = torch.tensor(output["espalier_reward"][start : start + GENERATIONS])
            expected += ((group - group.mean()) / (group.std() + 1e-4)).tolist()
        got = sorted(inputs["advantages"].flatten().tolist())
        assert all(abs(a - b) < 1e-4 for a, b in zip(got, sorted(expected)))
        print(f"loss {loss:+.6f}, advantages {min(got):+.3f} to {max(got):+.3f}, "
              f"trained tokens per row {theirs[0]} to {theirs[-1]}")


def check_export(run):
    """The run's export, as TRL's asynchronous GRPO collates it."""
    path = os.path.join(tempfile.mkdtemp(), "rows.trl.jsonl")
    subprocess.run([*ESPALIER, "export", run, "--to", "trl", "--out", path], check=True, cwd=ROOT)
    rows = [json.loads(line) for line in open(path)]
    try:
        samples = espalier_trl.rollout_samples(path)
    except ImportError as error:
        print(f"asynchronous GRPO cannot be imported here ({error}); its rows were not collated")
        return
    for row, sample in zip(rows, samples):
        assert len(sample.input_ids) == len(sample.completion_mask) == len(sample.old_log_probs)
        trained = [token for token, bit in zip(sample.input_ids, sample.completion_mask) if bit]
        assert len(trained) == sum(row["env_mask"])
    print(f"{len(samples)} rows of the run as RolloutSample, advantages as they were weighed")


def main():
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = make_model(tokenizer)
    served = Served(model)
    run = os.path.join(tempfile.mkdtemp(), "run")
    print(f"trl {trl.__version__}, transformers {transformers.__version__}, torch {torch.__version__}")
    process, url = start_espalier(serve(served), run)
    try:
        rolled, moved = train(model, tokenizer, url, served)
        check_training(rolled)
        assert moved > 0
        print(f"weights moved by up to {moved:.1e}; {served.calls} requests for samples")
    finally:
        process.terminate()
        process.wait()
    check_export(run)
    print("ok")


if __name__ == "__main__":
    main()
