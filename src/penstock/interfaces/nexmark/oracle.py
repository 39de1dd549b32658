"""What the queries must answer: DuckDB over the same events, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from penstock.frozen import frozen

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from penstock.interfaces.nexmark.events import NexmarkEvents

KINDS: Final = ("person", "auction", "bid")
_SIDE_ROWS: Final = 10_000
_SHOWN: Final = 3


@frozen
class Difference:
    """How an answer differs: the number of rows that are missing and that are too many, and the first of them."""

    rows: int  # of the answer
    missing: int = 0
    more: int = 0
    first_missing: tuple[str, ...] = ()
    first_more: tuple[str, ...] = ()
    columns: str = ""  # what is wrong with the columns, if anything is

    @property
    def none(self) -> bool:
        return self.missing == self.more == 0 and not self.columns


def side_input() -> pa.Table:
    """The table that query 13 joins with."""
    import pyarrow as pa

    keys = range(_SIDE_ROWS)
    return pa.table({"key": pa.array(keys, pa.int64()), "value": [f"value {key * 7919 % _SIDE_ROWS}" for key in keys]})


class Oracle:
    """DuckDB with the events in three tables."""

    def __init__(self, events: NexmarkEvents) -> None:
        import duckdb

        self._database: duckdb.DuckDBPyConnection = duckdb.connect()
        for kind in KINDS:
            self.add(kind, events.table(kind))
        self.add("side_input", side_input())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._database.close()

    def add(self, name: str, table: pa.Table) -> None:
        """A table for the oracle's queries; times are those of UTC, without a zone."""
        self._database.register("__given", _without_zones(table))
        self._database.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM __given')
        self._database.unregister("__given")

    def files(self, directory: Path) -> pa.Table:
        """The rows of Parquet files in directories `name=value`, refused where one is in the directory of another."""
        pattern = f"{directory}/**/part-*.parquet"
        found: pa.Table = self._database.sql(
            "SELECT * EXCLUDE filename, url_decode(regexp_extract(filename, 'dt=([^/]*)/hm=([^/]*)/', 1)) = dt "
            "AND url_decode(regexp_extract(filename, 'dt=([^/]*)/hm=([^/]*)/', 2)) = hm AS __there "
            "FROM read_parquet($1, filename = true, hive_partitioning = false)",
            params=[pattern],
        ).to_arrow_table()
        import pyarrow.compute as pc

        # A row in the wrong directory is no row of the answer.
        return found.filter(pc.field("__there")).drop_columns(["__there"])

    def answer(self, oracle: str) -> pa.Table:
        """The oracle's answer."""
        return self._database.sql(oracle).to_arrow_table()

    def compare(self, oracle: str, answer: pa.Table) -> Difference:
        """How an answer differs from the oracle's, as a multiset of rows."""
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {oracle}")
        self._database.register("answer", _without_zones(answer))
        try:
            names = [row[0] for row in self._database.execute("DESCRIBE expected").fetchall()]
            if names != answer.column_names:
                told = f"the columns are {', '.join(answer.column_names)}, not {', '.join(names)}"
                return Difference(answer.num_rows, columns=told)
            missing, first_missing = self._without("expected", "answer")
            more, first_more = self._without("answer", "expected")
            return Difference(answer.num_rows, missing, more, first_missing, first_more)
        finally:
            self._database.unregister("answer")

    def _without(self, one: str, other: str) -> tuple[int, tuple[str, ...]]:
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE rest AS FROM {one} EXCEPT ALL FROM {other}")
        (count,) = self._database.execute("SELECT count(*) FROM rest").fetchall()[0]
        shown = self._database.execute(f"SELECT rest::VARCHAR FROM rest ORDER BY ALL LIMIT {_SHOWN}").fetchall()
        return count, tuple(row[0] for row in shown)


def _without_zones(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            plain = table.column(place).cast(pa.timestamp("us"))
            table = table.set_column(place, field.name, plain)
    return table
