"""Statistics over seeds and points; needs ``pip install farlane[stats]``.

A measure is a column of the table ``results``, such as ``p99_ns``, of the host or stream ``name``;
without ``name``, of the only one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from farlane.plan import Plan
from farlane.results import Result, Sweep


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval (Student's t, for independent values)."""

    mean: float
    low: float
    high: float
    n: int
    confidence: float

    @property
    def half_width(self) -> float:
        """Half of the width of the interval."""
        return (self.high - self.low) / 2


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean of at least two values with its confidence interval.

    >>> interval([10.0, 12.0, 14.0])
    Interval(mean=12.0, low=7.03..., high=16.96..., n=3, confidence=0.95)
    """
    n = len(values)
    if n < 2:
        raise ValueError(f"{n} values: an interval needs at least 2")
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half, n, confidence)


def by_seed(result: Result, column: str, name: str | None = None) -> dict[int, float]:
    """Return a measure of each seed of a run with ``runs``."""
    return {row["seed"]: float(row[column]) for row in _rows(result, column, name)}


def _rows(result: Result | Sweep, column: str, name: str | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result.results.to_arrow().to_pylist()
    names = sorted({row["name"] for row in rows})
    if name is None and len(names) > 1:
        raise ValueError(f"several hosts and streams, name one of {', '.join(names)}")
    rows = [row for row in rows if name is None or row["name"] == name]
    if not rows:
        raise ValueError(f"no host or stream '{name}': there are {', '.join(names)}")
    if column not in rows[0]:
        raise ValueError(f"no column '{column}': there are {', '.join(rows[0])}")
    return rows


@dataclass(frozen=True)
class Comparison:
    """Two plans with the same seeds."""

    first: Interval
    second: Interval
    difference: Interval
    """Of the second less the first, seed by seed."""

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference excludes zero."""
        return self.difference.low > 0 or self.difference.high < 0


def compare(
    first: Plan,
    second: Plan,
    column: str,
    *,
    name: str | None = None,
    runs: int = 10,
    seed: int = 1,
    confidence: float = 0.95,
) -> Comparison:
    """Compare two plans seed by seed: the same seed gives both the same random numbers.

    The paired difference has a narrower interval than the two means have apart.
    """
    both = [by_seed(plan.run(seed=seed, runs=runs), column, name) for plan in (first, second)]
    differences = [both[1][seed] - value for seed, value in both[0].items()]
    means = [interval(list(values.values()), confidence) for values in both]
    return Comparison(means[0], means[1], interval(differences, confidence))


def until(
    plan: Plan,
    column: str,
    *,
    name: str | None = None,
    precision: float = 0.05,
    confidence: float = 0.95,
    least: int = 10,
    most: int = 1000,
    seed: int = 1,
) -> Interval:
    """Run further seeds until the mean is known to ``precision``, a share of the mean.

    See ``sequential``.
    """

    def sample(first: int, count: int) -> list[float]:
        result = plan.run(seed=seed + first, runs=count)
        return list(by_seed(result, column, name).values())

    return sequential(sample, precision, confidence, least, most)


def sequential(
    sample: Callable[[int, int], Sequence[float]],
    precision: float = 0.05,
    confidence: float = 0.95,
    least: int = 10,
    most: int = 1000,
) -> Interval:
    """Take values until the interval is narrow: at least ``least``, at most ``most``.

    ``sample(first, count)`` returns values by number. The half-width is then at most
    ``precision / (1 + precision)`` of the mean, so that the mean differs from the true one by at
    most ``precision`` of the latter (A. M. Law and W. D. Kelton, "Simulation Modeling and
    Analysis", 3rd edition, 9.4.1). Few values understate the width: ``least`` must not be small.
    """
    if not 2 <= least <= most:
        raise ValueError(f"least={least}, most={most}: expected 2 <= least <= most")
    values: list[float] = []
    while True:
        # A tenth more at each look.
        count = least if not values else max(1, len(values) // 10)
        values += sample(len(values), min(count, most - len(values)))
        known = interval(values, confidence)
        is_narrow = known.half_width <= abs(known.mean) * precision / (1 + precision)
        if is_narrow or len(values) >= most:
            return known


Range = tuple[float, float] | tuple[float, float, str]
"""Least and largest value of a key, and their unit. Whole numbers without a unit stay whole."""


def sensitivity(
    plan: Plan,
    ranges: Mapping[str, Range],
    column: str,
    *,
    name: str | None = None,
    method: str = "morris",
    n: int = 16,
    seed: int = 1,
    **sweep: Any,
) -> dict[str, dict[str, float]]:
    """Return how much each key changes a measure, with SALib.

    ``method`` is ``morris`` (``n`` trajectories; ``mu_star``, its confidence, ``sigma``) or
    ``sobol`` (``n`` a power of 2; first-order index ``S1``, total index ``ST``, their
    confidences). Further arguments are those of ``Plan.sweep``, such as ``folder`` and ``engine``.
    """
    from SALib.analyze import morris as morris_analysis
    from SALib.analyze import sobol as sobol_analysis
    from SALib.sample import morris, sobol

    bounds = [list(own[:2]) for own in ranges.values()]
    problem = {"num_vars": len(ranges), "names": list(ranges), "bounds": bounds}
    if method == "morris":
        samples = morris.sample(problem, n, seed=seed)
    elif method == "sobol":
        samples = sobol.sample(problem, n, calc_second_order=False, seed=seed)
    else:
        raise ValueError(f"method '{method}': expected morris or sobol")
    points = [
        {key: _value(own, float(value)) for (key, own), value in zip(ranges.items(), row)}
        for row in samples
    ]
    distinct = [dict(point) for point in dict.fromkeys(tuple(one.items()) for one in points)]
    result = plan.sweep(distinct, seed=seed, **sweep)
    if failed := result.failed:
        raise ValueError(f"{len(failed)} points failed, first {failed[0]}")
    found = {row["set"]: float(row[column]) for row in _rows(result, column, name)}
    import numpy

    measured = numpy.array([found[_words(point)] for point in points])
    if method == "morris":
        # What whole numbers and units really were.
        analysed = morris_analysis.analyze(problem, samples, measured, seed=seed)
        columns = ["mu_star", "mu_star_conf", "sigma"]
    else:
        analysed = sobol_analysis.analyze(problem, measured, calc_second_order=False, seed=seed)
        columns = ["S1", "S1_conf", "ST", "ST_conf"]
    return {
        key: {column: float(analysed[column][at]) for column in columns}
        for at, key in enumerate(ranges)
    }


def _value(own: Range, value: float) -> str:
    if len(own) == 3:
        return f"{value:.6g}{own[2]}"
    is_whole = isinstance(own[0], int) and isinstance(own[1], int)
    return str(round(value)) if is_whole else f"{value:.6g}"


def _words(point: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in point.items())
