"""verifiers: the same conversation in its in-process way, with its OpenAI client and its own server in between."""
import asyncio

from side import Meter, cannot_run, read_work

try:
    import verifiers.v1 as vf
    from openai import AsyncOpenAI
    from verifiers.v1.harness import Harness, HarnessConfig
    from verifiers.v1.runtimes import ProgramResult
except ImportError as error:
    cannot_run(f"verifiers is not installed: {error}")

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Looks a key up.",
            "parameters": {
                "type": "object",
                "properties": {"key": {"type": "string"}},
                "required": ["key"],
            },
        },
    }
]


class InProcess(Harness[HarnessConfig]):
    """The agent loop inside this process: its model calls go through the framework's own endpoint."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False
    turns = 0
    client = {}

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        client = AsyncOpenAI(base_url=endpoint, api_key=secret, http_client=self.client["http"])
        messages = [{"role": "user", "content": data.prompt}]
        for _ in range(self.turns):
            answer = await client.chat.completions.create(
                model=ctx.model, messages=messages, tools=TOOLS
            )
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls or []:
                text = "The value of pears is 42, as the table of last week says."
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        return ProgramResult(exit_code=0, stdout="", stderr="")


class LookUp(vf.Task):
    @vf.reward
    async def done(self) -> float:
        return 1.0


async def roll_all(work, rollouts):
    client = vf.EvalClientConfig(base_url=work["url"] + "/v1", api_key_var="NO_KEY")
    agent = vf.Agent(
        vf.AgentConfig(
            model="bench", client=client, harness={"id": "null"}, runtime=vf.SubprocessConfig()
        )
    )
    agent.harness = InProcess(agent.harness.config)
    agent.harness.turns = work["turns"]
    gate = asyncio.Semaphore(work["concurrency"])
    async with agent:

        async def one(index):
            async with gate:
                task = LookUp(vf.TaskData(idx=index, prompt=work["question"]))
                trace = await agent.run(task)
                if trace.num_turns != work["turns"]:
                    raise RuntimeError(f"{trace.num_turns} turns: {trace.error}")

        await asyncio.gather(*(one(index) for index in range(rollouts)))


async def main():
    import httpx

    work = read_work()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=1000)
    async with httpx.AsyncClient(limits=limits, timeout=None) as http:
        InProcess.client["http"] = http
        # Long conversations warm it up in fewer of them.
        await roll_all(work, max(1, min(work["rollouts"], 16, 128 // work["turns"])))
        meter = Meter()
        await roll_all(work, work["rollouts"])
        meter.print("verifiers", work)


asyncio.run(main())
