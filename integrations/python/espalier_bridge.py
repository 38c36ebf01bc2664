"""Hosts worlds of Python packages for Espalier: `--environment python:PACKAGE`.

One request per line of standard input, one answer per line of standard output, both JSON; nothing
but the standard library is needed beside the environment's own package. Three kinds are known:
`verifiers` environments (a module with `load_environment`), `reasoning_gym` datasets, and games with
`reset` and `step` as gymnasium has them.
"""

import asyncio
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import pathlib
import platform
import sys
import traceback

PROTOCOL = 1


class PolicyMistake(Exception):
    """A mistake of the policy, which is shown this message."""


def plain(value):
    """Any value as plain JSON data."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(exclude_none=True))
    return str(value)


def text_of(value):
    value = plain(value)
    return value if isinstance(value, str) else json.dumps(value)


def answer_of(action):
    return action.get("text") or ""


# --- reasoning_gym ---------------------------------------------------------------------------


class ReasoningGym:
    """One question, one answer, scored by its dataset."""

    def __init__(self, package, arguments):
        self.gym = importlib.import_module(package)
        arguments = dict(arguments)
        self.name = arguments.pop("dataset", None)
        if not self.name:
            raise ValueError("name a dataset: python:reasoning_gym,dataset=chain_sum")
        self.size = int(arguments.pop("size", 1000))
        self.arguments = arguments
        self.datasets = {}
        self.dataset("train")

    def dataset(self, split):
        if split not in self.datasets:
            # Question i of seed s is drawn from s + i: seeds that are near give the same questions.
            seed = 1 if split == "train" else 10**9
            self.datasets[split] = self.gym.create_dataset(
                self.name, seed=seed, size=self.size, **self.arguments
            )
        return self.datasets[split]

    def about(self):
        return {"name": f"reasoning_gym-{self.name}", "splits": {"train": self.size, "held-out": self.size}}

    def open(self, task, seed):
        return ReasoningGymWorld(self, task)


class ReasoningGymWorld:
    def __init__(self, host, task):
        self.dataset = host.dataset(task["split"])
        self.entry = self.dataset[task["index"]]
        self.extract = importlib.import_module(f"{host.gym.__name__}.utils").extract_answer

    def begin(self):
        ask = "Give the final answer between <answer> and </answer>."
        messages = [{"role": "user", "content": f"{self.entry['question']}\n\n{ask}"}]
        return {"opening": messages, "tools": []}

    def step(self, action):
        said = answer_of(action)
        answer = self.extract(said) if "<answer>" in said else said.strip()
        try:
            score = self.dataset.score_answer(answer=answer, entry=self.entry)
        except Exception as error:
            # Some datasets throw at words that they cannot read; one that cannot score its own answer is broken.
            self.dataset.score_answer(answer=self.entry["answer"], entry=self.entry)
            text = f"The answer cannot be read: {type(error).__name__}: {error}"[:2000]
            return {"observed": [{"role": "user", "content": text}], "reward": 0.0, "done": True}
        return {"observed": [], "reward": float(score), "done": True}

    def finish(self):
        return None

    def close(self):
        pass


# --- gymnasium -------------------------------------------------------------------------------


def close_game(game):
    if hasattr(game, "close"):
        game.close()


class Gym:
    """A game with `reset` and `step`."""

    def __init__(self, package, arguments):
        self.arguments = dict(arguments)
        self.made = self.maker(package)
        self.name = self.arguments.pop("id", package.replace(":", "-"))
        game = self.make()
        action_schema(getattr(game, "action_space", None))
        metadata = getattr(game, "metadata", None) or {}
        if "ansi" in metadata.get("render_modes", ()) and ":" not in package:
            self.arguments.setdefault("render_mode", "ansi")
        close_game(game)

    def maker(self, package):
        if ":" in package:
            module, attribute = package.split(":", 1)
            return getattr(importlib.import_module(module), attribute)
        gymnasium = importlib.import_module(package)
        name = self.arguments.get("id")
        if not name:
            raise ValueError("name a game: python:gymnasium,id=FrozenLake-v1")
        return lambda **arguments: gymnasium.make(name, **arguments)

    def make(self):
        return self.made(**self.arguments)

    def about(self):
        return {"name": f"gym-{self.name}", "splits": {}}

    def open(self, task, seed):
        return GymWorld(self.make(), task)


def action_schema(space):
    """The JSON schema of an action; None where it is words."""
    shape = getattr(space, "shape", None)
    count = getattr(space, "n", None)
    if count is not None and not shape:
        start = int(getattr(space, "start", 0))
        return {"type": "integer", "minimum": start, "maximum": start + int(count) - 1}
    if shape is not None:
        schema = {"type": "number" if space.dtype.kind == "f" else "integer"}
        for size in reversed(shape):
            schema = {"type": "array", "items": schema, "minItems": int(size), "maxItems": int(size)}
        return {**schema, "description": str(space)}
    # A space of words says which characters they have; any other is made of spaces.
    if hasattr(space, "contains") and not hasattr(space, "character_set"):
        raise ValueError(f"its actions are {space}: only numbers, lists of numbers and words can be chosen here")
    return None


class GymWorld:
    def __init__(self, game, task):
        self.game = game
        self.task = task
        self.space = getattr(game, "action_space", None)
        self.schema = action_schema(self.space)

    def shown(self, observation):
        if getattr(self.game, "render_mode", None) == "ansi":
            drawn = self.game.render()
            if isinstance(drawn, str):
                return f"{drawn}\n{text_of(observation)}"
        return text_of(observation)

    def begin(self):
        signature = inspect.signature(self.game.reset)
        takes_seed = "seed" in signature.parameters or any(
            each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values()
        )
        given = self.game.reset(seed=self.task["seed"]) if takes_seed else self.game.reset()
        observation = given[0] if isinstance(given, tuple) else given
        messages = [{"role": "user", "content": self.shown(observation)}]
        return {"opening": messages, "tools": self.tools()}

    def tools(self):
        if self.schema is None:
            return []
        parameters = {"type": "object", "properties": {"action": self.schema}, "required": ["action"]}
        return [{"name": "act", "description": "Takes one action in the game.", "parameters": parameters}]

    def action_of(self, call):
        value = json.loads(call["arguments"])["action"]
        if self.schema["type"] == "integer":
            return value
        action = importlib.import_module("numpy").asarray(value, dtype=self.space.dtype)
        if not self.space.contains(action):
            raise PolicyMistake(f"{value} is not in {self.space}.")
        return action

    def take(self, action):
        """One action: what is seen after it, its reward, and whether the game is over."""
        given = self.game.step(action)
        done = bool(given[2]) or (len(given) == 5 and bool(given[3]))
        return self.shown(given[0]), float(given[1]), done

    def step(self, action):
        if self.schema is None:
            text, reward, done = self.take(answer_of(action))
            return {"observed": [{"role": "user", "content": text}], "reward": reward, "done": done}
        if not action["calls"]:
            raise PolicyMistake("Call act.")
        observed, total, done = [], None, False
        for call in action["calls"]:
            text = "Error: the game is over; nothing was done."
            if not done:
                try:
                    text, reward, done = self.take(self.action_of(call))
                    total = (total or 0.0) + reward
                except PolicyMistake as mistake:
                    text = f"Error: {mistake}"
            observed.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        return {"observed": observed, "reward": total, "done": done}

    def finish(self):
        return None

    def close(self):
        close_game(self.game)


# --- verifiers -------------------------------------------------------------------------------


def message_of(message):
    """A message of verifiers in OpenAI's shape."""
    given = plain(message)
    calls = given.pop("tool_calls", None)
    for extra in ("thinking_blocks", "reasoning_content"):
        given.pop(extra, None)
    if calls:
        given["tool_calls"] = [
            call if "function" in call else
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in calls
        ]
    return given


class Verifiers:
    """A module with `load_environment`: its own rollout runs, and Espalier's policy answers it."""

    def __init__(self, package, arguments):
        self.vf = importlib.import_module("verifiers")
        module = importlib.import_module(package.replace("-", "_"))
        self.environment = module.load_environment(**arguments)
        self.name = package
        self.loop = asyncio.new_event_loop()
        self.rows = rows_of(self.environment)
        self.client = make_client(self.vf)

    def about(self):
        return {"name": self.name, "splits": {name: len(rows) for name, rows in self.rows.items()}}

    def open(self, task, seed):
        return VerifiersWorld(self, dict(self.rows[task["split"]][task["index"]]))


def every_fourth_held_out(count):
    """Places by split, where a package has no splits of its own."""
    return {"train": [at for at in range(count) if at % 4 != 3], "held-out": range(3, count, 4)}


def rows_of(environment):
    """Its tasks by split. Asked for those of evaluation, it gives those of training where it has no others."""
    train, evaluation = (
        getattr(environment, f"build_{name}")() if hasattr(environment, f"build_{name}") else getattr(environment, name)
        for name in ("dataset", "eval_dataset")
    )
    if evaluation is None:
        return {name: train.select(places) for name, places in every_fourth_held_out(len(train)).items()}
    return {**({} if train is None else {"train": train}), "held-out": evaluation}


def make_client(vf):
    """A client of verifiers whose answers come from the world that asks."""
    types = importlib.import_module("verifiers.types")
    Client = importlib.import_module("verifiers.clients").Client

    class Asking(Client):
        def __init__(self):
            super().__init__(object())
            self.world = None

        def setup_client(self, config):
            return object()

        async def to_native_tool(self, tool):
            return tool

        async def to_native_prompt(self, messages):
            return messages, {}

        async def get_native_response(self, *given, **more):
            raise NotImplementedError

        async def raise_from_native_response(self, response):
            pass

        async def from_native_response(self, response):
            return response

        async def close(self):
            pass

        async def get_response(self, prompt, model, sampling_args=None, tools=None, state=None, **more):
            action = await self.world.ask(prompt, tools or [], state)
            calls = [types.ToolCall(id=call["id"], name=call["name"], arguments=call["arguments"]) for call in action["calls"]]
            message = types.ResponseMessage(
                role="assistant", content=answer_of(action), tool_calls=calls or None,
                finish_reason="tool_calls" if calls else "stop", is_truncated=False,
            )
            return types.Response(id="espalier", created=0, model=model, message=message)

    return Asking


class VerifiersWorld:
    def __init__(self, host, row):
        self.host = host
        self.row = row
        self.asked = asyncio.Queue()
        self.replies = asyncio.Queue()
        self.seen = 0
        self.state = None
        self.rollout = None
        self.tools = []

    async def ask(self, prompt, tools, state):
        self.state = state
        await self.asked.put((prompt, tools))
        return await self.replies.get()

    async def run(self):
        client = self.host.client()
        client.world = self
        state = await self.host.environment.rollout(self.row, client, "espalier", {})
        self.state = state
        return await self.score()

    async def score(self):
        error = self.state.get("error")
        if error is not None:
            raise RuntimeError(f"the rollout failed: {error!r}")
        await self.host.environment.rubric.score_rollout(self.state)
        return float(self.state["reward"])

    async def until_asked(self):
        """Its next request; None if the rollout has ended."""
        asking = asyncio.ensure_future(self.asked.get())
        await asyncio.wait({asking, self.rollout}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return asking.result()
        asking.cancel()
        self.rollout.result()
        return None

    def begin(self):
        loop = self.host.loop
        asyncio.set_event_loop(loop)
        self.rollout = loop.create_task(self.run())
        asked = loop.run_until_complete(self.until_asked())
        if asked is None:
            raise RuntimeError("the rollout ended before it asked anything")
        prompt, tools = asked
        self.seen = len(prompt)
        listed = [plain(tool) for tool in tools]
        return {
            "opening": [message_of(each) for each in prompt],
            "tools": [{key: tool[key] for key in ("name", "description", "parameters")} for tool in listed],
        }

    def step(self, action):
        loop = self.host.loop
        self.replies.put_nowait(action)
        asked = loop.run_until_complete(self.until_asked())
        if asked is None:
            return {"observed": [], "reward": self.rollout.result(), "done": True}
        prompt, _ = asked
        if len(prompt) <= self.seen + 1:
            raise RuntimeError("the environment rewrote the conversation, which cannot be followed")
        observed = [message_of(each) for each in prompt[self.seen + 1 :]]
        self.seen = len(prompt)
        return {"observed": observed, "reward": None, "done": False}

    def finish(self):
        """The reward if the attempt were cut off here; it may still go on."""
        if self.rollout.done() or not self.state or not self.state["trajectory"]:
            return None

        async def score():
            await self.host.environment.render_completion(self.state)
            reward = await self.score()
            self.state.update(completion=None, reward=None, metrics=None)
            return reward

        return self.host.loop.run_until_complete(score())

    def close(self):
        if self.rollout and not self.rollout.done():
            self.rollout.cancel()
            self.host.loop.run_until_complete(asyncio.gather(self.rollout, return_exceptions=True))


# --- verifiers from 0.2 on -------------------------------------------------------------------


class VerifiersEpisodes:
    """A taskset of verifiers from 0.2 on: its own episode runs, and Espalier answers its program's requests to a model."""

    def __init__(self, package, arguments):
        # Its programs are prepared by uv, which may stand beside this Python and not in PATH.
        os.environ["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"
        self.vf = importlib.import_module("verifiers.v1")
        self.loop = asyncio.new_event_loop()
        arguments = dict(arguments)
        self.size = int(arguments.pop("size", 1000))
        self.environment = load_episodes(package, arguments)
        self.name = package
        tasks = list(self.environment.taskset.take(self.size))
        places = every_fourth_held_out(len(tasks))
        self.tasks = {name: [tasks[at] for at in chosen] for name, chosen in places.items()}
        self.worlds = {}
        self.loop.run_until_complete(self.serve())

    async def serve(self):
        self.serving = self.environment.serving()
        await self.serving.__aenter__()
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def answer(self, reader, writer):
        """One request of an episode to its model: the path names the world."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            lengths = [line.split(":", 1)[1] for line in head if line.lower().startswith("content-length:")]
            body = json.loads(await reader.readexactly(int(lengths[0])))
            world = self.worlds.get(head[0].split(" ")[1].split("/")[1])
            message = await world.complete(body) if world else None
            kind, written = completion_of(message, bool(body.get("stream")))
            status = "400 Cut off" if message is None else "200 OK"
            headers = f"content-type: {kind}\r\ncontent-length: {len(written)}\r\nconnection: close"
            writer.write(f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode() + written)
            await writer.drain()
        finally:
            writer.close()

    def about(self):
        return {"name": self.name, "splits": {name: len(tasks) for name, tasks in self.tasks.items()}}

    def open(self, task, seed):
        return EpisodeWorld(self, self.tasks[task["split"]][task["index"]])


def completion_of(message, is_streamed):
    """A message as an OpenAI server sends it: whole, or as a stream with one event for all of it."""
    if message is None:
        error = {"message": "the attempt was cut off", "type": "invalid_request_error"}
        return "application/json", json.dumps({"error": error}).encode()
    end = "tool_calls" if "tool_calls" in message else "stop"
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    common = {"id": "espalier", "created": 0, "model": "espalier"}
    if not is_streamed:
        choice = {"index": 0, "message": message, "finish_reason": end}
        whole = {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
        return "application/json", json.dumps(whole).encode()
    choice = {"index": 0, "delta": message, "finish_reason": end}
    chunk = {**common, "object": "chat.completion.chunk"}
    parts = [{**chunk, "choices": [choice]}, {**chunk, "choices": [], "usage": usage}]
    events = [*map(json.dumps, parts), "[DONE]"]
    return "text/event-stream", "".join(f"data: {event}\n\n" for event in events).encode()


def load_episodes(package, arguments):
    """The environment of a taskset; its program is a plain chat loop beside us unless it is named otherwise."""
    loaders = importlib.import_module("verifiers.v1.utils.loaders")
    generic = importlib.import_module("verifiers.v1.utils.generic")
    agents = importlib.import_module("verifiers.v1.configs.agent")
    env = importlib.import_module("verifiers.v1.env")
    configs = importlib.import_module("verifiers.v1.configs.env")
    made = loaders.environment_class(package)
    config = generic.concrete_type(made, configs.EnvConfig, origin=env.Env) or configs.EnvConfig
    role = {"harness": {"id": arguments.pop("harness", "null")}, "runtime": {"type": "subprocess"}}
    names = list(agents.agent_config_fields(config(taskset={"id": package, **arguments})))
    if len(names) != 1:
        raise ValueError(f"{package} seats {', '.join(names)}: one policy cannot answer for several agents")
    return made(config(taskset={"id": package, **arguments}, **{name: role for name in names}))


class EpisodeWorld:
    """An episode that runs until its program asks its model; the answer is the policy's turn."""

    def __init__(self, host, task):
        self.host = host
        self.task = task
        self.name = f"w{id(self)}"
        self.asked = asyncio.Queue()
        self.replies = asyncio.Queue()
        self.seen = []
        self.traces = []
        self.episode = None
        # The reward at the place where it was cut off.
        self.cut = None

    async def complete(self, body):
        await self.asked.put(body)
        action = await self.replies.get()
        if action is None:
            return None
        calls = [
            {"index": at, "id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for at, call in enumerate(action["calls"])
        ]
        return {"role": "assistant", "content": answer_of(action), **({"tool_calls": calls} if calls else {})}

    async def run(self):
        clients = importlib.import_module("verifiers.v1.configs.client")
        url = f"http://127.0.0.1:{self.host.port}/{self.name}/v1"
        client = clients.EvalClientConfig(base_url=url, api_key_var="ESPALIER_UNUSED_KEY")
        contexts = importlib.import_module("verifiers.v1.clients")
        context = contexts.ModelContext(model="espalier", client=client)
        episode = await self.host.environment.run_episode(self.task, context, on_trace=self.traces.append)
        problems = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
        if not episode.ok:
            told = problems[-1] if problems else None
            raise RuntimeError(f"the episode failed: {told.type}: {told.message}" if told else "the episode failed")
        return float(sum(trace.reward for trace in episode.traces))

    async def until_asked(self):
        asking = asyncio.ensure_future(self.asked.get())
        await asyncio.wait({asking, self.episode}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return asking.result()
        asking.cancel()
        self.episode.result()
        return None

    def begin(self):
        loop = self.host.loop
        asyncio.set_event_loop(loop)
        self.host.worlds[self.name] = self
        self.episode = loop.create_task(self.run())
        body = loop.run_until_complete(self.until_asked())
        if body is None:
            raise RuntimeError("the episode ended before it asked anything")
        self.seen = body["messages"]
        functions = [tool["function"] for tool in body.get("tools") or []]
        tools = [{"name": each["name"], "description": each.get("description", ""), "parameters": each["parameters"]} for each in functions]
        return {"opening": self.seen, "tools": tools}

    def step(self, action):
        self.replies.put_nowait(action)
        body = self.host.loop.run_until_complete(self.until_asked())
        if body is None:
            return {"observed": [], "reward": self.episode.result(), "done": True}
        before, messages = len(self.seen), body["messages"]
        if messages[:before] != self.seen or len(messages) <= before + 1:
            raise RuntimeError("the environment rewrote the conversation, which cannot be followed")
        self.seen = messages
        return {"observed": messages[before + 1 :], "reward": None, "done": False}

    def finish(self):
        """Ends the episode as a limit of its own would: what was done until here is scored, once."""
        if self.cut is None and not self.episode.done():
            for trace in self.traces:
                trace.stop("max_turns")
            self.replies.put_nowait(None)
            self.cut = self.host.loop.run_until_complete(self.episode)
        return self.cut

    def close(self):
        self.host.worlds.pop(self.name, None)
        if self.episode and not self.episode.done():
            self.episode.cancel()
            self.host.loop.run_until_complete(asyncio.gather(self.episode, return_exceptions=True))



# --- the line to Espalier --------------------------------------------------------------------

def verifiers_of(package, arguments):
    """Up to 0.1 the package itself has environments; later they are tasksets of `verifiers.v1`."""
    root = importlib.import_module("verifiers")
    kind = Verifiers if hasattr(root, "Environment") else VerifiersEpisodes
    return kind(package, arguments)


KINDS = {"reasoning_gym": ReasoningGym, "gym": Gym, "verifiers": verifiers_of}
TRIED_AS = {
    "reasoning_gym": "datasets of reasoning_gym",
    "gym": "a game with reset and step",
    "verifiers": "an environment of verifiers",
}


def kind_of(package):
    if package == "reasoning_gym":
        return "reasoning_gym"
    if package in ("gymnasium", "gym") or ":" in package:
        return "gym"
    return "verifiers"


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:
        return True  # It runs already, but does not say where it came from.


def what_is_missing(package, kind, error):
    """What a package was tried as, and every module that this needs and Python does not find."""
    own = package.split(":")[0].replace("-", "_").split(".")[0]
    needed = dict.fromkeys([own, *([error.name.split(".")[0]] if error.name else [])])
    missing = [module for module in needed if module.isidentifier() and not is_installed(module)]
    tried = f"{package} was tried as {TRIED_AS[kind]}"
    if not missing:
        return f"{tried}: {error}"
    hint = "; a game is named MODULE:CLASS" if kind == "verifiers" and own not in missing else ""
    return f"{tried}, but {sys.executable} has no module {' and no module '.join(missing)}{hint}"


def made_of(package):
    """What must be the same on every machine: Python's version, the package's, and its code."""
    name = package.split(":")[0].replace("-", "_").split(".")[0]
    made = {"the version of Python": platform.python_version()}
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.origin:
        return made
    start = pathlib.Path(spec.origin)
    files = sorted(start.parent.rglob("*.py")) if spec.submodule_search_locations else [start]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(start.parent).as_posix().encode() + b"\0" + file.read_bytes())
    try:
        version = f"{importlib.metadata.version(name)} "
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return {**made, f"the Python package {name}": f"{version}({digest.hexdigest()[:12]})"}


class Bridge:
    def __init__(self):
        self.host = None
        self.worlds = {}

    def hello(self, package, arguments, kind=None):
        kind = kind or kind_of(package)
        try:
            self.host = KINDS[kind](package, arguments)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(what_is_missing(package, kind, error)) from error
        return {"protocol": PROTOCOL, "made": made_of(package), **self.host.about()}

    def open(self, world, task, seed):
        made = self.host.open(task, seed)
        self.worlds[world] = made
        return plain(made.begin())

    def step(self, world, action):
        try:
            return plain(self.worlds[world].step(action))
        except PolicyMistake as mistake:
            observed = [{"role": "user", "content": str(mistake)}]
            return {"observed": observed, "reward": None, "done": False}

    def finish(self, world):
        return {"reward": self.worlds[world].finish()}

    def close(self, world):
        made = self.worlds.pop(world, None)
        if made is not None:
            made.close()
        return {}


def main():
    # Output that packages print must not mix with the answers, and what they read is not the requests.
    asked = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    line = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    bridge = Bridge()
    for text in asked:
        request = json.loads(text)
        number, operation = request.pop("id"), request.pop("op")
        try:
            answer = {"id": number, "ok": getattr(bridge, operation)(**request)}
            written = json.dumps(answer, allow_nan=False)
        except (Exception, asyncio.CancelledError) as error:
            traceback.print_exc()
            message = f"{type(error).__name__}: {error}"[:2000]
            written = json.dumps({"id": number, "error": message})
        line.write(written + "\n")
        line.flush()


if __name__ == "__main__":
    main()
