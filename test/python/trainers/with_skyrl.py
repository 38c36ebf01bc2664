"""SkyRL from PyPI: validation, tensors, GRPO over last steps, reduction and policy loss of its own."""

import numpy
import torch

import tiny

REDUCTIONS = {
    "ppo": ("dual_clip", "token_mean", {"low": 0.2, "high": 0.28, "dual": 3}),
    "grpo": ("regular", "sequence_mean", {"low": 0.2, "high": 0.28}),
    "gspo": ("gspo", "sequence_mean", {"low": 0.05, "high": 0.08, "gradient": "token"}),
    "cispo": ("cispo", "token_mean", {"low": 0.2, "high": 0.28}),
}


class Tokenizer:
    """What SkyRL asks a tokenizer for."""

    pad_token_id = 0
    eos_token_id = 1


def open_trainer(given):
    import importlib.metadata
    import typing

    import typing_extensions

    # Below Python 3.12, pydantic wants the TypedDict of typing_extensions, which SkyRL does not name.
    typing.TypedDict = typing_extensions.TypedDict
    from skyrl.backends.skyrl_train.utils import ppo_utils
    from skyrl.train.config.config import AlgorithmConfig
    from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors
    from skyrl.train.utils.trainer_utils import validate_generator_output

    import espalier_skyrl

    def run(file, loss):
        kind, reduction, clips = REDUCTIONS[loss]
        output = espalier_skyrl.read_generator_output(file)
        validate_generator_output(len(output["response_ids"]), output, step_wise=True)
        rewards = [
            [0.0] * (len(response) - 1) + [float(reward)]
            for response, reward in zip(output["response_ids"], output["rewards"])
        ]
        tensors = convert_prompts_responses_to_batch_tensors(
            Tokenizer(),
            output["prompt_token_ids"],
            output["response_ids"],
            rewards,
            output["loss_masks"],
            output["rollout_logprobs"],
        )
        sequences, attention, response_mask, token_rewards, loss_mask, old = tensors[:6]
        config = AlgorithmConfig(policy_loss_type=kind, loss_reduction=reduction)
        config.eps_clip_low, config.eps_clip_high = clips["low"], clips["high"]
        config.cispo.cispo_eps_clip_low, config.cispo.cispo_eps_clip_high = clips["low"], clips["high"]
        advantages = advantages_of(ppo_utils, output, token_rewards, response_mask, config)
        advantages = ppo_utils.apply_loss_reduction_to_advantages_minibatch(
            advantages=advantages.double(),
            loss_mask=loss_mask,
            loss_reduction=reduction,
            micro_batch_size=1,
            max_seq_len=sequences.shape[1],
        )
        model = tiny.move(tiny.make_model())
        own = tiny.padded_logprobs(model, sequences.long(), attention)
        length = loss_mask.shape[1]
        value, _ = ppo_utils.PolicyLossRegistry.get(kind)(
            log_probs=own[:, -length:],
            old_log_probs=old.double(),
            advantages=advantages,
            config=config,
            loss_mask=loss_mask,
            rollout_logprobs=None,
        )
        return tiny.gradient(model, value), clips, f"skyrl {importlib.metadata.version('skyrl')}"

    return run


def advantages_of(ppo_utils, output, rewards, response_mask, config):
    """As `compute_advantages_and_returns` of its trainer does step-wise."""
    last = torch.tensor(output["is_last_step"])
    index = numpy.array([each.instance_id for each in output["trajectory_ids"]])
    scores, _ = ppo_utils.compute_advantages_and_returns(
        token_level_rewards=rewards[last].double(),
        response_mask=torch.ones_like(response_mask[last], dtype=torch.float64),
        index=index[last.numpy()],
        adv_estimator=config.advantage_estimator,
        values=None,
        config=config,
        gamma=config.gamma,
        lambd=config.lambd,
        grpo_norm_by_std=config.grpo_norm_by_std,
    )
    owner = torch.cat([torch.tensor([False]), last[:-1]]).int().cumsum(0)
    return scores[owner] * response_mask
