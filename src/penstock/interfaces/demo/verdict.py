"""The proof: what the stream gave is what a batch query gives over the same rows, late ones apart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from penstock.frozen import frozen
from penstock.interfaces.demo.pipeline import VIEWS, DemoView

if TYPE_CHECKING:
    from penstock.interfaces.database import Database
    from penstock.interfaces.demo.trades import Trade

Place = tuple[int, int]  # partition, offset


@frozen
class Verdict:
    """How one view compares: rows of the stream, rows of the batch, and what differs."""

    view: DemoView
    rows: int
    missing: tuple[tuple[Any, ...], ...]
    extra: tuple[tuple[Any, ...], ...]
    late: frozenset[Place]
    meant_late: frozenset[Place]

    @property
    def equal(self) -> bool:
        """Whether both answers are the same."""
        return not self.missing and not self.extra

    @property
    def good(self) -> bool:
        """Whether they are, and the late rows are those that were sent late, and no others."""
        return self.equal and self.late == self.meant_late


def compare(database: Database, appended: Mapping[Place, Trade]) -> list[Verdict]:
    """Each view against DuckDB over all rows that were appended and are not among the late rows of its job."""
    late: dict[str, set[Place]] = {view.name: set() for view in VIEWS}
    for job, partition, offset in database.sql("SELECT job, partition, offset FROM penstock.late_rows").rows():
        late.setdefault(job, set()).add((partition, offset))
    return [_compare(database, view, appended, frozenset(late[view.name])) for view in VIEWS]


def _compare(database: Database, view: DemoView, appended: Mapping[Place, Trade], late: frozenset[Place]) -> Verdict:
    streamed = database.sql(f"SELECT {', '.join(view.columns)} FROM {view.name}").rows()
    batch = batch_answer(view, [trade for place, trade in appended.items() if place not in late])
    got, wanted = sorted(map(_comparable, streamed)), sorted(map(_comparable, batch))
    return Verdict(
        view,
        len(got),
        missing=tuple(sorted(set(wanted) - set(got))),
        extra=tuple(sorted(set(got) - set(wanted))) or _repeated(got),
        late=late,
        meant_late=frozenset(place for place, trade in appended.items() if trade.meant_late),
    )


def _repeated(rows: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """Rows that stand next to their like: the answer has one row for each window and symbol."""
    return tuple(row for row, following in pairwise(rows) if row == following)


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value if isinstance(value, str | datetime) else float(value) for value in row)


def batch_answer(view: DemoView, trades: list[Trade]) -> list[tuple[Any, ...]]:
    """The rows of a view as DuckDB computes them from all trades at once."""
    import duckdb
    import pyarrow as pa

    table = pa.table(
        {
            "symbol": pa.array([trade.symbol for trade in trades], pa.string()),
            "price": pa.array([trade.price for trade in trades], pa.decimal128(12, 2)),
            "volume": pa.array([trade.volume for trade in trades], pa.int32()),
            "us": pa.array([trade.us for trade in trades], pa.int64()),
        }
    )
    connection = duckdb.connect()
    try:
        connection.register("trades", table)
        rows = connection.execute(view.batch).fetchall()
    finally:
        connection.close()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return [(epoch + timedelta(microseconds=row[0]), *row[1:]) for row in rows]
