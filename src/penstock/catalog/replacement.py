"""Whether a definition can take another one's place while others are built on it."""

from __future__ import annotations

from penstock.catalog.model import (
    ColumnDefinition,
    ConnectionDefinition,
    Definition,
    FunctionDefinition,
    MaterializedViewDefinition,
    SecretDefinition,
    SourceDefinition,
    ViewDefinition,
    columns_of,
)


def why_not_replaceable(old: Definition, new: Definition) -> str | None:
    """What the objects built on `old` could miss in `new`, or None where they cannot tell the two apart."""
    if isinstance(old, FunctionDefinition) and isinstance(new, FunctionDefinition):
        return _function(old, new)
    if isinstance(old, SecretDefinition):
        return None
    if isinstance(old, ConnectionDefinition):
        return "its options change"  # those built on it were made with the old ones
    return _columns(columns_of(old), columns_of(new)) or _time(old, new) or _mode(old, new)


def _function(old: FunctionDefinition, new: FunctionDefinition) -> str | None:
    before = [parameter.type for parameter in old.parameters]
    if before != [parameter.type for parameter in new.parameters]:
        return "its parameters change"
    if old.returns != new.returns:
        return "the type it returns changes"
    return "it becomes or was an aggregate" if old.aggregate != new.aggregate else None


def _columns(old: tuple[ColumnDefinition, ...], new: tuple[ColumnDefinition, ...]) -> str | None:
    by_name = {column.name: column for column in new}
    for column in old:
        if column.name not in by_name:
            return f"column {column.name} goes away"
        other = by_name[column.name]
        if other.type != column.type:
            return f"column {column.name} changes from {column.type or 'unknown'} to {other.type or 'unknown'}"
        if other.nullable and not column.nullable:
            return f"column {column.name} may become NULL"
    # SELECT * over the relation takes the columns by place, so what was there keeps its place and new ones follow.
    if [column.name for column in new[: len(old)]] != [column.name for column in old]:
        return "its columns change their order"
    return None


def _time(old: Definition, new: Definition) -> str | None:
    timed = SourceDefinition | ViewDefinition | MaterializedViewDefinition
    if not isinstance(old, timed) or not isinstance(new, timed) or old.event_time is None:
        return None
    if new.event_time is None or new.event_time.column != old.event_time.column:
        return f"{old.event_time.column} is no longer its event time"
    return None


def _mode(old: Definition, new: Definition) -> str | None:
    changing = SourceDefinition | ViewDefinition | MaterializedViewDefinition
    if not isinstance(old, changing) or not isinstance(new, changing):
        return None
    if old.mode != new.mode:
        return f"its rows change from {old.mode or 'unknown'} to {new.mode or 'unknown'}"
    if not isinstance(old, ViewDefinition) and not isinstance(new, ViewDefinition) and old.key != new.key:
        return "its key changes"
    return None
