"""What a query answers, and as of when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import PenstockError
from penstock.stores.arrow_values import instant, python_rows, with_utc

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd
    import polars as pl
    import pyarrow as pa

# What a repr shows: enough to recognise a result, little enough for a log.
_SHOWN_ROWS: Final = 10
_NOTHING: Final[Mapping[str, tuple[int, int | None]]] = MappingProxyType({})


class Result:
    """The rows of one answer. Instants are timezone-aware and in UTC, however they are taken out.

    `as_of` says which batch of each view the answer shows; they were all read in one snapshot. It is empty for an
    answer that reads no view.
    """

    __slots__ = ("_table", "_times", "as_of")

    def __init__(self, table: pa.Table, as_of: Mapping[str, tuple[int, int | None]] = _NOTHING) -> None:
        """`as_of` gives for each view its batch, and its watermark in microseconds since 1970 where it has one."""
        self._table = with_utc(table)
        self._times = {view: watermark for view, (_, watermark) in as_of.items()}
        self.as_of: Mapping[str, int] = MappingProxyType({view: batch for view, (batch, _) in as_of.items()})

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._table.column_names)

    @property
    def batch_id(self) -> int | None:
        """The batch of the view that was read; None where it was none or several (see `as_of`)."""
        return next(iter(self.as_of.values())) if len(self.as_of) == 1 else None

    @property
    def watermark(self) -> datetime | None:
        """Up to when the answer is complete: the earliest watermark of its views, None where one has none."""
        known = [watermark for watermark in self._times.values() if watermark is not None]
        return instant(min(known)) if known and len(known) == len(self._times) else None

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._table

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python values."""
        return python_rows(self._table)

    def polars(self) -> pl.DataFrame:
        """The rows as a Polars frame."""
        try:
            import polars as pl
        except ImportError:
            raise _missing("polars") from None
        frame = pl.from_arrow(self._table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        try:
            import pandas as pd  # noqa: F401 - Arrow's own message for a missing pandas does not say what to do
        except ImportError:
            raise _missing("pandas") from None
        frame: pd.DataFrame = self._table.to_pandas()
        return frame

    def __len__(self) -> int:
        count: int = self._table.num_rows
        return count

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def __repr__(self) -> str:
        from penstock.interfaces.table_output import count_rows, render_table

        shown = render_table(self._table.slice(0, _SHOWN_ROWS))
        more = f", the first {_SHOWN_ROWS} shown" if len(self) > _SHOWN_ROWS else ""
        return f"{shown}\n({count_rows(len(self))}{more}{self._when()})"

    def _when(self) -> str:
        if not self.as_of:
            return ""
        batches = ", ".join(f"{view} batch {batch}" for view, batch in self.as_of.items())
        time = f", watermark {self.watermark:%Y-%m-%d %H:%M:%S}" if self.watermark is not None else ""
        return f"; as of {batches}{time}"


def _missing(package: str) -> PenstockError:
    return PenstockError(
        "INSTALLATION_UNUSABLE",
        f"{package} is not installed",
        hint=f"pip install {package}, or take the rows with .arrow() or .rows()",
    )
