"""Espalier's rollouts in TRL (1.16): live through the service, or replayed from a file.

    trainer = GRPOTrainer(model, reward_funcs=reward, rollout_func=rollout(Client(url)), ...)
    trainer = GRPOTrainer(model, reward_funcs=reward, rollout_func=replay("rows.trl.jsonl"), ...)

TRL compares rewards by position, `num_generations` at a time. So groups have that many trajectories
and every trajectory is one row; the endings of a tree are trajectories of their own, with their full
paths. A run whose trajectories have several rows, or whose endings do not count alike, is refused
here. `rollout_samples` gives such rows with their advantages to `AsyncGRPOTrainer`, which takes them as
they are. Members that a filter dropped from the loss only are in the rows, untrained, because their
rewards are part of the comparison.
"""

import json

FIELDS = ("prompt_ids", "completion_ids", "logprobs", "env_mask")


def reward(completions, espalier_reward, **kwargs):
    """The reward that Espalier gave; `None` leaves an attempt that failed out of the comparison."""
    return espalier_reward


def rollout(client, to_task=None, **options):
    """A `rollout_func` that rolls through the service.

    `to_task` makes a task of a prompt; without it a prompt is the task's `messages` or `prompt`.
    The service samples from the policy it was started with, or from `policy=`.
    """

    def rollout_func(prompts, trainer):
        tasks, sizes = _runs(prompts)
        step = trainer.state.global_step
        data = [(to_task or _task)(task) for task in tasks]
        groups = {}
        for size in sorted(set(sizes)):
            chosen = [index for index, each in enumerate(sizes) if each == size]
            rolled = client.roll_each(
                [data[index] for index in chosen],
                format="trl",
                group=size,
                step=step,
                version=step,
                **options,
            )
            groups.update(zip(chosen, rolled))
        return _output([_members(groups[index], sizes[index]) for index in range(len(tasks))])

    return rollout_func


def replay(path):
    """A `rollout_func` that gives the groups of an export in their order, over and over."""
    groups = list(_read_groups(path))
    place = 0

    def rollout_func(prompts, trainer):
        nonlocal place
        _, sizes = _runs(prompts)
        chosen = []
        for size in sizes:
            chosen.append(_members(groups[place % len(groups)], size))
            place += 1
        return _output(chosen)

    return rollout_func


def dataset(path):
    """The rows that a trainer is given beside `replay(path)`: each group's prompt, and an `images` column where it shows some.

    TRL shows the images of its dataset to the model, in the order of their tokens, and takes none that came later.
    """
    from espalier_images import images_of

    rows = []
    for group in _read_groups(path):
        first = group["rows"][0]
        words = [
            {**message, "content": _words(message["content"])} if message["role"] == "user" else message
            for message in first["prompt"]
        ]
        shown = {"images": images_of(first["images"], path)} if first.get("images") else {}
        rows.append({"prompt": words, **shown})
    return rows


def _words(content):
    """The text of a content: TRL puts the images of its column before the words itself."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def rollout_samples(path_or_rows):
    """Rows as `RolloutSample`s of TRL's asynchronous GRPO, each with the advantage of its tokens."""
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

    rows = list(_read(path_or_rows)) if isinstance(path_or_rows, str) else path_or_rows
    if any(row.get("images") for row in rows):
        raise ValueError("AsyncGRPOTrainer takes no images: use GRPOTrainer with replay and dataset, or verl, slime, SkyRL")
    return [
        RolloutSample(
            prompt=row["prompt"],
            completion=row["completion"],
            input_ids=row["prompt_ids"] + row["completion_ids"],
            completion_mask=[0] * len(row["prompt_ids"]) + row["env_mask"],
            old_log_probs=[0.0] * len(row["prompt_ids"]) + row["logprobs"],
            advantage=row["advantage"],
            model_version=row["model_version"],
            group_id=row["group_id"],
            metrics={} if row["reward"] is None else {"reward": row["reward"]},
        )
        for row in rows
    ]


def environment(client, probe):
    """A class for `environment_factory`: TRL rolls, Espalier's worlds answer and score.

    `probe` is a task to learn the tools from. Its rows must have the columns of a task; the reward
    is `world_reward`, which also sees the last words of the policy.
    """
    world = client.open_world(probe)
    client.close_world(world["id"])

    class EspalierEnvironment:
        def __init__(self):
            self._world = None

        def reset(self, **row):
            if self._world is not None:
                _leave(client, self._world)
            columns = {k: v for k, v in row.items() if k not in ("prompt", "environment")}
            prompt = row.get("prompt")
            text = prompt if isinstance(prompt, str) or prompt is None else prompt[-1]["content"]
            opened = client.open_world({**columns, "prompt": text} if text else columns)
            self._world = opened["id"]

    for tool in world["tools"]:
        method = _method(client, tool["function"])
        setattr(EspalierEnvironment, method.__name__, method)
    return EspalierEnvironment


def world_reward(client):
    """A reward function that closes each environment's world with the policy's last words."""

    def espalier_world(completions, environments, **kwargs):
        rewards = []
        for completion, env in zip(completions, environments):
            last = completion if isinstance(completion, str) else completion[-1].get("content", "")
            world, env._world = env._world, None
            rewards.append(client.close_world(world, answer=last)["reward"])
        return rewards

    return espalier_world


def _leave(client, world):
    """Closes a world whose reward nobody asks for; the service may have closed it, where it was idle for long."""
    from espalier_client import EspalierError

    try:
        client.close_world(world)
    except EspalierError as error:
        if error.code != 404:
            raise


def _method(client, tool):
    """A method with the signature and the docstring from which transformers makes a tool's schema."""
    import inspect

    types = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list}
    schema = tool.get("parameters", {})
    required = schema.get("required", [])
    names = sorted(schema.get("properties", {}), key=lambda name: name not in required)

    def method(self, *args, **kwargs):
        given = {**dict(zip(names, args)), **kwargs}
        given = {k: v for k, v in given.items() if k in required or v is not None}
        return client.call(self._world, tool["name"], given)["content"]

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    lines = [tool.get("description") or f"Calls {tool['name']}.", "", "Args:"]
    for name in names:
        property = schema["properties"][name]
        kind = types.get(property.get("type"), dict)
        default = inspect.Parameter.empty if name in required else None
        annotation = kind if name in required else kind | None
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=default,
                annotation=annotation,
            )
        )
        lines.append(f"    {name}: {property.get('description') or name}")
    method.__name__ = tool["name"]
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)
    method.__annotations__ = {p.name: p.annotation for p in parameters[1:]} | {"return": str}
    method.__doc__ = "\n".join(lines if names else lines[:1])
    return method


def _task(prompt):
    return {"messages": prompt} if isinstance(prompt, list) else {"prompt": prompt}


def _runs(prompts):
    """TRL repeats each prompt for its generations: the prompts, and how often each comes."""
    tasks, sizes = [], []
    for prompt in prompts:
        if tasks and tasks[-1] == prompt:
            sizes[-1] += 1
        else:
            tasks.append(prompt)
            sizes.append(1)
    return tasks, sizes


def _members(group, size):
    rows = group["rows"]
    several = [row for row in rows if row["rows"] > 1 or row["parts"] > 1]
    if several:
        raise ValueError(
            f"{several[0]['trajectory']} has {several[0]['rows']} rows: TRL's rollout_func takes one "
            "per trajectory. Use rollout_samples with AsyncGRPOTrainer."
        )
    uneven = [row for row in rows if row["weight"] not in (None, 1)]
    if uneven:
        raise ValueError(
            f"{uneven[0]['trajectory']} has the weight {uneven[0]['weight']}: TRL's rollout_func compares and "
            "trains rows as equals. Use rollout_samples with AsyncGRPOTrainer, or roll with --weighting uniform."
        )
    if len(rows) > size:
        raise ValueError(f"a group of {len(rows)} where TRL compares {size} at a time")
    if not rows:
        raise ValueError("every attempt of a group failed: there is nothing to train on")
    # Attempts that failed have no row. Their places are filled with untrained copies, so that TRL's
    # groups stay whole; their reward is None, which TRL leaves out of the comparison.
    filler = {**rows[0], "env_mask": [0] * len(rows[0]["env_mask"]), "reward": None}
    return rows + [filler] * (size - len(rows))


def _output(groups):
    rows = [row for group in groups for row in group]
    output = {name: [row[name] for row in rows] for name in FIELDS}
    output["espalier_reward"] = [row["reward"] for row in rows]
    return output


def _read(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _read_groups(path):
    group, key = [], None
    for row in _read(path):
        if group and row["group_id"] != key:
            yield {"rows": group}
            group = []
        key = row["group_id"]
        group.append(row)
    if group:
        yield {"rows": group}
