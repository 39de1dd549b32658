"""The rows of sessions, each with the bounds of its own: known when a session has closed.

    SELECT * FROM SESSION(TABLE clicks PARTITION BY person, DESCRIPTOR(ts), INTERVAL '10' MINUTE)

Spark finds sessions for the groups of an aggregate. Where a query groups by the keys of PARTITION BY, that aggregate is
the query's own. Anything else is made of rows: those of a session are collected, and given one by one when it closes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.context import Relation
from penstock.plan.nodes import Filter, SessionRows, WindowAssign
from penstock.plan.relation import WINDOW_COLUMN, State
from penstock.plan.trees import aliased, call, column, dot, identifier, number, select, subquery

if TYPE_CHECKING:
    from penstock.plan.nodes import Node
    from penstock.plan.windows import WindowSpec

_ASSIGNED: Final = "__assigned"
_SESSIONS: Final = "__sessions"
_ROWS: Final = "__rows"
_ROW: Final = "__row"
_BOUND: Final = "dropped when the watermark passes the end of the session"


def session_rows(assigned: Relation) -> Relation:
    """The rows of a session window, which are not grouped yet, as those of sessions that have closed."""
    node = assigned.node
    assert isinstance(node, WindowAssign)
    names = [entry.name for entry in node.fields if entry.part is None and entry.name != WINDOW_COLUMN]
    pairs: list[exp.Expr] = []
    for name in names:
        pairs += [exp.Literal.string(name), column(name, _ASSIGNED)]
    window = column(WINDOW_COLUMN, _ASSIGNED)
    keys = [column(name, _ASSIGNED) for name in node.window.keys]
    grouped = select(
        [window, aliased(call("collect_list", call("named_struct", *pairs)), _ROWS)],
        subquery(assigned.tree, _ASSIGNED),
        group=exp.Group(expressions=[window.copy(), *keys]),
    )
    view = exp.Lateral(
        this=call("explode", column(_ROWS, _SESSIONS)),
        view=True,
        alias=exp.TableAlias(this=identifier("__each"), columns=[identifier(_ROW)]),
    )
    items: list[exp.Expr] = [aliased(dot(column(_ROW, "__each"), name), name) for name in names]
    items.append(column(WINDOW_COLUMN, _SESSIONS))
    made = SessionRows(
        fields=node.fields,
        inputs=(node,),
        event_time=node.event_time,
        bounded=node.bounded,
        state=None if node.bounded else State("the rows of each open session", _BOUND),
        window=node.window,
    )
    return Relation(made, select(items, subquery(grouped, _SESSIONS), laterals=[view]), assigned.window)


def one_session(node: Node, spec: WindowSpec, parts: set[str], keys: set[str]) -> bool:
    """Whether rows of closed sessions that are the same in these parts of the window and in these columns belong to one
    session: those of several keys may have a bound in common."""
    if "window" in parts or ("start" in parts and parts & {"end", "time"}):
        return True
    while isinstance(node, Filter):
        node = node.inputs[0]
    return bool(parts) and isinstance(node, SessionRows) and set(spec.keys) <= keys


def prune_rows(select: exp.Select) -> None:
    """Leaves in the collected rows of sessions what a SELECT over them reads, in place: the rest need not be kept."""
    from_ = select.args.get("from_")
    source = from_.this if isinstance(from_, exp.From) else None
    if not isinstance(source, exp.Subquery) or source.alias != _SESSIONS or not select.args.get("laterals"):
        return
    collected = next(item.unalias() for item in source.this.expressions if item.alias_or_name == _ROWS)
    struct = collected.expressions[0]
    read = {item.unalias().expression.name for item in select.expressions if isinstance(item.unalias(), exp.Dot)}
    pairs = list(zip(struct.expressions[::2], struct.expressions[1::2], strict=True))
    kept = [entry for pair in pairs if pair[0].name in read for entry in pair]
    struct.set("expressions", kept or [exp.Literal.string(_ROW), number(1)])
