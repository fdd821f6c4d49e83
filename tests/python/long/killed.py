"""A sweep of 200 points in a Ray cluster; a worker is killed midway: the same rows as in memory."""

import os
import pathlib
import signal
import tempfile
import threading
import time

import farlane
from cluster import cluster

PLANS = pathlib.Path(__file__).parents[3] / "plans"
VALUES = {"link.propagation": [f"{ns}ns" for ns in range(20, 4020, 20)]}


def workers() -> list[int]:
    """Return the processes that run tasks now."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::task"):
            found.append(int(process.name))
    return found


def kill(folder: str, killed: list[int]) -> None:
    """Kill a worker when 20 points are finished."""
    points = pathlib.Path(folder) / "points"
    while len(list(points.glob("*.parquet"))) < 20 or not workers():
        time.sleep(0.01)
    os.kill(workers()[0], signal.SIGKILL)
    killed.append(len(list(points.glob("*.parquet"))))


def main() -> None:
    plan = farlane.load(PLANS / "zonal-vehicle.toml")
    memory = plan.sweep(VALUES, runs=2)
    with cluster() as address, tempfile.TemporaryDirectory() as folder:
        killed: list[int] = []
        killer = threading.Thread(target=kill, args=(folder, killed), daemon=True)
        killer.start()
        found = plan.sweep(VALUES, runs=2, folder=folder, engine=f"ray,address={address}")
        assert killed and killed[0] < 200, "the worker was killed midway"
        assert found.results.to_arrow() == memory.results.to_arrow(), "the same rows"
        assert found.document == memory.document, "the same document"
        print(f"ray: 200 points, a worker killed after {killed[0]}: equal to a sweep in memory")


if __name__ == "__main__":
    main()
