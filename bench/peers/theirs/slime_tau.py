"""slime: its tau-bench agent's own loop and HTTP client, on the retail tools of a tau-bench checkout.

What cannot run here is replaced by something cheaper: SGLang's parser by one regular expression, the
simulated user by nobody (the policy of this line only calls tools), slime's state by its tokenizer.
"""
import asyncio
import json
import os
import re
import sys
import types

from side import Meter, cannot_run, read_work

work = read_work()
if not work.get("slime") or not work.get("tauBench"):
    cannot_run("needs checkouts: --slime DIR and --tau-bench DIR")
sys.path[:0] = [work["slime"], os.path.join(work["slime"], "examples/tau-bench"), work["tauBench"]]

try:
    import httpx
    from transformers import AutoTokenizer
except ImportError as error:
    cannot_run(f"a package is missing: {error}")


def stub(name, **names):
    module = types.ModuleType(name)
    module.__dict__.update(names)
    sys.modules[name] = module


class State:
    tokenizer = AutoTokenizer.from_pretrained(work["model"] + "/models")

    def __init__(self, _args):
        pass


def parse_tools(response, _tools, _parser):
    found = re.search(r"<tool_call>\n(.*)\n</tool_call>", response, re.S)
    call = json.loads(found.group(1))
    arguments = json.dumps(call["arguments"])
    return {"normal_text": response[: found.start()], "calls": [{"name": call["name"], "parameters": arguments}]}


stub("litellm", completion=None, provider_list=[])
stub("sglang_tool_parser", parse_tools=parse_tools)
stub("slime.rollout.sglang_rollout", GenerateState=State)

import tau_bench.envs.base as base  # noqa: E402


class Nobody:
    def reset(self, instruction=None):
        return "Hello, I want to exchange something."

    def step(self, content):
        return "Yes."

    def get_total_cost(self):
        return 0.0


base.load_user = lambda **_: Nobody()

from slime.utils import http_utils  # noqa: E402
from tau_bench.envs import get_env  # noqa: E402
from tau_bench.types import RunConfig  # noqa: E402
from trainable_agents import agent_factory  # noqa: E402

config = RunConfig(
    env="retail", agent_strategy="tool-calling", user_model="none", task_split="test",
    user_strategy="human", model_provider="openai", model="bench", user_model_provider="openai",
)


async def one(args):
    env = get_env("retail", user_strategy="human", user_model="none", task_split="test", task_index=0)
    agent = agent_factory(
        tools_info=env.tools_info, wiki=env.wiki, config=config, rollout_args=args, sampling_params={}
    )
    result = await agent.asolve(env, args, {}, 0, max_num_steps=work["turns"])
    if sum(message["role"] == "assistant" for message in result.messages) != work["turns"]:
        raise RuntimeError(f"{result.status}: {len(result.messages)} messages")


async def roll_all(rollouts):
    host, port = work["url"].removeprefix("http://").split(":")
    args = types.SimpleNamespace(sglang_router_ip=host, sglang_router_port=port)
    gate = asyncio.Semaphore(work["concurrency"])

    async def gated():
        async with gate:
            await one(args)

    await asyncio.gather(*(gated() for _ in range(rollouts)))


async def main():
    http_utils._http_client = httpx.AsyncClient(
        limits=httpx.Limits(max_connections=work["concurrency"]), timeout=httpx.Timeout(None)
    )
    await roll_all(min(work["rollouts"], 4))
    meter = Meter()
    await roll_all(work["rollouts"])
    meter.print("", work)


asyncio.run(main())
