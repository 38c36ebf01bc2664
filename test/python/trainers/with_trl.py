"""TRL from PyPI: GRPOTrainer over replayed rows, its own comparison of rewards, its own loss.

Log-probabilities of old are TRL's own, computed when the rows are taken over, with the model that
sampled; then the weights are moved, as after an update, and the loss is computed.
"""

import tempfile

import torch

import tiny
from check import Absent

SETTINGS = {
    "ppo": ({"loss_type": "dapo"}, {"dual": 1e9}),
    "grpo": ({"loss_type": "grpo"}, {}),
    "gspo": ({"loss_type": "grpo", "importance_sampling_level": "sequence"}, {}),
    "cispo": ({"loss_type": "cispo", "epsilon_high": 1.28}, {"low": 1e9}),
}


def open_trainer(given):
    import trl
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    import espalier_trl

    tokenizer = AutoTokenizer.from_pretrained(tiny.ROOT / "models" / "chatml-bytes")
    # The tiny model knows few ids; the first is kept for padding.
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(0)

    def run(file, loss):
        settings, options = SETTINGS[loss]
        clips = {"low": 0.05, "high": 0.08} if loss == "gspo" else {"low": 0.2, "high": 0.28}
        rows = tiny.lines(file)
        sizes = {}
        for row in rows:
            sizes[row["group_id"]] = sizes.get(row["group_id"], 0) + 1
        several = [row for row in rows if row["rows"] > 1 or row["parts"] > 1]
        if several:
            raise Absent("GRPOTrainer takes one row per trajectory; AsyncGRPO's forward needs a GPU")
        generations = max(sizes.values())
        batch = generations * len(sizes)
        prompts = [{"prompt": f"group {number}"} for number in sizes]
        trainer = GRPOTrainer(
            model=tiny.make_model(),
            processing_class=tokenizer,
            reward_funcs=espalier_trl.reward,
            rollout_func=espalier_trl.replay(file),
            train_dataset=Dataset.from_list(prompts),
            args=GRPOConfig(
                output_dir=tempfile.mkdtemp(),
                per_device_train_batch_size=batch,
                num_generations=generations,
                # Two passes over a batch: then TRL keeps the log-probabilities it started from.
                num_iterations=2,
                max_completion_length=128,
                beta=0.0,
                use_cpu=True,
                bf16=False,
                report_to=[],
                shuffle_dataset=False,
                disable_dropout=True,
                **{"epsilon": clips["low"], "epsilon_high": clips["high"], **settings},
            ),
        )
        model = trainer.model.train()
        # A dictionary each: TRL writes what was rolled into them.
        repeated = [dict(each) for each in prompts for _ in range(generations)]
        trainer.current_gradient_accumulation_steps = 1
        inputs = trainer._prepare_inputs(repeated)
        model.load_state_dict(tiny.move(tiny.make_model()).state_dict())
        value = trainer.compute_loss(model, inputs)
        filled = batch - len(rows)
        # Rows that fill groups up train nothing, but TRL's mean over rows counts them.
        if filled and loss in ("grpo", "gspo"):
            value = value * batch / len(rows)
        said = f"trl {trl.__version__}" + (f"; mean over {len(rows)} of {batch} rows" if filled else "")
        return tiny.gradient(model, value), {**clips, **options}, said

    return run
