"""Plans, and their runs."""

from __future__ import annotations

import itertools
import json
import operator
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from farlane import _farlane
from farlane._progress import Progress, shown
from farlane.errors import Interrupted
from farlane.results import Result, Sweep

Value = str | int | float | bool
"""The value of a key: a text as after ``--set``; True and False are ``on`` and ``off``."""


def load(path: str | os.PathLike[str], settings: Mapping[str, Value] | None = None) -> Plan:
    """Read a plan from a file, with other values of some keys.

    Raises PlanError for a mistake in the plan or in a setting, and OSError.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return parse(text, name=os.fspath(path), settings=settings)


def parse(
    text: str, name: str = "plan.toml", settings: Mapping[str, Value] | None = None
) -> Plan:
    """Parse the text of a plan.

    ``name`` is its name in errors. Files that the plan names are relative to the folder of
    ``name``.

    >>> parse('[link]\\nrate = "1Q"')
    Traceback (most recent call last):
    ...
    farlane.errors.PlanError: plan.toml:2:8: ...
    """
    return Plan(_farlane.Plan(text, name, _pairs(settings or {})))


class Plan:
    """A plan without mistakes. Made by ``load`` and ``parse``, never changed."""

    def __init__(self, native: _farlane.Plan) -> None:
        self._native = native

    @property
    def name(self) -> str:
        """The file, or the name given to ``parse``."""
        return self._native.name

    @property
    def text(self) -> str:
        """The text of the plan, with settings as comments."""
        return self._native.text

    def set(self, settings: Mapping[str, Value]) -> Plan:
        """Return the plan with other values of some keys, given by their dotted paths.

        >>> plan = parse('[workload]\\nrw = "read"\\nsize = "64KiB"')
        >>> print(plan.set({"link.rate": "10G", "drive.mps": 512}).text)
        [workload]
        rw = "read"
        size = "64KiB"
        # --set link.rate=10G
        # --set drive.mps=512
        """
        return Plan(self._native.set(_pairs(settings)))

    def run(
        self,
        *,
        seed: int | None = None,
        runs: int | None = None,
        phases: int | None = None,
        search: bool = False,
        frames: bool = False,
        progress: Progress = None,
    ) -> Result:
        """Simulate the plan. Arguments are the options of ``farlane sim``.

        ``frames`` adds a table of every arrival of a frame. ``progress`` is True for a line on
        standard error, or a callable that receives each state as a text.

        Raises Interrupted after Ctrl-C, and SimulationError if a simulation fails.
        """
        repetition = _repetition(seed, runs, phases, search)
        with shown(progress) as show:
            ended = self._native.run(repetition, frames, show)
        return _ended(Result(*ended[:2]), ended[2])

    def sweep(
        self,
        values: Mapping[str, Iterable[Value]] | Sequence[Mapping[str, Value]],
        *,
        seed: int | None = None,
        runs: int | None = None,
        phases: int | None = None,
        search: bool = False,
        folder: str | os.PathLike[str] | None = None,
        engine: str = "local",
        point_timeout: str | None = None,
        progress: Progress = None,
    ) -> Sweep:
        """Simulate every combination of the values of some keys, or a list of points.

        Keys joined by ``+`` have the same value. The last key varies fastest. Points are
        mappings of the same keys to a value each.

        Points that fail are in ``Sweep.failed``, with a warning.

        ``folder`` keeps the results of each point; a further call with the same arguments runs
        only the rest. ``engine`` is ``local``, ``ray`` or ``slurm`` with options, as after
        ``farlane sim --engine``. ``point_timeout``, such as ``30s``, limits the time of a point.

        >>> plan = parse('[workload]\\nrw = "read"\\nsize = "64KiB"')
        >>> sweep = plan.sweep({"link.rate": ["1G", "10G"], "drive.mps": [128, 512]})
        >>> [point["set"] for point in sweep.document["combinations"]][1]
        {'drive.mps': '512', 'link.rate': '1G'}
        >>> len(plan.sweep([{"link.rate": "1G"}, {"link.rate": "40G"}]).results)
        2
        """
        repetition = _repetition(seed, runs, phases, search)
        place: _farlane.Place | None = None
        if folder is not None:
            place = {
                "folder": folder,
                "engine": _ray(engine),
                "timeout": point_timeout,
                "worker": [sys.executable, "-m", "farlane.work"],
            }
        elif engine != "local" or point_timeout is not None:
            raise ValueError("engine and point_timeout require a folder")
        with shown(progress) as show:
            ended = self._native.sweep(_grid(values), repetition, place, show)
        sweep = Sweep(*ended[:2])
        if sweep.failed:
            first, count = sweep.failed[0], len(sweep.failed)
            warnings.warn(f"{count} points failed, first {first['set']}: {first['why']}", stacklevel=2)
        return _ended(sweep, ended[2])

    def bound(self, method: str = "best") -> dict[str, Any]:
        """Guarantee the latency of every stream and command.

        Returns the document of ``farlane tsn bound --json``. ``method`` is best, tfa, sfa or plp.
        """
        document: dict[str, Any] = json.loads(self._native.bound(method))
        return document

    def schedule(
        self, deadline: Mapping[str, str] | None = None, time: str = "10s"
    ) -> dict[str, Any]:
        """Search for gate control lists that meet deadlines, for ``time``.

        ``deadline`` has the deadlines of commands: ``{"read": "300us", "write": "300us"}``.
        Without it, each frame of a periodic stream with a deadline has a window. Returns the
        document of ``farlane tsn schedule --json``.
        """
        native = self._native.schedule(list((deadline or {}).items()), time)
        document: dict[str, Any] = json.loads(native)
        return document

    def __repr__(self) -> str:
        return f"<farlane.Plan: {self.name}>"


_Ended = TypeVar("_Ended", Result, Sweep)


def _ended(result: _Ended, stopped: BaseException | None) -> _Ended:
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted(result) from None
    if stopped is not None:
        raise stopped
    return result


def _repetition(
    seed: int | None, runs: int | None, phases: int | None, search: bool
) -> _farlane.Repetition:
    return {
        "seed": _whole("seed", seed),
        "runs": _whole("runs", runs),
        "phases": _whole("phases", phases),
        "search": bool(search),
    }


def _whole(name: str, value: int | None) -> int | None:
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected int, got {type(value).__name__}") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"{name}={number}: expected 0 to 2**64 - 1")
    return number


def _pairs(settings: Mapping[str, Value]) -> list[tuple[str, str]]:
    return [(key, _text(key, value)) for key, value in settings.items()]


def _grid(
    values: Mapping[str, Iterable[Value]] | Sequence[Mapping[str, Value]],
) -> tuple[list[str], list[list[str]]]:
    """Return keys and points."""
    if isinstance(values, Mapping):
        texts = [[_text(key, one) for one in _list(key, all)] for key, all in values.items()]
        for key, all in zip(values, texts):
            if not all or "" in all:
                raise ValueError(f"sweep over '{key}': expected values, none of them empty")
        return list(values), [list(point) for point in itertools.product(*texts)]
    if not values:
        return [], []
    keys = list(values[0])
    for point in values:
        if set(point) != set(keys):
            raise ValueError(f"points with other keys: {', '.join(keys)} and {', '.join(point)}")
    return keys, [[_text(key, point[key]) for key in keys] for point in values]


def _ray(engine: str) -> str:
    """Return an engine; Ray's with this Python."""
    name, *options = engine.split(",")
    if name == "ray" and not any(option.startswith("python=") for option in options):
        return f"{engine},python={sys.executable}"
    return engine


def _list(key: str, values: Iterable[Value]) -> Iterable[Value]:
    if isinstance(values, str):
        raise TypeError(f"{key}: expected a list of values, got the text '{values}'")
    return values


def _text(key: str, value: Value) -> str:
    """Return a value as after ``--set``."""
    match value:
        case str():
            return value
        case bool():
            return "on" if value else "off"
        case float():
            return repr(float(value))
    try:
        # Also the integers of numpy.
        return str(operator.index(value))
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{key}: expected str, int, float or bool, got {kind}") from None
