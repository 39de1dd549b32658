"""Which column of a source is its event time, and how far its watermark stays behind."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.columns import find_column, option_span
from penstock.catalog.model import ColumnDefinition, EventTime
from penstock.errors import CatalogError, Span
from penstock.options.resolved import ResolvedOptions
from penstock.sql.durations import NotADuration, duration_us
from penstock.sql.statements import CreateRelation, Name, Watermark


def choose_event_time(
    statement: CreateRelation,
    columns: tuple[ColumnDefinition, ...],
    options: ResolvedOptions,
    default_delay_us: int,
) -> EventTime | None:
    """The event time that a WATERMARK clause or an option declares; where both do, the clause gives the delay."""
    named = options.event_time_field
    watermark = statement.watermark
    if watermark is not None:
        found = _time_column(watermark.column, columns, "the watermark")
        _check_delay(watermark)
        if named is not None and find_column(columns, Name(named)) is not found:
            raise _two_times(found.name, named, watermark.span)
        return EventTime(found.name, watermark.delay_us, "watermark")
    if named is None:
        return None
    span = option_span(options, "event_time_field", statement.with_span)
    found = _time_column(Name(named, span=span), columns, "option event_time_field")
    behind = options.watermark_field
    if behind is None:
        return EventTime(found.name, default_delay_us, "option")
    # The statement itself gives the delay, so no default is at work.
    place = option_span(options, "watermark_field", statement.with_span)
    return EventTime(found.name, _delay_of(Name(behind, span=place), found, columns), "watermark")


def _check_delay(watermark: Watermark) -> None:
    if watermark.delay_us < 0:
        raise CatalogError(
            "INVALID_WATERMARK",
            f"the watermark of {watermark.column} runs ahead of it",
            hint="subtract a delay of zero or more",
            span=watermark.span,
        )


def _two_times(column: str, named: str, span: Span) -> CatalogError:
    return CatalogError(
        "INVALID_WATERMARK",
        f"the watermark is for {column}, but option event_time_field names {named}",
        hint="leave one of the two out, or name the same column",
        span=span,
    )


def _time_column(name: Name, columns: tuple[ColumnDefinition, ...], who: str) -> ColumnDefinition:
    found = find_column(columns, name)
    if found is None:
        usable = [column.name for column in columns if column.type is None or column.type.name == "TIMESTAMP"]
        hint = f"time columns: {', '.join(usable)}" if usable else "declare a column of type TIMESTAMP"
        raise CatalogError("INVALID_WATERMARK", f"{who} names unknown column {name}", hint=hint, span=name.span)
    if _is_processing_time(found):
        raise CatalogError(
            "INVALID_WATERMARK",
            f"{who} names {found.name}, which is processing time",
            hint="take a column that says when the event happened",
            span=name.span,
        )
    if found.type is not None and found.type.name != "TIMESTAMP":
        raise CatalogError(
            "INVALID_WATERMARK",
            f"{who} names {found.name}, which is {found.type}",
            hint=_hint_for(found),
            span=name.span,
        )
    return found


def _is_processing_time(column: ColumnDefinition) -> bool:
    tree = column.computed
    return isinstance(tree, exp.Anonymous) and str(tree.this).upper() == "PROCTIME"


def _hint_for(column: ColumnDefinition) -> str:
    assert column.type is not None
    name = column.name
    if column.type.integral:
        return (
            f"declare it {name} TIMESTAMP (an integer there is read as epoch milliseconds), "
            f"or add a computed column such as event_time AS TO_TIMESTAMP_LTZ({name}, 3)"
        )
    if column.type.name == "DATE":
        return f"a day is too coarse for event time; declare {name} TIMESTAMP"
    if column.type.name == "STRING":
        return f"declare it {name} TIMESTAMP, or add a computed column such as event_time AS TO_TIMESTAMP({name})"
    return "take a column of type TIMESTAMP"


def _delay_of(name: Name, time: ColumnDefinition, columns: tuple[ColumnDefinition, ...]) -> int:
    """The delay of Arroyo's older form, where a computed column `time - constant` is named as the watermark."""
    found = find_column(columns, name)
    if found is time:
        return 0
    delay = None if found is None or found.computed is None else _minus_constant(found.computed, time)
    if delay is None:
        raise CatalogError(
            "INVALID_WATERMARK",
            f"option watermark_field names {name}, which is not {time.name} minus a constant",
            hint=f"leave it out and say WATERMARK FOR {time.name} AS {time.name} - INTERVAL '5' SECOND",
            span=name.span,
        )
    return delay


def _minus_constant(tree: exp.Expr, time: ColumnDefinition) -> int | None:
    while isinstance(tree, exp.Paren | exp.Cast):
        tree = tree.this
    if isinstance(tree, exp.Sub) and isinstance(tree.expression, exp.Interval):
        base = tree.this.unnest()
        same = isinstance(base, exp.Column) and base.name.lower() == time.name.lower()
        if same or (time.computed is not None and base == time.computed.unnest()):
            return _constant(tree.expression)
    return None


def _constant(interval: exp.Interval) -> int | None:
    try:
        return duration_us(interval)
    except NotADuration:
        return None
