"""rLLM from a checkout, with its verl backend: its groups, its own GRPO, its rows, verl's loss.

The engine that samples is replaced by nothing: only the tokenizer's padding id is asked of it.
"""

import json
import sys
import types

import with_verl
from check import Absent


class Engine:
    """What the transformation asks of the engine that sampled."""

    class tokenizer:
        pad_token_id = 0

    processor = None


def open_trainer(given):
    if given.rllm is None:
        raise Absent("no checkout: give one with --rllm DIR")
    sys.path.insert(0, str(given.rllm))
    stand_in = types.ModuleType("rllm.engine.rollout.verl_engine")
    stand_in.VerlEngine = Engine
    sys.modules["rllm.engine.rollout.verl_engine"] = stand_in
    from rllm.trainer.algorithms.advantage import collect_reward_and_advantage_from_trajectory_groups
    from rllm.trainer.algorithms.config import AlgorithmConfig, TransformConfig
    from rllm.trainer.algorithms.transform import transform_episodes_to_trajectory_groups
    from rllm.trainer.verl.transform import (
        transform_trajectory_groups_to_dataproto,
        update_dataproto_with_advantages,
    )
    from rllm.types import Episode

    def run(file, loss):
        with open(file, encoding="utf-8") as rows:
            episodes = [Episode.from_dict(json.loads(line)) for line in rows]
        groups, _ = transform_episodes_to_trajectory_groups(episodes, TransformConfig())
        collect_reward_and_advantage_from_trajectory_groups(groups, AlgorithmConfig())
        batch = transform_trajectory_groups_to_dataproto(
            groups, Engine, with_verl.PROMPT, with_verl.RESPONSE
        )
        batch = update_dataproto_with_advantages(batch, groups)
        if "rollout_log_probs" not in batch.batch:
            raise Absent(f"rLLM's rows have no log-probabilities: {sorted(batch.batch.keys())}")
        said = "its own GRPO (deviation of a population), verl's loss; the sampling engine replaced"
        return with_verl.update(batch, loss, estimator=None), with_verl.options_of(loss), said

    return run
