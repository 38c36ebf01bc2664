"""verl from PyPI: read_batch, the registered estimator, verl's policy loss."""

import torch

import tiny
from check import Absent

PROMPT, RESPONSE = 64, 96
MODES = {
    "ppo": ("vanilla", "token-mean", {"low": 0.2, "high": 0.28}),
    "grpo": ("vanilla", "seq-mean-token-mean", {"low": 0.2, "high": 0.28}),
    "gspo": ("gspo", "seq-mean-token-mean", {"low": 0.05, "high": 0.08, "gradient": "token"}),
    "cispo": ("cispo", "token-mean", {"low": 0.2, "high": 0.28}),
}


def open_trainer(given):
    import verl

    def run(file, loss):
        import espalier_verl

        batch = espalier_verl.read_batch(file, PROMPT, RESPONSE, pad_token_id=0)
        check_returns(batch)
        return update(batch, loss), options_of(loss), f"verl {verl.__version__}"

    return run


def check_returns(batch):
    """verl's estimators by token see the whole reward at every trained token, whatever was observed after it."""
    from verl.trainer.ppo.core_algos import (
        compute_gae_advantage_return,
        compute_reinforce_plus_plus_outcome_advantage,
    )
    from verl.trainer.config import AlgoConfig

    rewards, mask = batch.batch["token_level_rewards"], batch.batch["response_mask"]
    wanted = rewards.sum(-1, keepdim=True) * mask
    _, returns = compute_reinforce_plus_plus_outcome_advantage(rewards, mask, config=AlgoConfig())
    _, gae = compute_gae_advantage_return(rewards, torch.zeros_like(rewards), mask, 1.0, 1.0)
    for name, found in (("reinforce++", returns), ("gae", gae * mask)):
        lost = ((found - wanted).abs() > 1e-6).any(-1).sum().item()
        if lost:
            raise ValueError(f"{name} loses the reward of {lost} of {len(mask)} rows")


def options_of(loss):
    name, mode, clips = MODES[loss]
    # verl's clipped loss has the dual clip in every aggregation; ours leaves it out of grpo.
    return {**clips, "dual": 3} if loss == "ppo" else clips


def update(batch, loss, estimator="espalier"):
    """The gradient of the actor's update on a `DataProto` with advantages still to come."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.trainer.ppo.ray_trainer import compute_advantage
    from verl.workers.config import ActorConfig

    name, mode, clips = MODES[loss]
    batch = compute_advantage(batch, adv_estimator=estimator) if estimator else batch
    tensors = batch.batch
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        use_dynamic_bsz=True,
        clip_ratio=clips["low"],
        clip_ratio_low=clips["low"],
        clip_ratio_high=clips["high"],
        # Without the dual clip where ours has none.
        clip_ratio_c=3.0 if loss == "ppo" else 1e9,
    )
    try:
        policy_loss = get_policy_loss_fn(name)
    except ValueError as error:
        raise Absent(str(error)) from None
    model = tiny.move(tiny.make_model())
    own = tiny.padded_logprobs(model, tensors["input_ids"], tensors["attention_mask"])
    length = tensors["responses"].shape[1]
    weights = tensors.get("rollout_is_weights")
    value, _ = policy_loss(
        old_log_prob=old_logprobs(tensors, length),
        log_prob=own[:, -length:],
        advantages=tensors["advantages"].double(),
        response_mask=tensors["response_mask"],
        loss_agg_mode=mode,
        config=config,
        rollout_is_weights=None if weights is None else weights.double(),
    )
    return tiny.gradient(model, value)


def old_logprobs(tensors, length):
    """As verl has them: those of the rollout, or, where these are weighed against, its own before the update."""
    if "rollout_is_weights" not in tensors:
        return tensors["rollout_log_probs"].double()
    with torch.no_grad():
        own = tiny.padded_logprobs(tiny.make_model(), tensors["input_ids"], tensors["attention_mask"])
    return own[:, -length:]
