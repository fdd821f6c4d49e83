"""Tables in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlane import _farlane

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Table:
    """Rows in Arrow memory, which pyarrow, polars, DuckDB and others read without a copy.

    Every library with the Arrow PyCapsule interface takes a table as it is:
    ``pyarrow.table(table)``, ``polars.DataFrame(table)``.
    """

    def __init__(self, native: _farlane.Table) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows (Arrow PyCapsule interface)."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._native)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._native.columns

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns that have one, such as ``{"latency_ns": "ns"}``."""
        return self._native.units

    def to_arrow(self) -> pyarrow.Table:
        """Return a pyarrow table over the same memory. Requires pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas frame; columns with missing numbers have floats. Requires pyarrow."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return a polars frame over the same memory of numbers. Requires polars."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"<farlane.Table: {len(self)} rows of {', '.join(self.columns)}>"
