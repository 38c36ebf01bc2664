"""Espalier's rollouts in verl (0.9): an agent loop over the service, and batches from a file.

    actor_rollout_ref.rollout.agent.default_agent_loop=espalier     # after importing this module
    algorithm.adv_estimator=grpo                                    # the agent loop: verl compares by uid
    algorithm.adv_estimator=espalier                                # read_batch: our advantages, token by token

An agent loop gives one output per prompt, so it takes trajectories of one row. A response ends with
what was sampled last, where verl places the reward: its estimators by token multiply it by the mask. `read_batch` makes a `DataProto` of an export
whatever its shape: rewards as verl has them, and our advantages as `reward_baselines`, the one tensor
that verl hands to a registered estimator besides. The estimator refuses batches without it. Where a
trajectory has several rows, use it: verl's own grpo counts every row as an attempt. Importance
weights of an export are `rollout_is_weights`, which every policy loss of verl multiplies token losses with.
"""

import asyncio
import json
import os

from espalier_client import Client, experts_of


def client():
    return Client(os.environ.get("ESPALIER_URL", "http://127.0.0.1:8900"), os.environ.get("ESPALIER_TOKEN"))


def padded(rows, prompt_length, response_length, pad_token_id):
    """The rows as equally long lists, as verl's agent loop worker pads them.

    Prompts are padded on the left, responses on the right. Rows that are too long are refused:
    cutting one would train something else. An export without log-probabilities has no `rollout_log_probs`,
    so that verl computes its own and never takes made-up ones for real.
    """
    batch = {name: [] for name in ("prompts", "responses", "response_mask", "attention_mask")}
    batch.update(input_ids=[], position_ids=[])
    batch.update(token_level_scores=[], reward_baselines=[])
    for row in rows:
        prompt, response = row["prompt_ids"], row["response_ids"]
        if len(prompt) > prompt_length or len(response) > response_length:
            raise ValueError(
                f"{row['espalier']['trajectory']} has {len(prompt)} + {len(response)} tokens, more "
                f"than {prompt_length} + {response_length}"
            )
        left, right = prompt_length - len(prompt), response_length - len(response)
        mask = [0] * left + [1] * (len(prompt) + len(response)) + [0] * right
        positions, seen = [], 0
        for bit in mask:
            seen += bit
            positions.append(max(0, seen - 1))
        batch["prompts"].append([pad_token_id] * left + prompt)
        batch["responses"].append(response + [pad_token_id] * right)
        batch["input_ids"].append([pad_token_id] * left + prompt + response + [pad_token_id] * right)
        batch["attention_mask"].append(mask)
        batch["position_ids"].append(positions)
        batch["response_mask"].append(row["response_mask"] + [0] * right)
        if row["response_logprobs"] is not None:
            batch.setdefault("rollout_log_probs", []).append(row["response_logprobs"] + [0.0] * right)
        batch["token_level_scores"].append(row["token_level_scores"] + [0.0] * right)
        batch["reward_baselines"].append(row["advantages"] + [0.0] * right)
        if row.get("rollout_is_weights"):
            batch.setdefault("rollout_is_weights", []).append(row["rollout_is_weights"] + [0.0] * right)
    refuse_mixed(batch, "rollout_is_weights", "importance weights", "export them with one --importance")
    refuse_mixed(batch, "rollout_log_probs", "log-probabilities", "export them together, which leaves those without untrained")
    return batch


def refuse_mixed(batch, name, what, instead):
    """A tensor is there for all rows or for none; what was not measured is never filled in."""
    if 0 < len(batch.get(name, [])) < len(batch["prompts"]):
        raise ValueError(f"some rows have {what} and others have none: {instead}")


def read_batch(path_or_rows, prompt_length, response_length, pad_token_id, processor=None, beside="."):
    """A `DataProto` of an export, ready for log-probabilities, advantages and the update.

    Rows that show images need `verl.utils.hf_processor(DIR)`; their position ids are those that verl itself computes.
    `beside` is the file that rows came from, if they are given as rows.
    """
    import numpy as np
    import torch
    from verl import DataProto

    beside = path_or_rows if isinstance(path_or_rows, str) else beside
    rows = list(_read(path_or_rows)) if isinstance(path_or_rows, str) else path_or_rows
    lists = padded(rows, prompt_length, response_length, pad_token_id)
    whole = ("rollout_log_probs", "token_level_scores", "reward_baselines", "rollout_is_weights")
    tensors = {
        name: torch.tensor(values, dtype=torch.float32 if name in whole else torch.long)
        for name, values in lists.items()
    }
    tensors["token_level_rewards"] = tensors["token_level_scores"]
    if any(row.get("routed_experts") for row in rows):
        tensors["routed_experts"] = padded_experts(rows, prompt_length, response_length)
    shown = {}
    if any(row.get("multi_modal_data") for row in rows):
        inputs = [multi_modal_inputs(row, processor, beside) for row in rows]
        tensors["position_ids"] = multi_modal_positions(tensors, inputs, processor)
        shown["multi_modal_inputs"] = np.array(inputs, dtype=object)
    return DataProto.from_dict(
        tensors=tensors,
        non_tensors={
            **shown,
            "uid": np.array([row["uid"] for row in rows], dtype=object),
            "data_source": np.array([row["data_source"] for row in rows], dtype=object),
            "__num_turns__": np.array([row["num_turns"] for row in rows], dtype=np.int32),
        },
    )


def multi_modal_inputs(row, processor, beside):
    """What verl's agent loop makes of a row's images, without laying its tokens out anew."""
    import torch

    from espalier_images import check_tokens, pixels_of

    files = (row.get("multi_modal_data") or {}).get("images")
    pixels = pixels_of(processor, files, beside)
    check_tokens(processor, row["prompt_ids"] + row["response_ids"], pixels)
    grid = pixels.get("image_grid_thw")
    if grid is not None:
        pixels["images_seqlens"] = torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0])
    return pixels


def multi_modal_positions(tensors, inputs, processor):
    """Position ids as verl's own agent loop computes them for this processor."""
    from types import SimpleNamespace

    import torch
    from verl.experimental.agent_loop.agent_loop import AgentLoopWorker

    if any("image_grid_thw" in pixels for pixels in inputs) and not hasattr(processor, "get_rope_index"):
        raise ValueError("verl computes positions of images with its own processor: give verl.utils.hf_processor(DIR)")
    loop = SimpleNamespace(processor=processor)
    token_types = {"mm_token_type_ids": True} if getattr(processor, "image_token_id", None) is not None else {}
    rows = zip(tensors["input_ids"], tensors["attention_mask"], inputs)
    return torch.cat(
        [
            AgentLoopWorker._compute_position_ids(loop, ids[None], mask[None], {**pixels, **token_types})
            for ids, mask, pixels in rows
        ]
    )


def padded_experts(rows, prompt_length, response_length):
    """`routed_experts` as verl's agent loop pads them: a row of layers x experts for every place of input_ids."""
    import torch

    found = [experts_of(row["routed_experts"]) for row in rows]
    _, layers, top = found[0].shape
    padded = torch.zeros((len(rows), prompt_length + response_length, layers, top), dtype=torch.int16)
    for number, (row, experts) in enumerate(zip(rows, found)):
        start = prompt_length - len(row["prompt_ids"])
        padded[number, start : start + len(experts)] = torch.from_numpy(experts).to(torch.int16)
    return padded


def token_advantages(token_level_rewards, response_mask, reward_baselines=None, **kwargs):
    """Advantages as they were weighed, on the tokens that are trained."""
    if reward_baselines is None or reward_baselines.shape != response_mask.shape:
        raise ValueError(
            "adv_estimator=espalier needs the advantages of an export, which read_batch brings along. "
            "The agent loop rolls one attempt at a time and has rewards only: use adv_estimator=grpo, "
            "which compares them by uid."
        )
    advantages = reward_baselines * response_mask
    return advantages, advantages


def output_of(row):
    """The arguments of an `AgentLoopOutput` for one row of the service."""
    if row["espalier"]["rows"] > 1:
        raise ValueError(
            f"{row['espalier']['trajectory']} has {row['espalier']['rows']} rows, and an agent loop "
            "gives one; roll without condensing, or train from an export with read_batch"
        )
    names = ("prompt_ids", "response_ids", "response_mask", "reward_score", "num_turns", "extra_fields")
    return {**{name: row[name] for name in names}, "response_logprobs": row["response_logprobs"]}


async def roll_one(raw_prompt, sampling_params, answer=None, service=None):
    """One attempt at a prompt, through the service."""
    task = {"messages": [dict(message) for message in raw_prompt]}
    if answer is not None:
        task["answer"] = answer
    sampling = {
        "temperature": sampling_params.get("temperature", 1.0),
        "topP": sampling_params.get("top_p", 1.0),
        "topK": max(0, sampling_params.get("top_k", 0) or 0),
    }
    service = service or client()
    groups = await asyncio.to_thread(
        service.roll_each, [task], format="verl", group=1, sampling=sampling
    )
    rows = groups[0]["rows"]
    if not rows:
        raise RuntimeError("the attempt failed; the service's run folder says at which boundary")
    return rows[0]


def _read(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


try:
    from verl.experimental.agent_loop.agent_loop import (
        AgentLoopBase,
        AgentLoopMetrics,
        AgentLoopOutput,
        register,
    )
    from verl.trainer.ppo.core_algos import register_adv_est
except ImportError:  # the file can be used to read exports where verl is not installed
    AgentLoopBase = None
else:
    register_adv_est("espalier")(token_advantages)

    @register("espalier")
    class EspalierAgentLoop(AgentLoopBase):
        """Rolls each prompt through the service; the world, its tools and the reward are there."""

        async def run(self, sampling_params, **kwargs):
            truth = (kwargs.get("reward_model") or {}).get("ground_truth")
            row = await roll_one(kwargs["raw_prompt"], sampling_params, answer=truth)
            metrics = AgentLoopMetrics(**row["metrics"])
            return AgentLoopOutput(**output_of(row), metrics=metrics)
