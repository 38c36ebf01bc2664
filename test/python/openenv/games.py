"""Small OpenEnv servers made with the real package, for ours to play: games.py NAME PORT [SESSIONS]."""

import random
import sys
from typing import Any, Optional

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State


class GuessAction(Action):
    guess: int


class GuessObservation(Observation):
    hint: str = ""


class Guess(Environment[GuessAction, GuessObservation, State]):
    """A number from 1 to 8 that the seed draws; has tasks of its own."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State(step_count=0)
        self._number = 1

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(name="guess", description="Find the number from 1 to 8.")

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None,
              split: Optional[str] = None, index: Optional[int] = None, **_: Any) -> GuessObservation:
        self._state = State(episode_id=episode_id, step_count=0)
        drawn = random.Random(f"{split}/{index}" if index is not None else seed)
        self._number = drawn.randint(1, 8)
        return GuessObservation(hint="guess")

    def step(self, action: GuessAction, timeout_s: Optional[float] = None, **_: Any) -> GuessObservation:
        self._state.step_count += 1
        if action.guess == 13:
            raise ValueError("nobody guesses 13")
        if action.guess == self._number:
            return GuessObservation(hint="right", reward=1.0, done=True, metadata={"n": self._state.step_count})
        hint = "higher" if action.guess < self._number else "lower"
        return GuessObservation(hint=hint, reward=-0.1)

    @property
    def state(self) -> State:
        return self._state

    def list_splits(self) -> list[str]:
        return ["train", "test"]

    def list_tasks(self, split: str) -> list[Any]:
        return [self.get_task(split, index) for index in range(self.num_tasks(split))]

    def num_tasks(self, split: str) -> int:
        return 20 if split == "train" else 5

    def get_task(self, split: str, index: int) -> Any:
        return {"id": f"{split}-{index}", "index": index}

    def get_task_range(self, split: str, start: Optional[int] = None, stop: Optional[int] = None) -> list[Any]:
        return self.list_tasks(split)[start:stop]


class Shelf(MCPEnvironment):
    """A tool world: three pears on a shelf, sold by tools; empty shelves are rewarded."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        server = FastMCP("shelf")
        self._left = 3
        self._state = State(step_count=0)

        @server.tool
        def count() -> int:
            """How many pears are left."""
            return self._left

        @server.tool
        def sell(pears: int) -> str:
            """Sells pears."""
            if pears > self._left:
                raise ValueError(f"only {self._left} left")
            self._left -= pears
            return f"{self._left} left"

        super().__init__(server)

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **_: Any) -> Observation:
        self._left = 3
        self._state = State(episode_id=episode_id, step_count=0)
        return Observation()

    def _step_impl(self, action: Action, timeout_s: Optional[float] = None, **_: Any) -> Observation:
        return Observation()

    async def step_async(self, action: Action, timeout_s: Optional[float] = None, **_: Any) -> Observation:
        observation = await super().step_async(action, timeout_s=timeout_s)
        if isinstance(action, CallToolAction):
            observation.reward = 1.0 if self._left == 0 else 0.0
            observation.done = self._left == 0
        return observation

    @property
    def state(self) -> State:
        return self._state


def app_of(name: str, sessions: int) -> Any:
    if name == "guess":
        return create_app(Guess, GuessAction, GuessObservation, env_name="guess", max_concurrent_envs=sessions)
    if name == "shelf":
        return create_app(Shelf, CallToolAction, CallToolObservation, env_name="shelf", max_concurrent_envs=sessions)
    raise SystemExit(f"no game {name}: guess, shelf")


if __name__ == "__main__":
    sessions = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    uvicorn.run(app_of(sys.argv[1], sessions), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
