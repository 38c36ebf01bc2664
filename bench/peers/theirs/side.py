"""What every program of this folder shares: the work comes on standard input, the figures go out."""
import json
import resource
import sys
import time
from importlib import metadata


def read_work():
    return json.load(sys.stdin)


def print_figures(package, **figures):
    """A checkout is no package and has no version: its name is empty."""
    version = metadata.version(package) if package else ""
    print(json.dumps({"figures": figures, "version": version}))


def most_resident():
    """Kilobytes that were resident at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Meter:
    """Measures rollouts from when it is made until it prints; what it grew by, from `kilobytes` on."""

    def __init__(self, kilobytes=None):
        self.kilobytes = most_resident() if kilobytes is None else kilobytes
        self.cpu, self.start = time.process_time(), time.perf_counter()

    def print(self, package, work):
        seconds, cpu = time.perf_counter() - self.start, time.process_time() - self.cpu
        grown = most_resident() - self.kilobytes
        turns = work["rollouts"] * work["turns"]
        print_figures(
            package,
            turnsPerSecond=turns / seconds,
            cpuMicrosecondsPerTurn=cpu / turns * 1e6,
            kilobytesPerRollout=grown / work["concurrency"],
        )


def megabytes_per_second(encode, documents):
    """How fast texts become tokens, by the clock."""
    size = sum(len(text.encode()) for text in documents)
    start = time.perf_counter()
    for text in documents:
        encode(text)
    return size / (time.perf_counter() - start) / 1e6


def cannot_run(reason):
    print(reason, file=sys.stderr)
    sys.exit(3)


def microseconds(call, least_seconds=1.0):
    """Processor time of one call, over as many as fill the time after a warm-up."""
    for _ in range(20):
        call()
    count, start = 0, time.process_time()
    while time.process_time() - start < least_seconds:
        for _ in range(5):
            call()
        count += 5
    return (time.process_time() - start) / count * 1e6
