"""Exports of Espalier as SkyRL's `GeneratorOutput` (a956457, 2026-08-21), for step-wise training."""

import json


def read_generator_output(path, processor=None):
    """All rows of an export, those of one trajectory side by side, its last marked; images need the model's processor."""
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return {**to_generator_output(rows), **pixel_lists(rows, processor, path)}


def pixel_lists(rows, processor, beside):
    """`pixel_values` and `image_grid_thw` row by row; None where no row shows an image."""
    from espalier_images import check_tokens, pixels_of

    names = ("pixel_values", "image_grid_thw")
    seen = [row.get("images") for row in rows]
    if not any(seen):
        return dict.fromkeys(names)
    if not all(seen):
        raise ValueError("some rows show images and others none: export the two kinds apart with --where")
    found = [pixels_of(processor, files, beside) for files in seen]
    for row, pixels in zip(rows, found):
        check_tokens(processor, row["prompt_token_ids"] + row["response_ids"], pixels)
    return {name: [pixels[name] for pixels in found] for name in names}


def to_generator_output(rows, make_id=None):
    """`make_id` is SkyRL's `TrajectoryID` where it is not to be imported."""
    if make_id is None:
        from skyrl.train.generators.base import TrajectoryID as make_id

    logprobs = [row["rollout_logprobs"] for row in rows]
    has_logprobs = bool(rows) and logprobs[0] is not None
    if any((each is not None) != has_logprobs for each in logprobs):
        raise ValueError("some rows have log-probabilities and others have none: export them together, which leaves those without untrained")
    return {
        "prompt_token_ids": [row["prompt_token_ids"] for row in rows],
        "response_ids": [row["response_ids"] for row in rows],
        "rewards": [row["reward"] for row in rows],
        "loss_masks": [row["loss_mask"] for row in rows],
        "stop_reasons": [row["stop_reason"] for row in rows],
        "rollout_metrics": None,
        "rollout_logprobs": logprobs if has_logprobs else None,
        "trajectory_ids": [make_id(**row["trajectory_id"]) for row in rows],
        "trajectory_generation_times": None,
        "trajectory_time_splits": None,
        "rollout_expert_indices": expert_lists(rows),
        "is_last_step": [row["is_last_step"] for row in rows],
        "env_metrics": [row["env_metrics"] for row in rows],
        "pixel_values": None,
        "image_grid_thw": None,
    }


def expert_lists(rows):
    """The experts of every token, as nested lists; None where an export has none."""
    from espalier_client import experts_of

    written = [row.get("rollout_expert_indices") for row in rows]
    if not any(written):
        return None
    if not all(written):
        raise ValueError("some rows have routed experts and others have none: export the two kinds apart with --where")
    return [experts_of(each).tolist() for each in written]
