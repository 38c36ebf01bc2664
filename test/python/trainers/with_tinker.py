"""Tinker as SkyRL's server has it: its request types, its preparation of a batch, its JAX backend.

The backend is driven in this process, without HTTP, so that the gradient it keeps can be read. It
trains adapters on the model that has moved, in float32. Ours goes back through the same backend: at
ratio 1 the slope of its importance_sampling is the advantage, so our slopes are sent as advantages.
"""

import json
import shutil
import subprocess
import tempfile
import typing

import torch
import typing_extensions

import tiny
from check import Absent

LOSSES = {
    "ppo": ("ppo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28}, {"low": 0.2, "high": 0.28, "dual": 1e9}),
    "cispo": ("cispo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}, {"low": 0.2, "high": 0.2}),
}
SUM = {"aggregation": {"kind": "constant", "divisor": 1}}


def open_trainer(given):
    typing.TypedDict = typing_extensions.TypedDict
    import importlib.metadata

    server = Server()

    def run(file, loss):
        if loss not in LOSSES:
            raise Absent(f"Tinker has no {loss}")
        name, config, clips = LOSSES[loss]
        # SkyRL's backend divides a row's sum by its length: multiplied in again, as divides=rows does.
        data = [scaled(row) for row in tiny.lines(file)]
        theirs = server.gradient(data, name, config)
        said = f"skyrl {importlib.metadata.version('skyrl')}, JAX backend in process, divides=rows"
        return theirs, {**clips, **SUM}, said

    run.ours = server.ours
    return run


def scaled(row):
    inputs = row["loss_fn_inputs"]
    size = len(inputs["target_tokens"]["data"])
    advantages = [value * size for value in inputs["advantages"]["data"]]
    return {**row, "loss_fn_inputs": {**inputs, "advantages": {"data": advantages}}}


def datum(ids, logprobs, advantages):
    """A row as Tinker has it: everything shifted by one."""
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": ids[:-1]}]},
        "loss_fn_inputs": {
            "target_tokens": {"data": ids[1:]},
            "logprobs": {"data": logprobs},
            "advantages": {"data": advantages},
        },
    }


class Server:
    def __init__(self):
        from skyrl.backends.jax import JaxBackend, JaxBackendConfig
        from skyrl.tinker import api, engine, types

        self.api, self.engine = api, engine
        folder = tempfile.mkdtemp()
        tiny.move(tiny.make_model()).float().save_pretrained(folder)
        for file in (tiny.ROOT / "models" / "chatml-bytes").glob("tokenizer*"):
            shutil.copy(file, folder)
        config = JaxBackendConfig(max_lora_adapters=2, max_lora_rank=4)
        self.backend = JaxBackend(folder, config)
        self.backend.create_model("m", types.LoraConfig(rank=4, alpha=8.0, seed=1))

    def forward_backward(self, data, loss, config=None):
        request = self.api.ForwardBackwardInput(
            data=data, loss_fn=loss, **({"loss_fn_config": config} if config else {})
        )
        batch = self.engine.prepare_model_pass_batch({"r": ("m", request.to_types())})
        return self.backend.forward_backward(batch)["r"]

    def gradient(self, data, loss, config=None):
        """All slopes of the adapter by one request, and forgets them."""
        import jax
        import numpy

        self.forward_backward(data, loss, config)
        kept = self.backend.accumulated_grads
        index = self.backend.models["m"].adapter_index
        leaves = [numpy.asarray(leaf, dtype=numpy.float64) for leaf in jax.tree.leaves(kept.grad_sum)]
        self.backend.accumulated_grads = kept.reset_adapter(index)
        return torch.cat([torch.from_numpy(leaf.reshape(-1).copy()) for leaf in leaves])

    def ours(self, folder, file, loss, options):
        rows = tiny.lines(folder / file)
        blank = [datum(row["ids"], [0.0] * (len(row["ids"]) - 1), [0.0] * (len(row["ids"]) - 1)) for row in rows]
        answer = self.forward_backward(blank, "importance_sampling")
        now = [[0.0, *each["logprobs"]["data"]] for each in answer.loss_fn_outputs]
        now_file = folder / "now"
        now_file.write_text("".join(json.dumps([float(v) for v in each]) + "\n" for each in now))
        script = str(tiny.ROOT / "test/python/trainers/ours.ts")
        words = ["node", "--import", "tsx", script, str(folder / file), str(now_file), loss, options]
        output = subprocess.run(words, check=True, capture_output=True, text=True, cwd=tiny.ROOT)
        slopes = [json.loads(line) for line in output.stdout.splitlines()]
        back = [
            datum(row["ids"], own[1:], [-slope * (len(row["ids"]) - 1) for slope in slope_row[1:]])
            for row, own, slope_row in zip(rows, now, slopes)
        ]
        self.backend.accumulated_grads = self.backend.accumulated_grads.reset_adapter(
            self.backend.models["m"].adapter_index
        )
        return self.gradient(back, "importance_sampling")
