"""Results of runs and sweeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from farlane import _farlane
from farlane.table import Table


class _Tables:
    """A document, and the tables of all its simulations."""

    def __init__(self, document: str, tables: list[tuple[str, _farlane.Table]]) -> None:
        self.document: dict[str, Any] = json.loads(document)
        """The JSON document of ``farlane sim --json``; ``docs/json.md`` describes it."""
        self.tables: Mapping[str, Table] = {name: Table(native) for name, native in tables}
        """All tables by name."""

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the simulations early."""
        return bool(self.document.get("interrupted", False))

    @property
    def results(self) -> Table:
        """One row per simulation and host, or stream at a listener."""
        return self.tables["results"]

    @property
    def commands(self) -> Table:
        """One row per NVMe command, with its time in each stage."""
        return self.tables["commands"]

    @property
    def stages(self) -> Table:
        """Mean, median and 99th percentile of each stage of commands."""
        return self.tables["stages"]

    @property
    def links(self) -> Table:
        """One row per direction of a link."""
        return self.tables["links"]

    @property
    def streams(self) -> Table:
        """One row per stream and listener."""
        return self.tables["streams"]

    @property
    def histograms(self) -> Table:
        """The latencies of each host and stream: counts from ``least_ns`` to ``largest_ns``."""
        return self.tables["histograms"]

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} {len(table)}" for name, table in self.tables.items())
        state = ", interrupted" if self.interrupted else ""
        return f"<farlane.{type(self).__name__}: rows of {rows}{state}>"


class Result(_Tables):
    """The result of ``Plan.run``. Tables are those of ``farlane sim --parquet``."""

    @property
    def frames(self) -> Table:
        """One row per arrival of a frame, after ``run(frames=True)``."""
        if "frames" not in self.tables:
            raise ValueError("no table of frames: call run(frames=True)")
        return self.tables["frames"]


class Sweep(_Tables):
    """The result of ``Plan.sweep``: the rows of all combinations.

    With a folder, only the table ``results`` is kept. The column ``set`` names the combination, such as ``link.rate=1G drive.mps=256``.
    """

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The points that failed: ``set`` and ``why``."""
        return list(self.document.get("failed", []))
