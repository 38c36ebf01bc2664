"""Agents in Python against a gateway: OpenAI's client, rLLM's gateway client, OpenEnv's training contract.

    pip install openai rllm-model-gateway openenv
    npx espalier gateway --policy embedded --group 1 --port 8700 --out runs/python &
    python test/python/gateway_clients.py http://127.0.0.1:8700

Prints one line per client and fails where one of them does not accept what it is given.
"""

import sys

import httpx
from openai import OpenAI

ASK = [{"role": "user", "content": "refund my order 47"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "order",
            "description": "Shows an order.",
            "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}},
        },
    }
]


def converse(client: OpenAI, turns: int = 3) -> int:
    """A loop with one tool; gives how many answers it took."""
    messages = list(ASK)
    for turn in range(turns):
        answer = client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or []:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "delivered, new"})
        if not message.tool_calls:
            messages.append({"role": "user", "content": "47"})
    return turns


def openai_client(url: str) -> None:
    opened = httpx.post(f"{url}/attempts", json={"task": "python-openai"}).json()
    turns = converse(OpenAI(base_url=f"{url}/v1", api_key=opened["token"]))
    pieces = OpenAI(base_url=f"{url}/v1", api_key=opened["token"]).chat.completions.create(
        model="m", messages=ASK, stream=True, stream_options={"include_usage": True}
    )
    usage = [piece.usage for piece in pieces if piece.usage]
    assert len(usage) == 1 and usage[0].completion_tokens > 0
    closed = httpx.post(f"{url}/attempts/{opened['id']}/close", json={"reward": 1.0}).json()
    assert closed["reward"] == 1.0 and closed["requests"] == turns + 1, closed
    print("openai", closed)


def rllm(url: str) -> None:
    from rllm_model_gateway.client import GatewayClient

    with GatewayClient(f"{url}/rllm") as gateway:
        assert gateway.health()["status"] == "ok"
        session = gateway.create_session("python-rllm:0", metadata={"split": "train"})
        turns = converse(OpenAI(base_url=gateway.get_session_url(session), api_key="none"))
        assert gateway.flush()
        traces = gateway.get_session_traces(session)
        assert len(traces) == turns, len(traces)
        for before, after in zip(traces, traces[1:]):
            whole = before.prompt_token_ids + before.completion_token_ids
            assert after.prompt_token_ids[: len(whole)] == whole, "a turn was encoded again"
        for trace in traces:
            assert len(trace.logprobs) == len(trace.completion_token_ids) > 0
        assert gateway.get_trace(traces[0].trace_id).session_id == session
        assert gateway.get_session_info(session)["trace_count"] == turns
        assert any(each["session_id"] == session for each in gateway.list_sessions())
        assert gateway.list_workers()[0].healthy
        assert gateway.delete_session(session) == turns
    print("rllm", turns, "traces, cumulative")


def openenv(url: str) -> None:
    from openenv.core.harness.training import TrainingTrace

    base = f"{url}/openenv"
    session = httpx.post(f"{base}/sessions", json={"metadata": {"task_id": "python-openenv"}}).json()
    assert session["rollout_type"] == "train", session
    name = session["session_id"]
    turns = converse(OpenAI(base_url=f"{base}/v1", api_key=name))
    entries = httpx.get(f"{base}/sessions/{name}/trace_entries").json()["entries"]
    trace = TrainingTrace.from_entries(entries)
    rollout = httpx.get(f"{base}/sessions/{name}/rollout").json()
    assert rollout["trainable"] and rollout["stats"]["n_turns"] == turns, rollout["stats"]
    row = rollout["sequences"][0]
    sampled = sum(len(entry["completion_token_ids"]) for entry in entries)
    assert sum(row["loss_mask"]) == sampled and len(row["input_ids"]) == len(row["logprobs"])
    assert httpx.get(f"{base}/sessions/{name}").json()["n_turns"] == turns
    assert httpx.delete(f"{base}/sessions/{name}").json()["deleted"]
    print("openenv", type(trace).__name__, len(entries), "entries,", sampled, "trained tokens")


if __name__ == "__main__":
    for check in (openai_client, rllm, openenv):
        check(sys.argv[1].rstrip("/"))
