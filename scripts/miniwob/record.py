"""Plays pages of MiniWoB++ in BrowserGym, which has them for Playwright, and prints what came of it as JSON lines.

    pip install miniwob browsergym-miniwob
    python scripts/miniwob/record.py CHROMIUM > test/fixtures/miniwob.jsonl

CHROMIUM is the program of a browser. `npx tsx scripts/miniwob/compare.ts ROOT` plays the same actions here.
"""

import json
import os
import re
import sys

import miniwob

root = os.path.join(os.path.dirname(miniwob.__file__), "html", "miniwob")
os.environ["MINIWOB_URL"] = f"file://{root}/"

import browsergym.miniwob  # noqa: E402, F401
import gymnasium  # noqa: E402
import playwright.sync_api  # noqa: E402

launch = playwright.sync_api.BrowserType.launch


def launched(self, **options):
    """Its window for chats opens a browser too, and cannot be told which."""
    return launch(self, **{**options, "executable_path": sys.argv[1]})


playwright.sync_api.BrowserType.launch = launched


def click(role, name, nth=0):
    return {"tool": "click", "role": role, "name": name, "nth": nth}


def fill(text, nth=0):
    return {"tool": "type", "role": "textbox", "name": None, "nth": nth, "text": text}


def quoted(goal):
    return re.findall(r'"([^"]+)"', goal)


def selected(goal):
    names = re.match(r"Select (.*) and click Submit", goal)[1]
    return [] if names == "nothing" else names.split(", ")


submit = click("button", "Submit")

# For each page: what does it right, and what does not, from what is asked for.
players = {
    "click-button": lambda goal: ([click("button", quoted(goal)[0])], [click("button", None)]),
    "click-test": lambda goal: ([click("button", "Click Me!")], []),
    "click-test-2": lambda goal: ([click("button", "ONE")], [click("button", "TWO")]),
    "click-button-sequence": lambda goal: (
        [click("button", "ONE"), click("button", "TWO")],
        [click("button", "TWO"), click("button", "ONE")],
    ),
    "click-checkboxes": lambda goal: (
        [*(click("checkbox", name) for name in selected(goal)), submit],
        [click("checkbox", None), submit],
    ),
    "click-option": lambda goal: (
        [click("radio", re.match(r"Select (.*) and click Submit", goal)[1]), submit],
        [submit],
    ),
    "choose-list": lambda goal: (
        [{"tool": "select", "role": "combobox", "name": None, "nth": 0,
          "text": re.match(r"Select (.*) from the list", goal)[1]}, submit],
        [submit],
    ),
    "enter-text": lambda goal: ([fill(quoted(goal)[0]), submit], [fill("no"), submit]),
    "enter-text-dynamic": lambda goal: ([fill(quoted(goal)[0]), submit], [submit]),
    "enter-password": lambda goal: (
        [fill(quoted(goal)[0]), fill(quoted(goal)[0], 1), submit],
        [fill(quoted(goal)[0]), fill("no", 1), submit],
    ),
    "login-user": lambda goal: (
        [fill(quoted(goal)[0]), fill(quoted(goal)[1], 1), click("button", "Login")],
        [fill(quoted(goal)[1]), fill(quoted(goal)[0], 1), click("button", "Login")],
    ),
    "focus-text": lambda goal: ([click("textbox", None)], []),
    "focus-text-2": lambda goal: (
        [click("textbox", None, int(re.search(r"(\d)", goal)[1]) - 1)],
        [click("textbox", None, int(re.search(r"(\d)", goal)[1]) % 3)],
    ),
}


def step(env, action):
    """Does an action by BrowserGym's own means; gives how the episode stands."""
    page = env.unwrapped.page
    name = {} if action["name"] is None else {"name": action["name"], "exact": True}
    element = page.get_by_role(action["role"], **name).nth(action["nth"])
    bid = element.get_attribute("bid")
    text = json.dumps(action.get("text"))
    verb = {"click": f"click('{bid}')", "type": f"fill('{bid}', {text})",
            "select": f"select_option('{bid}', {text})"}[action["tool"]]
    _, reward, ended, _, info = env.step(verb)
    told = info["task_info"]
    return {"done": ended, "reward": told["RAW_REWARD_GLOBAL"], "reason": told["REWARD_REASON"],
            "score": reward}


def play(page_name, seed, which):
    env = gymnasium.make(f"browsergym/miniwob.{page_name}")
    observation, _ = env.reset(seed=seed)
    goal = observation["goal"]
    actions = players[page_name](goal)[which]
    import numpy
    drawn = int(numpy.random.RandomState(seed).randint(0, 1000000))
    steps = [{**action, **step(env.unwrapped, action)} for action in actions]
    env.close()
    return {"page": page_name, "seed": drawn, "goal": goal, "steps": steps}


for page_name in players:
    for seed in (1, 2, 3):
        for which in (0, 1):
            played = play(page_name, seed, which)
            if played["steps"]:
                print(json.dumps(played), flush=True)
