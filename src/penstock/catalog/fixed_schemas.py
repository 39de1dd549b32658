"""Columns that need not be declared, because the connector or format always has them."""

from __future__ import annotations

from typing import Final

from penstock.catalog.model import ColumnDefinition, EventTime
from penstock.errors import CatalogError
from penstock.sql.statements import CreateRelation
from penstock.types import BIGINT, INT, STRING, TIMESTAMP, Field, SqlType

# The row shape of a Kafka topic, and of ours, without any decoding.
RAW_COLUMNS: Final = (
    ColumnDefinition("key", STRING),
    ColumnDefinition("value", STRING),
    ColumnDefinition("timestamp", TIMESTAMP),
    ColumnDefinition("partition", INT),
    ColumnDefinition("offset", BIGINT),
)

IMPULSE_COLUMNS: Final = (
    ColumnDefinition("timestamp", TIMESTAMP),
    ColumnDefinition("counter", SqlType("UBIGINT"), nullable=False),
    ColumnDefinition("subtask_index", SqlType("UBIGINT"), nullable=False),
)


def _columns(**types: SqlType) -> tuple[ColumnDefinition, ...]:
    return tuple(ColumnDefinition(name, type_) for name, type_ in types.items())


NEXMARK_COLUMNS: Final[dict[str, tuple[ColumnDefinition, ...]]] = {
    "person": _columns(
        id=BIGINT,
        name=STRING,
        emailAddress=STRING,
        creditCard=STRING,
        city=STRING,
        state=STRING,
        dateTime=TIMESTAMP,
        extra=STRING,
    ),
    "auction": _columns(
        id=BIGINT,
        itemName=STRING,
        description=STRING,
        initialBid=BIGINT,
        reserve=BIGINT,
        dateTime=TIMESTAMP,
        expires=TIMESTAMP,
        seller=BIGINT,
        category=BIGINT,
        extra=STRING,
    ),
    "bid": _columns(
        auction=BIGINT,
        bidder=BIGINT,
        price=BIGINT,
        channel=STRING,
        url=STRING,
        dateTime=TIMESTAMP,
        extra=STRING,
    ),
}


def _struct(columns: tuple[ColumnDefinition, ...]) -> SqlType:
    return SqlType("STRUCT", fields=tuple(Field(column.name, column.type or STRING) for column in columns))


# The whole event stream: the record of the event's kind is set, the other two are NULL.
NEXMARK_EVENTS: Final = (
    ColumnDefinition("event_type", INT, nullable=False),
    *(ColumnDefinition(name, _struct(columns)) for name, columns in NEXMARK_COLUMNS.items()),
    ColumnDefinition("dateTime", TIMESTAMP),
)

NEXMARK_DELAY_US: Final = 4_000_000


def fixed_columns(connector: str, format_name: str | None, table_type: str) -> tuple[ColumnDefinition, ...] | None:
    """The columns of a source that always has the same ones; None where the statement has to declare them.

    `table_type` is which of Nexmark's three relations is meant, or `all` for the event stream.
    """
    if connector == "impulse":
        return IMPULSE_COLUMNS
    if connector == "nexmark":
        return NEXMARK_COLUMNS.get(table_type, NEXMARK_EVENTS)
    return RAW_COLUMNS if format_name == "raw" else None


def check_fixed(
    statement: CreateRelation,
    columns: tuple[ColumnDefinition, ...],
    fixed: tuple[ColumnDefinition, ...],
    format_name: str | None,
) -> None:
    """A source with fixed columns may list those it wants, with the types they have.

    Names are compared without case and `_`, because systems spell Nexmark's differently. In the raw format a single
    text or binary column stands for the value, as Flink has it.
    """
    physical = [column for column in columns if column.physical]
    by_name = {_bare(column.name): column for column in fixed}
    if format_name == "raw" and len(physical) == 1 and _bare(physical[0].name) not in by_name:
        by_name[_bare(physical[0].name)] = by_name["value"]
    spans = {column.name.text: column.span for column in statement.columns}
    for column in physical:
        known = by_name.get(_bare(column.name))
        if known is None:
            message = f"{statement.name} always has the same columns, and {column.name} is none of them"
        elif not _fits(column.type, known):
            message = f"column {column.name} is {known.type}, not {column.type}"
        else:
            continue
        listed = ", ".join(f"{item.name} {item.type}" for item in fixed)
        raise CatalogError("INVALID_DEFINITION", message, hint=f"columns: {listed}", span=spans[column.name])


def _bare(name: str) -> str:
    return name.lower().replace("_", "")


def _fits(declared: SqlType | None, known: ColumnDefinition) -> bool:
    """Whether the values of a fixed column can be had in a declared type."""
    if declared is None or known.type is None or declared == known.type:
        return True
    if known.name in {"key", "value"} and declared.name == "BINARY":
        return True
    wide = {"BIGINT", "UBIGINT"}
    if known.type.integral and declared.integral:
        return known.type.name not in wide or declared.name in wide
    return known.type.name == "STRUCT" == declared.name


def fixed_event_time(connector: str) -> EventTime | None:
    """The event time of a generator whose rows have a known disorder."""
    if connector == "impulse":
        return EventTime("timestamp", 0, "default")
    return EventTime("dateTime", NEXMARK_DELAY_US, "default") if connector == "nexmark" else None
