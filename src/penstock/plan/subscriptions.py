"""Which changes of a view, or of a query, can be told in which form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.model import MaterializedViewDefinition
from penstock.errors import ResolutionError, UnsupportedError
from penstock.frozen import frozen
from penstock.options import ChangeForm, resolve_subscribe_options

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.catalog.model import Definition
    from penstock.errors import Span
    from penstock.plan.logical import LogicalPlan
    from penstock.sql.statements import Subscribe


def check_subscription(statement: Subscribe, found: Definition) -> None:
    """Refuses a SUBSCRIBE to something without changes, or in a form that these do not have."""
    if not isinstance(found, MaterializedViewDefinition):
        raise ResolutionError(
            "WRONG_OBJECT_KIND",
            f'"{found.name}" is a {found.kind}, and only a materialized view has changes to subscribe to',
            hint=f"CREATE MATERIALIZED VIEW … AS SELECT * FROM {found.name}, or SELECT … EMIT CHANGES",
            span=statement.target.span,
        )
    asked = resolve_subscribe_options(statement.options, statement.target)
    subscription_key(changing_view(found), asked.changes, asked.key, statement.target.span)


@frozen
class Changing:
    """Rows whose changes somebody subscribes to."""

    words: str
    mode: str
    key: tuple[str, ...]
    columns: tuple[str, ...]


def changing_view(view: MaterializedViewDefinition) -> Changing:
    """The rows of a view."""
    return Changing(f'view "{view.name}"', view.mode, view.key, tuple(entry.name for entry in view.columns))


def changing_query(plan: LogicalPlan) -> Changing:
    """The rows of a query that nobody keeps."""
    columns = tuple(field.name for field in plan.columns)
    return Changing("the query", plan.mode.value, plan.root.key or (), columns)


def subscription_key(
    rows: Changing, form: ChangeForm | None, named: Collection[str] = (), span: Span | None = None
) -> tuple[str, ...]:
    """The columns by which rows replace each other, where a form asks for them.

    Raises SINK_CANNOT_UPDATE where rows that change are asked for as rows that are only added, and KEY_MISMATCH where
    rows are to replace each other and nothing tells them apart, or `named` is another key.
    """
    if form == "append" and rows.mode != "append":
        raise UnsupportedError(
            "SINK_CANNOT_UPDATE",
            f"the rows of {rows.words} change ({rows.mode}), and appended rows are asked for",
            hint="ask for changes = 'upsert', 'retract' or 'debezium'",
            span=span,
        )
    if form != "upsert" and not named:
        return ()
    own = {name.casefold() for name in rows.key}
    shown = own <= {name.casefold() for name in rows.columns}
    if not shown or (not own and rows.mode != "upsert"):  # of one row there is nothing to tell apart
        raise ResolutionError(
            "KEY_MISMATCH",
            f"no key of {rows.words} tells its rows apart",
            hint="ask for changes = 'retract' or 'debezium'",
            span=span,
        )
    if named and {name.casefold() for name in named} != own:
        raise ResolutionError(
            "KEY_MISMATCH",
            f"rows of {rows.words} are told apart by ({', '.join(rows.key)}), not by ({', '.join(named)})",
            hint="leave the key out, or name all of its columns",
            span=span,
        )
    return rows.key
