"""An agent in Python that learns through a gateway, with OpenAI's client and nothing of Espalier.

    pip install openai
    npx espalier train --gateway --policy embedded --group 8 --tasks-per-step 4 --steps 12 --out runs/python-agent &
    python test/python/gateway_learn.py http://127.0.0.1:8700

The agent asks for its answer and is worth more the shorter that is. Prints the mean reward of the first
and the last thirty-two attempts, and fails unless the last are worth more.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from statistics import mean

import httpx
from openai import OpenAI

GROUP = 8
WORTH_NOTHING = 50


def attempt(gateway: httpx.Client, url: str, task: int) -> float | None:
    """One attempt; None once the gateway has ended."""
    try:
        opened = gateway.post("/attempts", json={"task": f"order-{task}"}).raise_for_status().json()
        client = OpenAI(base_url=f"{url}/v1", api_key=opened["token"], max_retries=1)
        answer = client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": f"Where is order {task}?"}],
            max_tokens=40,
        )
        text = answer.choices[0].message.content or ""
        reward = max(0.0, 1 - len(text) / WORTH_NOTHING)
        closed = gateway.post(f"/attempts/{opened['id']}/close", json={"reward": reward})
        return closed.raise_for_status().json()["reward"]
    except (httpx.HTTPError, Exception) as error:  # noqa: BLE001 - the gateway ends in the middle of attempts
        print(type(error).__name__, str(error)[:100], file=sys.stderr)
        return None


def main(url: str) -> None:
    rewards: list[float] = []
    with httpx.Client(base_url=url, timeout=120) as gateway, ThreadPoolExecutor(16) as pool:
        for task in count():
            group = list(pool.map(lambda _: attempt(gateway, url, task), range(GROUP)))
            rewards += [reward for reward in group if reward is not None]
            if None in group:
                break
    first, last = mean(rewards[:32]), mean(rewards[-32:])
    print(f"{len(rewards)} attempts; mean reward {first:.3f} at first, {last:.3f} at last")
    assert last > first, "it did not learn"


if __name__ == "__main__":
    main(sys.argv[1])
