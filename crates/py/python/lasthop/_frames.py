"""From Arrow to what people work with; each library is imported when it is asked for."""

from __future__ import annotations

from typing import Any


def to_polars(table: Any) -> Any:
    """A `polars.DataFrame`, without a copy of numbers."""
    import polars

    return polars.DataFrame(table)


def to_arrow(table: Any) -> Any:
    """A `pyarrow.Table`, without a copy."""
    import pyarrow

    return pyarrow.table(table)


def to_pandas(table: Any) -> Any:
    """A `pandas.DataFrame`."""
    return to_arrow(table).to_pandas()
