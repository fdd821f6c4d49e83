"""Exceptions of farlane."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farlane.results import Result, Sweep


class PlanError(ValueError):
    """Mistakes in a plan or in settings, one line each.

    ``file``, ``line`` (from 1) and ``key`` are those of the first mistake, or None if they are
    unknown.

    >>> import farlane
    >>> try:
    ...     farlane.parse('[link]\\nrat = "1G"', name="small.toml")
    ... except farlane.PlanError as error:
    ...     print(error.file, error.line, error.key)
    small.toml 2 rat
    """

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.key = key


class SimulationError(RuntimeError):
    """A simulation failed."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run or sweep. ``result`` has what is finished."""

    def __init__(self, result: Result | Sweep) -> None:
        super().__init__("interrupted")
        self.result = result
