"""Environments of an OpenEnv checkout, with room for several sessions: real_games.py NAME PORT; `envs` is in PYTHONPATH."""

import importlib
import sys

import uvicorn
from openenv.core.env_server import create_app

# What OpenEnv's folders call their parts: module of the environment, its class, and the beginning of its models' names.
GAMES = {
    "grid_world_env": ("grid_world_environment", "GridWorldEnvironment", "GridWorld"),
    "maze_env": ("maze_env_environment", "MazeEnvironment", "Maze"),
    "connect4_env": ("connect4_environment", "Connect4Environment", "Connect4"),
}


def app_of(name: str):
    module, game, models = GAMES[name]
    given = importlib.import_module(f"{name}.models")
    base = getattr(importlib.import_module(f"{name}.server.{module}"), game)
    # A world keeps all it knows in itself, and not every one says so.
    roomy = type(game, (base,), {"SUPPORTS_CONCURRENT_SESSIONS": True})
    action, observation = getattr(given, f"{models}Action"), getattr(given, f"{models}Observation")
    return create_app(roomy, action, observation, env_name=name, max_concurrent_envs=8)


if __name__ == "__main__":
    uvicorn.run(app_of(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
