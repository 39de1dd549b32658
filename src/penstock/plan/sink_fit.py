"""Whether a query fits the sink that it goes to: its columns, their types, its key, and its changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.change_keys import with_change_key
from penstock.errors import OptionError, ResolutionError, UnsupportedError
from penstock.plan.infer import assignable
from penstock.plan.relation import Mode
from penstock.plan.scope import nearest, same_name
from penstock.sql.spans import span_of
from penstock.types import INTEGRAL, STRING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.catalog.model import SinkDefinition
    from penstock.errors import Span
    from penstock.plan.logical import LogicalPlan
    from penstock.sql.statements import Name, Option, Query
    from penstock.types import SqlType


_FORCED: Final = "force_append_only"


def check_sink(plan: LogicalPlan, sink: SinkDefinition, columns: tuple[Name, ...], query: Query) -> None:
    """Whether a query fits the sink it goes to: its columns, their types, and whether the sink can take changes."""
    span = span_of(query.tree)
    if plan.mode is not Mode.APPEND and sink.options.changes == "append":
        raise cannot_update(sink, plan.mode.value, span)
    if any(field.name == "*" for field in plan.columns):
        return
    if not sink.columns:
        _check_key(plan, sink, [field.name for field in plan.columns], span)
        _check_raw(sink, [field.name for field in plan.columns], span)
        return
    targets = _targets(sink, columns)
    _check_left_out(sink, targets, columns)
    if len(plan.columns) != len(targets):
        raise ResolutionError(
            "COLUMN_COUNT_MISMATCH",
            f'"{sink.name}" takes {len(targets)} columns and the query has {len(plan.columns)}',
            hint="the columns are: " + ", ".join(f"{name} {sql_type}" for name, sql_type in targets),
            span=span,
        )
    _check_key(plan, sink, [name for name, _ in targets], span)
    own = {entry.name for entry in sink.columns if entry.physical}
    _check_raw(sink, [name for name, _ in targets if name in own], span)
    literals = isinstance(query.tree, exp.Values)  # a string that is written out is read as the column's type
    spans = _item_spans(query, len(targets))
    for place, field, (name, sql_type) in zip(spans, plan.columns, targets, strict=True):
        if not assignable(field.type, sql_type) and not (literals and field.type == STRING):
            raise ResolutionError(
                "TYPE_MISMATCH",
                f'column "{name}" of "{sink.name}" is {sql_type}, and the query gives {field.type}',
                hint=_mending("…" if literals else field.name, field.type, sql_type),
                span=place or span,
            )


def _check_raw(sink: SinkDefinition, names: list[str], span: Span | None) -> None:
    """A raw record is one value. Which columns a key takes out of the row is known when the rows are written."""
    values = sink.options.values
    if sink.options.format != "raw" or values.get("value.fields_include") == "EXCEPT_KEY":
        return
    if len(names) > 1 and "value" not in names:
        raise OptionError(
            "INVALID_OPTION",
            f'format raw writes one column, or the one named value, and "{sink.name}" has {", ".join(names)}',
            hint="select a single column, or write format = 'json'",
            span=span,
        )


def _mending(written: str, given: SqlType | None, wanted: SqlType | None) -> str:
    """How a value becomes one of a column's type. A number is no time by a cast: Spark would count seconds."""
    if wanted is not None and wanted.name == "TIMESTAMP" and given is not None and given.name in INTEGRAL:
        return f"write TIMESTAMP_MILLIS({written}) where it is milliseconds since 1970"
    return f"write CAST({written} AS {wanted})"


def cannot_update(sink: SinkDefinition, mode: str, span: Span | None) -> UnsupportedError:
    """The error for changes that go to a sink of appended rows."""
    return UnsupportedError(
        "SINK_CANNOT_UPDATE",
        f'sink "{sink.name}" takes appended rows, and the query changes rows it has sent ({mode})',
        hint="group by a window that closes (EMIT FINAL), or let the sink take changes: changes = 'upsert' or "
        "'retract'",
        span=span,
    )


def forced_to_append(error: UnsupportedError, sink: SinkDefinition, options: Iterable[Option]) -> UnsupportedError:
    """The error in the words of a statement that asks for RisingWave's force_append_only: what a query takes back
    cannot be left out, and what replaces an earlier row is no row of its own."""
    asked = [each for each in options if each.key.casefold() == _FORCED and each.value.reveal().casefold() == "true"]
    if error.condition != "SINK_CANNOT_UPDATE" or not asked:
        return error
    return UnsupportedError(
        "SINK_CANNOT_UPDATE",
        f'option {_FORCED} of sink "{sink.name}" cannot be kept: the query changes rows that it has sent',
        hint="leave it out, and let the sink take changes: type = 'upsert' with a primary_key; or group by a window "
        "that closes (EMIT FINAL), whose rows are only added",
        span=asked[0].key_span,
    )


def _check_left_out(sink: SinkDefinition, targets: list[tuple[str, SqlType | None]], columns: tuple[Name, ...]) -> None:
    given = {name for name, _ in targets}
    for entry in sink.columns:
        if not entry.nullable and entry.name not in given:
            raise ResolutionError(
                "COLUMN_COUNT_MISMATCH",
                f'column "{entry.name}" of "{sink.name}" is NOT NULL and is given no value',
                hint="add it to the column list",
                span=columns[0].span,
            )


def _check_key(plan: LogicalPlan, sink: SinkDefinition, names: list[str], span: Span | None) -> None:
    """The key of a sink must tell the rows of the query apart, or one would overwrite another: that of upserts, and one
    that is declared for Debezium's envelopes."""
    places: list[int] = []
    for key in sink.primary_key:
        found = [place for place, name in enumerate(names) if name.casefold() == key.casefold()]
        if not found:
            raise ResolutionError(
                "UNKNOWN_COLUMN",
                f'the primary key of "{sink.name}" names "{key}", which the query does not give',
                hint=f"the columns are: {', '.join(names)}",
                span=span,
            )
        places.append(found[0])
    read_by_key = sink.options.changes == "upsert" or (sink.options.format == "debezium-json" and sink.primary_key)
    if plan.mode is Mode.APPEND or not read_by_key:
        return
    if not sink.primary_key and plan.root.key and sink.query is not None:
        return  # the key of the query becomes that of the sink
    shown = {plan.columns[place].name for place in places if place < len(plan.columns)}
    apart = plan.root.key
    if apart is None or not set(apart) <= shown:
        own = f"by ({', '.join(apart)})" if apart is not None else "by a key that it does not give"
        theirs = f"by ({', '.join(sink.primary_key)})" if sink.primary_key else "has no primary key"
        raise ResolutionError(
            "KEY_MISMATCH",
            f'rows of the query are told apart {own}, and "{sink.name}" {theirs}',
            hint="give all columns of the GROUP BY, and make them the primary key of the sink",
            span=span,
        )


def with_query_key(sink: SinkDefinition, plan: LogicalPlan) -> SinkDefinition:
    """A sink of changes without a key of its own takes that of its query, by the places of its columns."""
    if sink.options.changes == "append" or sink.primary_key or not plan.root.key:
        return sink
    names = [field.name for field in plan.columns]
    if len(names) != len(sink.columns) or not set(plan.root.key) <= set(names):
        return sink
    key = tuple(sink.columns[names.index(name)].name for name in plan.root.key)
    return replace(sink, primary_key=key, options=with_change_key(sink.options, key, sink.columns))


def _item_spans(query: Query, count: int) -> list[Span | None]:
    """Where each column of the SELECT list stands, if they can be told apart."""
    items = query.tree.expressions if isinstance(query.tree, exp.Select) else []
    return [span_of(item) for item in items] if len(items) == count else [None] * count


def _targets(sink: SinkDefinition, columns: tuple[Name, ...]) -> list[tuple[str, SqlType | None]]:
    if not columns:
        return [(entry.name, entry.type) for entry in sink.columns]
    found: list[tuple[str, SqlType | None]] = []
    for name in columns:
        match = [entry for entry in sink.columns if same_name(entry.name, name.text, quoted=name.quoted)]
        if not match:
            near = nearest(name.text, [entry.name for entry in sink.columns])
            raise ResolutionError(
                "UNKNOWN_COLUMN",
                f'"{sink.name}" has no column "{name}"',
                hint=f'did you mean "{near}"?' if near else None,
                span=name.span,
            )
        found.append((match[0].name, match[0].type))
    return found
