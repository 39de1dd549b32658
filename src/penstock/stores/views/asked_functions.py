"""Functions of the store's database by which it asks Spark for what only Spark knows (plan.store_asked).

DuckDB calls them with columns of at most 2,048 rows at a time, from any of its threads.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Protocol

from penstock.errors import InternalError, PenstockError
from penstock.stores.arrow_types import arrow_type
from penstock.stores.duckdb_types import duckdb_type, to_duckdb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import duckdb
    import pyarrow as pa

    from penstock.plan.finish_plan import Asked


class Spark(Protocol):
    """Whoever computes an expression for rows with the columns a0, a1, …"""

    def __call__(self, asked: Asked, rows: pa.Table) -> pa.ChunkedArray: ...


class AskedFunctions:
    """The functions of one database. `raised` takes what Spark said of values that it could not compute with: DuckDB
    hands on no more than a text of it."""

    def __init__(self, raised: list[PenstockError]) -> None:
        self._known: set[str] = set()
        # Its own object, so that what DuckDB holds on to does not hold on to the database.
        self._door = _Door(raised)

    def answer_with(self, spark: Spark) -> None:
        """Say who computes."""
        self._door.spark = spark

    def add(self, writer: duckdb.DuckDBPyConnection, asked: Iterable[Asked]) -> None:
        """Make expressions known under their names; the same name always means the same."""
        import duckdb
        from duckdb.func import FunctionNullHandling, PythonUDFType

        for each in asked:
            if each.name in self._known:
                continue
            writer.create_function(
                each.name,
                self._door.function(each),
                [duckdb.type(duckdb_type(kind)) for kind in each.arguments],
                duckdb.type(duckdb_type(each.type)),
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,  # what becomes of NULL is Spark's to say
            )
            self._known.add(each.name)

    def remove(self, writer: duckdb.DuckDBPyConnection) -> None:
        """Let go of all of them: a database that is closed keeps nothing of ours."""
        for name in self._known:
            writer.remove_function(name)
        self._known.clear()


class _Door:
    def __init__(self, raised: list[PenstockError]) -> None:
        self.spark: Spark = _nobody
        self._raised = raised

    def function(self, asked: Asked) -> Callable[..., pa.Array]:
        """What DuckDB calls."""
        names = [f"a{place}" for place in range(len(asked.arguments))]

        def ask(*columns: pa.ChunkedArray) -> pa.Array:
            import pyarrow as pa

            types = [arrow_type(kind) for kind in asked.arguments]
            given = [column.cast(kind) for column, kind in zip(columns, types, strict=True)]
            try:
                found = self.spark(asked, pa.table(given, names=names))
            except PenstockError as error:
                self._raised.append(error)
                raise
            return to_duckdb(pa.table([found], names=["value"])).column(0).combine_chunks()

        # DuckDB counts the parameters.
        kind = inspect.Parameter.POSITIONAL_ONLY
        ask.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
        return ask


def _nobody(asked: Asked, rows: pa.Table) -> pa.ChunkedArray:
    del rows
    raise InternalError(f"there is nobody to compute {asked.words}")
