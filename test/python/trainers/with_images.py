"""Exports with images through the trainers' own code, on a toy model: python with_images.py MODEL VERL SLIME SKYRL TRL.

Prints one JSON object per trainer. Log-probabilities and gradients of rows as each trainer lays them out (padding,
position ids) are compared with those of the rows as they are.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../integrations/python"))

import torch  # noqa: E402
from transformers import AutoModelForImageTextToText, AutoProcessor  # noqa: E402

model_dir, verl_file, slime_file, skyrl_file, trl_file = sys.argv[1:]
processor = AutoProcessor.from_pretrained(model_dir)


def fresh():
    torch.manual_seed(0)
    return AutoModelForImageTextToText.from_pretrained(model_dir, dtype=torch.float32).eval()


def logps(model, ids, pixels, **more):
    row = ids if ids.dim() == 2 else ids[None]
    shown = {name: pixels[name] for name in ("pixel_values", "image_grid_thw") if name in pixels}
    if "position_ids" not in more:
        more["mm_token_type_ids"] = (row == model.config.image_token_id).int()
    logits = model(input_ids=row, **shown, **more).logits[0, :-1].float()
    return logits.log_softmax(-1).gather(1, row[0, 1:, None])[:, 0]


def gradient(model, loss):
    model.zero_grad()
    loss.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def tell(trainer, **said):
    print(json.dumps({"trainer": trainer, "run": "images", **said}), flush=True)


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def apart(one, other):
    return float((one - other).abs().max() / other.abs().max().clamp_min(1e-12))


def with_verl():
    from espalier_verl import multi_modal_inputs, read_batch
    from verl.utils import hf_processor

    processor = hf_processor(model_dir)

    rows, model = read(verl_file), fresh()
    longest = [max(len(row[name]) for row in rows) for name in ("prompt_ids", "response_ids")]
    batch = read_batch(verl_file, longest[0] + 3, longest[1] + 2, 256, processor=processor)
    worst, own, theirs = 0.0, 0.0, 0.0
    for number, row in enumerate(rows):
        mask = torch.tensor(row["response_mask"]).bool()
        weights = torch.linspace(0.5, 1.5, int(mask.sum()))
        plain = logps(model, torch.tensor(row["prompt_ids"] + row["response_ids"]), multi_modal_inputs(row, processor, verl_file))
        plain = plain[len(row["prompt_ids"]) - 1 :][mask]
        laid = batch.batch[number]
        positions = laid["position_ids"]
        positions = positions[:, None] if positions.dim() == 2 else positions[None]
        pixels = batch.non_tensor_batch["multi_modal_inputs"][number]
        held = logps(model, laid["input_ids"], pixels, attention_mask=laid["attention_mask"][None], position_ids=positions)
        held = held[longest[0] + 3 - 1 :][: len(mask)][mask]
        worst = max(worst, float((held - plain).abs().max()))
        own = own + (plain * weights).sum()
        theirs = theirs + (held * weights).sum()
    slopes = gradient(model, theirs), gradient(model, own)
    shape = " x ".join(str(size) for size in batch.batch["position_ids"].shape)
    tell("verl", apart=apart(*slopes), said=f"{len(rows)} rows, log-probabilities {worst:.1e} apart, position ids {shape}")


def with_tensors(trainer, rows, ids_of, pixels_of):
    """Loaders that keep rows as they are: their pixels fit the tokens, and the sampler's numbers come out again."""
    model, worst = fresh(), 0.0
    for number, row in enumerate(rows):
        ids, sampled, mask = ids_of(row)
        with torch.no_grad():
            found = logps(model, torch.tensor(ids), pixels_of(number))[-len(sampled) :]
        kept = torch.tensor(mask).bool()
        worst = max(worst, float((found - torch.tensor(sampled))[kept].abs().max()))
    said = f"{len(rows)} rows with their pixels have the sampler's log-probabilities, {worst:.1e} apart at most"
    tell(trainer, **({"held": said} if worst < 1e-4 else {"failed": said}))


def with_slime():
    from espalier_slime import read_batches

    rows = [row for batch in read_batches(slime_file, 64, processor) for row in batch]
    with_tensors(
        "slime", rows, lambda row: (row["tokens"], row["rollout_log_probs"], row["loss_mask"]),
        lambda number: rows[number]["multimodal_train_inputs"],
    )


def with_skyrl():
    from types import SimpleNamespace

    import espalier_skyrl

    rows = read(skyrl_file)
    output = espalier_skyrl.to_generator_output(rows, make_id=SimpleNamespace)
    output.update(espalier_skyrl.pixel_lists(rows, processor, skyrl_file))
    with_tensors(
        "skyrl", rows, lambda row: (row["prompt_token_ids"] + row["response_ids"], row["rollout_logprobs"], row["loss_mask"]),
        lambda number: {name: output[name][number] for name in ("pixel_values", "image_grid_thw")},
    )


def with_trl():
    from datasets import Dataset
    from espalier_trl import dataset, replay, reward
    from trl import GRPOConfig, GRPOTrainer

    # Rewards that differ, so that something is learned from a toy that is never right.
    rewarded = f"{trl_file}.rewarded"
    with open(rewarded, "w", encoding="utf-8") as lines:
        lines.writelines(json.dumps({**row, "reward": float(row["member"] % 2)}) + "\n" for row in read(trl_file))
    model = fresh().train()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    rows = read(rewarded)
    size = sum(row["group_id"] == rows[0]["group_id"] for row in rows)
    config = GRPOConfig(
        output_dir="/tmp/espalier-trl-images", per_device_train_batch_size=size, num_generations=size, max_steps=1,
        learning_rate=1e-3, report_to=[], use_cpu=True, bf16=False, logging_steps=1, save_strategy="no",
        scale_rewards="none",
    )
    trainer = GRPOTrainer(
        model=model, reward_funcs=reward, args=config, processing_class=processor,
        train_dataset=Dataset.from_list(dataset(rewarded)), rollout_func=replay(rewarded),
    )
    trainer.train()
    moved = sum(bool((p - before[name]).abs().max() > 0) for name, p in trainer.model.named_parameters())
    seen = any("visual" in name and bool((p - before[name]).abs().max() > 0) for name, p in trainer.model.named_parameters())
    said = f"one step on {len(rows)} rows moves {moved} of {len(before)} tensors"
    tell("trl", **({"held": f"{said}, the vision tower's among them"} if seen else {"failed": said}))


for check in (with_verl, with_slime, with_skyrl, with_trl):
    try:
        check()
    except ImportError as error:
        tell(check.__name__[5:], absent=str(error)[:300])
    except Exception as error:  # each trainer is told by itself
        tell(check.__name__[5:], failed=f"{type(error).__name__}: {error}"[:500])
