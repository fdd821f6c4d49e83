"""What engines cost: time of a sweep on two processors beyond the time of its points."""

import pathlib
import tempfile
import time

import farlane
import pyarrow.parquet
from cluster import cluster

PLANS = pathlib.Path(__file__).parents[3] / "plans"
PROCESSORS = 2


def seconds(folder: str) -> list[float]:
    """Return the durations of all points."""
    files = (pathlib.Path(folder) / "points").glob("*.parquet")
    found = [pyarrow.parquet.read_metadata(file).metadata for file in files]
    return [float(one[b"farlane.seconds"]) for one in found]


def row(engine: str, plan: farlane.Plan, count: int, runs: int) -> None:
    """Run a sweep and print a row of the table."""
    values = {"link.propagation": [f"{10 + number}ns" for number in range(count)]}
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        plan.sweep(values, runs=runs, folder=folder, engine=engine)
        took = time.monotonic() - begin
        own = seconds(folder)
    assert len(own) == count
    ideal = sum(own) / PROCESSORS
    name = engine.partition(",")[0]
    each = sum(own) / count
    print(
        f"| {name} | {count} | {each:.3f} | {took:.1f} | {100 * (took - ideal) / ideal:.1f} % "
        f"| {1000 * PROCESSORS * (took - ideal) / count:.1f} |",
        flush=True,
    )


def main() -> None:
    short = farlane.parse('[workload]\nrw = "read"\nsize = "64KiB"\n')
    long = farlane.load(PLANS / "zonal-vehicle.toml")
    begin = time.monotonic()
    long.run()
    runs = max(1, round(1 / (time.monotonic() - begin)))
    print("| engine | points | s a point | s in all | beyond the points | ms a point |")
    print("| --- | --- | --- | --- | --- | --- |")
    with cluster() as address:
        for engine in ("local", f"ray,address={address}"):
            row(engine, long, 120, runs)
            row(engine, short, 10_000, 1)


if __name__ == "__main__":
    main()
