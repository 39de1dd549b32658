"""Windows as relations: TUMBLE(TABLE t, DESCRIPTOR(ts), …) and its kin in a FROM clause."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.context import PlanContext, Relation
from penstock.plan.event_times import is_clock, window_time
from penstock.plan.leaves import as_leaf
from penstock.plan.nodes import WindowAssign
from penstock.plan.relation import WINDOW_COLUMN, WINDOW_TYPE, EventTime, Field
from penstock.plan.scope import Scope, field_tree
from penstock.plan.session_rows import session_rows
from penstock.plan.trees import aliased, call, column, dot, identifier, number, select, subquery
from penstock.plan.windows import WindowSpec, spark_window, window_spec
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from penstock.plan.scope import Leaf
    from penstock.sql.nodes import WindowTable

_ADDED = ("window_start", "window_end", "window_time")


def assign_window(context: PlanContext, relation: Relation, leaf: Leaf, item: WindowTable) -> Relation:
    """The relation with the columns window_start, window_end and window_time added."""
    written = item.args["window"]
    span = span_of(item)
    spec = window_spec(written, span_of(written) or span)
    scope = Scope(leaves=[leaf])
    time, _ = window_time(context, relation.node, scope, written.args.get("time"), span)
    if is_clock(time):
        spec = replace(spec, processing=True)
        if context.kept and context.emit is not Emit.FINAL:
            context.notice("windows over processing time are shown as they fill, and their rows are kept for ever")
    keys = [scope.resolve(key) for key in written.args.get("keys") or []]
    for key in keys:
        context.read(key)
    spec = replace(spec, keys=tuple(key.field.name for key in keys))
    _check_names(relation, leaf, item)
    kept = [entry for entry in relation.fields if entry.name != WINDOW_COLUMN]
    event_time = relation.node.event_time
    fields = (
        *(replace(entry, event_time=False) if entry.event_time else entry for entry in kept),
        Field("window_start", TIMESTAMP, nullable=False, part="start"),
        Field("window_end", TIMESTAMP, nullable=False, part="end"),
        Field("window_time", TIMESTAMP, nullable=False, part="time", event_time=True),
        Field(WINDOW_COLUMN, WINDOW_TYPE, nullable=False, window=True, hidden=True),
    )
    delay = event_time.delay_us if event_time is not None else 0
    node = WindowAssign(
        fields=fields,
        inputs=(relation.node,),
        mode=relation.node.mode,
        key=None,
        event_time=EventTime(WINDOW_COLUMN, delay, of_window=True) if not relation.node.bounded else None,
        bounded=relation.node.bounded,
        window=spec,
    )
    tree = _tree(relation, leaf, kept, time, spec)
    made = Relation(node, tree, spec, relation.open, unmerged=spec.kind == "SESSION")
    if made.unmerged and context.closed_sessions and not spec.processing and not relation.open:
        return session_rows(made)
    return made


def _check_names(relation: Relation, leaf: Leaf, item: WindowTable) -> None:
    for entry in relation.fields:
        if not entry.hidden and entry.name.casefold() in _ADDED:
            raise ResolutionError(
                "DUPLICATE_COLUMN",
                f'"{leaf.alias}" has a column "{entry.name}" already, and the window adds one of that name',
                hint="give the column another name in a subquery",
                span=span_of(item.this),
            )


def _tree(relation: Relation, leaf: Leaf, kept: list[Field], time: exp.Expr, spec: WindowSpec) -> exp.Select:
    """The input with its hidden window; the visible bounds are read from it wherever they are used."""
    _, source = as_leaf(relation, leaf.alias)
    columns: list[exp.Expr] = [aliased(field_tree(entry, leaf.alias, leaf.window), entry.name) for entry in kept]
    if relation.open:
        columns = [exp.Column(this=exp.Star(), table=identifier(leaf.alias))]
    windowed = select([*columns, aliased(spark_window(spec, time), WINDOW_COLUMN)], source)
    return steps_of(windowed, kept, time, spec) if spec.kind == "CUMULATE" else windowed


def steps_of(windowed: exp.Select, kept: list[Field], time: exp.Expr, spec: WindowSpec) -> exp.Select:
    """Of the hopping windows of a row those that end inside the cumulating window it belongs to: its steps.

    Of processing time Spark is not asked for the windows: the view store is told the steps of each batch.
    """
    if spec.processing:
        return windowed
    inner = "__cumulated"
    stepped = windowed.copy()
    stepped.set("expressions", [*stepped.expressions, aliased(time.copy(), "__stepped")])
    window = column(WINDOW_COLUMN, inner)
    into = exp.Paren(
        this=exp.Sub(this=call("unix_micros", column("__stepped", inner)), expression=number(spec.offset_us))
    )
    past = exp.Paren(
        this=exp.Sub(
            this=call("unix_micros", dot(window.copy(), "end")),
            expression=call("unix_micros", column("__stepped", inner)),
        )
    )
    ends = exp.LTE(
        this=exp.Add(this=past, expression=call("pmod", into, number(spec.size_us))), expression=number(spec.size_us)
    )
    columns: list[exp.Expr] = [column(entry.name, inner) for entry in kept]
    return select([*columns, window], subquery(stepped, inner), where=exp.Where(this=ends))
