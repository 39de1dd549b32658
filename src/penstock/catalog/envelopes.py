"""Relations over Debezium's records whose columns are those of the record itself, not those of the table it is about.

Such a relation is a stream of envelopes: one row a change, with the operation and the row before and after it. Nothing
in it changes later, so it is read like any other stream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.catalog.model import ColumnDefinition
    from penstock.options.resolved import ResolvedOptions

OPERATION: Final = "op"
_MEMBERS: Final = frozenset({OPERATION, "before", "after", "source", "transaction", "ts_ms", "ts_us", "ts_ns"})


def as_envelopes(options: ResolvedOptions, columns: Sequence[ColumnDefinition]) -> ResolvedOptions:
    """The options of a relation, which is append-only where its columns are those of an envelope."""
    if options.format != "debezium-json" or "changes" in options.given:
        return options
    names = {column.name for column in columns if column.physical}
    return replace(options, changes="append") if OPERATION in names <= _MEMBERS else options
