"""A join of two Arrow tables in this process: what `broadcast_join` does with rows at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from penstock.errors import ResolutionError

if TYPE_CHECKING:
    import pyarrow as pa

_ROW: Final = "__row"
_MATCH: Final = "__match"


def joined(
    fact: pa.Table | pa.RecordBatch,
    dimension: pa.Table,
    keys: str | Sequence[str] | Mapping[str, str],
    how: Literal["inner", "left"] = "inner",
) -> pa.Table:
    """The rows of `fact` with the columns of the dimension that are no keys, in the order of `fact`.

    NULL keys match nothing. A row that matches several rows of the dimension comes once for each, in their order. A
    column of the dimension whose name `fact` has too gets `_right` behind it.
    """
    import pyarrow as pa

    facts = pa.Table.from_batches([fact]) if isinstance(fact, pa.RecordBatch) else fact
    pairs = _pairs(keys)
    _check(facts, dimension, pairs, how)
    left = pa.table({f"k{place}": facts.column(name) for place, name in enumerate(pairs)})
    right = pa.table(
        {
            f"k{place}": dimension.column(name).cast(facts.column(own).type)
            for place, (own, name) in enumerate(pairs.items())
        }
    )
    left = left.append_column(_ROW, pa.array(range(facts.num_rows), pa.int64()))
    right = right.append_column(_MATCH, pa.array(range(dimension.num_rows), pa.int64()))
    names = [f"k{place}" for place in range(len(pairs))]
    found = left.join(right, names, join_type="inner" if how == "inner" else "left outer")
    found = found.sort_by([(_ROW, "ascending"), (_MATCH, "ascending")])
    result = facts.take(found.column(_ROW))
    matches = dimension.take(found.column(_MATCH))  # a NULL takes NULLs
    for name in dimension.column_names:
        if name not in pairs.values():
            shown = f"{name}_right" if name in facts.column_names else name
            result = result.append_column(shown, matches.column(name))
    return result


def _pairs(keys: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(keys, str):
        return {keys: keys}
    return dict(keys) if isinstance(keys, Mapping) else {name: name for name in keys}


def _check(fact: pa.Table, dimension: pa.Table, pairs: Mapping[str, str], how: str) -> None:
    if how not in ("inner", "left"):
        raise ResolutionError("INVALID_ARGUMENT", f"a join is 'inner' or 'left', not '{how}'")
    if not pairs:
        raise ResolutionError("INVALID_ARGUMENT", "a join needs a key", hint='keys={"symbol": "instrument_id"}')
    for table, names, what in ((fact, pairs.keys(), "the rows"), (dimension, pairs.values(), "the dimension")):
        for name in names:
            if name not in table.column_names:
                raise ResolutionError(
                    "UNKNOWN_COLUMN",
                    f'{what} have no column "{name}"' if what == "the rows" else f'{what} has no column "{name}"',
                    hint="the columns are: " + ", ".join(table.column_names),
                )
