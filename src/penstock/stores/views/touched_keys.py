"""Which keys of a stage are answered: how its statements pick the rows that belong to them.

`ck` has the touched keys, each once, in columns t0, t1, …. NULL is a key too, and only IS NOT DISTINCT FROM finds it;
but DuckDB does best with a join by `=`, and by one column: it then drops the other rows while it reads the table. So
keys without a NULL are joined, by the column that tells them apart, if there is one, and compared by the others after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from penstock.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

# A column tells keys apart where it has at least so many values for each of them. It is only about speed.
_APART: Final = 0.8


@frozen
class Keys:
    """The keys in `ck`, or all there are. `given`: none of them has a NULL; `by`: the column that tells them apart."""

    touched: int | None
    given: bool = False
    by: int | None = None

    @classmethod
    def counted(cls, row: Sequence[Any]) -> Self:
        """From the answer of `counting`."""
        keys, *columns = row
        if not columns:
            return cls(keys)
        values = columns[1::2]
        most = max(range(len(values)), key=values.__getitem__)
        apart = len(values) > 1 and values[most] >= _APART * keys
        return cls(keys, given=all(each == keys for each in columns[::2]), by=most if apart else None)

    def read(self, table: str, columns: Sequence[str]) -> str:
        """What stands behind FROM for the rows of the keys, as `r`; `columns` are those of the key in the table."""
        if self._all(columns):
            return f"{table} AS r"
        same = self._same("r", columns)
        return f"{table} AS r JOIN ck ON {same}" if self.given else f"{table} AS r WHERE EXISTS (FROM ck WHERE {same})"

    def delete(self, table: str, columns: Sequence[str]) -> str:
        """The statement that takes the rows of the keys out of a table."""
        if self._all(columns):
            return f"DELETE FROM {table}"
        same = self._same("v", columns)
        found = f"USING ck WHERE {same}" if self.given else f"WHERE EXISTS (FROM ck WHERE {same})"
        return f"DELETE FROM {table} AS v {found}"

    def _all(self, columns: Sequence[str]) -> bool:
        return self.touched is None or not columns

    def _same(self, name: str, columns: Sequence[str]) -> str:
        pairs = [(f"ck.t{place}", f"{name}.{column}") for place, column in enumerate(columns)]
        if not self.given:
            return " AND ".join(f"{key} IS NOT DISTINCT FROM {column}" for key, column in pairs)
        # What coalesce hides is compared behind the join, not joined by.
        return " AND ".join(
            f"{key} = {column}" if self.by in (None, place) else f"coalesce({key} = {column}, false)"
            for place, (key, column) in enumerate(pairs)
        )


ALL_KEYS: Final = Keys(None)


def counting(columns: int) -> str:
    """How many keys are touched; of each column, how many of them have it, and about how many values there are."""
    listed = "".join(
        f", count(t{place}), {f'approx_count_distinct(t{place})' if columns > 1 else '0'}" for place in range(columns)
    )
    return f"SELECT count(*){listed} FROM ck"
