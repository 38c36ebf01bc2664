"""How long verifiers takes to be imported, with what a rollout needs of it."""
import time

from side import cannot_run, print_figures

start = time.perf_counter()
try:
    import verifiers.v1  # noqa: F401
except ImportError as error:
    cannot_run(f"verifiers is not installed: {error}")
print_figures("verifiers", importMilliseconds=(time.perf_counter() - start) * 1000)
