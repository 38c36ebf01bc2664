"""Reads every export with the trainers' own data classes and formulas.

    npx tsx test/python/make_exports.ts FOLDER
    python test/python/check_exports.py FOLDER [--sources DIR]

What can be installed is imported (pyarrow, pandas, polars, duckdb, datasets, tinker, verifiers, openai, trl). DIR may
hold checkouts of slime, verl, SkyRL and rllm and Harbor's package: their own files are loaded from
there, with whatever they import and this machine lacks replaced by stand-ins. What is neither is
reported as absent, never as passed. Not part of npm test.
"""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import struct
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "integrations" / "python"))
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")

SHAPES = ("chains", "rewritten", "trees")
results = []


class Absent(Exception):
    pass


def check(name):
    def register(work):
        results.append((name, work))
        return work

    return register


def lines(folder, shape, name):
    path = folder / shape / name
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def float32(value):
    return None if value is None else struct.unpack("f", struct.pack("f", value))[0]


def credit(rows, ids_of, values_of):
    """Advantage times weight by token, a token being all ids up to it."""
    found = {}
    for row in rows:
        ids, values = list(ids_of(row)), list(values_of(row))
        assert len(ids) == len(values)
        for place, value in enumerate(values):
            if value != 0:
                key = tuple(ids[: place + 1])
                assert key not in found, "a token is trained twice"
                found[key] = float(value)
    return found


def neutral(folder, shape):
    """What the run says every token is worth."""

    def values(row):
        advantages = row.get("tokenAdvantages") or [row["advantage"] or 0.0] * len(row["ids"])
        weights = row.get("tokenWeights") or [1.0] * len(row["ids"])
        trained = row["mask"] if row["advantage"] is not None else [0] * len(row["ids"])
        return [a * w * m for a, w, m in zip(advantages, weights, trained)]

    return credit(lines(folder, shape, "jsonl"), lambda row: row["ids"], values)


def same(theirs, ours, tolerance=1e-5):
    assert theirs.keys() == ours.keys(), (len(theirs), len(ours))
    worst = max((abs(theirs[key] - ours[key]) for key in ours), default=0.0)
    assert worst <= tolerance, worst
    return f"{len(ours)} tokens within {worst:.0e}"


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for modules that a checkout imports and this machine lacks."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        return module

    def exec_module(self, module):
        pass


def load(sources, folder, module, missing=(), packages=()):
    """Imports one file of a checkout, without running the packages above it."""
    if sources is None or not (sources / folder).exists():
        raise Absent(f"no checkout {folder}")
    lacking = [name for name in missing if importlib.util.find_spec(name) is None]
    sys.meta_path.append(StandIns(lacking))
    for name in packages:
        package = types.ModuleType(name)
        package.__path__ = [str(sources / folder / name.replace(".", "/"))]
        sys.modules.setdefault(name, package)
    sys.path.insert(0, str(sources / folder))
    return importlib.import_module(module)


def need(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(str(error)) from None


@check("parquet: pyarrow, pandas and DuckDB")
def parquet(folder, sources):
    pq, duckdb, pandas = need("pyarrow.parquet"), need("duckdb"), need("pandas")
    count = 0
    for shape in SHAPES:
        path = str(folder / shape / "parquet")
        table, rows = pq.read_table(path), lines(folder, shape, "jsonl")
        assert str(table.schema.field("ids").type) == "list<element: int32 not null>"
        for ours, row in zip(table.to_pylist(), rows, strict=True):
            for name in ("ids", "mask", "reward", "advantage", "task", "row", "basis"):
                assert ours[name] == row[name], name
            for name in ("tokenAdvantages", "tokenWeights"):
                assert ours[name] == row.get(name), name
            assert list(map(float32, ours["logprobs"])) == list(map(float32, row["logprobs"]))
            for name in ("origins", "versions", "messages", "outcome", "usage", "fidelity"):
                assert json.loads(ours[name]) == row[name], name
            count += len(row["ids"])
        frame = pandas.read_parquet(path)
        assert [list(ids) for ids in frame["ids"]] == [row["ids"] for row in rows]
        total = duckdb.sql(f"select sum(list_sum(ids)), sum(list_sum(mask)) from read_parquet('{path}')").fetchall()[0]
        assert total == (sum(sum(r["ids"]) for r in rows), sum(sum(r["mask"]) for r in rows))
    return f"{count} tokens equal in three readers"


def plain(value):
    """A cell as JSON has it: None where a number is missing."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [None if item is None or item != item else item for item in value]
    return None if value is None or value != value else value


@check("tables at their limits: pyarrow, pandas, polars, DuckDB and datasets")
def limits(folder, sources):
    path = str(folder / "limits.parquet")
    wanted = json.loads((folder / "limits.json").read_text())
    readers = {
        "pyarrow": lambda: need("pyarrow.parquet").read_table(path).to_pylist(),
        "pandas": lambda: need("pandas").read_parquet(path).to_dict("records"),
        "polars": lambda: need("polars").read_parquet(path).to_dicts(),
        "DuckDB": lambda: need("duckdb").sql(f"select * from '{path}'").to_arrow_table().to_pylist(),
        "datasets": lambda: list(need("datasets").Dataset.from_parquet(path, cache_dir=str(folder / "cache"))),
    }
    read = []
    for name, reader in readers.items():
        try:
            rows = reader()
        except Absent:
            continue
        for number, (ours, row) in enumerate(zip(rows, wanted, strict=True)):
            for column, value in row.items():
                assert plain(ours[column]) == value, f"{name}: {column} of row {number}"
        read.append(name)
    if not read:
        raise Absent("none of them")
    return f"{len(wanted)} rows equal in {', '.join(read)}"


@check("tinker: the SDK's Datum")
def tinker(folder, sources):
    types_ = need("tinker").types
    said = []
    for shape in SHAPES:
        data = []
        for row in lines(folder, shape, "tinker"):
            inputs = {
                name: types_.TensorData(data=t["data"], dtype=t["dtype"], shape=t["shape"])
                for name, t in row["loss_fn_inputs"].items()
            }
            data.append(
                types_.Datum(
                    model_input=types_.ModelInput.model_validate(row["model_input"]),
                    loss_fn_inputs=inputs,
                )
            )
        said.append(
            same(
                credit(
                    data,
                    lambda d: d.model_input.to_ints()[:1] + d.loss_fn_inputs["target_tokens"].data,
                    lambda d: [0.0] + d.loss_fn_inputs["advantages"].data,
                ),
                neutral(folder, shape),
            )
        )
    return "; ".join(said)


@check("verifiers: WireEpisode and Branch")
def verifiers(folder, sources):
    episodes = need("verifiers.v1.episode")
    said = []
    for shape in SHAPES:
        branches = []
        for line in (folder / shape / "verifiers").read_text().splitlines():
            for trace in episodes.WireEpisode.model_validate_json(line).traces:
                branches += trace.branches
        for branch in branches:
            assert len(branch.token_ids) == len(branch.sampled_mask) == len(branch.logprobs)
        values = lambda b: b.advantages or [0.0] * len(b.token_ids)
        said.append(same(credit(branches, lambda b: b.token_ids, values), neutral(folder, shape)))
    return "; ".join(said)


@check("rllm: Episode.from_dict and precomputed advantages")
def rllm(folder, sources):
    missing = ("openai", "numpy", "transformers")
    workflow = types.ModuleType("rllm.workflows.workflow")
    source = (sources / "rllm/rllm/workflows/workflow.py") if sources else None
    types_ = load(sources, "rllm", "rllm.types", missing, ("rllm", "rllm.workflows"))
    # Only the enumeration of that file is needed; the rest of it starts engines.
    text = source.read_text()
    start = text.index("class TerminationReason")
    end = text.index("class TerminationEvent")
    exec("from enum import Enum\n" + text[start:end], workflow.__dict__)
    sys.modules["rllm.workflows.workflow"] = workflow
    sys.modules.setdefault("rllm.engine", types.ModuleType("rllm.engine"))
    rollout = types.ModuleType("rllm.engine.rollout")
    rollout.ModelOutput = None
    sys.modules["rllm.engine.rollout"] = rollout
    said = []
    for shape in SHAPES:
        steps = []
        for row in lines(folder, shape, "rllm"):
            episode = types_.Episode.from_dict(row)
            assert episode.task_id and episode.rollout_idx.isdigit()
            for trajectory in episode.trajectories:
                steps += trajectory.steps
        for step in steps:
            assert isinstance(step.advantage, list) and len(step.advantage) == len(step.response_ids)
        said.append(
            same(
                credit(
                    steps,
                    lambda s: s.prompt_ids + s.response_ids,
                    lambda s: [0.0] * len(s.prompt_ids) + s.advantage,
                ),
                neutral(folder, shape),
            )
        )
    return "; ".join(said)


@check("slime: Sample.from_dict, its own reward formula, and ours")
def slime(folder, sources):
    missing = ("ray", "httpx", "pybase64", "sglang", "sglang_router", "requests")
    torch = need("torch")
    load(sources, "slime", "slime.utils.types", missing, ("slime", "slime.utils"))
    Sample = sys.modules["slime.utils.types"].Sample
    import espalier_slime

    text = (sources / "slime/slime/ray/rollout.py").read_text()
    start = text.index("    def _post_process_rewards")
    end = text.index("    def _convert_samples_to_train_data")
    space = {"torch": torch, "Sample": Sample}
    exec("class Manager:\n" + text[start:end], space)
    said = []
    for shape in SHAPES:
        samples = [Sample.from_dict(row) for row in lines(folder, shape, "slime")]
        for sample in samples:
            sample._validate_response_metadata_lengths()
        manager = space["Manager"]()
        manager.custom_reward_post_process_func = espalier_slime.post_process_rewards
        manager.args = types.SimpleNamespace(reward_key=None)
        _, rewards = manager._post_process_rewards(samples)
        said.append(same(slime_credit(samples, rewards), neutral(folder, shape)))
        if shape == "chains":
            manager.custom_reward_post_process_func = None
            manager.args = types.SimpleNamespace(
                reward_key=None,
                advantage_estimator="grpo",
                rewards_normalization=True,
                grpo_std_normalization=True,
                n_samples_per_prompt=4,
                rollout_batch_size=2,
            )
            _, rewards = manager._post_process_rewards(samples)
            said.append("by position " + same(slime_credit(samples, rewards), neutral(folder, shape)))
    return "; ".join(said)


def slime_credit(samples, rewards):
    rows = list(zip(samples, rewards))

    def values(row):
        sample, reward = row
        context = len(sample.tokens) - sample.response_length
        mask = [0] * len(sample.loss_mask) if sample.remove_sample else sample.loss_mask
        return [0.0] * context + [bit * reward for bit in mask]

    return credit(rows, lambda row: row[0].tokens, values)


@check("verl: AgentLoopOutput, padding, GRPO by uid, and our estimator")
def verl(folder, sources):
    torch, numpy, pydantic = need("torch"), need("numpy"), need("pydantic")
    import espalier_verl

    if sources is None or not (sources / "verl").exists():
        raise Absent("no checkout verl")
    loop = (sources / "verl/verl/experimental/agent_loop/agent_loop.py").read_text()
    start, end = loop.index("class AgentLoopMetrics"), loop.index("class _InternalAgentLoopOutput")
    space = {}
    head = "from typing import Any, Optional\nfrom pydantic import BaseModel\n"
    exec(head + loop[start:end], space)
    algos = (sources / "verl/verl/trainer/ppo/core_algos.py").read_text()
    start = algos.index("def compute_grpo_outcome_advantage")
    end = algos.index("@register_adv_est(AdvantageEstimator.GRPO_VECTORIZED)")
    head = "from collections import defaultdict\nfrom typing import Optional\nimport numpy as np\nimport torch\nAlgoConfig = object\n"
    exec(head + algos[start:end], space)
    said = []
    for shape in SHAPES:
        rows = lines(folder, shape, "verl")
        for row in rows:
            if row["espalier"]["rows"] == 1:
                output = espalier_verl.output_of(row)
                space["AgentLoopOutput"](**output, metrics=space["AgentLoopMetrics"](**row["metrics"]))
        longest = max(len(row["prompt_ids"]) for row in rows), max(len(r["response_ids"]) for r in rows)
        batch = espalier_verl.padded(rows, *longest, 0)
        mask = torch.tensor(batch["response_mask"])
        attention = torch.tensor(batch["attention_mask"])
        positions = torch.clip(torch.cumsum(attention, -1) - 1, min=0)
        assert positions.tolist() == batch["position_ids"]
        scores = torch.tensor(batch["token_level_scores"], dtype=torch.float64)
        ours = torch.tensor(batch["reward_baselines"], dtype=torch.float64)
        advantages, _ = espalier_verl.token_advantages(scores, mask, reward_baselines=ours)
        said.append(same(verl_credit(rows, advantages), neutral(folder, shape)))
        if shape == "chains":
            uid = numpy.array([row["uid"] for row in rows])
            advantages, _ = space["compute_grpo_outcome_advantage"](scores, mask, uid)
            said.append("by uid " + same(verl_credit(rows, advantages), neutral(folder, shape)))
    return "; ".join(said)


def verl_credit(rows, advantages):
    pairs = list(zip(rows, advantages.tolist()))
    return credit(
        pairs,
        lambda pair: pair[0]["prompt_ids"] + pair[0]["response_ids"],
        lambda pair: [0.0] * len(pair[0]["prompt_ids"]) + pair[1][: len(pair[0]["response_ids"])],
    )


@check("SkyRL: validate_generator_output, step-wise, and its own GRPO")
def skyrl(folder, sources):
    torch, numpy = need("torch"), need("numpy")
    import espalier_skyrl

    if sources is None or not (sources / "SkyRL/skyrl").exists():
        raise Absent("no checkout SkyRL")
    text = (sources / "SkyRL/skyrl/train/utils/trainer_utils.py").read_text()
    start = text.index("def validate_generator_output")
    end = text.index("\ndef ", text.index("def _validate_step_wise_fields") + 10)
    head = "import numpy as np\nfrom loguru import logger\nGeneratorOutput = dict\n"
    sys.modules.setdefault("loguru", MagicMock())
    space = {}
    exec(head + text[start:end], space)
    algos = (sources / "SkyRL/skyrl/backends/skyrl_train/utils/ppo_utils.py").read_text()
    start = algos.index("def compute_grpo_outcome_advantage")
    end = algos.index("@register_advantage_estimator(AdvantageEstimator.MAXRL)")
    exec("from collections import defaultdict\nimport torch\n" + algos[start:end], space)

    class TrajectoryID:
        def __init__(self, instance_id, repetition_id):
            self.instance_id, self.repetition_id = instance_id, repetition_id

        def to_string(self):
            return f"{self.instance_id}_{self.repetition_id}"

    said = []
    for shape in ("chains", "rewritten"):
        rows = lines(folder, shape, "skyrl")
        output = espalier_skyrl.to_generator_output(rows, TrajectoryID)
        space["validate_generator_output"](len(rows), output, step_wise=True)
        last = torch.tensor(output["is_last_step"])
        rewards = torch.tensor(output["rewards"], dtype=torch.float64)[:, None]
        index = numpy.array([each.instance_id for each in output["trajectory_ids"]])
        ones = torch.ones_like(rewards[last])
        scores, _ = space["compute_grpo_outcome_advantage"](rewards[last], ones, index[last.numpy()])
        owner = torch.cat([torch.tensor([False]), last[:-1]]).int().cumsum(0)
        found = credit(
            list(zip(rows, scores[owner][:, 0].tolist())),
            lambda pair: pair[0]["prompt_token_ids"] + pair[0]["response_ids"],
            lambda pair: [0.0] * len(pair[0]["prompt_token_ids"])
            + [bit * pair[1] for bit in pair[0]["loss_mask"]],
        )
        said.append(same(found, neutral(folder, shape)))
    refused = (folder / "trees" / "skyrl.refused").read_text()
    return "; ".join([*said, "trees refused: " + refused.split(": ", 1)[1].split(",")[0]])


@check("ART: its choices")
def art(folder, sources):
    Choice = need("openai.types.chat.chat_completion").Choice
    count = 0
    for group in lines(folder, "chains", "art"):
        for trajectory in group["trajectories"]:
            for entry in trajectory["messages_and_choices"]:
                if "message" in entry:
                    choice = Choice.model_validate(entry)
                    for token in choice.logprobs.content:
                        assert token.token.startswith("token_id:")
                    count += 1
    return f"{count} choices"


@check("ATIF: Harbor's Trajectory")
def atif(folder, sources):
    need("pydantic")
    models = load(
        sources, "harbor", "harbor.models.trajectories", (), ("harbor", "harbor.models")
    )
    count = 0
    for shape in SHAPES:
        for line in (folder / shape / "atif").read_text().splitlines():
            models.Trajectory.model_validate_json(line)
            count += 1
    return f"{count} documents"


@check("Inspect AI: its evaluation log")
def inspect(folder, sources):
    log = need("inspect_ai.log")
    count = 0
    for shape in SHAPES:
        path = str(folder / shape / "inspect.json")
        Path(path).write_bytes((folder / shape / "inspect").read_bytes())
        assert log.read_eval_log(path, header_only=True).samples is None
        samples = log.read_eval_log(path).samples
        assert len({(each.id, each.epoch) for each in samples}) == len(samples)
        count += len(samples)
    return f"{count} samples"


@check("TRL: supervised and preference sets, and RolloutSample")
def trl(folder, sources):
    datasets, trl_ = need("datasets"), need("trl")
    import espalier_trl

    said = []
    for name in ("trl-sft", "trl-dpo"):
        path = str(folder / "chains" / name)
        data = datasets.load_dataset("json", data_files=path, split="train")
        assert trl_.is_conversational(data[0])
        said.append(f"{name} {len(data)}")
    for shape in SHAPES:
        samples = espalier_trl.rollout_samples(str(folder / shape / "trl"))
        found = credit(
            samples,
            lambda s: s.input_ids,
            lambda s: [bit * s.advantage for bit in s.completion_mask],
        )
        said.append(same(found, neutral(folder, shape)))
    return "; ".join(said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sources", type=Path)
    given = parser.parse_args()
    failed = 0
    for name, work in results:
        try:
            print(f"ok      {name}: {work(given.folder, given.sources)}")
        except Absent as error:
            print(f"absent  {name}: {error}")
        except Exception as error:  # one format must not hide the others
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
