"""rLLM: its workflow engine over its own client of vLLM's completions, with one tool and one reward."""
import asyncio
import contextlib
import sys

from side import Meter, cannot_run, read_work

work = read_work()
if "rllm" not in work:
    cannot_run("needs a checkout of rLLM (--rllm DIR)")
sys.path.insert(0, work["rllm"])
try:
    from rllm.agents.agent import BaseAgent
    from rllm.engine.agent_workflow_engine import AgentWorkflowEngine
    from rllm.engine.rollout.openai_engine import OpenAIEngine
    from rllm.types import Step, Trajectory
    from rllm.workflows.workflow import TerminationEvent, TerminationReason, Workflow
    from transformers import AutoTokenizer
except ImportError as error:
    cannot_run(f"rLLM cannot be imported: {error}")

TOOL = {
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


class Kept(BaseAgent):
    """Holds the trajectory that the workflow collects."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.kept = Trajectory()

    def update_from_model(self, response, **_):
        raise NotImplementedError

    def update_from_env(self, observation, reward, done, info, **_):
        raise NotImplementedError

    @property
    def trajectory(self):
        return self.kept


class LookUp(Workflow):
    """The agent loop: as many turns as asked, a call of the tool in each."""

    def __init__(self, turns, **rest):
        super().__init__(**rest)
        self.agent = Kept()
        self.turns = turns

    async def run(self, task, uid, **kwargs):
        self.reset(task, uid)
        messages = [{"role": "user", "content": task["question"]}]
        for turn in range(self.turns):
            output = await self.rollout_engine.get_model_response(messages, application_id=uid)
            said = {"role": "assistant", "content": output.content, "tool_calls": output.tool_calls}
            self.agent.kept.steps.append(
                Step(
                    chat_completions=[*messages, said],
                    prompt_ids=output.prompt_ids,
                    response_ids=output.completion_ids,
                    logprobs=output.logprobs,
                    model_output=output,
                    reward=1.0 if turn == self.turns - 1 else 0.0,
                )
            )
            if not output.tool_calls:
                raise RuntimeError("no call was read")
            messages.append(said)
            for _ in output.tool_calls:
                text = "The value of pears is 42, as the table of last week says."
                messages.append({"role": "tool", "content": text})
        raise TerminationEvent(TerminationReason.ENV_DONE)


async def roll_all(engine, rollouts):
    tasks = [{"question": work["question"]} for _ in range(rollouts)]
    episodes = await engine.execute_tasks(tasks)
    if any(len(episode.trajectories[0].steps) != work["turns"] for episode in episodes):
        raise RuntimeError("an episode has other turns than asked")


async def main():
    tokenizer = AutoTokenizer.from_pretrained(work["model"] + "/models")
    rollouts = OpenAIEngine(
        model="bench",
        tokenizer=tokenizer,
        base_url=work["url"] + "/v1",
        api_key="none",
        max_prompt_length=1 << 20,
        tools=[TOOL],
        sampling_params={"max_tokens": 256, "logprobs": 1},
    )
    engine = AgentWorkflowEngine(
        LookUp, {"turns": work["turns"]}, rollouts, n_parallel_tasks=work["concurrency"]
    )
    # It prints a line for every episode, which would take the place of the figures.
    with contextlib.redirect_stdout(sys.stderr):
        await roll_all(engine, min(work["rollouts"], 16))
        meter = Meter()
        await roll_all(engine, work["rollouts"])
    meter.print("", work)


asyncio.run(main())
