"""GROUP BY: its keys, its window, and how the groups change over time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.check_calls import asks_grouping
from penstock.plan.context import UnmergedSessionError
from penstock.plan.emission import KEEP_IT, never_closing, never_final
from penstock.plan.event_times import is_clock, window_time
from penstock.plan.grouping_sets import repeats_a_set
from penstock.plan.nodes import Aggregate, Node, Scan, all_nodes
from penstock.plan.relation import WINDOW_COLUMN, Mode, State
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.session_rows import one_session
from penstock.plan.trees import aggregate_text, column, nondeterministic_call, nondeterministic_name, own_nodes
from penstock.plan.window_calls import WindowBinding
from penstock.plan.windows import spark_window, window_spec
from penstock.sql.format import format_tree
from penstock.sql.nodes import WindowCall, WindowPart
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.plan.context import PlanContext
    from penstock.plan.expressions import ExpressionBinder
    from penstock.plan.from_clause import Bound
    from penstock.plan.scope import Scope

_SETS = (exp.GroupingSets, exp.Cube, exp.Rollup)


@dataclass(slots=True)
class Grouping:
    """The bound GROUP BY of a SELECT. The bounds of a window are one key: the window."""

    keys: list[exp.Expr] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    window: WindowBinding | None = None
    sets: list[exp.Expr] = field(default_factory=list)  # bound GROUPING SETS, ROLLUP and CUBE
    grouped: bool = True  # false: aggregates without GROUP BY, one row for everything
    set_keys: list[exp.Expr] = field(default_factory=list)
    set_span: Span | None = None

    @classmethod
    def whole(cls) -> Grouping:
        """Aggregates over the whole input."""
        return cls(grouped=False)

    def clause(self) -> exp.Group | None:
        """The GROUP BY for Spark."""
        if not self.grouped:
            return None
        return exp.Group(expressions=[key.copy() for key in [*self.keys, *self.sets]])

    def operator(
        self, context: PlanContext, written: exp.Select, node: Node, texts: tuple[str, ...], trees: list[exp.Expr]
    ) -> Node:
        """The aggregate over `node`, with its change mode and its state."""
        spec = self.window.spec if self.window is not None else None
        arguments = {
            "fields": (),
            "inputs": (node,),
            "group_by": tuple(self.texts),
            "aggregates": texts,
            "window": spec,
            "grouping_sets": bool(self.sets),
        }
        if node.bounded:
            return Aggregate(**arguments, bounded=True, emit=None)  # type: ignore[arg-type]
        if node.mode is not Mode.APPEND:
            self._refuse_final(context, written)
            if changes_at_source(node):
                raise updating_input(written, node)
            raise _updating_aggregate(written, trees)
        emit = self._emit(context, written)
        mode = self._changes(emit)
        if mode is not Mode.APPEND and self.window is None:
            self._refuse_updating(context, written, trees)
        if mode is not Mode.APPEND and repeats_a_set(self.clause()):
            raise self._repeated(written)
        return Aggregate(
            **arguments,  # type: ignore[arg-type]
            mode=mode,
            event_time=node.event_time,
            state=self._state(),
            emit=emit,
        )

    def _changes(self, emit: Emit) -> Mode:
        if emit is Emit.FINAL:
            return Mode.APPEND
        # the bounds of a session change with its rows
        return Mode.RETRACT if self.window is not None and self.window.spec.kind == "SESSION" else Mode.UPSERT

    def _emit(self, context: PlanContext, written: exp.Select) -> Emit:
        asked = context.emit if context.depth == context.emit_depth else None
        if context.emit is Emit.CHANGES and context.depth > context.emit_depth:
            asked = Emit.CHANGES  # an answer that shows open windows is made of open windows
        if self.window is None:
            if asked is Emit.FINAL:
                raise never_final("a group is never finished", context.emit_span or span_of(written))
            return Emit.CHANGES
        if asked is None:
            asked = Emit.CHANGES if context.settings.emit_changes_always else Emit.FINAL
        return asked

    def _refuse_final(self, context: PlanContext, written: exp.Select) -> None:
        if self.window is not None and context.emit is Emit.FINAL and context.depth == context.emit_depth:
            raise never_closing(context.emit_span or span_of(written))

    def _refuse_updating(self, context: PlanContext, written: exp.Select, trees: list[exp.Expr]) -> None:
        if self.sets:
            raise NotYetError(
                "CLAUSE_NOT_YET",
                "grouping sets without a window that closes are not there yet",
                hint="add a window to the GROUP BY, or write one query for each set",
                span=self.set_span or span_of(written.args["group"]),
                mode=Mode.UPSERT.value,
            )
        if context.in_spark:
            return  # as sets of values, see rules.distinct_aggregates
        for tree in trees:
            for node in own_nodes(tree):
                if aggregate_text(node) is not None and node.find(exp.Distinct) is not None:
                    raise _updating_distinct(node)

    def _repeated(self, written: exp.Select) -> NotYetError:
        """Spark's state has a row for each group and set, and nothing that tells two of the same set apart."""
        return NotYetError(
            "CLAUSE_NOT_YET",
            "the same grouping set twice, in windows that show each change, is not there yet",
            hint="leave one of them out, or let windows close with EMIT FINAL",
            span=self.set_span or span_of(written.args["group"]),
            mode=Mode.UPSERT.value,
        )

    def _state(self) -> State:
        per = ", ".join(self.texts)
        if self.window is not None:
            moves = "clock" if self.window.spec.processing else "watermark"
            bound = f"dropped when the {moves} passes the end of the window"
            return State(f"one row for each group ({per}) of an open window", bound)
        if not self.keys:
            return State("one row", "a single group")
        return State(f"one row for each group ({per})", None)


def plan_grouping(
    context: PlanContext, written: exp.Select, bound: Bound, scope: Scope, binder: ExpressionBinder
) -> Grouping | None:
    """The bound GROUP BY, or None where there is none."""
    group = written.args.get("group")
    if not isinstance(group, exp.Group):
        return None
    listed = _all_keys(written, binder) if group.args.get("all") else group.expressions
    if not listed:
        return None  # GROUP BY ALL over aggregates alone
    keys = [_meant(written, key, scope) for key in listed if not isinstance(key, _SETS)]
    sets = [key for key in group.expressions if isinstance(key, _SETS)]
    nested = [inner for entry in sets for inner in _leaves(entry)]
    grouping = Grouping()
    binder.aggregates_allowed = False
    try:
        grouping.window = _window(context, [*keys, *nested], bound, scope)
        if grouping.window is not None:
            called = {item.alias.casefold() for item in written.expressions if isinstance(item.unalias(), WindowCall)}
            grouping.window.names |= called
        binder.window = grouping.window
        for key in keys:
            _add_key(grouping, binder, key, bound)
        for entry in sets:
            grouping.sets.append(_bind_set(grouping, binder, entry))
            grouping.set_span = grouping.set_span or span_of(entry)
    finally:
        binder.aggregates_allowed = True
    if bound.unmerged:
        _check_session_keys(grouping, group)
    _check_cumulate_end(grouping, group, scope)
    return grouping


def _all_keys(written: exp.Select, binder: ExpressionBinder) -> list[exp.Expr]:
    """The keys of GROUP BY ALL: what the SELECT list shows without an aggregate in it, and more than a constant."""
    keys: list[exp.Expr] = []
    for item in written.expressions:
        value = item.unalias()
        if isinstance(value, exp.Star) or (isinstance(value, exp.Column) and isinstance(value.this, exp.Star)):
            raise ResolutionError(
                "INVALID_ARGUMENT",
                "GROUP BY ALL groups by what the SELECT list names, and * names nothing",
                hint="write the columns out",
                span=span_of(item),
            )
        calls = [node for node in value.find_all(exp.Anonymous) if not isinstance(node.parent, exp.Window)]
        if any(binder.aggregates(call) for call in calls) or value.find(exp.Window) is not None:
            continue
        if value.find(exp.Column, exp.Anonymous, WindowCall, WindowPart) is not None:
            keys.append(value)
    return keys


def _check_cumulate_end(grouping: Grouping, group: exp.Group, scope: Scope) -> None:
    """The start of a cumulating window does not tell its steps apart; of other windows either bound does."""
    window = grouping.window
    if window is None or window.spec.kind != "CUMULATE":
        return
    columns = [found for key in group.find_all(exp.Column) if (found := scope.find(key)) is not None]
    if not any(found.field.part in ("end", "time") or found.field.window for found in columns):
        raise ResolutionError(
            "INVALID_WINDOW",
            "a cumulating window is grouped by its end: the start is the same for every step",
            hint="write GROUP BY window_start, window_end",
            span=span_of(group),
        )


def _check_session_keys(grouping: Grouping, group: exp.Group) -> None:
    """Sessions are found for each PARTITION BY key; Spark finds them for each group, so the two must be the same."""
    window = grouping.window
    if window is None:
        raise unmerged_session(span_of(group))
    keys = {key.name for key in grouping.keys if isinstance(key, exp.Column) and key != window.tree}
    others = [key for key in grouping.keys if not isinstance(key, exp.Column)]
    if keys != set(window.spec.keys) or others:
        listed = ", ".join(window.spec.keys) or "no key"
        raise UnmergedSessionError(
            "CLAUSE_NOT_YET",
            f"a session window partitioned by {listed} and grouped by other keys is not there yet",
            hint="group by window_start, window_end and exactly the keys of PARTITION BY",
            span=span_of(group),
        )


def unmerged_session(span: Span | None) -> UnmergedSessionError:
    """The error for rows of a session window that are not grouped by it."""
    return UnmergedSessionError(
        "CLAUSE_NOT_YET",
        "a session window without a GROUP BY over it is not there yet",
        hint="group by window_start, window_end and the keys of PARTITION BY: only then are sessions known",
        span=span,
    )


def _meant(written: exp.Select, key: exp.Expr, scope: Scope) -> exp.Expr:
    """A key that is an output name and no column of the input is the expression of that name."""
    if isinstance(key, exp.Paren):
        return _meant(written, key.this, scope)
    if isinstance(key, exp.Column) and scope.find(key) is None:
        found = alias_of(written, key)
        if found is not None:
            return found
    return key


def _leaves(entry: exp.Expr) -> list[exp.Expr]:
    if isinstance(entry, exp.GroupingSets | exp.Cube | exp.Rollup | exp.Tuple):
        return [leaf for inner in entry.expressions for leaf in _leaves(inner)]
    if isinstance(entry, exp.Paren):
        return _leaves(entry.this)
    return [entry]


def _window(context: PlanContext, keys: list[exp.Expr], bound: Bound, scope: Scope) -> WindowBinding | None:
    found: list[tuple[exp.Expr, WindowBinding]] = []
    for key in keys:
        call = key.this if isinstance(key, WindowPart) else key
        if isinstance(call, WindowCall):
            span = span_of(key)
            spec = window_spec(call, span)
            if spec.kind == "CUMULATE":
                raise ResolutionError(
                    "INVALID_WINDOW",
                    "CUMULATE makes several rows of one, so it stands in the FROM clause",
                    hint="write FROM CUMULATE(TABLE t, DESCRIPTOR(ts), step, size) GROUP BY window_start, window_end",
                    span=span,
                )
            time, _ = window_time(context, bound.node, scope, call.args.get("time"), span)
            if is_clock(time):
                spec = replace(spec, processing=True)
            found.append((key, WindowBinding(spec, spark_window(spec, time), call)))
        elif isinstance(key, exp.Column):
            binding = _of_relation(key, bound, scope)
            if binding is not None:
                found.append((key, binding))
    if not found:
        return None
    first_key, first = found[0]
    for key, other in found[1:]:
        if other.spec != first.spec or (
            other.tree != first.tree and (first.written is not None or other.written is not None)
        ):
            raise ResolutionError(
                "MULTIPLE_WINDOWS",
                f"one GROUP BY has two windows, {format_tree(first_key)} and {format_tree(key)}",
                hint="group by one window and join or union the results",
                span=span_of(key),
            )
    return first if _closes(first, keys, bound, scope) else None


def _closes(window: WindowBinding, keys: list[exp.Expr], bound: Bound, scope: Scope) -> bool:
    """Whether groups are those of one window. Of sessions that have closed below, one bound alone does not tell the end
    of a group: it is a column like any other."""
    if window.spec.kind != "SESSION" or window.written is not None or bound.unmerged:
        return True
    found = [entry.field for key in keys if isinstance(key, exp.Column) and (entry := scope.find(key)) is not None]
    parts = {"window" if entry.window else entry.part or "" for entry in found} - {""}
    return one_session(bound.node, window.spec, parts, {entry.name for entry in found if entry.part is None})


def _of_relation(key: exp.Column, bound: Bound, scope: Scope) -> WindowBinding | None:
    resolved = scope.find(key)
    if resolved is None or resolved.leaf is None or resolved.leaf.alias not in bound.windows:
        return None
    if resolved.field.part not in ("start", "end", "time") and not resolved.field.window:
        return None
    alias = resolved.leaf.alias
    return WindowBinding(bound.windows[alias], column(WINDOW_COLUMN, alias))


def _add_key(grouping: Grouping, binder: ExpressionBinder, key: exp.Expr, bound: Bound) -> None:
    text = format_tree(key)
    tree = _key_tree(grouping, binder, key)
    _check_deterministic(tree, key, bound)
    grouping.texts.append(text)
    if tree not in grouping.keys:
        grouping.keys.append(tree)


def _key_tree(grouping: Grouping, binder: ExpressionBinder, key: exp.Expr) -> exp.Expr:
    tree = binder.bind(key)
    window = grouping.window
    if window is not None and _bound_of(tree, window):
        return window.tree.copy()
    return tree


def _bound_of(tree: exp.Expr, window: WindowBinding) -> bool:
    from penstock.plan.scope import window_bound

    return tree == window.tree or any(
        tree == window_bound(window.tree.copy(), part, window.spec) for part in ("start", "end", "time")
    )


def _check_deterministic(tree: exp.Expr, key: exp.Expr, bound: Bound) -> None:
    found = nondeterministic_call(tree)
    if found is not None and not bound.node.bounded:
        raise UnsupportedError(
            "NONDETERMINISTIC_KEY",
            f"{nondeterministic_name(found)} differs each time it is computed and cannot be a grouping key",
            hint="group by a column, or by a function of columns",
            span=span_of(key),
        )


def _bind_set(grouping: Grouping, binder: ExpressionBinder, entry: exp.Expr) -> exp.Expr:
    if isinstance(entry, exp.GroupingSets | exp.Cube | exp.Rollup | exp.Tuple):
        inner: list[exp.Expr] = []
        for part in entry.expressions:
            bound = _bind_set(grouping, binder, part)
            # both bounds of a window are the window; a set that is there twice gives its rows twice
            if bound not in inner or not (isinstance(entry, exp.Tuple) or _is_window(grouping, bound)):
                inner.append(bound)
        return type(entry)(expressions=inner)
    if isinstance(entry, exp.Paren):
        return exp.Paren(this=_bind_set(grouping, binder, entry.this))
    tree = _key_tree(grouping, binder, entry)
    grouping.texts.append(format_tree(entry))
    grouping.set_keys.append(tree)
    return tree.copy()


def _is_window(grouping: Grouping, bound: exp.Expr) -> bool:
    return grouping.window is not None and bound == grouping.window.tree


def check_grouped(grouping: Grouping, tree: exp.Expr, scope: Scope) -> None:
    """Every column of an output must be grouped or inside an aggregate, or of a query around: one value there."""
    keys = [*grouping.keys, *grouping.set_keys]
    around = [node for node in own_nodes(tree) if isinstance(node, exp.Column) and scope.is_around(node)]
    _check([*keys, *around], tree)


def refuse_around(context: PlanContext, tree: exp.Expr, scope: Scope) -> None:
    """Spark's subqueries that aggregate have columns of the query around in WHERE and HAVING alone."""
    found = next((node for node in own_nodes(tree) if isinstance(node, exp.Column) and scope.is_around(node)), None)
    if found is None:
        return
    what = f'column "{found.name}" of the query around beside the aggregates of a subquery'
    hint = f"use it outside of the subquery, such as (SELECT COUNT(*) FROM …) + {found.name}"
    if not context.continuous:
        raise UnsupportedError("UNSUPPORTED_CLAUSE", f"Spark takes no {what}", hint=hint, span=span_of(found))
    raise NotYetError("CLAUSE_NOT_YET", f"{what} is not there yet", hint=hint, span=span_of(found))


def _check(keys: list[exp.Expr], node: exp.Expr) -> None:
    if node in keys or aggregate_text(node) is not None or isinstance(node, exp.Subquery):
        return
    if isinstance(node, exp.Filter | exp.WithinGroup) and aggregate_text(node.this) is not None:
        return
    if asks_grouping(node):
        _check_asked(keys, node)
    if isinstance(node, exp.Column) and node.name == WINDOW_COLUMN:
        raise ResolutionError(
            "NOT_GROUPED",
            "a bound of the window is selected, and the GROUP BY does not have the window",
            hint="add it: GROUP BY window_start, window_end, …",
            span=span_of(node),
        )
    if isinstance(node, exp.Column):
        raise ResolutionError(
            "NOT_GROUPED",
            f'column "{node.name}" is neither in the GROUP BY nor inside an aggregate',
            hint=f"add it to the GROUP BY, or aggregate it, for example with MAX({node.name})",
            span=span_of(node),
        )
    for inner in node.iter_expressions():
        _check(keys, inner)


def _check_asked(keys: list[exp.Expr], node: exp.Expr) -> None:
    for asked in node.expressions:
        if asked not in keys:
            raise ResolutionError(
                "NOT_GROUPED",
                f"{node.name.upper()} takes keys of the GROUP BY, and {asked.name or 'this'} is none",
                hint="give it a key, or add this to the GROUP BY",
                span=span_of(asked) or span_of(node),
            )


def changes_at_source(node: Node) -> bool:
    """Whether changes come from a source rather than from an aggregate of the query itself."""
    if isinstance(node, Aggregate):
        return False
    return all(changes_at_source(inner) for inner in node.inputs)


def updating_input(written: exp.Select, node: Node) -> NotYetError:
    """The error for a query over a relation whose rows change."""
    scans = [scan for scan in all_nodes(node) if isinstance(scan, Scan) and scan.mode is not Mode.APPEND]
    name = scans[0].relation if scans else "the input"
    if scans and scans[0].kind == "materialized view":
        hint = f'build on what "{name}" is built on: put its query in the place of its name'
    elif scans and scans[0].key is None:
        hint = "add PRIMARY KEY (column) NOT ENFORCED to it, by which its rows replace each other"
    else:
        hint = KEEP_IT
    return NotYetError(
        "UPDATING_INPUT",
        f'queries over "{name}", whose rows change ({node.mode.value}), are not there yet',
        hint=hint,
        span=span_of(written.args["from_"].this),
        mode=node.mode.value,
    )


def _updating_aggregate(written: exp.Select, trees: list[exp.Expr]) -> NotYetError:
    calls = [node for tree in trees for node in own_nodes(tree) if aggregate_text(node) is not None]
    return NotYetError(
        "UPDATING_AGGREGATE",
        "an aggregate over rows that change is not there yet",
        hint="give the inner aggregate a window that closes (EMIT FINAL), or store it as a view and query the view",
        span=span_of(calls[0] if calls else written),
        mode=Mode.UPSERT.value,
    )


def _updating_distinct(node: exp.Expr) -> NotYetError:
    return NotYetError(
        "UPDATING_DISTINCT",
        f"{aggregate_text(node)} without a window that closes is not there yet",
        hint="group by a window, or use APPROX_COUNT_DISTINCT",
        span=span_of(node),
        mode=Mode.UPSERT.value,
    )
