"""Traces and samples that farlane wrote."""

from __future__ import annotations

import os

from farlane import _farlane
from farlane.table import Table

Path = str | os.PathLike[str]


def read_trace(file: Path, *more: Path) -> Table:
    """Read traces of the nodes of one run, one of them a host.

    Returns a row for each command, with the columns of ``farlane trace --csv``.
    """
    return Table(_farlane.read_trace([_readable(file) for file in (file, *more)]))


def read_samples(file: Path) -> Table:
    """Read a CSV or Parquet file of ``farlane io`` or ``farlane latency``.

    Also reads the files of ``farlane sim`` and ``farlane trace``. In CSV, a column of whole
    numbers has numbers.
    """
    return Table(_farlane.read_samples(_readable(file)))


def _readable(file: Path) -> Path:
    # Raises an OSError that names the file.
    with open(file, "rb"):
        return file
