"""An agent in Python that learns through a gateway, with a framework of others and nothing of Espalier.

    pip install openai                      # or langgraph langchain-openai, or pydantic-ai-slim[openai]
    npx espalier train --gateway --policy embedded --group 8 --tasks-per-step 4 --steps 12 --out runs/python-agent &
    python test/python/gateway_learn.py http://127.0.0.1:8700 [openai|langgraph|pydantic-ai]

The agent asks for its answer and is worth more the shorter that is. Prints the mean reward of the first
and the last thirty-two attempts, and fails unless the last are worth more.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from statistics import mean

import httpx

GROUP = 8
WORTH_NOTHING = 50
MOST_TOKENS = 40


def with_openai(url: str, key: str, question: str) -> str:
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key=key, max_retries=1)
    messages = [{"role": "user", "content": question}]
    answer = client.chat.completions.create(model="m", messages=messages, max_tokens=MOST_TOKENS)
    return answer.choices[0].message.content or ""


def with_langgraph(url: str, key: str, question: str) -> str:
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph

    model = ChatOpenAI(model="m", base_url=url, api_key=key, max_retries=1, max_tokens=MOST_TOKENS)
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    said = graph.compile().invoke({"messages": [("user", question)]})
    return said["messages"][-1].text


def with_pydantic_ai(url: str, key: str, question: str) -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key=key))
    return Agent(model, model_settings={"max_tokens": MOST_TOKENS}).run_sync(question).output


FRAMEWORKS = {"openai": with_openai, "langgraph": with_langgraph, "pydantic-ai": with_pydantic_ai}


def attempt(gateway: httpx.Client, ask, url: str, task: int) -> float | None:
    """One attempt; None once the gateway has ended."""
    try:
        opened = gateway.post("/attempts", json={"task": f"order-{task}"}).raise_for_status().json()
        text = ask(f"{url}/v1", opened["token"], f"Where is order {task}?")
        reward = max(0.0, 1 - len(text) / WORTH_NOTHING)
        closed = gateway.post(f"/attempts/{opened['id']}/close", json={"reward": reward})
        return closed.raise_for_status().json()["reward"]
    except Exception as error:  # noqa: BLE001 - the gateway ends in the middle of attempts
        print(type(error).__name__, str(error)[:100], file=sys.stderr)
        return None


def main(url: str, framework: str = "openai") -> None:
    ask = FRAMEWORKS[framework]
    rewards: list[float] = []
    with httpx.Client(base_url=url, timeout=120) as gateway, ThreadPoolExecutor(16) as pool:
        for task in count():
            group = list(pool.map(lambda _: attempt(gateway, ask, url, task), range(GROUP)))
            rewards += [reward for reward in group if reward is not None]
            if None in group:
                break
    first, last = mean(rewards[:32]), mean(rewards[-32:])
    print(f"{framework}: {len(rewards)} attempts; mean reward {first:.3f} at first, {last:.3f} at last")
    assert last > first, "it did not learn"


if __name__ == "__main__":
    main(*sys.argv[1:])
