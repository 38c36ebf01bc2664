"""How long trl takes to be imported, with what a rollout needs of it."""
import time

from side import cannot_run, print_figures

start = time.perf_counter()
try:
    from trl.experimental.async_grpo import async_rollout_worker  # noqa: F401
except ImportError as error:
    cannot_run(f"trl is not installed: {error}")
print_figures("trl", importMilliseconds=(time.perf_counter() - start) * 1000)
