"""Teaching a model from demonstrations whose rows begin alike.

Most of a demonstration is the opening that all demonstrations of an environment share: the rules and
the tools. A batch therefore holds that opening once, and every row only its own rest, whose tokens
attend to the opening's keys and values: the numbers are those of whole rows, at a sixth of the cost.
"""

import copy
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

LEARNED = 1 << 30


class Lesson:
    """The demonstrations of one environment: the ids they begin with, and what follows in each."""

    def __init__(self, name, rows, longest, tokens):
        self.name = name
        self.opening = shared_opening(rows)
        tails = [row[len(self.opening) :] for row in rows if len(row) - len(self.opening) <= longest]
        self.width = (max(map(len, tails)) + 7) // 8 * 8
        self.batch = max(1, tokens // self.width)
        kept = max(1, len(tails) // 20)
        self.held_out, self.tails = tails[:kept], tails[kept:]

    def pack(self, tails, device):
        """Ids and positions of the opening and of all rows, the places that predict, and what they should say."""
        first = len(self.opening)
        flagged = np.zeros((len(tails), self.width), np.int64)
        for place, tail in enumerate(tails):
            flagged[place, : len(tail)] = tail
        ids = flagged & (LEARNED - 1)
        rows, columns = np.nonzero(flagged >= LEARNED)
        # A row's first token is predicted at the end of the opening, any other one place before it.
        places = np.where(columns == 0, first - 1, first + rows * self.width + columns - 1)
        positions = np.concatenate([np.arange(first), np.tile(first + np.arange(self.width), len(tails))])
        arrays = (np.concatenate([self.opening, ids.reshape(-1)]), positions, places, ids[rows, columns])
        return [on_device(torch.from_numpy(array.astype(np.int64)), device) for array in arrays]


def on_device(tensor, device):
    """From pinned memory, so that the next step is prepared while this one is computed."""
    return tensor.pin_memory().to(device, non_blocking=True) if device == "cuda" else tensor


def copying(lesson, seed, count=4000):
    """An exercise in the lesson's words: any tokens, and the same ones again, which are to be said.

    A model that has learned to look back finds order numbers in the conversation; without it, most of
    teaching goes by before it does.
    """
    draw = np.random.default_rng([seed, 1])
    words = np.unique(np.concatenate(lesson.tails) & (LEARNED - 1))
    said = draw.choice(words, (count, lesson.width // 2)).astype(np.int32)
    made = copy.copy(lesson)
    made.name, tails = "copying", [np.concatenate([row, row | LEARNED]) for row in said]
    made.held_out, made.tails = tails[:200], tails[200:]
    return made


def read_rows(path):
    """Rows of ids, those to be learned flagged."""
    data = np.fromfile(path, np.int32)
    rows, place = [], 0
    while place < len(data):
        size = data[place]
        rows.append(data[place + 1 : place + 1 + size])
        place += 1 + size
    return rows


def shared_opening(rows):
    """The longest beginning of all rows in which nothing is to be learned."""
    size = min(map(len, rows)) - 1
    first = rows[0][:size]
    for row in rows:
        different = np.nonzero(row[:size] != first[:size])[0]
        size = min(size, int(different[0]) if len(different) else size)
    return first[: min([size, *np.nonzero(first[:size] >= LEARNED)[0]])]


def norm(x, weight, epsilon):
    return F.rms_norm(x.float(), (x.shape[-1],), weight, epsilon)


def turn(x, cos, sin):
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


def attend_rows(q, k, v):
    """Rows over the opening and themselves: q [B, heads, T, dim], k and v [B, heads, P + T, dim]."""
    if q.is_cuda:  # flash attention aligns a causal mask with the end of the keys
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True, False)[0]
    size, whole = q.shape[2], k.shape[2]
    seen = torch.ones(size, whole, dtype=torch.bool, device=q.device).tril(whole - size)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def block(x, weights, cos, sin, first, width, shape):
    """One layer over the opening's tokens and, behind them, those of all rows."""
    heads, kv_heads, dim, epsilon = shape
    norm1, w_q, w_k, w_v, q_norm, k_norm, w_o, norm2, gate, up, down = weights
    y = norm(x, norm1, epsilon)
    q, k, v = (F.linear(y, w).view(len(x), -1, dim) for w in (w_q, w_k, w_v))
    q, k = turn(norm(q, q_norm, epsilon), cos, sin), turn(norm(k, k_norm, epsilon), cos, sin)
    q, k, v = (t.to(v.dtype) for t in (q, k, v))
    k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
    own = [t[:first].transpose(0, 1)[None] for t in (q, k, v)]
    opening = F.scaled_dot_product_attention(*own, is_causal=True)[0].transpose(0, 1)
    rows = [t[first:].view(-1, width, heads, dim).transpose(1, 2) for t in (q, k, v)]
    keys, values = (torch.cat((o.expand(len(r), -1, -1, -1), r), 2) for o, r in zip(own[1:], rows[1:]))
    said = attend_rows(rows[0], keys, values).transpose(1, 2).reshape(-1, heads, dim)
    x = x + F.linear(torch.cat((opening, said)).reshape(len(x), -1), w_o)
    y = norm(x, norm2, epsilon)
    return x + F.linear(F.silu(F.linear(y, gate)) * F.linear(y, up), down)


def layer_weights(layer):
    attention, mlp = layer.self_attn, layer.mlp
    modules = (layer.input_layernorm, attention.q_proj, attention.k_proj, attention.v_proj, attention.q_norm, attention.k_norm,
               attention.o_proj, layer.post_attention_layernorm, mlp.gate_proj, mlp.up_proj, mlp.down_proj)  # fmt: skip
    return tuple(module.weight for module in modules)


def logits_of(model, lesson, packed, run):
    """The logits where something is to be said, through a Qwen3 of transformers and its own weights."""
    ids, positions, places, _ = packed
    config = model.config
    shape = (config.num_attention_heads, config.num_key_value_heads, config.head_dim, config.rms_norm_eps)
    x = model.model.embed_tokens(ids).float()
    cos, sin = (t[0][:, None].float() for t in model.model.rotary_emb(x, positions[None]))
    for layer in model.model.layers:
        x = run(x, layer_weights(layer), cos, sin, len(lesson.opening), lesson.width, shape)
    hidden = norm(x[places], model.model.norm.weight, config.rms_norm_eps)
    return F.linear(hidden, model.lm_head.weight)


def loss_of(model, lesson, packed, run):
    return F.cross_entropy(logits_of(model, lesson, packed, run).float(), packed[3])


@torch.no_grad()
def examine(model, lessons, device):
    """Loss and share of right tokens on demonstrations that were never taught."""
    found = {}
    for lesson in lessons:
        tails = lesson.held_out[: lesson.batch]
        packed = lesson.pack(tails, device)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = logits_of(model, lesson, packed, block).float()
        right = (logits.argmax(-1) == packed[3]).float().mean().item()
        loss = F.cross_entropy(logits, packed[3]).item()
        found[lesson.name] = {"rows": len(tails), "loss": round(loss, 4), "right": round(right, 4)}
    return found


def teach(model, lessons, turn_of, out, steps, rate, seed, save_every=1000):
    """Cross-entropy on what the assistant says, a lesson a step; goes on from its checkpoint.

    `turn_of` says which lesson a step takes. Gives a curve and what was learned.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    model = model.to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=device == "cuda")
    state, first = os.path.join(out, "teaching.pt"), 0
    if os.path.exists(state):
        kept = torch.load(state, map_location=device)
        model.load_state_dict(kept["model"])
        optimiser.load_state_dict(kept["optimiser"])
        first = kept["step"]
    fused = torch.compile(block) if device == "cuda" else block
    began, rows, curve = time.perf_counter(), 0, []
    for step in range(first, steps):
        lesson = lessons[turn_of(step)]
        share = step / steps
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 100) * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share)))
        draw = np.random.default_rng([seed, step])
        tails = [lesson.tails[index] for index in draw.integers(0, len(lesson.tails), lesson.batch)]
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = loss_of(model, lesson, lesson.pack(tails, device), fused if lesson.width == lessons[0].width else block)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rows += len(tails)
        if step % 100 == 0 or step + 1 == steps:
            # Every hundredth step is one of the first lesson, so the curve is one lesson's.
            seconds = time.perf_counter() - began
            curve.append({"step": step + 1, "lesson": lesson.name, "loss": round(loss.item(), 4), "seconds": round(seconds, 1)})
            print(f"teaching {step + 1}/{steps}  {lesson.name}  loss {loss.item():.4f}  {rows / seconds:.0f} rows/s", flush=True)
        if (step + 1) % save_every == 0 and step + 1 < steps:
            save_atomically({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step + 1}, state)
    return {"curve": curve, "seconds": round(time.perf_counter() - began, 1), "rows": rows, "held_out": examine(model, lessons, device)}


def save_atomically(value, path):
    torch.save(value, f"{path}.part")
    os.replace(f"{path}.part", path)
