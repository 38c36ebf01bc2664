"""One GPU, one file: a server that samples from a causal language model and trains its adapters.

    python espalier_gpu.py --model DIR [--port 8910]
    espalier train --policy tinker:http://127.0.0.1:8910 --trainer tinker:http://127.0.0.1:8910 …
    espalier roll --policy sglang:http://127.0.0.1:8910 …

It needs PyTorch and transformers, nothing else. It speaks Tinker's API (JSON and protobuf, as the
official SDK 0.36 does) and SGLang's `/generate`. The base model is frozen; LoRA adapters are
trained. Sampling and training run the same code over the same weights, so what is trained is what was
sampled.

From top to bottom: errors, protobuf, adapters, kernels, the model, the sampler, losses, the trainer,
checkpoints, the worker, HTTP. One worker thread owns the GPU; HTTP threads only read, check and wait.

Losses over paths: a `loss_fn_config` may hold the text `paths`, JSON of the form
    {"mean": false, "paths": [{"spans": [[row, from, to], …], "advantage": 1.0, "weight": 0.5}, …]}
Each token is forwarded once, in its row. The log-probabilities of a path's spans are gathered, the
loss is computed per path (`mean`: over its tokens; otherwise their sum) with that path's advantage
and weight, and gradients are summed back onto the rows. `advantage` may be a list, one per token.
"""

import argparse
import base64
import gzip
import hmac
import itertools
import json
import math
import os
import queue
import random
import shutil
import struct
import sys
import threading
import time
import traceback
import uuid
from collections import OrderedDict, deque
from contextlib import nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

VERSION = "0.1"
ALPHA = 32  # LoRA's alpha, Tinker's convention: the adapter counts alpha / rank


class Refused(Exception):
    """A request that cannot be done; `status` is 4xx if the client is at fault, 5xx if the server is."""

    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status


# ---------------------------------------------------------------------------------- protobuf


def read_varint(data, place):
    value, shift = 0, 0
    while True:
        if place >= len(data) or shift > 63:
            raise Refused("the protobuf message ends inside a number")
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def read_fields(data):
    """The (number, value) pairs of a message: ints, 8-byte and 4-byte values as bytes, or bytes."""
    place, fields = 0, []
    while place < len(data):
        key, place = read_varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = read_varint(data, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, place = bytes(data[place : place + size]), place + size
        elif kind == 2:
            size, place = read_varint(data, place)
            value, place = data[place : place + size], place + size
        else:
            raise Refused(f"the protobuf message has a field of kind {kind}")
        if place > len(data):
            raise Refused("the protobuf message ends inside a field")
        fields.append((key >> 3, value))
    return fields


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append((value & 127) | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_field(number, value):
    """One field: bytes and text with their length, floats as doubles, ints as varints."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3) + varint(value)


DTYPES = {1: np.float32, 2: np.int64, 3: np.int32}


def text_of(value):
    return bytes(value).decode("utf-8", "strict")


def read_tensor(data):
    """A dense or sparse (CSR) tensor as a flat float or int array."""
    dense, sparse, dtype, shape = b"", None, 1, []
    for number, value in read_fields(data):
        if number == 1:
            dense = bytes(value)
        elif number == 2:
            sparse = dict(read_fields(value))
        elif number == 3:
            dtype = value
        elif number == 4:
            shape += unpacked(value)
    if dtype == 4:
        raise Refused("bfloat16 tensors are not taken: send float32")
    if dtype not in DTYPES:
        raise Refused(f"a tensor has the unknown type {dtype}")
    if sparse is None:
        return np.frombuffer(dense, DTYPES[dtype])
    values = np.frombuffer(bytes(sparse.get(1, b"")), DTYPES[dtype])
    rows = np.frombuffer(bytes(sparse.get(2, b"")), np.int64)
    columns = np.frombuffer(bytes(sparse.get(3, b"")), np.int64)
    out = np.zeros(tuple(shape), DTYPES[dtype])
    out[np.repeat(np.arange(len(rows) - 1), np.diff(rows)), columns] = values
    return out.reshape(-1)


def unpacked(value):
    if isinstance(value, int):
        return [value]
    out, place = [], 0
    while place < len(value):
        number, place = read_varint(value, place)
        out.append(number)
    return out


def read_datum(data):
    tokens, inputs = [], {}
    for number, value in read_fields(data):
        if number == 1:
            kind, chunk = read_fields(value)[0]
            if kind != 1:
                raise Refused("only text chunks are taken: no images and no sound")
            tokens.append(np.frombuffer(bytes(dict(read_fields(chunk)).get(1, b"")), np.int32))
        elif number == 2:
            entry = dict(read_fields(value))
            inputs[text_of(entry.get(1, b""))] = read_tensor(entry.get(2, b""))
    return {"tokens": np.concatenate(tokens) if tokens else np.zeros(0, np.int32), "inputs": inputs}


def read_forward_backward(data):
    """A ForwardBackwardRequest of Tinker's protobuf."""
    request = {"model_id": "", "seq_id": 0, "data": [], "loss": "", "config": {}, "forward": False}
    for number, value in read_fields(data):
        if number == 1:
            request["model_id"] = text_of(value)
        elif number == 2:
            request["seq_id"] = value
        elif number == 3:
            request["data"].append(read_datum(value))
        elif number == 4:
            request["loss"] = text_of(value)
        elif number == 5:
            entry = dict(read_fields(value))
            request["config"][text_of(entry[1])] = struct.unpack("<d", entry.get(2, bytes(8)))[0]
        elif number == 6:
            request["forward"] = bool(value)
        elif number == 7:
            entry = dict(read_fields(value))
            kind, content = (read_fields(entry.get(2, b"")) or [(1, bytes(8))])[0]
            name = text_of(entry[1])
            request["config"][name] = text_of(content) if kind == 2 else struct.unpack("<d", content)[0]
    return request


def write_forward_backward(result):
    """A ForwardBackwardOutput: the log-probabilities of every row, and metrics."""
    rows = [np.asarray(row, np.float32) for row in result["logprobs"]]
    offsets = np.concatenate([[0], np.cumsum([4 * len(row) for row in rows])]).astype(np.int64)
    data = np.concatenate(rows).tobytes() if rows else b""
    tensor = write_field(1, data) + write_field(2, offsets.tobytes()) + write_field(3, 1)
    entry = write_field(1, "logprobs") + write_field(2, tensor)
    record = write_field(1, "TorchLossReturn") + write_field(2, entry) + write_field(3, len(rows))
    out = write_field(1, "TorchLossReturn") + write_field(2, record)
    for name, value in result["metrics"].items():
        out += write_field(3, write_field(1, name) + write_field(2, float(value)))
    return out


def write_sample(result):
    """A SampleResponse."""
    out = b""
    for sequence in result["sequences"]:
        body = write_field(1, 1 if sequence["stop_reason"] == "length" else 0)
        body += write_field(2, np.asarray(sequence["tokens"], np.int32).tobytes())
        body += write_field(3, np.asarray(sequence["logprobs"], np.float32).tobytes())
        if sequence.get("topk"):
            body += write_field(4, write_top(sequence["topk"]))
        out += write_field(1, body)
    if result.get("prompt_logprobs") is not None:
        values = [math.nan if value is None else value for value in result["prompt_logprobs"]]
        out += write_field(2, np.asarray(values, np.float32).tobytes())
    return out + write_field(4, result.get("cached", 0))


def write_top(rows):
    width = max(len(row) for row in rows)
    ids = np.zeros((len(rows), width), np.int32)
    logprobs = np.full((len(rows), width), -99999.0, np.float32)
    for place, row in enumerate(rows):
        for rank, (logprob, token) in enumerate(row):
            ids[place, rank], logprobs[place, rank] = token, logprob
    body = write_field(1, ids.tobytes()) + write_field(2, logprobs.tobytes())
    return body + write_field(3, width) + write_field(4, len(rows))


# ---------------------------------------------------------------------------------- adapters


@dataclass(frozen=True)
class Site:
    """Linear maps that share their input: their names in the model, their output sizes, their part."""

    names: tuple
    inputs: int
    outputs: tuple
    part: str  # attn, mlp or unembed

    @property
    def size(self):
        return sum(self.outputs)


class Adapter:
    """LoRA: for every site A [maps · rank, in] and B [out, rank], float32, B starting at zero."""

    def __init__(self, sites, rank, seed=0, parts=("attn", "mlp", "unembed"), device="cpu"):
        self.sites, self.rank, self.seed, self.parts = sites, rank, seed, tuple(parts)
        generator = torch.Generator().manual_seed(seed)
        self.pairs = []
        for site in sites:
            a = torch.empty(len(site.names) * rank, site.inputs)
            a.uniform_(-1, 1, generator=generator).div_(math.sqrt(site.inputs))
            self.pairs.append((a.to(device), torch.zeros(site.size, rank, device=device)))

    @property
    def trained(self):
        """The tensors that learn: those of the parts that were asked for."""
        return [t for site, pair in zip(self.sites, self.pairs) if site.part in self.parts for t in pair]

    def live(self, masks, dtype):
        """The matrices that the model multiplies with: B spread over its maps' columns, and scaled."""
        out = []
        for (a, b), mask in zip(self.pairs, masks):
            maps = a.shape[0] // self.rank
            wide = b if maps == 1 else b.repeat(1, maps) * mask_of(mask, self.rank)
            out.append((a.to(dtype), (wide * (ALPHA / self.rank)).to(dtype)))
        return out

    def back(self, slopes, masks):
        """From the slopes of the live matrices (None where nothing flowed) to those of what is trained."""
        out = []
        for site, (a, b), (to_a, to_b), mask in zip(self.sites, self.pairs, slopes, masks):
            if site.part not in self.parts:
                continue
            if to_b is not None:
                wide = to_b * (mask_of(mask, self.rank) * (ALPHA / self.rank))
                to_b = wide.view(len(b), -1, self.rank).sum(1)
            out += [torch.zeros_like(t) if g is None else g for t, g in zip((a, b), (to_a, to_b))]
        return out

    def tensors(self):
        """Named as PEFT names them."""
        out = {}
        for site, (a, b) in zip(self.sites, self.pairs):
            if site.part not in self.parts:
                continue
            rows = torch.split(b, list(site.outputs))
            for name, down, up in zip(site.names, torch.split(a, self.rank), rows):
                out[f"base_model.model.{name}.lora_A.weight"] = down.detach().cpu().contiguous()
                out[f"base_model.model.{name}.lora_B.weight"] = up.detach().cpu().contiguous()
        return out

    def load(self, tensors):
        with torch.no_grad():
            for site, (a, b) in zip(self.sites, self.pairs):
                if site.part not in self.parts:
                    continue
                names = [f"base_model.model.{name}.lora_" for name in site.names]
                a.copy_(torch.cat([tensors[f"{name}A.weight"] for name in names]))
                b.copy_(torch.cat([tensors[f"{name}B.weight"] for name in names]))


def mask_of(starts, rank):
    """A mask with ones where an output row meets the columns of its own map."""
    return starts.repeat_interleave(rank, 1)


def site_mask(site, device):
    mask = torch.zeros(site.size, len(site.names), device=device)
    first = 0
    for index, size in enumerate(site.outputs):
        mask[first : first + size, index] = 1
        first += size
    return mask


# ---------------------------------------------------------------------------------- kernels

try:
    import triton
    import triton.language as tl
except ImportError:  # without Triton everything runs in PyTorch's own operations
    triton = None

if triton is not None:

    @triton.jit
    def attend_kernel(
        q, k, v, new_k, new_v, out, slots, lengths, scale, stride_slot, stride_head, stride_k, stride_v,
        GROUP: tl.constexpr, ROWS: tl.constexpr, DIM: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        """Writes one new token's keys and values into its slot of the cache, and attends over the slot."""
        row, head = tl.program_id(0), tl.program_id(1)
        heads = tl.num_programs(1)
        slot = tl.load(slots + row).to(tl.int64)
        length = tl.load(lengths + row).to(tl.int32)
        group, dim = tl.arange(0, ROWS), tl.arange(0, WIDE)
        places = ((row * heads + head) * GROUP + group[:, None]) * DIM + dim[None, :]
        real = (group[:, None] < GROUP) & (dim[None, :] < DIM)
        query = tl.load(q + places, mask=real, other=0.0)
        start = slot * stride_slot + head * stride_head
        own_k = tl.load(new_k + row * stride_k + head * DIM + dim, mask=dim < DIM, other=0.0)
        own_v = tl.load(new_v + row * stride_v + head * DIM + dim, mask=dim < DIM, other=0.0)
        tl.store(k + start + (length - 1) * DIM + dim, own_k, mask=dim < DIM)
        tl.store(v + start + (length - 1) * DIM + dim, own_v, mask=dim < DIM)
        top = tl.sum(query.to(tl.float32) * own_k.to(tl.float32)[None, :], 1) * scale
        total = tl.full([ROWS], 1.0, tl.float32)
        sums = tl.zeros([ROWS, WIDE], tl.float32) + own_v.to(tl.float32)[None, :]
        for first in range(0, length - 1, BLOCK):
            token = first + tl.arange(0, BLOCK)
            inside = token < length - 1
            keys = tl.load(
                k + start + token[None, :] * DIM + dim[:, None],
                mask=inside[None, :] & (dim[:, None] < DIM), other=0.0,
            )  # fmt: skip
            score = tl.dot(query, keys) * scale
            score = tl.where(inside[None, :], score, -1e30)
            higher = tl.maximum(top, tl.max(score, 1))
            weight = tl.exp(score - higher[:, None])
            fade = tl.exp(top - higher)
            values = tl.load(
                v + start + token[:, None] * DIM + dim[None, :],
                mask=inside[:, None] & (dim[None, :] < DIM), other=0.0,
            )  # fmt: skip
            total = total * fade + tl.sum(weight, 1)
            sums = sums * fade[:, None] + tl.dot(weight.to(values.dtype), values)
            top = higher
        tl.store(out + places, (sums / total[:, None]).to(out.dtype.element_ty), mask=real)

    @triton.jit
    def turn_kernel(
        qkv, q, k, w_q, w_k, cos, sin, epsilon, stride,
        HEADS: tl.constexpr, KV: tl.constexpr, ALL: tl.constexpr, DIM: tl.constexpr, NORM: tl.constexpr,
    ):  # fmt: skip
        """Norms and turns the queries and keys of one token; DIM is a power of two."""
        row = tl.program_id(0).to(tl.int64)
        head, dim = tl.arange(0, ALL)[:, None], tl.arange(0, DIM)[None, :]
        there, own = (dim + DIM // 2) % DIM, head < HEADS + KV
        x = tl.load(qkv + row * stride + head * DIM + dim, mask=own, other=0.0).to(tl.float32)
        y = tl.load(qkv + row * stride + head * DIM + there, mask=own, other=0.0).to(tl.float32)
        if NORM:
            scale = tl.rsqrt(tl.sum(x * x, 1) / DIM + epsilon)[:, None]
            w = tl.where(head < HEADS, tl.load(w_q + dim), tl.load(w_k + dim)).to(tl.float32)
            u = tl.where(head < HEADS, tl.load(w_q + there), tl.load(w_k + there)).to(tl.float32)
            x, y = x * scale * w, y * scale * u
        c, s = tl.load(cos + row * DIM + dim).to(tl.float32), tl.load(sin + row * DIM + dim).to(tl.float32)
        out = (x * c + tl.where(dim < DIM // 2, -y, y) * s).to(q.dtype.element_ty)
        tl.store(q + (row * HEADS + head) * DIM + dim, out, mask=head < HEADS)
        tl.store(k + (row * KV + head - HEADS) * DIM + dim, out, mask=(head >= HEADS) & own)

    @triton.jit
    def turn_slope_kernel(
        qkv, q, k, v, out, w_q, w_k, cos, sin, epsilon, stride, stride_q, stride_k, stride_v,
        HEADS: tl.constexpr, KV: tl.constexpr, ALL: tl.constexpr, DIM: tl.constexpr, NORM: tl.constexpr,
    ):  # fmt: skip
        """The way back: from the slopes of q, k and v to those of the joint map's output.

        Both halves of a head are loaded once, since each turns into the other.
        """
        row = tl.program_id(0).to(tl.int64)
        HALF: tl.constexpr = DIM // 2
        head, low = tl.arange(0, ALL)[:, None], tl.arange(0, HALF)[None, :]
        is_q, own = head < HEADS, head < HEADS + KV
        is_k = (head >= HEADS) & own
        from_q = q + row * stride_q + head * DIM + low
        from_k = k + row * stride_k + (head - HEADS) * DIM + low
        left = tl.load(from_q, mask=is_q, other=0.0).to(tl.float32) + tl.load(from_k, mask=is_k, other=0.0).to(tl.float32)
        right = tl.load(from_q + HALF, mask=is_q, other=0.0).to(tl.float32)
        right += tl.load(from_k + HALF, mask=is_k, other=0.0).to(tl.float32)
        turns, waves = cos + row * DIM + low, sin + row * DIM + low
        d_left = left * tl.load(turns).to(tl.float32) + right * tl.load(waves + HALF).to(tl.float32)
        d_right = right * tl.load(turns + HALF).to(tl.float32) - left * tl.load(waves).to(tl.float32)
        if NORM:
            here = qkv + row * stride + head * DIM + low
            x_left = tl.load(here, mask=own, other=0.0).to(tl.float32)
            x_right = tl.load(here + HALF, mask=own, other=0.0).to(tl.float32)
            scale = tl.rsqrt((tl.sum(x_left * x_left, 1) + tl.sum(x_right * x_right, 1)) / DIM + epsilon)[:, None]
            d_left *= tl.where(is_q, tl.load(w_q + low), tl.load(w_k + low)).to(tl.float32)
            d_right *= tl.where(is_q, tl.load(w_q + HALF + low), tl.load(w_k + HALF + low)).to(tl.float32)
            x_left, x_right = x_left * scale, x_right * scale
            shared = ((tl.sum(d_left * x_left, 1) + tl.sum(d_right * x_right, 1)) / DIM)[:, None]
            d_left, d_right = scale * (d_left - x_left * shared), scale * (d_right - x_right * shared)
        place = out + row * stride + head * DIM + low
        tl.store(place, d_left.to(out.dtype.element_ty), mask=own)
        tl.store(place + HALF, d_right.to(out.dtype.element_ty), mask=own)
        is_v = (head >= HEADS + KV) & (head < HEADS + 2 * KV)
        from_v = v + row * stride_v + (head - HEADS - KV) * DIM + low
        tl.store(place, tl.load(from_v, mask=is_v, other=0.0), mask=is_v)
        tl.store(place + HALF, tl.load(from_v + HALF, mask=is_v, other=0.0), mask=is_v)

    @triton.jit
    def swiglu_kernel(both, out, size, stride, BLOCK: tl.constexpr):
        """silu(gate) · up, the gate in the first half of each row and up in the second."""
        row = tl.program_id(0).to(tl.int64)
        place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = place < size
        gate = tl.load(both + row * 2 * size + place, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(both + row * 2 * size + size + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row * stride + place, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), mask=inside)

    @triton.jit
    def swiglu_slope_kernel(both, slope, out, size, stride, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = place < size
        gate = tl.load(both + row * 2 * size + place, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(both + row * 2 * size + size + place, mask=inside, other=0.0).to(tl.float32)
        down = tl.load(slope + row * stride + place, mask=inside, other=0.0).to(tl.float32)
        soft = tl.sigmoid(gate)
        to_gate = down * up * soft * (1 + gate * (1 - soft))
        tl.store(out + row * 2 * size + place, to_gate.to(out.dtype.element_ty), mask=inside)
        tl.store(out + row * 2 * size + size + place, (down * gate * soft).to(out.dtype.element_ty), mask=inside)

    @triton.jit
    def add_norm_kernel(x, y, weight, to_x, to_norm, epsilon, size, BLOCK: tl.constexpr):
        """Adds to the residual stream, rounds, and norms it, rounding where PyTorch's own operations do."""
        row = tl.program_id(0).to(tl.int64)
        place = tl.arange(0, BLOCK)
        inside = place < size
        a = tl.load(x + row * size + place, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(y + row * size + place, mask=inside, other=0.0).to(tl.float32)
        rounded = (a + b).to(to_x.dtype.element_ty)
        tl.store(to_x + row * size + place, rounded, mask=inside)
        wide = rounded.to(tl.float32)
        normed = (wide * tl.rsqrt(tl.sum(wide * wide, 0) / size + epsilon)).to(to_norm.dtype.element_ty)
        w = tl.load(weight + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(to_norm + row * size + place, (normed.to(tl.float32) * w).to(to_norm.dtype.element_ty), mask=inside)

    @triton.jit
    def add_norm_slope_kernel(x, weight, from_x, from_norm, out, epsilon, size, BLOCK: tl.constexpr):
        """The slope of both summands, from those of the sum and of its norm."""
        row = tl.program_id(0).to(tl.int64)
        place = tl.arange(0, BLOCK)
        inside = place < size
        wide = tl.load(x + row * size + place, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(wide * wide, 0) / size + epsilon)
        wide = wide * scale
        d = tl.load(from_norm + row * size + place, mask=inside, other=0.0).to(tl.float32)
        d = d * tl.load(weight + place, mask=inside, other=0.0).to(tl.float32)
        d = scale * (d - wide * (tl.sum(d * wide, 0) / size))
        d += tl.load(from_x + row * size + place, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row * size + place, d.to(out.dtype.element_ty), mask=inside)

    @triton.jit
    def draw_kernel(
        logits, allowed, heats, seeds, steps, ids, raw, tempered, size, BLOCK: tl.constexpr
    ):
        """Draws a token per row by Gumbel's trick, and sums up both distributions in float32."""
        row = tl.program_id(0).to(tl.int64)
        heat = tl.load(heats + row)
        scale = 1.0 / tl.where(heat > 0, heat, 1.0)
        noise = tl.where(heat > 0, 1.0, 0.0)
        seed = tl.load(seeds + row) + tl.load(steps + row) * 0x1E3779B97F4A7C15
        top, sum_raw, sum_hot = -1e30, 0.0, 0.0
        best, chosen = -float("inf"), 0
        for first in range(0, size, BLOCK):
            token = first + tl.arange(0, BLOCK)
            inside = token < size
            value = tl.load(logits + row * size + token, mask=inside, other=-1e30)
            free = tl.load(allowed + row * size + token, mask=inside, other=-float("inf"))
            higher = tl.maximum(top, tl.max(value, 0))
            sum_raw = sum_raw * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
            hot = tl.sum(tl.exp((value - higher) * scale), 0)
            sum_hot = sum_hot * tl.exp((top - higher) * scale) + hot
            top = higher
            even = tl.maximum(tl.rand(seed, token), 2e-10)
            late = tl.where(even < 1e-3, even + even * even * 0.5, -tl.log(1.0 - even))
            score = free * scale - noise * tl.log(late)
            here, index = tl.max(score, 0, return_indices=True)
            chosen = tl.where(here > best, first + index, chosen)
            best = tl.maximum(best, here)
        value = tl.load(logits + row * size + chosen)
        tl.store(ids + row, chosen.to(tl.int64))
        tl.store(raw + row, value - top - tl.log(sum_raw))
        tl.store(tempered + row, (value - top) * scale - tl.log(sum_hot))

    @triton.jit
    def head_sums_kernel(logits, targets, now, normal, size, BLOCK: tl.constexpr):
        """A row's log-sum-exp in one pass, and its target's log-probability."""
        row = tl.program_id(0).to(tl.int64)
        top = tl.full([BLOCK], -1e30, tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        for first in range(0, size, BLOCK):
            token = first + tl.arange(0, BLOCK)
            value = tl.load(logits + row * size + token, mask=token < size, other=-1e30)
            higher = tl.maximum(top, value)
            total = total * tl.exp(top - higher) + tl.exp(value - higher)
            top = higher
        most = tl.max(top, 0)
        whole = most + tl.log(tl.sum(total * tl.exp(top - most), 0))
        tl.store(normal + row, whole)
        tl.store(now + row, tl.load(logits + row * size + tl.load(targets + row)) - whole)

    @triton.jit
    def head_slope_kernel(logits, targets, normal, slope, out, size, BLOCK: tl.constexpr):
        """slope · (one-hot − probability), from float32 logits to the weights' own type."""
        row = tl.program_id(0).to(tl.int64)
        token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(logits + row * size + token, mask=token < size, other=-1e30)
        hit = tl.where(token == tl.load(targets + row), 1.0, 0.0)
        found = (hit - tl.exp(value - tl.load(normal + row))) * tl.load(slope + row)
        tl.store(out + row * size + token, found.to(out.dtype.element_ty), mask=token < size)


def power_of_two(number, least=1):
    return max(least, 1 << (max(1, number) - 1).bit_length())


class GatedLinear(torch.autograd.Function):
    """silu(gate) · up of [N, 2 · size] and the map behind it with its adapter.

    The product is written to where the adapter's own columns follow it, so nothing is joined.
    """

    @staticmethod
    def forward(ctx, both, a, b, weight):
        rows, size = both.shape[0], both.shape[1] // 2
        wide = both.new_empty(rows, size + len(a))
        swiglu_kernel[(rows, triton.cdiv(size, 1024))](both, wide, size, wide.stride(0), BLOCK=1024)
        wide[:, size:] = wide[:, :size] @ a.T
        ctx.save_for_backward(both, wide, a)
        ctx.weight = weight[:, : wide.shape[1]]
        return wide @ ctx.weight.T

    @staticmethod
    def backward(ctx, slope):
        both, wide, a = ctx.saved_tensors
        down, to_a, to_b = linear_slopes(slope, wide, a, ctx.weight)
        out, size = torch.empty_like(both), down.shape[1]
        grid = (len(both), triton.cdiv(size, 1024))
        swiglu_slope_kernel[grid](both, down, out, size, down.stride(0), BLOCK=1024)
        return out, to_a, to_b, None


class AddNorm(torch.autograd.Function):
    """The residual stream with something added, and its norm, in one pass over memory each way."""

    @staticmethod
    def forward(ctx, x, y, weight, epsilon):
        x, y = x.contiguous(), y.contiguous()
        to_x, to_norm = torch.empty_like(x), torch.empty_like(x)
        ctx.size = dict(size=x.shape[1], BLOCK=power_of_two(x.shape[1]))
        add_norm_kernel[(len(x),)](x, y, weight, to_x, to_norm, epsilon, **ctx.size)
        ctx.save_for_backward(to_x, weight)
        ctx.epsilon = epsilon
        return to_x, to_norm

    @staticmethod
    def backward(ctx, from_x, from_norm):
        x, weight = ctx.saved_tensors
        out = torch.empty_like(x)
        slopes = from_x.contiguous(), from_norm.contiguous()
        add_norm_slope_kernel[(len(x),)](x, weight, *slopes, out, ctx.epsilon, **ctx.size)
        return out, out, None, None


class Turn(torch.autograd.Function):
    """Queries, keys and values of a joint map: normed, turned by their positions, and taken apart."""

    @staticmethod
    def forward(ctx, qkv, w_q, w_k, cos, sin, shape):
        heads, kv, dim, epsilon = shape
        rows = qkv.shape[0]
        q, k = qkv.new_empty(rows, heads, dim), qkv.new_empty(rows, kv, dim)
        cos, sin = cos.contiguous(), sin.contiguous()
        sizes = dict(HEADS=heads, KV=kv, ALL=power_of_two(heads + 2 * kv), DIM=dim, NORM=w_q is not None)
        turn_kernel[(rows,)](qkv, q, k, w_q, w_k, cos, sin, epsilon, qkv.stride(0), **sizes)
        ctx.save_for_backward(qkv, w_q, w_k, cos, sin)
        ctx.epsilon, ctx.sizes = epsilon, sizes
        return q, k, qkv[:, (heads + kv) * dim :].view(rows, kv, dim)

    @staticmethod
    def backward(ctx, q, k, v):
        qkv, w_q, w_k, cos, sin = ctx.saved_tensors
        q, k, v = (headed(t) for t in (q, k, v))
        out = torch.empty_like(qkv)
        turn_slope_kernel[(len(qkv),)](
            qkv, q, k, v, out, w_q, w_k, cos, sin, ctx.epsilon, qkv.stride(0), q.stride(0), k.stride(0), v.stride(0), **ctx.sizes
        )
        return out, None, None, None, None, None


def headed(tensor):
    """The tensor itself where its heads lie side by side, else a copy in which they do."""
    side_by_side = tensor.stride(2) == 1 and tensor.stride(1) == tensor.shape[2]
    return tensor if side_by_side else tensor.contiguous()


def turned(qkv, layer, cos, sin, shape):
    """Queries, keys and values [N, heads, dim] of the joint map's output."""
    heads, kv_heads, dim, epsilon = shape
    if triton is not None and qkv.is_cuda and dim == power_of_two(dim):
        return Turn.apply(qkv, layer["q_norm"], layer["k_norm"], cos, sin, shape)
    q, k, v = qkv.split((heads * dim, kv_heads * dim, kv_heads * dim), -1)
    q, k, v = q.view(-1, heads, dim), k.view(-1, kv_heads, dim), v.view(-1, kv_heads, dim)
    if layer["q_norm"] is not None:
        q, k = rms_norm(q, layer["q_norm"], epsilon), rms_norm(k, layer["k_norm"], epsilon)
    return rotate(q, cos, sin), rotate(k, cos, sin), v


def gated_linear(both, gelu, weight, lora):
    """The activation of a gated MLP, and the map behind it."""
    if triton is not None and both.is_cuda and not gelu:
        return GatedLinear.apply(both, *lora, weight)
    gate, up = both.chunk(2, -1)
    return linear((F.gelu(gate, approximate="tanh") if gelu else F.silu(gate)) * up, weight, None, lora)


def attend_cache(q, k, v, cache, slots, lengths, scale):
    """Attention of new tokens q [B, heads, dim] over cache [2, slots, kv heads, context, dim].

    The tokens' own keys and values are written into the cache on the way.
    """
    rows, heads, dim = q.shape
    kv_heads = cache.shape[2]
    if triton is not None and q.is_cuda:
        q, k = q.contiguous(), k.contiguous()
        out = torch.empty_like(q)
        group = heads // kv_heads
        attend_kernel[(rows, kv_heads)](
            q, cache[0], cache[1], k, v, out, slots, lengths, scale, cache.stride(1), cache.stride(2),
            k.stride(0), v.stride(0),
            GROUP=group, ROWS=power_of_two(group, 16), DIM=dim, WIDE=power_of_two(dim, 16), BLOCK=64,
        )  # fmt: skip
        return out
    cache[0][slots, :, lengths - 1] = k
    cache[1][slots, :, lengths - 1] = v
    longest = int(lengths.max())
    keys, values = cache[:, slots, :, :longest]
    seen = torch.arange(longest, device=q.device)[None, :] < lengths[:, None]
    out = F.scaled_dot_product_attention(
        q[:, :, None], keys, values, attn_mask=seen[:, None, None], scale=scale, enable_gqa=True
    )
    return out[:, :, 0]


def draw(logits, allowed, heats, seeds, steps):
    """Tokens drawn from logits [B, vocabulary] (only where allowed), and both log-probabilities."""
    rows, size = logits.shape
    if triton is not None and logits.is_cuda:
        ids = torch.empty(rows, dtype=torch.int64, device=logits.device)
        raw, tempered = torch.empty_like(heats), torch.empty_like(heats)
        draw_kernel[(rows,)](
            logits, allowed, heats, seeds, steps, ids, raw, tempered, size, BLOCK=8192, num_warps=16
        )
        return ids, raw, tempered
    scale = 1 / torch.where(heats > 0, heats, 1.0)
    noise = torch.empty_like(logits)
    for row in range(rows):
        generator = torch.Generator().manual_seed((int(seeds[row]) * 1000003 + int(steps[row])) % 2**63)
        noise[row].exponential_(generator=generator)
    score = allowed * scale[:, None] - torch.where(heats > 0, 1.0, 0.0)[:, None] * noise.log()
    ids = score.argmax(-1)
    value = logits.gather(1, ids[:, None])[:, 0]
    hot = value * scale - torch.logsumexp(logits * scale[:, None], -1)
    return ids, value - torch.logsumexp(logits, -1), hot


def only_allowed(logits, heats, top_p, top_k, min_p):
    """The logits with everything beyond top-p, top-k and min-p at minus infinity."""
    scaled = logits / torch.where(heats > 0, heats, 1.0)[:, None]
    ordered, places = scaled.sort(-1, descending=True)
    chance = ordered.softmax(-1)
    rank = torch.arange(logits.shape[-1], device=logits.device)
    cut = chance.cumsum(-1) - chance >= top_p[:, None]
    cut |= rank[None] >= torch.where(top_k > 0, top_k, logits.shape[-1])[:, None]
    cut |= chance < min_p[:, None] * chance[:, :1]
    cut[:, 0] = False
    return logits.masked_fill(torch.zeros_like(cut).scatter(1, places, cut), -math.inf)


# ---------------------------------------------------------------------------------- the model


def rms_norm(x, weight, epsilon):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    return weight * wide.to(x.dtype)


class Linear(torch.autograd.Function):
    """A frozen map with its adapter: the map's last columns hold B, so one product does both.

    The gradient goes to the input, to A and to B, never to the map itself.
    """

    @staticmethod
    def forward(ctx, x, a, b, weight):
        wide = torch.cat((x, x @ a.T), -1)
        ctx.save_for_backward(wide, a)
        ctx.weight = weight[:, : wide.shape[1]]
        return wide @ ctx.weight.T

    @staticmethod
    def backward(ctx, slope):
        wide, a = ctx.saved_tensors
        return *linear_slopes(slope, wide, a, ctx.weight), None


def linear_slopes(slope, wide, a, weight):
    """The gradients of a map's input, of A and of B."""
    size = a.shape[1]
    inner = slope @ weight[:, size:]
    to_a, to_b = inner.T @ wide[:, :size], slope.T @ wide[:, size:]
    # Two products and not one over all columns: what comes next needs its rows side by side.
    return torch.mm(slope, weight[:, :size]).addmm_(inner, a), to_a, to_b


def linear(x, weight, bias, lora):
    out = Linear.apply(x, *lora, weight)
    return out if bias is None else out + bias


def add_norm(x, y, weight, epsilon):
    """The residual stream with something added, and its norm."""
    if triton is not None and x.is_cuda:
        return AddNorm.apply(x, y, weight, epsilon)
    x = x + y
    return x, rms_norm(x, weight, epsilon)


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos[:, None] + torch.cat((-second, first), -1) * sin[:, None]


def head_logits(hidden, head, a):
    """Logits in float32: rounding them to bf16 would cost two digits of every log-probability.

    The head's last columns hold its adapter's B, so one product does both.
    """
    wide = hidden if a is None else torch.cat((hidden, hidden @ a.T), -1)
    if wide.is_cuda and wide.dtype != torch.float32:
        return torch.mm(wide, head[:, : wide.shape[1]].T, out_dtype=torch.float32)
    return wide.float() @ head[:, : wide.shape[1]].float().T


def head_sums(logits, targets):
    """The targets' log-probabilities, and what they were normalised with."""
    if triton is not None and logits.is_cuda:
        now, normal = logits.new_empty(len(logits)), logits.new_empty(len(logits))
        head_sums_kernel[(len(logits),)](logits, targets, now, normal, logits.shape[1], BLOCK=4096, num_warps=8)
        return now, normal
    normal = torch.logsumexp(logits, -1)
    return logits.gather(1, targets[:, None])[:, 0] - normal, normal


def head_slope(logits, targets, normal, slope, dtype):
    """d loss / d logits of log-probabilities with this slope: slope · (one-hot − probability)."""
    if triton is not None and logits.is_cuda:
        out = torch.empty_like(logits, dtype=dtype)
        grid = (len(logits), triton.cdiv(logits.shape[1], 4096))
        head_slope_kernel[grid](logits, targets, normal, slope.contiguous(), out, logits.shape[1], BLOCK=4096, num_warps=8)
        return out
    hit = torch.arange(logits.shape[1], device=logits.device)[None] == targets[:, None]
    return ((hit.float() - torch.exp(logits - normal[:, None])) * slope[:, None]).to(dtype)


class Head:
    """Log-probabilities of targets, by chunks, so that no [tokens, vocabulary] is ever kept."""

    chunk = 4096

    @staticmethod
    @torch.no_grad()
    def logprobs(hidden, head, pair, targets):
        a = pair[0]
        out = [torch.zeros(0, device=hidden.device)]
        for first in range(0, len(targets), Head.chunk):
            part = slice(first, first + Head.chunk)
            out.append(head_sums(head_logits(hidden[part], head, a), targets[part])[0])
        return torch.cat(out)

    @staticmethod
    @torch.no_grad()
    def learn(hidden, head, pair, targets, slope_of):
        """Log-probabilities, and how the loss changes with the hidden states and the head's adapter.

        `slope_of(logprobs, part)` says how it changes with the log-probabilities. It is asked chunk by
        chunk, while their logits are there, so nothing is computed twice.
        """
        a, b = pair
        width = hidden.shape[1]
        head = head if a is None else head[:, : width + len(a)]
        now = torch.empty(len(targets), device=hidden.device)
        to_hidden = torch.empty_like(hidden)
        to_a, to_b = (None if t is None else torch.zeros_like(t, dtype=torch.float32) for t in pair)
        for first in range(0, len(targets), Head.chunk):
            part = slice(first, first + Head.chunk)
            h = hidden[part]
            logits = head_logits(h, head, a)
            now[part], normal = head_sums(logits, targets[part])
            d = head_slope(logits, targets[part], normal, slope_of(now[part], part), h.dtype)
            del logits
            wide = d @ head
            to_hidden[part] = wide[:, :width]
            if a is not None:
                to_hidden[part] += wide[:, width:] @ a
                to_a += wide[:, width:].T @ h
                to_b += d.T @ (h @ a.T)
        return now, to_hidden, [] if a is None else [to_a.to(a.dtype), to_b.to(b.dtype)]


class Model:
    """A frozen decoder of the common kind (Llama, Qwen, Mistral, …), its weights joined for speed."""

    batched = True

    def __init__(self, source, device, dtype, context, rank=32, unembed=True):
        config, decoder = source.config, source.model
        first = decoder.layers[0]
        heads = config.num_attention_heads
        dim = first.self_attn.head_dim
        self.shape = (heads, config.num_key_value_heads, dim, first.input_layernorm.variance_epsilon)
        self.scale, self.gelu = first.self_attn.scaling, "gelu" in config.hidden_act
        self.device, self.dtype, self.context = torch.device(device), dtype, context
        self.layers = [joined(layer, device, dtype, rank) for layer in decoder.layers]
        self.norm = decoder.norm.weight.data.to(device, dtype)
        self.width, self.unembed = config.hidden_size, unembed
        unembed = rank if unembed else 0
        head = source.lm_head.weight.data
        self.head = torch.zeros(head.shape[0], self.width + unembed, device=device, dtype=dtype)
        self.head[:, : self.width] = head
        tied = head.data_ptr() == decoder.embed_tokens.weight.data_ptr()
        embedding = decoder.embed_tokens.weight.data
        self.embedding = self.head.data[:, : self.width] if tied else embedding.to(device, dtype)
        positions = torch.arange(context)[None]
        cos, sin = decoder.rotary_emb(torch.zeros(1, dtype=dtype), positions)
        self.cos, self.sin = cos[0].to(device), sin[0].to(device)
        self.sites = [site for index in range(len(self.layers)) for site in layer_sites(config, index, dim)]
        if self.unembed:
            self.sites.append(Site(("lm_head",), config.hidden_size, (self.head.shape[0],), "unembed"))
        self.masks = [site_mask(site, device) for site in self.sites]
        maps = [layer[name] for layer in self.layers for name in ("qkv", "o", "gate_up", "down")]
        self.wides = [*maps, self.head] if self.unembed else maps
        self.first_norm = rms_norm
        self.checkpoints = False

    @property
    def vocabulary(self):
        return self.head.shape[0]

    def parameters(self):
        """How many weights multiply each token."""
        maps = sum(site.inputs * site.size for site in self.sites if site.part != "unembed")
        return maps + self.head.shape[0] * self.width

    def compile(self):
        """The glue between matrix products, fused. The code is the same without."""
        torch._dynamo.config.cache_size_limit = 64
        self.first_norm = torch.compile(rms_norm, dynamic=True)

    def run(self, x, positions, lora, attend):
        """All layers over tokens x [N, width]; `attend(index, q, k, v)` is the caller's attention."""
        cos, sin = self.cos[positions], self.sin[positions]
        epsilon = self.shape[3]
        norms = [layer["norm1"] for layer in self.layers[1:]] + [self.norm]
        y = self.first_norm(x, self.layers[0]["norm1"], epsilon)
        for index, layer in enumerate(self.layers):
            own = lora[4 * index : 4 * index + 4]

            def step(x, y, index=index, layer=layer, own=own):
                qkv = linear(y, layer["qkv"], layer["qkv_bias"], own[0])
                attended = attend(index, *turned(qkv, layer, cos, sin, self.shape))
                o = linear(attended.reshape(len(x), -1), layer["o"], layer["o_bias"], own[1])
                x, y = add_norm(x, o, layer["norm2"], epsilon)
                both = linear(y, layer["gate_up"], None, own[2])
                return add_norm(x, gated_linear(both, self.gelu, layer["down"], own[3]), norms[index], epsilon)

            keep = self.checkpoints and torch.is_grad_enabled()
            x, y = checkpoint(step, x, y, use_reentrant=False) if keep else step(x, y)
        return y

    def rows(self, ids, lora):
        """Hidden states [B · T, width] of rows [B, T], padded on the right."""
        batch, size = ids.shape
        positions = torch.arange(size, device=ids.device).repeat(batch)

        def attend(_, q, k, v):
            q, k, v = (t.view(batch, size, *t.shape[1:]).transpose(1, 2) for t in (q, k, v))
            out = F.scaled_dot_product_attention(
                q, k, v, is_causal=True, scale=self.scale, enable_gqa=q.shape[1] != k.shape[1]
            )
            return out.transpose(1, 2)

        return self.run(self.embedding[ids.reshape(-1)], positions, lora, attend)

    def pair(self, lora):
        return lora[-1] if self.unembed else (None, None)

    @torch.no_grad()
    def use(self, lora):
        """Copies an adapter's B beside the maps; from then on products use that adapter."""
        places = [wide.data[:, a.shape[1] : a.shape[1] + len(a)] for wide, (a, _) in zip(self.wides, lora)]
        torch._foreach_copy_(places, [b.data for _, b in lora])

    def logits(self, hidden, lora):
        return head_logits(hidden, self.head, lora[-1][0] if self.unembed else None)


def joined(layer, device, dtype, rank):
    """One layer's weights: maps with the same input joined into one matrix, with room for B beside."""
    attention, mlp = layer.self_attn, layer.mlp
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)

    def to(tensor):
        return None if tensor is None else tensor.data.to(device, dtype).contiguous()

    def wide(*maps):
        weight = torch.cat([part.weight.data for part in maps])
        room = torch.zeros(len(weight), rank * len(maps), dtype=weight.dtype)
        return torch.cat((weight.to(device, dtype), room.to(device, dtype)), 1)

    biased = attention.q_proj.bias is not None
    normed = hasattr(attention, "q_norm")
    return {
        "qkv": wide(*parts),
        "qkv_bias": to(torch.cat([part.bias.data for part in parts])) if biased else None,
        "q_norm": to(attention.q_norm.weight) if normed else None,
        "k_norm": to(attention.k_norm.weight) if normed else None,
        "o": wide(attention.o_proj),
        "o_bias": to(attention.o_proj.bias),
        "gate_up": wide(mlp.gate_proj, mlp.up_proj),
        "down": wide(mlp.down_proj),
        "norm1": to(layer.input_layernorm.weight),
        "norm2": to(layer.post_attention_layernorm.weight),
    }


def layer_sites(config, index, dim):
    width, inner = config.hidden_size, config.intermediate_size
    q, kv = config.num_attention_heads * dim, config.num_key_value_heads * dim
    own = f"model.layers.{index}"
    names = [f"{own}.self_attn.{letter}_proj" for letter in "qkv"]
    return [
        Site(tuple(names), width, (q, kv, kv), "attn"),
        Site((f"{own}.self_attn.o_proj",), q, (width,), "attn"),
        Site((f"{own}.mlp.gate_proj", f"{own}.mlp.up_proj"), width, (inner, inner), "mlp"),
        Site((f"{own}.mlp.down_proj",), inner, (width,), "mlp"),
    ]


class PlainModel:
    """Any other causal model: transformers' own forward, with adapters hooked onto its linear maps.

    It samples one sequence at a time, so it is slow; its numbers are transformers' own.
    """

    batched = False

    def __init__(self, source, device, dtype, context):
        self.source = source.to(device, dtype).eval().requires_grad_(False)
        self.device, self.dtype, self.context = torch.device(device), dtype, context
        self.head = source.get_output_embeddings().weight.data
        self.sites, self.lora = [], []
        for name, module in source.named_modules():
            size = linear_size(module)
            if size is not None and module is not source.get_output_embeddings():
                part = "attn" if "attn" in name or "attention" in name else "mlp"
                module.register_forward_hook(self.hook(len(self.sites)))
                self.sites.append(Site((name,), size[0], (size[1],), part))
        self.unembed, self.checkpoints = False, False
        self.masks = [site_mask(site, device) for site in self.sites]
        if not self.sites:
            raise Refused(f"{type(source).__name__} has no linear maps that an adapter could be put on")

    def hook(self, index):
        def add(_module, inputs, output):
            if not self.lora:
                return output
            a, b = self.lora[index]
            return output + (inputs[0] @ a.T) @ b.T

        return add

    @property
    def vocabulary(self):
        return self.head.shape[0]

    def parameters(self):
        return sum(site.inputs * site.size for site in self.sites) + self.head.numel()

    def compile(self):
        pass

    def forward(self, ids, lora, **options):
        return self.source.base_model(input_ids=ids, **options)

    def rows(self, ids, lora):
        return self.forward(ids, lora, use_cache=False).last_hidden_state.flatten(0, 1)

    def pair(self, lora):
        return None, None

    def use(self, lora):
        self.lora = lora

    def logits(self, hidden, lora):
        return head_logits(hidden, self.head, None)


def linear_size(module):
    """Inputs and outputs of a linear map, also of GPT-2's transposed kind; None for anything else."""
    if isinstance(module, torch.nn.Linear):
        return module.in_features, module.out_features
    return tuple(module.weight.shape) if type(module).__name__ == "Conv1D" else None


def open_model(folder, device, dtype, context, rank, unembed):
    """Our own forward where it gives transformers' logits for this model, else transformers' own."""
    from transformers import AutoModelForCausalLM

    source = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa").eval()
    context = context or min(8192, getattr(source.config, "max_position_embeddings", 4096))
    generator = torch.Generator().manual_seed(1)
    size = source.config.get_text_config().vocab_size
    ids = torch.randint(0, size, (1, 12), generator=generator)
    with torch.no_grad():
        truth = source(input_ids=ids).logits[0].float()
        try:
            model = Model(source, "cpu", dtype, context, rank, unembed)
            off = difference(model, ids, truth)
            reason = None if off < 0.05 else f"its logits would be {off:.2g} off"
        except (AttributeError, KeyError, TypeError, RuntimeError) as error:
            reason = f"{type(error).__name__}: {error}"
        if reason is None:
            if str(device) == "cpu":
                return model
            del model
            return Model(source, device, dtype, context, rank, unembed)
        print(f"{folder}: transformers' own forward is used, one sequence at a time ({reason})", flush=True)
        model = PlainModel(source, device, dtype, context)
        if difference(model, ids.to(device), truth.to(device)) > 0.05:
            raise Refused(f"{folder}: its logits are not hidden states times its output embeddings")
        return model


def difference(model, ids, truth):
    lora = no_lora(model)
    model.use(lora)
    logits = model.logits(model.rows(ids, lora), lora)
    return float((logits - truth).abs().max() / truth.abs().max().clamp(min=1))


def no_lora(model):
    return Adapter(model.sites, 1, device=model.device).live(model.masks, model.dtype)


# ---------------------------------------------------------------------------------- the sampler


@dataclass(eq=False)
class Request:
    """One sequence to be sampled."""

    prompt: np.ndarray
    adapter: str
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int = 0
    stop_ids: frozenset = frozenset()
    stop_strings: tuple = ()
    top: int = 0
    score_from: int | None = None  # prompt tokens from here on are scored too
    told: object = None  # called with the request after new tokens
    rid: str = ""
    tokens: list = field(default_factory=list)
    raw: list = field(default_factory=list)
    tempered: list = field(default_factory=list)
    tops: list = field(default_factory=list)
    scores: list | None = None
    marks: list = field(default_factory=list)
    cached: int = 0
    slot: int = -1
    state: object = None
    finish: dict | None = None
    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    aborted: bool = False

    @property
    def filtered(self):
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0


class Prefixes:
    """Which slots hold which beginnings: every sixteenth token's mark, which stands for all ids up to it."""

    block = 16

    def __init__(self, context):
        draw = np.random.default_rng(7)
        self.factors = draw.integers(1, 2**63, context, np.uint64) * np.uint64(2) + np.uint64(1)
        self.known = {}  # the slots of each adapter's marks

    def marks(self, ids):
        sums = np.cumsum((ids.astype(np.uint64) + np.uint64(1)) * self.factors[: len(ids)])
        return sums[self.block - 1 :: self.block].tolist()

    def put(self, slot, adapter, marks, before):
        """Updates the index after a slot's marks changed."""
        was, old = before
        same = was == adapter and marks[: len(old)] == old
        if not same:
            own = self.known.get(was, {})
            for mark in old:
                own[mark].discard(slot)
                if not own[mark]:
                    del own[mark]
            if was in self.known and not own:
                del self.known[was]
        own = self.known.setdefault(adapter, {})
        for mark in marks[len(old) if same else 0 :]:
            own.setdefault(mark, set()).add(slot)

    def leading(self, marks, known):
        """How many of the first marks are known; if one is known, all before it are too."""
        low, high = 0, len(marks)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if marks[middle - 1] in known else (low, middle - 1)
        return low


class Sampler:
    """Continuous batches over a static cache: slots hold sequences, also after their end, as prefixes."""

    burst = 16  # steps between two looks at the tokens; a sequence that ends inside wastes the rest

    def __init__(self, model, slots, live, tokenizer=None, graphs=True, prefill=8192):
        self.model, self.slots, self.live, self.tokenizer = model, slots, live, tokenizer
        self.graphs = {} if graphs and model.device.type == "cuda" else None
        self.prefill_tokens = prefill
        self.waiting, self.active = deque(), []
        # The ids whose keys and values each slot holds, how many, and of which adapter.
        self.held = np.full((slots, model.context), -1, np.int32)
        self.held_size, self.held_by = np.zeros(slots, np.int64), [None] * slots
        self.held_marks, self.prefixes = [[] for _ in range(slots)], Prefixes(model.context)
        self.free = deque(range(slots))
        self.counts = {"sampled": 0, "prefilled": 0, "cached": 0}
        if model.batched:
            self.open_cache()

    def open_cache(self):
        heads, kv_heads, dim, _ = self.model.shape
        device = self.model.device
        # One slot more than there are sequences: padding writes there.
        shape = (len(self.model.layers), 2, self.slots + 1, kv_heads, self.model.context, dim)
        self.cache = torch.zeros(shape, dtype=self.model.dtype, device=device)
        size = power_of_two(self.slots, 4)
        self.whole = torch.zeros(6, size, dtype=torch.int64, device=device)
        self.parts = torch.zeros(3, size, dtype=torch.float32, device=device)
        self.step = torch.zeros(1, dtype=torch.int64, device=device)
        self.out_ids = torch.zeros(self.burst, size, dtype=torch.int64, device=device)
        self.out_logprobs = torch.zeros(2, self.burst, size, dtype=torch.float32, device=device)
        self.logits = None
        self.pool = None

    # -- admission

    def admit(self, adapter):
        """Prefills waiting requests of an adapter; those that share a prompt wait for its first."""
        batch, tokens, later, begun = [], 0, [], set()
        while self.waiting and (self.free or not self.model.batched):
            request = self.waiting.popleft()
            if request.adapter != adapter:
                later.append(request)
                continue
            if request.aborted:
                self.end(request, {"type": "abort", "message": "aborted before it began"})
                continue
            request.marks = self.prefixes.marks(request.prompt[:-1])
            if self.model.batched and self.gains_by_waiting(request, begun):
                later.append(request)
                continue
            start = self.place(request)
            begun.update(request.marks)
            batch.append((request, start))
            tokens += len(request.prompt) - start
            if tokens >= self.prefill_tokens:
                break
        self.waiting.extendleft(reversed(later))
        for part in by_length(batch, self.prefill_tokens):
            self.prefill(part)
        return bool(batch)

    def gains_by_waiting(self, request, begun):
        """Whether a request about to be prefilled shares much more with it than any slot does now."""
        shared = self.prefixes.leading(request.marks, begun) * Prefixes.block
        return shared > 64 and shared - self.longest(request)[0] > 64

    def longest(self, request):
        """The slot with the longest prefix of a prompt, at most all but its last token."""
        known = self.prefixes.known.get(request.adapter, {})
        blocks = self.prefixes.leading(request.marks, known)
        if blocks == 0:
            return 0, -1
        first = blocks * Prefixes.block
        wanted = request.prompt[first : min(first + Prefixes.block, len(request.prompt) - 1)]
        best = (0, -1)
        for slot in itertools.islice(known[request.marks[blocks - 1]], 8):
            own = self.held[slot, first : min(first + len(wanted), self.held_size[slot])]
            best = max(best, (first + common_prefix(own, wanted), slot))
        return best

    def place(self, request):
        """Gives a request its slot, with as much of its prompt as some slot already holds."""
        if not self.model.batched:
            return 0
        shared, source = self.longest(request)
        if shared < 16:
            shared = 0
        if shared and source in self.free:
            self.free.remove(source)
            request.slot = source
        else:
            request.slot = self.free.popleft()
            if shared:
                self.cache[:, :, request.slot, :, :shared] = self.cache[:, :, source, :, :shared]
        self.hold(request, request.prompt[:shared])
        request.cached = shared
        self.counts["cached"] += shared
        return shared

    @torch.no_grad()
    def prefill(self, batch):
        """Computes what is missing of prompts, and draws each request's first token."""
        self.counts["prefilled"] += sum(len(r.prompt) - start for r, start in batch)
        if self.model.batched:
            hidden = self.prefill_hidden(batch)
            logits = self.model.logits(hidden, self.live.lora)
        else:
            logits = torch.cat([self.prefill_plain(request) for request, _ in batch])
        requests = [request for request, _ in batch]
        ids, raw, tempered = self.draw(logits, requests)
        tops = self.top_of(logits, requests)
        for place, request in enumerate(requests):
            self.held_now(request)
            self.active.append(request)
            self.take(request, [ids[place]], [raw[place]], [tempered[place]], tops and [tops[place]])

    def prefill_hidden(self, batch):
        model, device = self.model, self.model.device
        size = max(len(request.prompt) - start for request, start in batch)
        reach = max(len(request.prompt) for request, _ in batch)
        ids = np.zeros((len(batch), size), np.int64)
        positions = np.zeros((len(batch), size), np.int64)
        slots = np.full((len(batch), size), self.slots, np.int64)
        last = np.zeros(len(batch), np.int64)
        for row, (request, start) in enumerate(batch):
            new = request.prompt[start:]
            ids[row, : len(new)] = new
            positions[row] = np.minimum(start + np.arange(size), model.context - 1)
            slots[row, : len(new)] = request.slot
            last[row] = row * size + len(new) - 1
        ids, positions, slots, last = (
            torch.from_numpy(array).to(device).reshape(-1) for array in (ids, positions, slots, last)
        )
        own = torch.tensor([request.slot for request, _ in batch], device=device)
        fresh = all(start == 0 for _, start in batch)
        rows = len(batch)
        seen = None
        if not fresh:
            seen = torch.arange(reach, device=device)[None, None] <= positions.view(rows, size)[:, :, None]

        def attend(index, q, k, v):
            cache = self.cache[index]
            cache[0][slots, :, positions] = k
            cache[1][slots, :, positions] = v
            q = q.view(rows, size, *q.shape[1:]).transpose(1, 2)
            if fresh:
                k, v = (t.view(rows, size, *t.shape[1:]).transpose(1, 2) for t in (k, v))
                out = F.scaled_dot_product_attention(
                    q, k, v, is_causal=True, scale=model.scale, enable_gqa=q.shape[1] != k.shape[1]
                )
            else:
                group = q.shape[1] // cache.shape[2]
                k, v = (side[own, :, :reach].repeat_interleave(group, 1) for side in cache)
                out = F.scaled_dot_product_attention(
                    q, k, v, attn_mask=seen[:, None], scale=model.scale
                )
            return out.transpose(1, 2)

        hidden = model.run(model.embedding[ids], positions, self.live.lora, attend)
        return hidden[last]

    def prefill_plain(self, request):
        from transformers import DynamicCache

        request.state = DynamicCache()
        ids = torch.from_numpy(request.prompt.astype(np.int64))[None].to(self.model.device)
        out = self.model.forward(ids, self.live.lora, past_key_values=request.state, use_cache=True)
        return self.model.logits(out.last_hidden_state[:, -1], self.live.lora)

    # -- decoding

    def draw(self, logits, requests):
        device = logits.device
        heats = torch.tensor([r.temperature for r in requests], device=device)
        seeds = torch.tensor([r.seed for r in requests], device=device)
        steps = torch.tensor([len(r.tokens) for r in requests], device=device)
        allowed = logits
        if any(r.filtered for r in requests):
            limits = [[r.top_p, r.top_k, r.min_p] for r in requests]
            p, k, m = torch.tensor(limits, device=device, dtype=torch.float32).T
            allowed = only_allowed(logits, heats, p, k.long(), m)
        out = draw(logits, allowed, heats, seeds, steps)
        return [t.tolist() for t in out]

    def top_of(self, logits, requests):
        width = max(r.top for r in requests)
        if width == 0:
            return None
        heats = torch.tensor([r.temperature or 1.0 for r in requests], device=logits.device)
        values, ids = torch.log_softmax(logits / heats[:, None], -1).topk(width)
        return [list(zip(v, i)) for v, i in zip(values.tolist(), ids.tolist())]

    @torch.no_grad()
    def decode(self, adapter):
        """A burst of steps for all sequences of an adapter."""
        group = [request for request in self.active if request.adapter == adapter]
        if not group:
            return False
        if not self.model.batched:
            return self.decode_plain(group)
        left = max(request.max_tokens - len(request.tokens) for request in group)
        wants_top = any(request.top for request in group)
        steps = 1 if wants_top else min(self.burst, left)
        rows = min(power_of_two(len(group), 4), self.whole.shape[1])
        if len(group) <= rows * 3 // 4 and rows >= 16:
            rows = rows * 3 // 4
        filtered = any(request.filtered for request in group)
        self.fill(group, rows)
        for _ in range(steps):
            self.forward(rows, filtered)
        ids = self.out_ids[:steps, : len(group)].T.tolist()
        raw, tempered = self.out_logprobs[:, :steps, : len(group)].transpose(1, 2).tolist()
        tops = self.top_of(self.logits[: len(group)], group) if wants_top else None
        for place, request in enumerate(group):
            own = None if tops is None else [tops[place]]
            self.take(request, ids[place], raw[place], tempered[place], own)
        return True

    def fill(self, group, rows):
        """Where each sequence stands, into the tensors that the graphs read."""
        whole = np.zeros((6, rows), np.int64)
        parts = np.zeros((3, rows), np.float32)
        whole[2], parts[1] = self.slots, 1
        for place, r in enumerate(group):
            position = len(r.prompt) + len(r.tokens) - 1
            whole[:, place] = (r.tokens[-1], position, r.slot, r.seed, len(r.tokens), r.top_k)
            parts[:, place] = (r.temperature, r.top_p, r.min_p)
        self.whole[:, :rows].copy_(torch.from_numpy(whole))
        self.parts[:, :rows].copy_(torch.from_numpy(parts))
        self.step.zero_()

    def forward(self, rows, filtered):
        """One step; on a GPU, a graph that was captured once for this many rows."""
        if self.graphs is None:
            return self.step_once(rows, filtered)
        key = (rows, filtered)
        if key not in self.graphs:
            self.graphs[key] = self.capture(rows, filtered)
        graph, self.logits = self.graphs[key]
        graph.replay()

    def capture(self, rows, filtered):
        saved = [t.clone() for t in (self.whole, self.step)]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.step_once(rows, filtered)
        torch.cuda.current_stream().wait_stream(stream)
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self.step_once(rows, filtered)
        logits = self.logits
        for tensor, before_it in zip((self.whole, self.step), saved):
            tensor.copy_(before_it)
        return graph, logits

    def step_once(self, rows, filtered):
        """One token for every row: read the tensors, run the model, draw, move on by one."""
        model = self.model
        ids, positions, slots, seeds, counts, top_k = self.whole[:, :rows]
        heats, top_p, min_p = self.parts[:, :rows]
        lengths = positions + 1

        def attend(index, q, k, v):
            return attend_cache(q, k, v, self.cache[index], slots, lengths, model.scale)

        hidden = model.run(model.embedding[ids], positions, self.live.lora, attend)
        logits = model.logits(hidden, self.live.lora)
        allowed = logits
        if filtered:
            allowed = only_allowed(logits, heats, top_p, top_k, min_p)
        new, raw, tempered = draw(logits, allowed, heats, seeds, counts)
        self.out_ids[:, :rows].index_copy_(0, self.step, new[None])
        self.out_logprobs[:, :, :rows].index_copy_(1, self.step, torch.stack((raw, tempered))[:, None])
        ids.copy_(new)
        positions.add_(1).clamp_(max=model.context - 1)
        counts.add_(1)
        self.step.add_(1)
        self.logits = logits

    def decode_plain(self, group):
        for request in group:
            ids = torch.tensor([[request.tokens[-1]]], device=self.model.device)
            out = self.model.forward(ids, self.live.lora, past_key_values=request.state, use_cache=True)
            logits = self.model.logits(out.last_hidden_state[:, -1], self.live.lora)
            drawn = self.draw(logits, [request])
            self.take(request, *drawn, self.top_of(logits, [request]))
        return True

    # -- ending

    def take(self, request, ids, raw, tempered, tops):
        """Adds new tokens until one ends the sequence."""
        for place, token in enumerate(ids):
            request.tokens.append(token)
            request.raw.append(raw[place])
            request.tempered.append(tempered[place])
            if tops:
                request.tops.append(tops[place][: request.top])
            self.counts["sampled"] += 1
            finish = self.finish_of(request, token)
            if finish:
                return self.end(request, finish)
        if request.told:
            request.told(request)

    def finish_of(self, request, token):
        if request.aborted:
            return {"type": "abort", "message": "aborted"}
        if token in request.stop_ids:
            return {"type": "stop", "matched": token}
        if request.stop_strings:
            tail = self.tokenizer.decode(request.tokens[-48:])
            for text in request.stop_strings:
                if text in tail:
                    return {"type": "stop", "matched": text}
        if len(request.tokens) >= request.max_tokens:
            return {"type": "length", "length": request.max_tokens}
        return None

    def held_now(self, request):
        """A slot holds its sequence less the last token, whose keys are computed with the next."""
        if request.slot >= 0:
            self.hold(request, np.concatenate([request.prompt, np.asarray(request.tokens[:-1], np.int32)]))

    def hold(self, request, ids):
        self.hold_in(request.slot, request.adapter, ids)

    def hold_in(self, slot, adapter, ids):
        self.held[slot, : len(ids)] = ids
        marks = self.prefixes.marks(ids)
        self.prefixes.put(slot, adapter, marks, (self.held_by[slot], self.held_marks[slot]))
        self.held_size[slot], self.held_by[slot], self.held_marks[slot] = len(ids), adapter, marks

    def end(self, request, finish):
        request.finish = finish
        if request in self.active:
            self.active.remove(request)
        if request.slot >= 0:
            self.held_now(request)
            self.free.append(request.slot)
        request.state = None
        if request.told:
            request.told(request)
        request.done.set()

    def forget(self):
        """Drops the prefixes of sequences that have ended."""
        for slot in self.free:
            self.hold_in(slot, None, np.zeros(0, np.int32))

    def fail(self, error):
        for request in [*self.active, *list(self.waiting)]:
            request.error = error
            self.end(request, {"type": "abort", "message": str(error)})
        self.waiting.clear()

    @torch.no_grad()
    def score(self, request):
        """Log-probabilities of a prompt's tokens from a place on, at temperature 1."""
        ids = torch.from_numpy(request.prompt.astype(np.int64)).to(self.model.device)
        first = max(1, request.score_from)
        hidden = self.model.rows(ids[None, :-1], self.live.lora)[first - 1 :]
        request.scores = Head.logprobs(hidden, self.model.head, self.model.pair(self.live.lora), ids[first:]).tolist()


def common_prefix(left, right):
    size = min(len(left), len(right))
    different = np.nonzero(left[:size] != right[:size])[0]
    return int(different[0]) if len(different) else size


def by_length(batch, budget):
    """Prefills of like length together, so that little is padded."""
    batch = sorted(batch, key=lambda entry: len(entry[0].prompt) - entry[1])
    part = []
    for entry in batch:
        size = len(entry[0].prompt) - entry[1]
        if part and size * (len(part) + 1) > budget:
            yield part
            part = []
        part.append(entry)
    if part:
        yield part


class Live:
    """The adapter that the sampler multiplies with. Graphs read its tensors, so they stay in place."""

    def __init__(self, model, rank):
        self.model, self.name = model, None
        blank = Adapter(model.sites, rank, device=model.device)
        for _, b in blank.pairs:
            b.zero_()
        self.lora = blank.live(model.masks, model.dtype)
        self.rank = rank

    def use(self, name, pairs):
        if self.name == name:
            return
        flat = [tensor for pair in self.lora for tensor in pair]
        torch._foreach_zero_(flat)
        if pairs is not None:
            given = [tensor for pair in pairs for tensor in pair]
            places = [t[tuple(slice(0, size) for size in g.shape)] for t, g in zip(flat, given)]
            torch._foreach_copy_(places, given)
        self.model.use(self.lora)
        self.name = name


# ---------------------------------------------------------------------------------- losses


def token_loss(name, now, old, advantage, config):
    """Every token's loss, from its log-probabilities now and when sampled."""
    low, high = config.get("clip_low_threshold"), config.get("clip_high_threshold")
    if name == "cross_entropy":
        return -now
    if name == "dro":
        return -(now * advantage - 0.5 * config.get("beta", 0.05) * (now - old) ** 2)
    ratio = torch.exp((now - old).clamp(-20, 20))
    if name == "importance_sampling":
        return -ratio * advantage
    if name == "ppo":
        trusted = ratio.clamp(0.8 if low is None else low, 1.2 if high is None else high)
        return -torch.minimum(ratio * advantage, trusted * advantage)
    weight = ratio.clamp(0.8 if low is None else low, 1.2 if high is None else high).detach()
    return -weight * advantage * now


def sequence_loss(name, now, old, advantage, config):
    """The loss of a sequence whose tokens share one ratio, spread evenly over its tokens."""
    low, high = config.get("clip_low_threshold"), config.get("clip_high_threshold")
    gap = (now - old).clamp(-20, 20)
    if name == "gmpo":
        low, high = math.log(low or math.exp(-0.4)), math.log(high or math.exp(0.4))
        held = torch.where(advantage > 0, gap.clamp(max=high), gap.clamp(min=low))
        value = -advantage.mean() * torch.exp(held.mean())
        return value.expand(len(now))
    ratio = torch.exp(gap.mean().clamp(max=10))
    trusted = ratio.clamp(1 - 3e-4 if low is None else low, 1 + 4e-4 if high is None else high)
    return -torch.minimum(ratio * advantage, trusted * advantage)


TOKEN_LOSSES = ("cross_entropy", "importance_sampling", "ppo", "cispo", "dro")
SEQUENCE_LOSSES = ("gspo", "gmpo")


@dataclass
class Row:
    """One sequence that is trained on: inputs, targets one further, and a number per target."""

    tokens: np.ndarray
    targets: np.ndarray
    inputs: dict

    def asked(self, skips):
        """Which targets are computed: all, or only those with a weight or an advantage other than zero."""
        values = [self.inputs[name] for name in ("weights", "advantages") if name in self.inputs]
        if not skips or not values:
            return np.ones(len(self.targets), bool)
        return np.logical_and.reduce([np.asarray(value) != 0 for value in values])

    def numbers(self, name, default):
        values = self.inputs.get(name)
        return np.full(len(self.targets), default, np.float32) if values is None else np.asarray(values, np.float32)

    def tensor(self, name, default, device):
        return torch.from_numpy(self.numbers(name, default).copy()).to(device)


class Loss:
    """A loss by name with its settings: over rows, or over paths through them."""

    def __init__(self, name, config):
        if name not in TOKEN_LOSSES + SEQUENCE_LOSSES:
            known = ", ".join(TOKEN_LOSSES + SEQUENCE_LOSSES)
            raise Refused(f'there is no loss "{name}" here; known: {known}')
        texts = ("paths", "logprobs")
        for key, value in config.items():
            if key not in texts and not isinstance(value, (int, float)):
                raise Refused(f"loss_fn_config.{key} must be a number")
        self.name, self.config = name, config
        self.paths, self.mean = read_paths(config["paths"]) if "paths" in config else (None, False)
        self.skips = config.get("logprobs") == "trained" and not self.whole

    @property
    def whole(self):
        """Whether all rows must be seen before any token's slope is known."""
        return self.paths is not None or self.name in SEQUENCE_LOSSES

    def of(self, now, old, advantage):
        each = token_loss if self.name in TOKEN_LOSSES else sequence_loss
        return each(self.name, now, old, advantage, self.config)

    def row(self, row, now):
        """The loss of one row: the sum over its tokens, as Tinker sums."""
        device = now.device
        old, advantage = row.tensor("logprobs", 0.0, device), row.tensor("advantages", 0.0, device)
        weight = row.tensor("weights", 1.0, device)
        if self.name in TOKEN_LOSSES:
            return (self.of(now, old, advantage) * weight).sum()
        trained = (weight != 0) & (advantage != 0) if "weights" not in row.inputs else weight != 0
        if not bool(trained.any()):
            return now.sum() * 0
        return (self.of(now[trained], old[trained], advantage[trained]) * weight[trained]).sum()

    def total(self, rows, nows):
        """The loss of all rows, or of the paths through them: slopes flow back by themselves."""
        if self.paths is None:
            return sum(self.row(row, now) for row, now in zip(rows, nows))
        total = nows[0].sum() * 0
        for path in self.paths:
            now = torch.cat([nows[row][first:last] for row, first, last in path["spans"]])
            old = torch.cat([
                rows[row].tensor("logprobs", 0.0, now.device)[first:last] for row, first, last in path["spans"]
            ])  # fmt: skip
            advantage = torch.as_tensor(path["advantage"], dtype=now.dtype, device=now.device)
            value = self.of(now, old, advantage.expand(len(now)))
            total = total + path["weight"] * (value.mean() if self.mean else value.sum())
        return total

    def check(self, rows):
        needs = () if self.name == "cross_entropy" else ("logprobs",)
        needs += () if self.name == "cross_entropy" or self.paths is not None else ("advantages",)
        for index, row in enumerate(rows):
            for name in needs:
                if name not in row.inputs:
                    raise Refused(f'data[{index}].loss_fn_inputs has no "{name}", which {self.name} needs')
        for index, path in enumerate(self.paths or []):
            size = 0
            for row, first, last in path["spans"]:
                if not (0 <= row < len(rows) and 0 <= first <= last <= len(rows[row].targets)):
                    raise Refused(f"paths[{index}] has the span [{row}, {first}, {last}], outside of the data")
                size += last - first
            if size == 0:
                raise Refused(f"paths[{index}] has no tokens")
            if isinstance(path["advantage"], list) and len(path["advantage"]) != size:
                raise Refused(f"paths[{index}] has {len(path['advantage'])} advantages for {size} tokens")


def read_paths(text):
    try:
        given = json.loads(text)
        paths = [
            {
                "spans": [tuple(int(number) for number in span) for span in path["spans"]],
                "advantage": numbers(path["advantage"]),
                "weight": float(path.get("weight", 1)),
            }
            for path in given["paths"]
        ]
        if any(len(span) != 3 for path in paths for span in path["spans"]):
            raise ValueError("a span is [row, from, to]")
        return paths, bool(given.get("mean", False))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"loss_fn_config.paths cannot be read: {type(error).__name__} {error}") from None


def numbers(value):
    return [float(number) for number in value] if isinstance(value, list) else float(value)


# ---------------------------------------------------------------------------------- the trainer


class Learner:
    """One adapter that is trained, with its optimiser and the gradient gathered so far."""

    def __init__(self, model_id, adapter):
        self.model_id, self.adapter = model_id, adapter
        self.moments = [(torch.zeros_like(t), torch.zeros_like(t)) for t in adapter.trained]
        self.gradients = None
        self.step = 0
        self.next = 1  # the number of the next request of this model
        self.pending = {}
        self.missing_since = None
        self.fresh = True
        for tensor in adapter.trained:
            tensor.requires_grad_(True)


class Given:
    """Slopes that are known before the backward pass."""

    def __init__(self, slopes, part):
        self.slopes = torch.cat([slopes[index] for index in part])

    def __call__(self, now, part):
        return self.slopes[part]


class ByToken:
    """Slopes of a loss over single tokens, found while their log-probabilities are computed."""

    def __init__(self, loss, rows, skips, device):
        self.loss, self.sums = loss, []
        defaults = (("logprobs", 0.0), ("advantages", 0.0), ("weights", 1.0))
        self.numbers = [
            on_device(np.concatenate([row.numbers(name, value)[row.asked(skips)] for row in rows]), device)
            for name, value in defaults
        ]

    def __call__(self, now, part):
        old, advantage, weight = (values[part] for values in self.numbers)
        with torch.enable_grad():
            leaf = now.detach().requires_grad_(True)
            value = (self.loss.of(leaf, old, advantage) * weight).sum()
            self.sums.append(value.detach())
            return torch.autograd.grad(value, leaf)[0]



def on_device(array, device):
    """An array on the GPU, copied from pinned memory so that the copy does not wait for the GPU's work."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def split_back(now, asked):
    """The wanted tokens' numbers as one array per row, with 0 for the other tokens."""
    sizes = [int(wanted.sum()) for wanted in asked]
    out = []
    for wanted, own in zip(asked, np.split(now, np.cumsum(sizes)[:-1])):
        row = np.zeros(len(wanted), np.float32)
        row[wanted] = own
        out.append(row)
    return out


class Trainer:
    """Forward and backward over rows in micro-batches that shrink when memory runs out."""

    def __init__(self, model, budget):
        self.model, self.budget, self.skips = model, budget, False
        self.gathered = self.lora = None
        self.counts = {"trained": 0, "forwarded": 0, "halvings": 0}

    def learn(self, learner, rows, loss, backward):
        """The log-probabilities of all rows and the loss; gradients are added to the learner's."""
        loss.check(rows)
        self.gathered, self.skips = None, loss.skips and backward
        self.put_beside(learner)
        if not backward or loss.whole:
            nows = self.forward_only(rows)
            leaves = [torch.from_numpy(now).to(self.model.device).requires_grad_(backward) for now in nows]
            value = loss.total(rows, leaves)
            total = float(value.detach())
        if backward and loss.whole:
            slopes = torch.autograd.grad(value, leaves)
            self.each(rows, lambda part: self.backward(rows, part, Given(slopes, part)))
        elif backward:
            found, sums = [], []

            def go(part):
                slope_of = ByToken(loss, [rows[index] for index in part], self.skips, self.model.device)
                found.append((part, *self.backward(rows, part, slope_of)))
                sums.extend(slope_of.sums)

            self.each(rows, go)
            # Wait for the GPU only now, so that it is never idle between micro-batches.
            nows, total = self.in_order(found), float(sum(sums))
        if backward:
            self.add(learner)
            self.counts["trained"] += sum(len(row.tokens) for row in rows)
        return nows, total

    def put_beside(self, learner):
        """The learner's adapter beside the maps, as leaves that gather slopes of their own."""
        with torch.no_grad():
            live = learner.adapter.live(self.model.masks, self.model.dtype)
        for site, pair in zip(learner.adapter.sites, live):
            for tensor in pair:
                tensor.requires_grad_(site.part in learner.adapter.parts)
        self.lora = live
        self.model.use(live)

    def in_order(self, found):
        """Log-probabilities of micro-batches as one array per row, in the rows' own order."""
        nows = {}
        for part, now, asked in found:
            nows.update(zip(part, split_back(now.cpu().numpy(), asked)))
        return [nows[index] for index in sorted(nows)]

    def each(self, rows, work):
        """Calls `work` with micro-batches of row indices; one that is too large is halved."""
        order = sorted(range(len(rows)), key=lambda index: -len(rows[index].tokens))
        while order:
            size = max(1, self.budget // padded(len(rows[order[0]].tokens)))
            part = order[:size]
            try:
                work(part)
                order = order[size:]
            except torch.cuda.OutOfMemoryError:
                self.smaller(len(part), len(rows[order[0]].tokens))

    def smaller(self, count, tokens):
        """After memory ran out: half as many tokens at once, then activations computed twice."""
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.counts["halvings"] += 1
        if count > 1:
            self.budget = max(1, count // 2) * padded(tokens)
        elif not self.model.checkpoints:
            self.model.checkpoints = True
        else:
            raise Refused(f"a row of {tokens} tokens does not fit into this GPU's memory", 413)

    def pack(self, rows, part):
        """A micro-batch as tensors: ids [B, T], which places are asked for, their targets, all sizes."""
        size = padded(max(len(rows[index].tokens) for index in part))
        ids = np.zeros((len(part), size), np.int64)
        keep, targets, asked = [], [], []
        for place, index in enumerate(part):
            row = rows[index]
            ids[place, : len(row.tokens)] = row.tokens
            wanted = row.asked(self.skips)
            asked.append(wanted)
            keep.append(place * size + np.nonzero(wanted)[0])
            targets.append(row.targets[wanted])
        arrays = (ids, np.concatenate(keep), np.concatenate(targets).astype(np.int64))
        return *(on_device(array, self.model.device) for array in arrays), asked

    def forward_only(self, rows):
        found = []

        @torch.no_grad()
        def go(part):
            ids, keep, targets, asked = self.pack(rows, part)
            hidden = self.model.rows(ids, self.lora)[keep]
            found.append((part, Head.logprobs(hidden, self.model.head, self.model.pair(self.lora), targets), asked))

        self.each(rows, go)
        self.counts["forwarded"] += sum(len(row.tokens) for row in rows)
        return self.in_order(found)

    def backward(self, rows, part, slope_of):
        """Gradients of a micro-batch, kept apart until it is whole: one that fails leaves no trace."""
        ids, keep, targets, asked = self.pack(rows, part)
        pair = self.model.pair(self.lora)
        hidden = self.model.rows(ids, self.lora)
        now, to_kept, to_pair = Head.learn(hidden.detach()[keep], self.model.head, pair, targets, slope_of)
        to_hidden = torch.zeros_like(hidden).index_copy_(0, keep, to_kept)
        leaves = [tensor for own in self.lora for tensor in own]
        wanted = [tensor for tensor in leaves if tensor.requires_grad and not any(tensor is t for t in pair)]
        slopes = {}
        if wanted:
            slopes = dict(zip(map(id, wanted), torch.autograd.grad(hidden, wanted, to_hidden, allow_unused=True)))
        slopes.update((id(tensor), slope) for tensor, slope in zip(pair, to_pair) if tensor.requires_grad)
        found = [slopes.get(id(tensor)) for tensor in leaves]
        if self.gathered is None:
            self.gathered = [None if slope is None else slope.float() for slope in found]
        else:
            both = [(sum_, slope) for sum_, slope in zip(self.gathered, found) if slope is not None]
            torch._foreach_add_([sum_ for sum_, _ in both], [slope.float() for _, slope in both])
        return now, asked

    def add(self, learner):
        if self.gathered is None:
            return
        slopes = list(zip(self.gathered[0::2], self.gathered[1::2]))
        found = learner.adapter.back(slopes, self.model.masks)
        if learner.gradients is None:
            learner.gradients = found
        else:
            torch._foreach_add_(learner.gradients, found)
        self.gathered = self.lora = None

    @torch.no_grad()
    def optimise(self, learner, given):
        """One step of AdamW; the gradient is clipped as a whole where a norm is given."""
        if learner.gradients is None:
            raise Refused("there is no gradient to step with: send forward_backward first")
        trained, gradients = learner.adapter.trained, learner.gradients
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        if given["grad_clip_norm"] > 0:
            scale = float((given["grad_clip_norm"] / (norm + 1e-6)).clamp(max=1))
            torch._foreach_mul_(gradients, scale)
        learner.step += 1
        beta1, beta2, rate = given["beta1"], given["beta2"], given["learning_rate"]
        first, second = ([m[side] for m in learner.moments] for side in (0, 1))
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        if given["weight_decay"] > 0:
            torch._foreach_mul_(trained, 1 - rate * given["weight_decay"])
        down = torch._foreach_div(second, 1 - beta2**learner.step)
        torch._foreach_sqrt_(down)
        torch._foreach_add_(down, given["eps"])
        torch._foreach_addcdiv_(trained, first, down, -rate / (1 - beta1**learner.step))
        learner.gradients = None
        return {"grad_norm:mean": float(norm)}


def padded(size):
    """Rows are padded to a multiple of 64, so that few shapes occur."""
    return (size + 63) // 64 * 64


# ---------------------------------------------------------------------------------- checkpoints


class Store:
    """Checkpoints on disk: PEFT folders with the optimiser beside, each written whole or not at all."""

    def __init__(self, folder, base):
        self.folder, self.base = folder, base
        os.makedirs(folder, exist_ok=True)
        self.writes = queue.Queue()
        threading.Thread(target=self.write_all, daemon=True).start()

    def place(self, path):
        """The folder of `tinker://MODEL/KIND/NAME`."""
        parts = path.removeprefix("tinker://").split("/")
        if not path.startswith("tinker://") or len(parts) != 3 or any(p in ("", ".", "..") for p in parts):
            raise Refused(f'"{path}" is no path of the form tinker://MODEL/weights/NAME')
        return os.path.join(self.folder, *(safe_name(part) for part in parts))

    def save(self, path, learner, optimiser=True, wait=True):
        """Copies the state now, and writes it now or in the background."""
        tensors = learner.adapter.tensors()
        record = {
            "model_id": learner.model_id, "base": self.base, "rank": learner.adapter.rank,
            "seed": learner.adapter.seed, "parts": list(learner.adapter.parts), "step": learner.step,
            "next": learner.next, "optimiser": optimiser,
        }  # fmt: skip
        state = {}
        if optimiser:
            for index, (first, second) in enumerate(learner.moments):
                state[f"first.{index}"], state[f"second.{index}"] = first.cpu(), second.cpu()
        job = (self.place(path), tensors, state, record)
        if wait:
            self.write(*job)
        else:
            self.writes.put(job)

    def write_all(self):
        while True:
            job = self.writes.get()
            try:
                self.write(*job)
            except OSError as error:
                print(f"could not write {job[0]}: {error}", file=sys.stderr, flush=True)
            self.writes.task_done()

    def write(self, folder, tensors, state, record):
        from safetensors.torch import save_file

        fresh = f"{folder}.{uuid.uuid4().hex[:8]}.part"
        os.makedirs(fresh)
        save_file(tensors, os.path.join(fresh, "adapter_model.safetensors"))
        if state:
            save_file(state, os.path.join(fresh, "optimizer.safetensors"))
        write_json(os.path.join(fresh, "adapter_config.json"), peft_config(self.base, record, tensors))
        write_json(os.path.join(fresh, "espalier.json"), record)
        for name in os.listdir(fresh):
            with open(os.path.join(fresh, name), "rb") as file:
                os.fsync(file.fileno())
        old = f"{folder}.{uuid.uuid4().hex[:8]}.old"
        if os.path.isdir(folder):
            os.rename(folder, old)
        os.rename(fresh, folder)
        shutil.rmtree(old, ignore_errors=True)

    def find(self, path):
        """The folder of a checkpoint; if it was being replaced during a power cut, the old one."""
        folder = self.place(path)
        if os.path.isdir(folder):
            return folder
        parent, name = os.path.split(folder)
        names = os.listdir(parent) if os.path.isdir(parent) else []
        for other in names:
            if other.startswith(f"{name}.") and other.endswith(".old"):
                return os.path.join(parent, other)
        raise Refused(f"there is no checkpoint {path}", 404)

    def load(self, path):
        """A checkpoint's record, tensors and optimiser state (empty where it was left out)."""
        from safetensors.torch import load_file

        folder = self.find(path)
        with open(os.path.join(folder, "espalier.json"), encoding="utf-8") as file:
            record = json.load(file)
        state = os.path.join(folder, "optimizer.safetensors")
        tensors = load_file(os.path.join(folder, "adapter_model.safetensors"))
        return record, tensors, load_file(state) if os.path.exists(state) else {}


def safe_name(name):
    """A name as a file name; equal names stay equal, different ones different."""
    if all(letter.isalnum() or letter in "-_." for letter in name):
        return name
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=") + "_"


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)


def peft_config(base, record, tensors):
    names = {key.split(".lora_")[0].rsplit(".", 1)[1] for key in tensors}
    return {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base,
        "r": record["rank"], "lora_alpha": ALPHA, "lora_dropout": 0.0, "bias": "none",
        "target_modules": sorted(names), "inference_mode": True, "fan_in_fan_out": False,
    }  # fmt: skip


# ---------------------------------------------------------------------------------- the worker


class Future:
    """A result that a client polls for."""

    def __init__(self, kind):
        self.kind, self.ready = kind, threading.Event()
        self.value, self.error, self.made = None, None, time.monotonic()

    def wait(self, seconds):
        return self.ready.wait(seconds)

    def result(self):
        if self.error is not None:
            raise self.error
        return self.value

    def settle(self, work):
        try:
            self.value = work()
        except Exception as error:  # the client is told; the worker goes on
            self.error = error
            if not isinstance(error, Refused):
                traceback.print_exc()
        self.ready.set()

    def cancel(self):
        pass


class Samples(Future):
    """The samples of one prompt; ready when all of them are."""

    def __init__(self, requests):
        super().__init__("sample")
        self.requests = requests

    def wait(self, seconds):
        end = time.monotonic() + seconds
        return all(request.done.wait(max(0, end - time.monotonic())) for request in self.requests)

    def result(self):
        first = self.requests[0]
        for request in self.requests:
            if request.error is not None:
                raise request.error
        sequences = [
            {
                "tokens": request.tokens,
                "logprobs": request.raw,
                "stop_reason": "length" if request.finish["type"] == "length" else "stop",
                **({"topk": request.tops} if request.top else {}),
            }
            for request in self.requests
        ]
        scored = None
        if first.scores is not None:
            scored = [None] * (len(first.prompt) - len(first.scores)) + first.scores
        return {"sequences": sequences, "prompt_logprobs": scored, "cached": first.cached, "type": "sample"}

    def cancel(self):
        for request in self.requests:
            request.aborted = True


class Engine:
    """Owns the GPU: one thread that trains and samples in turn."""

    def __init__(self, model, options, tokenizer=None):
        self.model, self.options, self.tokenizer = model, options, tokenizer
        self.name = options.name or os.path.basename(os.path.normpath(options.model))
        self.live = Live(model, options.max_rank)
        self.sampler = Sampler(model, options.slots, self.live, tokenizer, graphs=not options.eager)
        self.trainer = Trainer(model, options.micro_batch)
        self.store = Store(options.state, options.model)
        self.learners, self.futures = {}, OrderedDict()
        self.adapters = OrderedDict()  # what can be sampled from, ready to be multiplied with
        self.samplers = self.read_samplers()
        self.latest, self.version = "base", 0
        self.jobs, self.wake, self.remembering = deque(), threading.Condition(), threading.Lock()
        self.seconds = {name: 0.0 for name in ("idle", "sample", "score", "train", "optimise", "other")}
        self.began = time.monotonic()
        self.stop = False
        self.thread = threading.Thread(target=self.work, daemon=True)

    # -- called by HTTP threads

    def submit(self, kind, work):
        future = Future(kind)
        with self.wake:
            self.jobs.append((kind, future, work))
            self.wake.notify()
        return self.remember(future)

    def submit_in_turn(self, kind, model_id, number, work):
        """Requests of one model run in the order of their numbers, each once."""
        learner = self.learner(model_id)
        with self.wake:
            known = learner.pending.get(number)
            if known is not None:
                return known[3]
            future = Future(kind)
            key = self.remember(future)
            learner.pending[number] = (kind, future, work, key)
            self.wake.notify()
        return key

    def remember(self, future):
        key = uuid.uuid4().hex
        with self.remembering:
            self.futures[key] = future
            while len(self.futures) > 4000 and next(iter(self.futures.values())).wait(0):
                self.futures.popitem(last=False)
        return key

    def sample(self, requests):
        with self.wake:
            self.sampler.waiting.extend(requests)
            self.wake.notify()

    def learner(self, model_id):
        """A model that is trained; after a restart, as it was after its last step."""
        if model_id not in self.learners:
            path = f"tinker://{model_id}/state/last"
            try:
                record, tensors, state = self.store.load(path)
            except Refused:
                raise Refused(f'there is no model "{model_id}"', 404) from None
            self.learners[model_id] = self.restored(model_id, record, tensors, state)
        return self.learners[model_id]

    def sampler_adapter(self, session):
        if session not in self.samplers:
            raise Refused(f'there is no sampling session "{session}"', 404)
        return self.samplers[session]

    # -- the worker's own

    def work(self):
        while not self.stop:
            with self.wake:
                began = time.monotonic()
                while not self.has_work():
                    self.wake.wait(0.5 if any(l.pending for l in self.learners.values()) else 5)
                    if self.stop:
                        return
                self.seconds["idle"] += time.monotonic() - began
                job = self.next_job()
            if job is not None:
                self.timed(job[0], lambda job=job: job[1].settle(job[2]))
            try:
                self.round()
            except Exception as error:
                traceback.print_exc()
                self.sampler.fail(Refused(f"sampling failed: {error}", 500))

    def timed(self, kind, work):
        began = time.monotonic()
        work()
        names = {"forward_backward": "train", "optim_step": "optimise", "sample": "sample", "score": "score"}
        self.seconds[names.get(kind, "other")] += time.monotonic() - began

    def has_work(self):
        return bool(self.jobs or self.sampler.waiting or self.sampler.active or self.ready_number())

    def ready_number(self):
        """The model whose next numbered request is there; a gap is waited for, but not for ever."""
        for learner in list(self.learners.values()):
            open_numbers = [n for n, entry in learner.pending.items() if not entry[1].ready.is_set()]
            if not open_numbers:
                continue
            first = min(open_numbers)
            if first <= learner.next:
                return learner, first
            learner.missing_since = learner.missing_since or time.monotonic()
            if time.monotonic() - learner.missing_since > self.options.gap_seconds:
                return learner, first
        return None

    def next_job(self):
        if self.jobs:
            return self.jobs.popleft()
        found = self.ready_number()
        if found is None:
            return None
        learner, number = found
        learner.next, learner.missing_since = number + 1, None
        for old in [n for n in learner.pending if n < number - 200]:
            del learner.pending[old]
        kind, future, work, key = learner.pending[number]
        learner.pending[number] = (kind, future, None, key)  # its data need not be kept
        return kind, future, work

    def round(self):
        """One burst for every adapter that sequences wait for."""
        sampler = self.sampler
        names = {request.adapter for request in [*sampler.active, *sampler.waiting]}
        for name in sorted(names):
            try:
                pairs = self.pairs(name)
            except Refused as error:
                self.drop(name, error)
                continue
            self.live.use(name, pairs)
            scored = [r for r in list(sampler.waiting) if r.adapter == name and r.score_from is not None and r.scores is None]
            for request in scored:
                self.timed("score", lambda request=request: sampler.score(request))
            self.timed("sample", lambda name=name: self.burst(name))

    def burst(self, name):
        while self.sampler.admit(name):
            pass
        self.sampler.decode(name)

    def drop(self, name, error):
        for request in [r for r in list(self.sampler.waiting) if r.adapter == name]:
            self.sampler.waiting.remove(request)
            request.error = error
            self.sampler.end(request, {"type": "abort", "message": str(error)})

    def pairs(self, name):
        """An adapter as the sampler multiplies with it; loaded where it is on disk only."""
        if name == "base":
            return None
        if name not in self.adapters:
            self.adapters[name] = self.load_pairs(name)
        self.adapters.move_to_end(name)
        while len(self.adapters) > 8:
            self.adapters.popitem(last=False)
        return self.adapters[name]

    def load_pairs(self, name):
        path = name
        if not name.startswith("tinker://"):
            model_id, _, step = name.rpartition("@")
            path = f"tinker://{model_id}/state/last"
            if self.store.load(path)[0]["step"] != int(step):
                raise Refused(f"the weights {name} are gone: publish them again", 410)
        record, tensors, _ = self.store.load(path)
        return self.restored("", record, tensors, {}).adapter.live(self.model.masks, self.model.dtype)

    def create(self, model_id, rank, seed, parts):
        adapter = Adapter(self.model.sites, rank, seed, parts, self.model.device)
        self.learners[model_id] = Learner(model_id, adapter)
        self.store.save(f"tinker://{model_id}/state/last", self.learners[model_id])
        return {"model_id": model_id, "type": "create_model"}

    def restored(self, model_id, record, tensors, state):
        adapter = Adapter(self.model.sites, record["rank"], record["seed"], record["parts"], self.model.device)
        adapter.load(tensors)
        learner = Learner(model_id, adapter)
        learner.step, learner.next = record["step"], record["next"]
        self.load_optimiser(learner, state)
        return learner

    def load_optimiser(self, learner, state):
        for index, (first, second) in enumerate(learner.moments):
            if f"first.{index}" in state:
                first.copy_(state[f"first.{index}"])
                second.copy_(state[f"second.{index}"])

    def forward_backward(self, model_id, rows, loss, backward):
        learner = self.learner(model_id)
        learner.fresh = False
        self.live.name = None  # beside the maps stands what is trained now
        nows, total = self.trainer.learn(learner, rows, loss, backward)
        return {"logprobs": nows, "metrics": {"loss:sum": total}}

    def optimise(self, model_id, given):
        learner = self.learner(model_id)
        metrics = self.trainer.optimise(learner, given)
        if learner.step % self.options.autosave == 0:
            self.store.save(f"tinker://{model_id}/state/last", learner, wait=False)
        return {"metrics": metrics, "type": "optim_step"}

    def save(self, model_id, name):
        path = f"tinker://{model_id}/weights/{name}"
        self.store.save(path, self.learner(model_id))
        return {"path": path, "type": "save_weights"}

    def publish(self, model_id, name, session):
        """Makes a model's weights, as they are now, something that can be sampled from."""
        learner = self.learner(model_id)
        with torch.no_grad():
            pairs = learner.adapter.live(self.model.masks, self.model.dtype)
        self.version += 1
        if name is not None:
            key = path = f"tinker://{model_id}/sampler_weights/{name}"
            self.store.save(path, learner, optimiser=False)
            answer = {"path": path}
        else:
            key = f"{model_id}@{learner.step}"
            answer = {"sampling_session_id": session}
            # Write the step's state first, so that it is there after `kill -9`.
            self.store.writes.join()
            self.samplers[session] = key
            self.write_samplers()
        self.adapters[key] = pairs
        self.latest = key
        return {**answer, "type": "save_weights_for_sampler"}

    def load(self, model_id, path, optimiser):
        learner = self.learner(model_id)
        record, tensors, state = self.store.load(path)
        if record["rank"] != learner.adapter.rank or record["parts"] != list(learner.adapter.parts):
            raise Refused(f"{path} is an adapter of rank {record['rank']} on {', '.join(record['parts'])}, this model is not")
        learner.adapter.load(tensors)
        if optimiser:
            self.load_optimiser(learner, state)
            learner.step = record["step"]
        return {"path": path, "model_id": model_id, "type": "load_weights"}

    def create_from(self, model_id, path, optimiser):
        record, tensors, state = self.store.load(path)
        learner = self.restored(model_id, record, tensors, state if optimiser else {})
        learner.next = 1
        self.learners[model_id] = learner
        return {"path": path, "model_id": model_id, "type": "load_weights"}

    def unload(self, model_id):
        self.store.writes.join()
        self.learners.pop(model_id, None)
        return {"model_id": model_id, "type": "unload_model"}

    # -- names that outlive the process

    def read_samplers(self):
        try:
            with open(os.path.join(self.options.state, "samplers.json"), encoding="utf-8") as file:
                return json.load(file)
        except (FileNotFoundError, ValueError):
            return {}

    def write_samplers(self):
        path = os.path.join(self.options.state, "samplers.json")
        newest = dict(list(self.samplers.items())[-1000:])
        write_json(f"{path}.part", newest)
        os.replace(f"{path}.part", path)

    def stats(self):
        """What the GPU did since the start, in seconds and tokens."""
        memory = torch.cuda.max_memory_allocated() if self.model.device.type == "cuda" else 0
        return {
            "model": self.name, "parameters": self.model.parameters(), "uptime": time.monotonic() - self.began,
            "seconds": self.seconds, "tokens": {**self.sampler.counts, **self.trainer.counts},
            "active": len(self.sampler.active), "waiting": len(self.sampler.waiting),
            "version": self.version, "micro_batch": self.trainer.budget, "peak_memory": memory,
        }  # fmt: skip


# ---------------------------------------------------------------------------------- HTTP


def need(body, name, kind, default=None, low=None, high=None):
    """A checked field of a body."""
    value = body.get(name, default)
    if value is None and default is None and name in body:
        value = default
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Refused(f"{name} must be {kind.__name__}, got {json.dumps(value)[:80]}")
    if kind is float and not math.isfinite(value):
        raise Refused(f"{name} must be a finite number")
    if (low is not None and value < low) or (high is not None and value > high):
        raise Refused(f"{name} must be between {low} and {high}, got {value}")
    return value


def tokens_of(values, model, where):
    """Token ids, checked against the vocabulary."""
    try:
        ids = np.asarray(values)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise ValueError
    except ValueError:
        raise Refused(f"{where} must be a list of token ids") from None
    if ids.size and (ids.min() < 0 or ids.max() >= model.vocabulary):
        raise Refused(f"{where} has the id {ids.max() if ids.min() >= 0 else ids.min()}, outside of the vocabulary of {model.vocabulary}")
    return ids.astype(np.int32)


def prompt_of(model_input, model, where="prompt"):
    if not isinstance(model_input, dict) or not isinstance(model_input.get("chunks"), list):
        raise Refused(f"{where} must be {{chunks: […]}}")
    parts = []
    for chunk in model_input["chunks"]:
        if not isinstance(chunk, dict) or chunk.get("type", "encoded_text") != "encoded_text":
            raise Refused(f"{where} has a chunk that is no text: images and sound are not taken")
        parts.append(tokens_of(chunk.get("tokens", []), model, f"{where}.tokens"))
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def fits(prompt, max_tokens, model):
    """How many tokens may follow a prompt."""
    if len(prompt) == 0:
        raise Refused("the prompt has no tokens")
    room = model.context - len(prompt)
    if room <= 0:
        raise Refused(f"the prompt has {len(prompt)} tokens, and the context is {model.context}")
    return room if max_tokens is None else min(room, max_tokens)


def datum_of(datum, index):
    """A JSON datum, as the protobuf one is read."""
    if not isinstance(datum, dict) or not isinstance(datum.get("loss_fn_inputs"), dict):
        raise Refused(f"data[{index}] must be {{model_input, loss_fn_inputs}}")
    inputs = {}
    for name, tensor in datum["loss_fn_inputs"].items():
        values = tensor.get("data") if isinstance(tensor, dict) else tensor
        try:
            inputs[name] = np.asarray(values, np.int64 if name == "target_tokens" else np.float32)
        except (TypeError, ValueError, OverflowError):
            raise Refused(f"data[{index}].loss_fn_inputs.{name} must hold numbers") from None
    return {"model_input": datum.get("model_input"), "inputs": inputs}


def row_of(datum, index, model):
    """A checked row: targets and numbers of one length, at most the context."""
    where = f"data[{index}]"
    if "tokens" in datum:
        tokens = tokens_of(datum["tokens"], model, where)
    else:
        tokens = prompt_of(datum["model_input"], model, f"{where}.model_input")
    inputs = dict(datum["inputs"])
    if "target_tokens" not in inputs:
        raise Refused(f'{where}.loss_fn_inputs has no "target_tokens"')
    targets = tokens_of(inputs.pop("target_tokens"), model, f"{where}.target_tokens")
    if len(tokens) == 0 or len(tokens) > model.context:
        raise Refused(f"{where} has {len(tokens)} tokens; it may have 1 to {model.context}")
    if len(targets) != len(tokens):
        raise Refused(f"{where} has {len(tokens)} tokens and {len(targets)} target_tokens")
    for name, values in inputs.items():
        if len(values) != len(tokens):
            raise Refused(f"{where}.loss_fn_inputs.{name} has {len(values)} numbers for {len(tokens)} tokens")
        if not np.isfinite(values).all():
            raise Refused(f"{where}.loss_fn_inputs.{name} has a number that is not finite")
    return Row(tokens, targets, inputs)


class Tinker:
    """The routes of Tinker's API. Each takes the body and gives an answer."""

    def __init__(self, engine):
        self.engine = engine
        self.model = engine.model

    def healthz(self, body):
        return {"status": "ok"}

    def get_server_capabilities(self, body):
        name = self.engine.name
        return {"supported_models": [{"model_name": name, "max_context_length": self.model.context}]}

    def client_config(self, body):
        return {"parallel_fwdbwd_chunks": True, "proto_compress_fwdbwd": False, "sample_max_concurrent_requests": 2000}

    def client_dynamic_config(self, body):
        return {"sample_cancel_enabled": True}

    def create_session(self, body):
        return {"session_id": uuid.uuid4().hex[:16], "type": "create_session"}

    def session_heartbeat(self, body):
        return {"type": "session_heartbeat"}

    def telemetry(self, body):
        return {"status": "accepted"}

    def named(self, body, word):
        session = need(body, "session_id", str)
        return f"{session}:{word}:{need(body, word_seq[word], int, low=0)}"

    def create_sampling_session(self, body):
        key = self.named(body, "sample")
        path = body.get("model_path")
        if path is not None:
            self.engine.store.find(need(body, "model_path", str))
        self.engine.samplers[key] = path or "base"
        self.engine.write_samplers()
        return {"sampling_session_id": key, "type": "create_sampling_session"}

    def create_model(self, body):
        self.check_base(body.get("base_model"))
        lora = body.get("lora_config") or {}
        rank = need(lora, "rank", int, min(32, self.engine.options.max_rank), low=1)
        if rank > self.engine.options.max_rank:
            raise Refused(f"rank {rank} is more than --max-rank {self.engine.options.max_rank} of this server")
        parts = [p for p in ("attn", "mlp", "unembed") if need(lora, f"train_{p}", bool, True)]
        if not self.model.unembed and "unembed" in parts:
            parts.remove("unembed")
        if not parts:
            raise Refused("lora_config trains nothing: attn, mlp and unembed are all off")
        if lora.get("seed") is None:
            lora = {**lora, "seed": 0}
        seed, key = need(lora, "seed", int, 0), self.named(body, "train")
        kind = (body.get("optimizer_config") or {}).get("type", "adamw")
        if kind != "adamw":
            raise Refused(f"the optimiser {kind} is not known here; known: adamw")
        return self.submitted("create_model", lambda: self.engine.create(key, rank, seed, parts))

    def check_base(self, name):
        known = (self.engine.name, self.engine.options.model)
        if name is not None and name not in known:
            raise Refused(f'this server has one model, "{known[0]}", and not "{name}"', 404)

    def submitted(self, kind, work):
        return {"request_id": self.engine.submit(kind, work)}

    def in_turn(self, kind, body, work):
        model_id, number = need(body, "model_id", str), need(body, "seq_id", int, low=0)
        key = self.engine.submit_in_turn(kind, model_id, number, lambda: work(model_id))
        return {"request_id": key, "model_id": model_id}

    def forward_backward(self, body):
        given = read_body(body) if isinstance(body, dict) else read_forward_backward(memoryview(body))
        config = dict(given["config"])
        config.setdefault("logprobs", self.engine.options.logprobs)
        loss = Loss(given["loss"], config)
        if not given["data"]:
            raise Refused("data is empty")
        rows = [row_of(datum, index, self.model) for index, datum in enumerate(given["data"])]
        loss.check(rows)
        backward = not given["forward"]
        return self.in_turn(
            "forward_backward", given, lambda key: self.engine.forward_backward(key, rows, loss, backward)
        )

    def forward(self, body):
        if not isinstance(body, dict):
            raise Refused("forward takes JSON; forward_backward takes protobuf", 415)
        body = {**body, "forward_only": True}
        body.setdefault("forward_backward_input", body.get("forward_input"))
        return self.forward_backward(body)

    def optim_step(self, body):
        given = body.get("adam_params")
        if not isinstance(given, dict):
            raise Refused("adam_params must be an object; no other optimiser is known here")
        params = {
            "learning_rate": need(given, "learning_rate", float, 1e-4, low=0),
            "beta1": need(given, "beta1", float, 0.9, low=0, high=0.999999),
            "beta2": need(given, "beta2", float, 0.95, low=0, high=0.999999),
            "eps": need(given, "eps", float, 1e-12, low=0),
            "weight_decay": need(given, "weight_decay", float, 0.0, low=0),
            "grad_clip_norm": need(given, "grad_clip_norm", float, 0.0, low=0),
        }
        return self.in_turn("optim_step", body, lambda key: self.engine.optimise(key, params))

    def save_weights(self, body):
        name = body.get("path") or f"{int(time.time())}"
        self.check_name(name)
        return self.in_turn("save_weights", body, lambda key: self.engine.save(key, name))

    def check_name(self, name):
        if not isinstance(name, str) or not name or "/" in name or name in (".", ".."):
            raise Refused("path must be a plain name")

    def save_weights_for_sampler(self, body):
        name = body.get("path")
        if name is not None:
            self.check_name(name)
            return self.in_turn("save_weights_for_sampler", body, lambda key: self.engine.publish(key, name, None))
        session = need(body, "model_id", str).rsplit(":train:", 1)[0]
        sampler = f"{session}:sample:{need(body, 'sampling_session_seq_id', int, low=0)}"
        return self.in_turn("save_weights_for_sampler", body, lambda key: self.engine.publish(key, None, sampler))

    def load_weights(self, body):
        path, optimiser = need(body, "path", str), need(body, "optimizer", bool, False)
        self.engine.store.find(path)
        if "session_id" in body:
            key = self.named(body, "train")
            return self.submitted("load_weights", lambda: self.engine.create_from(key, path, optimiser))
        return self.in_turn("load_weights", body, lambda key: self.engine.load(key, path, optimiser))

    def unload_model(self, body):
        key = need(body, "model_id", str)
        return self.submitted("unload_model", lambda: self.engine.unload(key))

    def get_info(self, body):
        learner = self.engine.learner(need(body, "model_id", str))
        data = {"arch": "causal", "model_name": self.engine.name, "tokenizer_id": self.engine.options.model}
        return {
            "type": "get_info", "model_data": data, "model_id": learner.model_id, "is_lora": True,
            "lora_rank": learner.adapter.rank, "model_name": self.engine.name,
        }  # fmt: skip

    def weights_info(self, body):
        record = self.engine.store.load(need(body, "tinker_path", str))[0]
        parts = {f"train_{part}": part in record["parts"] for part in ("attn", "mlp", "unembed")}
        return {"base_model": self.engine.name, "is_lora": True, "lora_rank": record["rank"], **parts}

    def asample(self, body):
        params = body.get("sampling_params")
        if not isinstance(params, dict):
            raise Refused("sampling_params must be an object")
        prompt = prompt_of(body.get("prompt"), self.model)
        adapter = self.adapter_of(body)
        count = need(body, "num_samples", int, 1, low=1, high=1024)
        limit = params.get("max_tokens")
        limit = None if limit is None else need(params, "max_tokens", int, low=1)
        stop_ids, stop_strings = self.stops(params.get("stop"))
        top_k = need(params, "top_k", int, -1)
        seed = params.get("seed")
        seed = random.getrandbits(48) if seed is None else need(params, "seed", int)
        common = {
            "adapter": adapter, "max_tokens": fits(prompt, limit, self.model),
            "temperature": need(params, "temperature", float, 1.0, low=0, high=100),
            "top_p": need(params, "top_p", float, 1.0, low=0, high=1), "top_k": max(0, top_k),
            "stop_ids": stop_ids, "stop_strings": stop_strings,
            "top": need(body, "topk_sample_logprobs", int, 0, low=0, high=1024),
        }  # fmt: skip
        for name in ("target_prompt_logprobs", "topk_prompt_logprobs", "prompt_alt_tokens_k"):
            if body.get(name):
                raise Refused(f"{name} is not known here")
        scored = self.score_from(body, prompt)
        seeds = [(seed + index) % 2**62 for index in range(count)]
        requests = [Request(prompt, seed=own, **common) for own in seeds]
        requests[0].score_from = scored
        self.engine.sample(requests)
        key = self.engine.remember(Samples(requests))
        return {"request_id": key, "sample_sequence_ids": [f"{key}:{i}" for i in range(count)]}

    def score_from(self, body, prompt):
        if not body.get("prompt_logprobs"):
            return None
        last = body.get("prompt_logprobs_last_n")
        if len(prompt) < 2:
            raise Refused("prompt_logprobs needs a prompt of at least two tokens")
        return 1 if last is None else len(prompt) - need(body, "prompt_logprobs_last_n", int, low=1, high=len(prompt) - 1)

    def adapter_of(self, body):
        if body.get("sampling_session_id") is not None:
            return self.engine.sampler_adapter(need(body, "sampling_session_id", str))
        if body.get("model_path") is not None:
            self.engine.store.find(need(body, "model_path", str))
            return body["model_path"]
        self.check_base(body.get("base_model"))
        return "base"

    def stops(self, stop):
        """None: the model's own end. A list: exactly these, and the empty list none at all."""
        if stop is None:
            return self.engine.ends, ()
        if isinstance(stop, str):
            stop = [stop]
        if not isinstance(stop, list):
            raise Refused("stop must be a string, a list of strings or a list of ids")
        if all(isinstance(entry, int) for entry in stop):
            return frozenset(stop), ()
        if not all(isinstance(entry, str) and entry for entry in stop):
            raise Refused("stop must hold strings or ids, not both")
        if self.engine.tokenizer is None:
            raise Refused("this server has no tokenizer, so it stops at ids only")
        return self.engine.ends, tuple(stop)

    def retrieve_future(self, body, accepts_protobuf=False):
        key = need(body, "request_id", str)
        future = self.engine.futures.get(key)
        if future is None:
            raise Refused(f"there is no request {key}: it was answered long ago, or before a restart", 410)
        if not future.wait(20):
            return 408, {"type": "try_again", "request_id": key, "queue_state": "active"}
        try:
            result = future.result()
        except Refused as error:
            category = "user" if error.status < 500 else "server"
            return 200, {"error": str(error), "category": category}
        except Exception as error:
            return 200, {"error": f"{type(error).__name__}: {error}", "category": "server"}
        if future.kind == "sample":
            return 200, write_sample(result) if accepts_protobuf else result
        if future.kind == "forward_backward":
            return 200, write_forward_backward(result) if accepts_protobuf else forward_json(result)
        return 200, result

    def cancel_future(self, body):
        future = self.engine.futures.get(need(body, "request_id", str))
        if future is not None:
            future.cancel()
        return {}


word_seq = {"sample": "sampling_session_seq_id", "train": "model_seq_id"}


def read_body(body):
    """A JSON forward_backward request, as the protobuf one is read."""
    given = body.get("forward_backward_input")
    if not isinstance(given, dict) or not isinstance(given.get("data"), list):
        raise Refused("forward_backward_input must be {data: […], loss_fn}")
    config = given.get("loss_fn_config") or {}
    if not isinstance(config, dict):
        raise Refused("loss_fn_config must be an object")
    return {
        "model_id": body.get("model_id"), "seq_id": body.get("seq_id"),
        "data": [datum_of(datum, index) for index, datum in enumerate(given["data"])],
        "loss": need(given, "loss_fn", str), "config": config, "forward": bool(body.get("forward_only")),
    }  # fmt: skip


def forward_json(result):
    outputs = [
        {"logprobs": {"data": np.asarray(row).tolist(), "dtype": "float32", "shape": [len(row)]}}
        for row in result["logprobs"]
    ]
    return {"loss_fn_output_type": "TorchLossReturn", "loss_fn_outputs": outputs, "metrics": result["metrics"]}


class Sglang:
    """The routes of SGLang's server. Samples come from the weights that were published last."""

    def __init__(self, engine):
        self.engine, self.model = engine, engine.model
        self.running = {}

    def health(self, body):
        return {"status": "ok"}

    def model_info(self, body):
        return {
            "model_path": self.engine.options.model, "is_generation": True,
            "weight_version": str(self.engine.version), "served_model_name": self.engine.name,
        }  # fmt: skip

    def server_info(self, body):
        return {"version": f"espalier-gpu {VERSION}", "context_length": self.model.context, "max_running_requests": self.engine.options.slots}

    def models(self, body):
        entry = {"id": self.engine.name, "object": "model", "owned_by": "espalier", "root": self.engine.options.model, "max_model_len": self.model.context}
        return {"object": "list", "data": [entry]}

    def flush_cache(self, body):
        self.engine.submit("flush", self.engine.sampler.forget)
        return {"success": True}

    def abort_request(self, body):
        rid = body.get("rid", "")
        for request in list(self.running.values()):
            if body.get("abort_all") or (rid and request.rid.startswith(rid)):
                request.aborted = True
        return {}

    def requests(self, body):
        """The requests of a body: one prompt, or several with a list for whatever differs."""
        ids = body.get("input_ids")
        if ids is None and body.get("text") is not None:
            ids = self.encode(body["text"])
        if not isinstance(ids, list) or not ids:
            raise Refused("input_ids must be a list of token ids, or a list of such lists")
        single = not isinstance(ids[0], list)
        prompts = [ids] if single else ids
        made = [self.request(body, prompt, index, len(prompts)) for index, prompt in enumerate(prompts)]
        return made, single

    def encode(self, text):
        if self.engine.tokenizer is None:
            raise Refused("this server has no tokenizer: send input_ids")
        if isinstance(text, list):
            return [self.engine.tokenizer.encode(t, add_special_tokens=False) for t in text]
        return self.engine.tokenizer.encode(text, add_special_tokens=False)

    def request(self, body, prompt, index, count):
        params = own(body.get("sampling_params") or {}, index, count)
        if not isinstance(params, dict):
            raise Refused("sampling_params must be an object, or a list of them")
        if need(params, "n", int, 1) != 1:
            raise Refused("n above 1 is not known here: send a batch of prompts")
        prompt = tokens_of(prompt, self.model, "input_ids")
        stops = params.get("stop") or []
        stops = [stops] if isinstance(stops, str) else stops
        if stops and self.engine.tokenizer is None:
            raise Refused("this server has no tokenizer, so it stops at ids only")
        ends = frozenset() if params.get("ignore_eos") else self.engine.ends
        seed = params.get("sampling_seed")
        start = own(body.get("logprob_start_len", -1), index, count)
        scores = bool(body.get("return_logprob")) and isinstance(start, int) and 0 <= start < len(prompt) - 1
        return Request(
            prompt, self.engine.latest, fits(prompt, need(params, "max_new_tokens", int, 128, low=0), self.model),
            temperature=need(params, "temperature", float, 1.0, low=0, high=100),
            top_p=need(params, "top_p", float, 1.0, low=0, high=1),
            top_k=max(0, need(params, "top_k", int, -1)), min_p=need(params, "min_p", float, 0.0, low=0, high=1),
            seed=random.getrandbits(48) if seed is None else need(params, "sampling_seed", int) % 2**62,
            stop_ids=ends | frozenset(params.get("stop_token_ids") or ()), stop_strings=tuple(stops),
            top=int(own(body.get("top_logprobs_num", 0), index, count) or 0),
            score_from=start + 1 if scores else None, rid=str(own(body.get("rid"), index, count) or uuid.uuid4().hex),
        )  # fmt: skip

    def generate(self, body, stream):
        """Answers at once, or by the events that `stream` is called with."""
        requests, single = self.requests(body)
        weights = str(self.engine.version)
        began = time.monotonic()
        events = queue.Queue()
        if body.get("stream"):
            if not single:
                raise Refused("a batch cannot be streamed here: send its prompts apart")
            requests[0].told = lambda request: events.put((len(request.tokens), request.finish))
        for request in requests:
            self.running[request.rid] = request
        try:
            self.engine.sample(requests)
            if body.get("stream"):
                return self.streamed(requests[0], body, weights, events, stream)
            for request in requests:
                request.done.wait()
            for request in requests:
                if request.error is not None:
                    raise request.error
            answers = [self.answer(request, body, weights, began) for request in requests]
            return answers[0] if single else answers
        finally:
            for request in requests:
                request.aborted = True
                self.running.pop(request.rid, None)

    def streamed(self, request, body, weights, events, stream):
        while True:
            count, finish = events.get()
            if request.error is not None:
                stream({"error": {"message": str(request.error), "code": 500}})
                return None
            stream(self.answer(request, body, weights, None, count, finish))
            if finish is not None:
                return None

    def answer(self, request, body, weights, began, count=None, finish=None):
        count = len(request.tokens) if count is None else count
        tokens = request.tokens[:count]
        meta = {
            "id": request.rid, "finish_reason": finish if began is None else request.finish,
            "prompt_tokens": len(request.prompt), "completion_tokens": count,
            "cached_tokens": request.cached, "weight_version": weights,
        }  # fmt: skip
        if began is not None:
            meta["e2e_latency"] = time.monotonic() - began
        if body.get("return_logprob"):
            values = request.tempered[:count]
            meta["output_token_logprobs"] = [[value, token, None] for value, token in zip(values, tokens)]
            if request.top:
                meta["output_top_logprobs"] = [[[v, t, None] for v, t in row] for row in request.tops[:count]]
            if request.scores is not None:
                first = len(request.prompt) - len(request.scores)
                scored = [[None, int(request.prompt[first - 1]), None]]
                pairs = zip(request.scores, request.prompt[first:].tolist())
                meta["input_token_logprobs"] = scored + [[value, token, None] for value, token in pairs]
            else:
                meta["input_token_logprobs"] = []
        text = self.engine.tokenizer.decode(tokens) if self.engine.tokenizer is not None else ""
        return {"text": text, "output_ids": tokens, "meta_info": meta}


def own(value, index, count):
    """A batch's value for one of its prompts."""
    if isinstance(value, list):
        if len(value) != count:
            raise Refused(f"a list of {len(value)} came with {count} prompts")
        return value[index]
    return value


class Handler(BaseHTTPRequestHandler):
    """Reads a request, hands it to its route, writes the answer."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    largest = 512 * 1024 * 1024

    tinker_plain = ("healthz", "get_server_capabilities")

    def handle_one_request(self):
        """Reads a request's head by hand: the standard library's way costs more than the request itself."""
        try:
            self.command, self.path, version = self.rfile.readline(65537).decode("latin-1").split()
            self.headers = self.read_head()
        except ValueError:  # the client has gone, or speaks something else
            self.close_connection = True
            return
        except (ConnectionError, TimeoutError):
            self.close_connection = True
            return
        self.close_connection = version != "HTTP/1.1" or self.headers.get("connection", "").lower() == "close"
        if self.headers.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        try:
            self.do_GET() if self.command == "GET" else self.do_POST()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def read_head(self):
        head = {}
        while True:
            line = self.rfile.readline(65537)
            if line in (b"\r\n", b"\n", b""):
                return head
            name, _, value = line.decode("latin-1").partition(":")
            head[name.strip().lower()] = value.strip()
            if len(head) > 200:
                raise ValueError

    def do_GET(self):
        self.answer({})

    def do_POST(self):
        try:
            body = self.read()
        except Refused as error:
            self.close_connection = True
            return self.write(error.status, {"error": str(error), "detail": str(error)})
        self.answer(body)

    def read(self):
        """The body: bytes for protobuf, else JSON."""
        try:
            size = int(self.headers.get("content-length") or 0)
        except ValueError:
            raise Refused("content-length must be a number") from None
        if size < 0 or size > self.largest:
            raise Refused(f"a body may have at most {self.largest} bytes", 413)
        data = self.rfile.read(size)
        encoding = (self.headers.get("content-encoding") or "identity").lower()
        if encoding == "gzip":
            data = gzip.decompress(data)
        elif encoding != "identity":
            raise Refused(f"the content encoding {encoding} is not taken here: send plain bytes", 415)
        if "protobuf" in (self.headers.get("content-type") or ""):
            return data
        try:
            body = json.loads(data) if data else {}
        except (ValueError, RecursionError) as error:
            raise Refused(f"the body is no JSON: {error}") from None
        if not isinstance(body, dict):
            raise Refused("the body must be a JSON object")
        return body

    def answer(self, body):
        try:
            self.check_key()
            status, result = self.route(self.path.split("?")[0].rstrip("/"), body)
        except Refused as error:
            status, result = error.status, {"error": str(error), "detail": str(error)}
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            return
        except Exception as error:
            traceback.print_exc()
            status, result = 500, {"error": f"{type(error).__name__}: {error}"}
        if result is not None:
            self.write(status, result)

    def check_key(self):
        key = self.server.options.api_key
        if not key:
            return
        given = self.headers.get("x-api-key") or (self.headers.get("authorization") or "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), key.encode()):
            raise Refused("the key is missing or wrong", 401)

    def route(self, path, body):
        tinker, sglang = self.server.tinker, self.server.sglang
        if path.startswith("/api/v1/"):
            name = path.removeprefix("/api/v1/").replace("/", "_")
            if name == "retrieve_future":
                accept = "protobuf" in (self.headers.get("accept") or "")
                return tinker.retrieve_future(body, accept)
            if name.startswith("sessions_"):
                return 200, {}
            work = getattr(tinker, name, None) if name in TINKER_ROUTES else None
            if work is None:
                raise Refused(f"{path} is not known here", 404)
            if not isinstance(body, dict) and name != "forward_backward":
                raise Refused(f"{path} takes JSON", 415)
            return 200, work(body)
        if path == "/generate":
            if not isinstance(body, dict):
                raise Refused("/generate takes JSON", 415)
            return 200, sglang.generate(body, self.event) or self.end_events()
        work = {
            "": sglang.health, "/health": sglang.health, "/health_generate": sglang.health,
            "/model_info": sglang.model_info, "/get_model_info": sglang.model_info,
            "/server_info": sglang.server_info, "/get_server_info": sglang.server_info,
            "/v1/models": sglang.models, "/flush_cache": sglang.flush_cache,
            "/abort_request": sglang.abort_request, "/stats": lambda _: self.server.engine.stats(),
        }.get(path)  # fmt: skip
        if work is None:
            raise Refused(f"{path} is not known here", 404)
        return 200, work(body)

    def write(self, status, result):
        is_bytes = isinstance(result, bytes)
        data = result if is_bytes else json.dumps(result).encode()
        kind = "application/x-protobuf" if is_bytes else "application/json"
        self.write_head(status, f"content-type: {kind}\r\ncontent-length: {len(data)}")
        self.wfile.write(data)
        self.wfile.flush()

    def write_head(self, status, lines):
        phrase = HTTPStatus(status).phrase
        self.wfile.write(f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n\r\n".encode())

    def event(self, value):
        if not getattr(self, "streaming", False):
            self.streaming = True
            self.write_head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked")
        self.chunk(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode())

    def end_events(self):
        self.event("[DONE]")
        self.chunk(b"")
        self.streaming = False

    def chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


TINKER_ROUTES = {
    "healthz", "get_server_capabilities", "client_config", "client_dynamic_config", "create_session",
    "session_heartbeat", "telemetry", "create_sampling_session", "create_model", "forward_backward", "forward",
    "optim_step", "save_weights", "save_weights_for_sampler", "load_weights", "unload_model", "get_info",
    "weights_info", "asample", "cancel_future",
}  # fmt: skip


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, engine, options):
        super().__init__((options.host, options.port), Handler)
        self.engine, self.options = engine, options
        self.tinker, self.sglang = Tinker(engine), Sglang(engine)


# ---------------------------------------------------------------------------------- start


def read_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], prog="espalier_gpu.py")
    parser.add_argument("--model", required=True, help="a Hugging Face folder (or name) of a causal model")
    parser.add_argument("--name", help="the name clients ask for (default: the folder's)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8910)
    parser.add_argument("--api-key", default=os.environ.get("ESPALIER_GPU_KEY"), help="asked of every client")
    parser.add_argument("--state", default="espalier-gpu", help="where checkpoints are kept")
    parser.add_argument("--device", help="cuda or cpu (default: cuda where there is one)")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), help="default: bfloat16 on cuda")
    parser.add_argument("--context", type=int, help="the longest sequence (default: the model's, at most 8192)")
    parser.add_argument("--slots", type=int, help="sequences at once (default: what fits, at most 256)")
    parser.add_argument("--max-rank", type=int, default=32, help="the largest rank of an adapter")
    parser.add_argument("--no-unembed", action="store_true", help="no adapter on the output embeddings")
    parser.add_argument("--micro-batch", type=int, default=16384, help="tokens trained at once, to begin with")
    parser.add_argument("--logprobs", choices=("all", "trained"), default="all", help="which ones training tells")
    parser.add_argument("--autosave", type=int, default=1, help="steps between automatic saves")
    parser.add_argument("--gap-seconds", type=float, default=10, help="how long a missing request is waited for")
    parser.add_argument("--eager", action="store_true", help="neither compiled code nor CUDA graphs")
    return parser.parse_args(arguments)


def default_slots(model):
    """As many sequences as half of what memory is left holds, or 16 on a CPU."""
    if model.device.type != "cuda":
        return 16
    _, kv_heads, dim, _ = model.shape
    size = len(model.layers) * 2 * kv_heads * dim * model.context * 2
    free = torch.cuda.mem_get_info()[0]
    return max(4, min(256, int(free * 0.45) // size))


def open_engine(options):
    """The model, ready to sample and to train."""
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    cuda = options.device.startswith("cuda")
    dtype = getattr(torch, options.dtype or ("bfloat16" if cuda else "float32"))
    unembed = not options.no_unembed
    model = open_model(options.model, options.device, dtype, options.context, options.max_rank, unembed)
    options.slots = options.slots or (default_slots(model) if model.batched else 16)
    if cuda and not options.eager:
        model.compile()
    engine = Engine(model, options, open_tokenizer(options.model))
    engine.ends = end_ids(options.model, engine.tokenizer)
    return engine


def open_tokenizer(folder):
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # a model without a tokenizer is served by ids alone
        print(f"no tokenizer ({type(error).__name__}): ids only", flush=True)
        return None


def end_ids(folder, tokenizer):
    """The ids that end a sequence by themselves."""
    from transformers import AutoConfig, GenerationConfig

    found = set()
    for source in (GenerationConfig, AutoConfig):
        try:
            value = source.from_pretrained(folder).eos_token_id
        except OSError:
            continue
        found |= set(value if isinstance(value, list) else [value]) - {None}
    if tokenizer is not None and tokenizer.eos_token_id is not None:
        found.add(tokenizer.eos_token_id)
    return frozenset(found)


def main():
    options = read_options()
    try:
        engine = open_engine(options)
    except (Refused, OSError) as error:
        print(f"espalier_gpu.py: {error}", file=sys.stderr)
        sys.exit(2)
    # The worker releases the GIL at every operation; HTTP threads should give it back soon.
    sys.setswitchinterval(1e-4)
    engine.thread.start()
    server = Server(engine, options)
    model = engine.model
    where = f"http://{options.host}:{server.server_port}"
    print(
        f"{engine.name}: {model.parameters() / 1e6:.0f} M parameters, {str(model.dtype)[6:]} on {model.device}, "
        f"{options.slots} sequences of {model.context} tokens at {where}",
        flush=True,
    )
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        engine.store.writes.join()


if __name__ == "__main__":
    main()
