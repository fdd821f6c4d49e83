"""Run the points of a sweep's folder as tasks of Ray.

``farlane sim --points DIR --engine ray`` and ``Plan.sweep`` start it:
``python -m farlane.ray_engine DIR``. Ray runs the task of a lost worker again; it then leaves out
the points that were finished.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from farlane import _farlane
from farlane.errors import SimulationError
from farlane.work import arguments

#: Tasks for each processor. More tasks balance better, fewer cost less.
TASKS = 50
#: Times that the task of a lost worker runs again.
RETRIES = 5


def parts(missing: list[int], processors: int) -> list[list[int]]:
    """Return the points of each task.

    >>> parts([0, 1, 2, 4], 1)
    [[0], [1], [2], [4]]
    >>> [len(part) for part in parts(list(range(1000)), 2)][:3]
    [10, 10, 10]
    """
    size = -(-len(missing) // (TASKS * processors))
    return [missing[at : at + size] for at in range(0, len(missing), size)]


def run(ray: Any, folder: str, timeout: str | None) -> None:
    """Run all missing points in the cluster to which ``ray`` is connected."""

    @ray.remote(num_cpus=1, max_retries=RETRIES)  # type: ignore[untyped-decorator]
    def task(points: str) -> None:
        _farlane.work(folder, points, timeout)

    processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting = {
        task.remote(",".join(map(str, part))): part
        for part in parts(_farlane.missing(folder), processors)
    }
    try:
        while waiting:
            done, _ = ray.wait(list(waiting))
            for one in done:
                part = waiting.pop(one)
                try:
                    ray.get(one)
                except ray.exceptions.RayTaskError as error:
                    raise error.as_instanceof_cause() from None
                except ray.exceptions.RayError as error:
                    why = f"its worker was lost {RETRIES + 1} times: {type(error).__name__}"
                    _farlane.fail(folder, part, why)
    except BaseException:
        for one in waiting:
            ray.cancel(one)
        raise


def main() -> None:
    """Run the command."""
    parser = arguments("farlane.ray_engine", __doc__)
    parser.add_argument("--address", metavar="HOST:PORT", help="address of the cluster")
    options = parser.parse_args()
    try:
        import ray
    except ModuleNotFoundError as error:
        sys.exit(str(error))
    # The caller stops the sweep by this signal, which programs in the background ignore.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(address=options.address or "auto", **quiet)
    except ConnectionError as error:
        if options.address:
            sys.exit(f"{options.address}: {error}")
        ray.init(include_dashboard=False, **quiet)
    try:
        run(ray, options.folder, options.point_timeout)
    except (SimulationError, ValueError) as error:
        sys.exit(f"farlane: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
