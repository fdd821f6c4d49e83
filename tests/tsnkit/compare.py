#!/usr/bin/env python3
"""Compares the scheduler of periodic streams with the solver-free methods of tsnkit 0.3.0.

Generates instances with tsnkit's generator, runs each method on each with the same limit of time,
checks every schedule, and prints a table (Markdown). Needs a Python with `pip install tsnkit==0.3.0`
and the example of the crate planning:

    cargo build --package farlane-planning --example tsnkit
    PYTHON tests/tsnkit/compare.py target/debug/examples/tsnkit FOLDER [--time 10] [--simulate]
"""

import argparse
import csv
import heapq
import math
import os
import resource
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

METHODS = ["ls", "ls_tb", "ls_pl", "dt"]
TOPOLOGIES = ["line", "ring", "tree", "mesh"]
# Streams, options of period, size and deadline of tsnkit/data/dataset_spec.py.
SETS = [
    (20, 3, 3, 2),
    (40, 4, 3, 2),
    (60, 6, 2, 4),
    (80, 3, 3, 5),
    (80, 3, 4, 2),
    (120, 3, 4, 1),
    (120, 4, 2, 3),
]
BRIDGES = 8
SEEDS = [1, 2]


def generate(folder):
    """Writes all instances. Returns their names."""
    import numpy
    from tsnkit.data.generator import DatasetGenerator

    names = []
    for streams, period, size, deadline in SETS:
        for topology, kind in enumerate(TOPOLOGIES):
            for seed in SEEDS:
                name = f"{kind}-{streams}-{period}{size}{deadline}-{seed}"
                numpy.random.seed(seed)
                generator = DatasetGenerator(
                    1, streams, BRIDGES, period, size, deadline, topology
                )
                generator.run(f"{folder}/{name}-")
                for part in ["topo", "task"]:
                    (folder / f"{name}-1_{part}.csv").rename(folder / f"{name}_{part}.csv")
                names.append(name)
    return names


def read(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def link(text):
    a, b = text.strip("()").split(",")
    return int(a), int(b)


def violation(folder, name, output):
    """Plays a schedule frame by frame: queues in order of arrival, one frame at a time through an
    open window in which it fits. Returns why it is wrong, or None."""
    tasks = {int(row["stream"]): row for row in read(folder / f"{name}_task.csv")}
    delay = {link(row["link"]): int(row["t_proc"]) for row in read(folder / f"{name}_topo.csv")}
    windows, cycle = defaultdict(list), 0
    for row in read(f"{output}-GCL.csv"):
        windows[link(row["link"]), int(row["queue"])].append((int(row["start"]), int(row["end"])))
        cycle = max(cycle, int(row["cycle"]))
    lines = defaultdict(list)
    for (at, _), spans in windows.items():
        spans.sort()
        for start, end in spans:
            lines[at].append((start % cycle, start % cycle + end - start))
    for at, spans in lines.items():
        spans.sort()
        spans.append((spans[0][0] + cycle, 0))
        if any(one[1] > two[0] for one, two in zip(spans, spans[1:])):
            return f"two windows at once at {at}"
    route = defaultdict(dict)
    for row in read(f"{output}-ROUTE.csv"):
        a, b = link(row["link"])
        route[int(row["stream"])][a] = b
    queue = {
        (int(row["stream"]), link(row["link"])): int(row["queue"])
        for row in read(f"{output}-QUEUE.csv")
    }
    offsets = {int(row["stream"]): int(row["offset"]) for row in read(f"{output}-OFFSET.csv")}
    events = []
    for stream, task in tasks.items():
        if stream not in offsets:
            return f"stream {stream} has no offset"
        period = int(task["period"])
        for frame in range(2 * cycle // period):
            release = offsets[stream] + frame * period
            heapq.heappush(events, (release, stream, frame, int(task["src"]), release))
    last = defaultdict(int)
    while events:
        arrival, stream, frame, node, release = heapq.heappop(events)
        task = tasks[stream]
        if node == int(task["dst"].strip("[]")):
            continue
        at = (node, route[stream].get(node))
        spans = windows.get((at, queue.get((stream, at))))
        if not spans:
            return f"stream {stream} has no window at {at}"
        # Sizes are multiples of 100 bytes and rates 1 Gb/s, so that slots round nothing.
        duration = int(task["size"]) * 8
        earliest = max(arrival, last[at, queue[stream, at]])
        start = begin(spans, cycle, earliest, duration)
        if start is None:
            return f"stream {stream} never fits at {at}"
        last[at, queue[stream, at]] = start + duration
        end = start + duration
        if end - release > int(task["deadline"]):
            return f"stream {stream} is late at {at}: {end - release} ns"
        heapq.heappush(events, (end + delay[at], stream, frame, at[1], release))
    return None


def begin(spans, cycle, earliest, duration):
    """The first time from `earliest` on at which a frame fits into a window."""
    whole = earliest // cycle * cycle
    for turn in [whole - cycle, whole, whole + cycle]:
        for start, end in spans:
            at = max(earliest, start + turn)
            if at + duration <= end + turn:
                return at
    return None


def run(command, limit):
    """Runs a command with a limit of processor time, so that other load does not count. Returns its
    output, and the seconds it took."""

    def bound():
        seconds = math.ceil(limit)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    done = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=bound, env=environment
    )
    return done.stdout, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("example", help="the example tsnkit of the crate planning")
    parser.add_argument("folder", type=Path, help="for instances and schedules")
    parser.add_argument("--time", type=float, default=10, help="seconds per instance and method")
    parser.add_argument("--only", default="", help="only instances whose name begins like this")
    parser.add_argument(
        "--simulate", action="store_true", help="also run tsnkit's simulator on our schedules"
    )
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in generate(args.folder) if name.startswith(args.only)]
    _, startup = run([sys.executable, "-c", "import tsnkit.algorithms.ls"], 600)
    rows = []
    for name in names:
        files = [str(args.folder / f"{name}_{part}.csv") for part in ["topo", "task"]]
        streams = len(read(files[1]))
        for method in ["farlane", *METHODS]:
            output = f"{args.folder}/{name}-{method}"
            if method == "farlane":
                text, _ = run([args.example, *files, str(args.time), output], args.time + 10)
                claimed, placed, _, load, took = text.split()
                claimed, placed, took = claimed == "succ", int(placed), float(took)
            else:
                module = f"tsnkit.algorithms.{method}"
                command = [sys.executable, "-m", module, files[1], files[0]]
                command += [f"{args.folder}/", "1", f"{name}-{method}"]
                text, _ = run(command, args.time + startup)
                claimed = "| succ" in text
                # The fourth column of the last line is the time of solving.
                last = (text.splitlines() or [""])[-1].split("|")
                took = float(last[4]) if len(last) > 4 and "solve" not in last[4] else args.time
                placed = streams if claimed else 0
            why = violation(args.folder, name, output) if claimed else "no schedule"
            if why is None and method == "farlane" and args.simulate:
                why = simulated(files[1], output, args.folder, name)
            rows.append((name, method, claimed, why is None, placed, int(load), took))
            print(*rows[-1], why or "", sep=",", flush=True)
    print(table(rows))


def simulated(task, output, folder, name):
    """The verdict of tsnkit's simulator, as in test/debug/_common.py."""
    from tsnkit.simulation.tas import simulation

    log = simulation(task, output, it=2, draw_results=False, disable_pbar=True)
    deadlines = [int(row["deadline"]) for row in read(task)]
    late = [
        stream
        for stream, (sent, received) in enumerate(log)
        if not received or max(b - a for a, b in zip(sent, received)) > deadlines[stream]
    ]
    return f"simulated: streams {late} late" if late else None


def table(rows):
    """The table by set and method."""
    text = "| streams, period, size, deadline | busiest line | " + " | ".join(
        ["farlane", *METHODS]
    )
    text += " |\n" + "| --- " * (3 + len(METHODS)) + "|\n"
    sets = defaultdict(lambda: defaultdict(list))
    for row in rows:
        sets[row[0].split("-", 1)[1].rsplit("-", 1)[0]][row[1]].append(row)
    for row in rows:
        sets["all"][row[1]].append(row)
    for kind, methods in sets.items():
        loads = [row[5] for row in methods["farlane"]]
        text += f"| {kind} | {min(loads)} to {max(loads)} % |"
        for method in ["farlane", *METHODS]:
            own = methods[method]
            good = sum(row[3] for row in own)
            wrong = sum(row[2] and not row[3] for row in own)
            streams = sum(row[4] for row in own if row[3] or not row[2])
            middle = statistics.median(row[6] for row in own)
            text += f" {good}/{len(own)}" + (f" (+{wrong} wrong)" if wrong else "")
            text += f", {streams} streams, {middle:.2f} s |"
        text += "\n"
    return text


if __name__ == "__main__":
    main()
