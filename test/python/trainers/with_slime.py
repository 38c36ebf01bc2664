"""slime from a checkout: its samples, our reward post-processing, its advantages and policy loss.

Megatron cannot run here: `megatron.core.mpu` is replaced by one rank, and the model is ours.
"""

import importlib
import sys
import types
from argparse import Namespace

import torch

import tiny
from check import Absent

ARGUMENTS = {
    "ppo": ({"advantage_estimator": "grpo", "eps_clip_c": 3.0}, {"dual": 3}),
    "grpo": ({"advantage_estimator": "grpo"}, {}),
    "gspo": ({"advantage_estimator": "gspo"}, {"gradient": "token"}),
    "cispo": ({"advantage_estimator": "cispo"}, {}),
}


def one_rank():
    """`megatron.core.mpu` of a world with one process."""
    mpu = types.ModuleType("megatron.core.mpu")
    mpu.get_context_parallel_world_size = lambda: 1
    mpu.get_context_parallel_rank = lambda: 0
    mpu.get_context_parallel_group = lambda: None
    mpu.get_tensor_model_parallel_group = lambda: None
    mpu.get_data_parallel_world_size = lambda **kwargs: 1
    mpu.is_pipeline_last_stage = lambda *args, **kwargs: True
    core = types.ModuleType("megatron.core")
    core.mpu = mpu
    megatron = types.ModuleType("megatron")
    megatron.core = core
    sys.modules.update({"megatron": megatron, "megatron.core": core, "megatron.core.mpu": mpu})


def open_trainer(given):
    if given.slime is None:
        raise Absent("no checkout: give one with --slime DIR")
    sys.path.insert(0, str(given.slime))
    one_rank()
    # The package's own __init__ patches kernels of accelerators; only its loss is needed.
    package = types.ModuleType("slime.backends.megatron_utils")
    package.__path__ = [str(given.slime / "slime" / "backends" / "megatron_utils")]
    sys.modules["slime.backends.megatron_utils"] = package
    losses = importlib.import_module("slime.backends.megatron_utils.loss")
    from slime.utils.types import Sample

    import espalier_slime

    def run(file, loss):
        own, options = ARGUMENTS[loss]
        args = arguments(own)
        samples = [Sample.from_dict(row) for row in tiny.lines(file)]
        _, rewards = espalier_slime.post_process_rewards(args, samples)
        batch, rollouts = batch_of(samples, rewards)
        losses.compute_advantages_and_returns(args, batch)
        model = tiny.move(tiny.make_model())
        logits = torch.cat([model(torch.tensor([sample.tokens])).logits for sample in samples], 1)
        value, normaliser, _ = losses.loss_function(args, batch, 1, rollouts, logits.float())
        clips = {"low": 0.2, "high": 0.28}
        if loss == "gspo":
            clips = {"low": 0.05, "high": 0.08}
        if loss in ("ppo", "cispo"):
            value = value / normaliser
        said = "megatron.core.mpu replaced by one rank; logits in float32"
        return tiny.gradient(model, value), {**clips, **options}, said

    def arguments(own):
        gspo = own["advantage_estimator"] == "gspo"
        per_token = own["advantage_estimator"] == "cispo" or "eps_clip_c" in own
        return Namespace(
            **{
                "use_rollout_logprobs": True,
                "kl_coef": 0,
                "custom_advantage_function_path": None,
                "normalize_advantages": False,
                "use_opd": False,
                "use_opsm": False,
                "get_mismatch_metrics": False,
                "use_tis": False,
                "use_kl_loss": False,
                "entropy_coef": 0.0,
                "eps_clip": 0.05 if gspo else 0.2,
                "eps_clip_high": 0.08 if gspo else 0.28,
                "eps_clip_c": None,
                "log_probs_chunk_size": -1,
                "rollout_temperature": 1.0,
                "rollout_top_p": 1.0,
                "allgather_cp": False,
                "calculate_per_token_loss": per_token,
                "loss_type": "policy_loss",
                "recompute_loss_function": False,
                "grpo_std_normalization": True,
                **own,
            }
        )

    return run


def batch_of(samples, rewards):
    """The training data of samples, as slime's rollout manager and actor make it."""
    masks = [torch.tensor(sample.loss_mask, dtype=torch.float32) for sample in samples]
    sums = {}
    for sample, mask in zip(samples, masks):
        sums[sample.rollout_id] = sums.get(sample.rollout_id, 0) + mask.sum()
    batch = {
        "rewards": rewards,
        "unconcat_tokens": [torch.tensor(sample.tokens) for sample in samples],
        "total_lengths": [len(sample.tokens) for sample in samples],
        "response_lengths": [sample.response_length for sample in samples],
        "loss_masks": masks,
        "rollout_mask_sums": [sums[sample.rollout_id] for sample in samples],
        "rollout_log_probs": [torch.tensor(sample.rollout_log_probs) for sample in samples],
    }
    return batch, len(sums)
