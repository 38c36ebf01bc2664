"""OpenEnv's grid world with room for many sessions; `envs` of an OpenEnv checkout has to be in PYTHONPATH."""

import sys

import uvicorn
from grid_world_env.models import GridWorldAction, GridWorldObservation
from grid_world_env.server.grid_world_environment import GridWorldEnvironment
from openenv.core.env_server import create_app


class Grid(GridWorldEnvironment):
    # A world keeps all its state in itself, so sessions may run side by side; the class does not declare that.
    SUPPORTS_CONCURRENT_SESSIONS = True


app = create_app(Grid, GridWorldAction, GridWorldObservation, env_name="grid_world_env", max_concurrent_envs=64)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
