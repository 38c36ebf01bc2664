"""Runs a fleet on a Ray cluster of three nodes on this machine, kills workers and nodes, and compares the rows.

    pip install 'ray[default]' pyarrow
    npm run build && python integrations/python/test_ray.py
"""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import ray
from ray.cluster_utils import Cluster

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import espalier_ray

root = pathlib.Path(__file__).resolve().parents[2]
main = str(root / "dist/cli/main.js")
rolling = ["roll", "--policy", "embedded", "--environment", "calculator", "--group", "4", "--seed", "5"]
tasks = ["--tasks", os.environ.get("TASKS", "400")]


def digest(folder, run):
    """What the rows of a run are, whatever the run is called."""
    file = folder / f"{run.replace('/', '-')}.jsonl"
    export = ["node", main, "export", run, "--to", "jsonl", "--out", str(file)]
    subprocess.run(export, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    names = [row["trajectory"] + "/" + str(row["row"]) for row in rows]
    assert len(names) == len(set(names)), "a row came twice"
    text = "".join(json.dumps({**row, "run": ""}, sort_keys=True) for row in rows)
    return len(rows), hashlib.sha256(text.encode()).hexdigest()


def journal(folder, run):
    path = folder / run / "journal.frames"
    return path.stat().st_size if path.exists() else 0


def disturb(cluster, fleet, folder, nodes, done):
    """Kills a worker's process, an actor and a node, each after more was written; a node comes in its place."""
    def wait_for_more(size):
        goal = journal(folder, "runs/fleet") + size
        while journal(folder, "runs/fleet") < goal and not done.is_set():
            time.sleep(0.05)

    wait_for_more(20_000)
    first, second, *_ = list(fleet.workers.values())
    os.kill(ray.get(first.pid.remote()), signal.SIGKILL)
    print("killed a worker's process", flush=True)
    wait_for_more(20_000)
    ray.kill(second, no_restart=False)
    print("killed an actor", flush=True)
    wait_for_more(20_000)
    cluster.remove_node(nodes[-1])
    print("removed a node", flush=True)
    cluster.add_node(num_cpus=2)
    print("added a node", flush=True)


def run():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-ray-test-"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    nodes = [cluster.add_node(num_cpus=2) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=True)
    done = threading.Event()
    with espalier_ray.Fleet(folder=folder, main=main, concurrency=8, grace=2, lease=5, look_seconds=1) as fleet:
        def roll():
            try:
                fleet.run(*rolling, *tasks, "--out", "runs/fleet")
            finally:
                done.set()

        thread = threading.Thread(target=roll)
        thread.start()
        disturb(cluster, fleet, folder, nodes, done)
        thread.join()
        table = ray.get(fleet.rows("runs/fleet"))
        counted = fleet.dataset("runs/fleet").count()
    subprocess.run(["node", main, *rolling, *tasks, "--out", "runs/one"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    many, one = digest(folder, "runs/fleet"), digest(folder, "runs/one")
    print(f"fleet {many[0]} rows {many[1][:12]}, one process {one[0]} rows {one[1][:12]}")
    assert many == one, "the rows differ"
    assert table.num_rows == counted == many[0], "Arrow has other rows"
    print("rows equal, none twice")
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    run()
