"""A tiny model in double precision, and what is compared: its gradient by a loss."""

import functools
import json
import subprocess
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parents[3]
VOCABULARY = 48


def make_model():
    """The model that sampled; `moved` is the same some updates later."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        pad_token_id=0,
        eos_token_id=1,
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def move(model):
    """Moves weights far enough that ratios leave the trust region on both sides."""
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.06)
    return model


def logprobs(model, ids):
    """Log-probabilities of every token of a row, 0 for the first."""
    logits = model(torch.tensor([ids])).logits[0, :-1]
    own = logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    return torch.cat([torch.zeros(1, dtype=own.dtype), own])


def padded_logprobs(model, input_ids, attention_mask):
    """Log-probabilities of every token but the first of equally long, padded rows; 0 at padding."""
    rows = []
    for ids, mask in zip(input_ids.tolist(), attention_mask.bool()):
        places = mask.nonzero()[:, 0]
        own = logprobs(model, [ids[place] for place in places.tolist()])
        rows.append(torch.zeros(len(ids), dtype=own.dtype).index_copy(0, places, own))
    return torch.stack(rows)[:, 1:]


def gradient(model, loss):
    """All slopes of a loss as one vector."""
    model.zero_grad(set_to_none=True)
    loss.backward()
    return torch.cat(
        [
            (torch.zeros_like(each) if each.grad is None else each.grad).reshape(-1)
            for each in model.parameters()
        ]
    ).detach()


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


@functools.cache
def ours(folder, file, loss, options):
    """The gradient of our loss over the paths of neutral rows, through the same model."""
    model = move(make_model())
    rows = lines(folder / file)
    with torch.no_grad():
        now = [logprobs(model, row["ids"]).tolist() for row in rows]
    now_file = folder / "now"
    now_file.write_text("".join(json.dumps(each) + "\n" for each in now))
    command = ["node", "--import", "tsx", str(ROOT / "test/python/trainers/ours.ts")]
    arguments = [str(folder / file), str(now_file), loss, options]
    output = subprocess.run(command + arguments, check=True, capture_output=True, text=True, cwd=ROOT)
    slopes = [json.loads(line) for line in output.stdout.splitlines()]
    total = sum(
        (logprobs(model, row["ids"]) * torch.tensor(own, dtype=torch.float64)).sum()
        for row, own in zip(rows, slopes)
    )
    return gradient(model, total)


def score(folder):
    """What the sampling model says of every sampled token, by all ids up to it."""
    model, known = make_model(), {}
    for rows in folder.glob("*/jsonl.ppo"):
        for row in lines(rows):
            with torch.no_grad():
                own = logprobs(model, row["ids"]).tolist()
            for start, end, origin in row["origins"]:
                if origin == "sampled":
                    for token in range(start, end):
                        known[",".join(map(str, row["ids"][: token + 1]))] = own[token]
    (folder / "scores.json").write_text(json.dumps(known))
