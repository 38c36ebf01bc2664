"""Espalier's rollouts in slime (624b824, 2026-08-21): live through the service, or from a file.

    --rollout-function-path espalier_slime.generate_rollout
    --custom-generate-function-path espalier_slime.custom_generate
    --custom-reward-post-process-path espalier_slime.post_process_rewards

slime compares rewards by position, which is right only where every group has the same number of
samples. `post_process_rewards` gives it the run's advantages instead, so that trajectories of several
rows and trees are trained as they were weighed. `custom_generate` rolls attempts one by one, without
advantages: their rewards are compared here, each attempt once. ESPALIER_URL and ESPALIER_TOKEN name
the service. `python espalier_slime.py rows.jsonl out_{rollout_id}.pt --batch N` makes files that
--load-debug-rollout-data reads.
"""

import argparse
import asyncio
import json
import os
import uuid

from espalier_client import Client, experts_of


def client():
    return Client(os.environ.get("ESPALIER_URL", "http://127.0.0.1:8900"), os.environ.get("ESPALIER_TOKEN"))


def fresh_name(what):
    """A name for a submission. A service keeps names for good, and a trainer that starts again may have the same process id."""
    return f"slime-{what}-{uuid.uuid4().hex[:12]}"


def post_process_rewards(args, samples):
    """Raw rewards for the logs, and as rewards the advantages: the run's, or those of lone attempts."""
    raw = [0.0 if sample.reward is None else sample.reward for sample in samples]
    alone = [sample for sample in samples if sample.metadata["espalier"].get("alone")]
    compared = compare_alone(args, alone)
    return raw, [
        compared[id(sample)] if id(sample) in compared else sample.metadata["espalier"]["advantage"]
        for sample in samples
    ]


def compare_alone(args, samples):
    """Advantages of attempts that were rolled one by one: GRPO over a prompt's attempts, each once."""
    attempts = {}
    for sample in samples:
        if not sample.remove_sample and sample.reward is not None:
            attempts.setdefault(sample.group_index, {})[sample.index] = sample.reward
    advantages = {}
    for sample in samples:
        rewards = attempts.get(sample.group_index, {})
        mean = sum(rewards.values()) / max(1, len(rewards))
        advantage = 0.0 if sample.index not in rewards else rewards[sample.index] - mean
        if getattr(args, "grpo_std_normalization", True) and len(rewards) > 1:
            spread = sum((value - mean) ** 2 for value in rewards.values()) / (len(rewards) - 1)
            advantage /= spread**0.5 + 1e-6
        advantages[id(sample)] = advantage
    return advantages


def generate_rollout(args, rollout_id, data_source, evaluation=False):
    """Rolls a batch: one group for each prompt of the data source."""
    from slime.rollout.base_types import RolloutFnTrainOutput

    prompts = data_source.get_samples(args.rollout_batch_size)
    tasks = [task_of(group[0]) for group in prompts]
    service = client()
    groups = service.roll_each(
        tasks,
        id=fresh_name(f"{rollout_id}-{'eval' if evaluation else 'train'}"),
        format="slime",
        group=args.n_samples_per_prompt,
        step=rollout_id,
        policy=policy_of(args),
        sampling=sampling_of(args),
    )
    samples, failed = [], 0
    for number, (group, known) in enumerate(zip(groups, prompts)):
        failed += group["failed"]
        samples.append(to_samples(group["rows"], known[0], number))
    return RolloutFnTrainOutput(
        samples=renumbered([group for group in samples if group]),
        metrics={"espalier/failed": failed, "espalier/empty_groups": sum(not g for g in samples)},
    )


async def custom_generate(args, sample, sampling_params):
    """Rolls one attempt at a sample's task; several samples where it has several rows."""
    service = client()
    group = await asyncio.to_thread(
        service.roll_each,
        [task_of(sample)],
        id=fresh_name(f"{sample.group_index}-{sample.index}"),
        format="slime",
        group=1,
        policy=policy_of(args),
        sampling={k: v for k, v in sampling_of(args).items() if v is not None},
    )
    rolled = to_samples(group[0]["rows"], sample, sample.group_index)
    if not rolled:
        sample.status = type(sample).Status.FAILED
        sample.remove_sample = True
        sample.metadata["espalier"] = {"alone": True, "advantage": 0.0}
        return sample
    for each in rolled:
        each.metadata["espalier"]["alone"] = True
        each.index, each.group_index, each.rollout_id = sample.index, sample.group_index, sample.rollout_id
    return rolled[0] if len(rolled) == 1 else rolled


def task_of(sample):
    prompt = sample.prompt
    task = {"messages": prompt} if isinstance(prompt, list) else {"prompt": prompt}
    return task if sample.label is None else {**task, "answer": sample.label}


def policy_of(args):
    address = getattr(args, "sglang_router_ip", None)
    return None if address is None else f"sglang:http://{address}:{args.sglang_router_port}"


def sampling_of(args):
    top_k = getattr(args, "rollout_top_k", -1)
    return {
        "temperature": getattr(args, "rollout_temperature", 1.0),
        "topP": getattr(args, "rollout_top_p", 1.0),
        "topK": max(0, top_k),
    }


def to_samples(rows, known, number):
    """Rows as slime's samples, with the prompt and the label of the one they came from."""
    from slime.utils.types import Sample

    samples = []
    for row in rows:
        sample = Sample.from_dict({**replayable(row), "group_index": number})
        if known is not None:
            sample.prompt, sample.label = known.prompt, known.label
        samples.append(sample)
    return samples


def replayable(row, processor=None, beside="."):
    """A row whose experts are an array, as slime replays them, and whose images are pixels, as it trains on them."""
    written = row.get("rollout_routed_experts")
    row = row if written is None else {**row, "rollout_routed_experts": experts_of(written)}
    files = (row.get("multimodal_inputs") or {}).get("images")
    if not files:
        return row
    from espalier_images import check_tokens, images_of, pixels_of

    pixels = pixels_of(processor, files, beside)
    check_tokens(processor, row["tokens"], pixels)
    shown = {"images": images_of(files, beside)}
    return {**row, "multimodal_inputs": shown, "multimodal_train_inputs": pixels}


def renumbered(groups):
    """Samples of one trajectory share a `rollout_id`, and no two trajectories of a batch do."""
    numbers, index = {}, 0
    for group_number, group in enumerate(groups):
        for sample in group:
            key = (group_number, sample.metadata["espalier"]["trajectory"])
            sample.rollout_id = numbers.setdefault(key, len(numbers))
            sample.index, sample.group_index = index, group_number
            index += 1
    return groups


def read_batches(path, batch, processor=None):
    """The samples of an export, `batch` groups at a time."""
    groups, key = [], None
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = replayable(json.loads(line), processor, path)
            if row["group_index"] != key:
                if len(groups) == batch:
                    yield [row for group in groups for row in group]
                    groups = []
                groups.append([])
                key = row["group_index"]
            groups[-1].append(row)
    if groups:
        yield [row for group in groups for row in group]


def main():
    parser = argparse.ArgumentParser(description="Makes rollout files for slime of an export.")
    parser.add_argument("rows", help="espalier export RUN --to slime --out ROWS")
    parser.add_argument("out", help="where to write, with {rollout_id} in it")
    parser.add_argument("--batch", type=int, required=True, help="groups per rollout")
    parser.add_argument("--processor", help="the model's folder, where rows show images")
    given = parser.parse_args()
    import torch

    processor = None
    if given.processor:
        from transformers import AutoProcessor

        processor = AutoProcessor.from_pretrained(given.processor)
    for rollout_id, samples in enumerate(read_batches(given.rows, given.batch, processor)):
        path = given.out.format(rollout_id=rollout_id)
        torch.save({"rollout_id": rollout_id, "samples": samples}, path)
        print(f"{path}: {len(samples)} samples")


if __name__ == "__main__":
    main()
