"""OpenEnv's maze with room for many sessions; `envs` of an OpenEnv checkout has to be in PYTHONPATH."""

import sys

import uvicorn
from maze_env.models import MazeAction, MazeObservation
from maze_env.server.maze_env_environment import MazeEnvironment
from openenv.core.env_server.http_server import create_app


class Maze(MazeEnvironment):
    """The maze as it is; JSON has no tuples, and the maze knows its cells only as such."""

    def reset(self, seed=None, start_cell=None, episode_id=None, **_):
        return super().reset(seed=seed, start_cell=start_cell and tuple(start_cell))


app = create_app(Maze, MazeAction, MazeObservation, env_name="maze_env", max_concurrent_envs=64)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
