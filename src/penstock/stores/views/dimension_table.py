"""The rows of a dimension as the stages of a finished view read them: those of the version that the batch sees.

A version comes as a whole, and only where it is another one than that of the batch before. What differs from the rows
that are there comes and goes as the changes of that batch, so an update touches the keys of the rows that it changes.
Which version a batch saw is kept with it: going back brings back the rows, and the number that they belong to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import InternalError
from penstock.stores.duckdb_types import quoted
from penstock.stores.views.counted_rows import CountedRows

if TYPE_CHECKING:
    from penstock.plan.finish_plan import KeptRows

VERSION: Final = "dv"  # the name under which the rows of a version stand while the statements of a commit run


class DimensionTable(CountedRows):
    """The rows of the current version of a dimension, and their history."""

    def __init__(self, table: str, place: int, rows: KeptRows) -> None:
        super().__init__(table, place, rows)
        if rows.read is None:
            raise InternalError(f"nothing says what is read of dimension {rows.relation}")
        self.relation = rows.relation
        self._read = rows.read
        self._numbers = f"{table}_n"

    @property
    def given(self) -> dict[str, str]:
        return {}  # Spark hands nothing over

    @property
    def tables(self) -> list[str]:
        return [*super().tables, self._numbers]

    @property
    def seen(self) -> str:
        return self._numbers

    def creates(self) -> list[str]:
        return [*super().creates(), f"CREATE TABLE {self._numbers} (batch BIGINT, number BIGINT)"]

    def current(self) -> str:
        """The query for the number of the version that is there."""
        return f"SELECT number FROM {self._numbers} ORDER BY batch DESC LIMIT 1"

    def sees(self, batch: int, number: int) -> list[str]:
        """From a batch on another version is there, whose rows stand in `dv`."""
        listed = ", ".join(f"{quoted(name)} AS {own}" for name, own in self.source.columns.items())
        came = f"WITH {quoted(self.relation)} AS (FROM {VERSION}) SELECT {listed}, 1 AS way FROM ({self._read})"
        went = f"SELECT {', '.join(self._columns)}, -1 FROM {self._table}"
        return [
            *self._takes(batch, f"({came}) UNION ALL ({went})"),
            f"DELETE FROM {self._numbers} WHERE batch = {batch}",
            f"INSERT INTO {self._numbers} VALUES ({batch}, {number})",
        ]

    def stays(self) -> list[str]:
        """Nobody goes back behind the version that is there."""
        last = f"(SELECT max(batch) FROM {self._numbers})"
        return [f"DELETE FROM {self._history}", f"DELETE FROM {self._numbers} WHERE batch < {last}"]

    def adds(self, batch: int) -> list[str]:
        return [self.unchanged()]

    def expires(self, batch: int) -> list[str]:
        return []  # they are there as long as the dimension has them

    def forgets(self, batch: int) -> list[str]:
        return [*super().forgets(batch), f"DELETE FROM {self._numbers} WHERE batch > {batch}"]

    def tidies(self, floor: int, clock_us: int) -> list[str]:
        last = f"(SELECT max(batch) FROM {self._numbers} WHERE batch <= {floor})"
        return [*super().tidies(floor, clock_us), f"DELETE FROM {self._numbers} WHERE batch < {last}"]
