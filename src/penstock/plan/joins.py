"""What kind of join a join is: with a dimension, within a window, within a time bound, or for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.join_times import JoinBound, JoinTime, TimeColumn
from penstock.plan.kept_clock import is_random
from penstock.plan.moving_clock import MOVING
from penstock.plan.nodes import (
    Aggregate,
    Core,
    Filter,
    Join,
    JoinStrategy,
    Node,
    Project,
    Scan,
    SetOperation,
    Unnest,
    WindowAssign,
    all_nodes,
)
from penstock.plan.relation import HIDDEN_PREFIX, WINDOW_COLUMN, Mode, State
from penstock.plan.scope import shown_alias
from penstock.plan.time_bounds import TimeBounds, time_bounds
from penstock.plan.trees import column, nondeterministic_call, nondeterministic_name
from penstock.plan.windows import duration_words
from penstock.sql.format import format_tree
from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.plan.context import PlanContext
    from penstock.plan.scope import Leaf
    from penstock.plan.windows import WindowSpec


@dataclass(slots=True)
class Side:
    """One side of a join: what was planned so far, and the relations in it."""

    node: Node
    leaves: list[Leaf]
    windows: dict[str, WindowSpec]  # alias -> window of its rows
    carrier: exp.Expr | None = None  # the column or window that carries its event time

    @property
    def looked_up(self) -> bool:
        """Whether every relation in it is there to be joined with."""
        scans = [node for node in all_nodes(self.node) if isinstance(node, Scan)]
        return bool(scans) and all(scan.looked_up for scan in scans)

    @property
    def aliases(self) -> set[str]:
        return {leaf.alias for leaf in self.leaves}

    @property
    def times(self) -> set[tuple[str, str]]:
        return {(leaf.alias, entry.name) for leaf in self.leaves for entry in leaf.fields if entry.event_time}


@dataclass(slots=True)
class JoinRequest:
    """A join as written: kind, bound condition, and the conjuncts of WHERE that an inner join may use too."""

    kind: str
    condition: exp.Expr | None
    where: list[exp.Expr]
    written: str | None
    span: Span | None

    @property
    def conjuncts(self) -> list[exp.Expr]:
        own = list(conjuncts_of(self.condition)) if self.condition is not None else []
        return own + (self.where if self.kind in ("inner", "cross") else [])


@dataclass(slots=True)
class PlannedJoin:
    """The join node, the condition Spark is given, and what bounds the join in time."""

    node: Join
    condition: exp.Expr | None
    time: JoinTime


def conjuncts_of(condition: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that all must hold."""
    if isinstance(condition, exp.Paren):
        return conjuncts_of(condition.this)
    if isinstance(condition, exp.And):
        return conjuncts_of(condition.this) + conjuncts_of(condition.expression)
    return [condition]


def plan_join(context: PlanContext, left: Side, right: Side, request: JoinRequest) -> PlannedJoin:
    """What kind of join it is."""
    if left.node.bounded and right.node.bounded:
        static = _looked_up_side(context, left, right, request)
        strategy: JoinStrategy = "batch" if static is None else "broadcast"
        carrier = left if static == "right" else right
        node = _node(left, right, request, strategy=strategy, bounded=True, static=static, **_carried(carrier, static))
        bound: JoinBound = "batch" if static is None else "broadcast"
        return PlannedJoin(node, request.condition, JoinTime(bound, request.kind))
    _check_keys(request)
    if left.node.bounded or right.node.bounded:
        return _dimension(left, right, request)
    return _streams(context, left, right, request)


def _looked_up_side(
    context: PlanContext, left: Side, right: Side, request: JoinRequest
) -> Literal["left", "right"] | None:
    """The side of two bounded ones that a job joins the other with; None where the join has no such side.

    Where neither is there for that, a job reads the left one row by row and sees the right one as a whole.
    """
    if left.looked_up and not right.looked_up and request.kind in ("inner", "cross", "right"):
        return "left"
    if request.kind not in ("inner", "cross", "left", "semi", "anti"):
        return None
    return "right" if context.continuous or (right.looked_up and not left.looked_up) else None


def _carried(carrier: Side, static: Literal["left", "right"] | None) -> dict[str, object]:
    return {} if static is None else {"event_time": carrier.node.event_time}


def _node(left: Side, right: Side, request: JoinRequest, **known: object) -> Join:
    fields = left.node.fields if request.kind in ("semi", "anti") else left.node.fields + right.node.fields
    carrier = right if request.kind == "right" or left.node.bounded else left
    arguments: dict[str, object] = {
        "fields": fields,
        "inputs": (left.node, right.node),
        "event_time": None if request.kind == "full" else carrier.node.event_time,
        "kind": request.kind,
        "condition": request.written,
    }
    arguments.update(known)
    return Join(**arguments)  # type: ignore[arg-type]


def _check_keys(request: JoinRequest) -> None:
    own = conjuncts_of(request.condition) if request.condition is not None else []
    for conjunct in own:
        random = next((node for node in conjunct.walk() if is_random(node)), None)
        name = nondeterministic_name(random) if random is not None else MOVING
        if random is not None and name.casefold() != MOVING:  # a temporal filter: rows come and go with the clock
            raise UnsupportedError(
                "NONDETERMINISTIC_KEY",
                f"{name} differs each time it is computed and cannot say which rows of a stream are joined",
                hint=f"give each row of one side its value, FROM (SELECT *, {name}() AS x FROM …), and join by x",
                span=span_of(random) or request.span,
            )
    for conjunct in request.conjuncts:
        found = nondeterministic_call(conjunct)
        if found is not None and isinstance(conjunct, exp.EQ):
            raise UnsupportedError(
                "NONDETERMINISTIC_KEY",
                f"{nondeterministic_name(found)} differs each time it is computed and cannot be a join key",
                hint="compute the value where the row is produced and join on its column",
                span=span_of(found) or request.span,
            )


def _dimension(left: Side, right: Side, request: JoinRequest) -> PlannedJoin:
    stream = right if left.node.bounded else left
    if (
        request.kind == "full"
        or (request.kind == "left" and stream is right)
        or (request.kind == "right" and stream is left)
    ):
        raise _updating(
            f"a {request.kind} join that keeps the rows of a bounded table beside a stream changes over time",
            "keep the rows of the stream instead: put the stream on the other side, or use an inner join",
            request.span,
        )
    if request.kind in ("semi", "anti") and stream is right:
        raise _updating(
            f"a {request.kind} join of a bounded table with a stream changes over time",
            "put the stream on the left side",
            request.span,
        )
    if stream.node.mode is not Mode.APPEND:
        raise _updating(
            "a join of rows that change is not there yet",
            "join the stream first and aggregate afterwards",
            request.span,
        )
    static = "left" if stream is right else "right"
    node = _node(left, right, request, strategy="broadcast", static=static)
    return PlannedJoin(node, request.condition, JoinTime("broadcast", request.kind))


def _streams(context: PlanContext, left: Side, right: Side, request: JoinRequest) -> PlannedJoin:
    for side in (left, right):
        if side.node.mode is not Mode.APPEND:
            raise _updating(
                "a join of rows that change is not there yet",
                "join the streams first and aggregate afterwards",
                request.span,
            )
    window = _window_join(left, right, request)
    if window is not None:
        return window
    equalities = [conjunct for conjunct in request.conjuncts if connects(conjunct, left.aliases, right.aliases)]
    if not equalities and not _open(left, right):
        if any(_compares(conjunct, left, right) for conjunct in request.conjuncts):
            raise _updating(
                "a join of two streams without an equality between them is not there yet",
                f"add one to the ON clause, for example {_example(left, right)}",
                request.span,
            )
        raise _every_pair(left, right, request)
    pair = _bounded_times(left, right, request)
    if pair is not None:
        return _interval(left, right, request, *pair)
    if request.kind not in ("inner", "cross"):
        some = time_bounds(request.conjuncts, left.times, right.times)
        missing = "one bound" if some != TimeBounds() else "a bound"
        raise _updating(
            f"a {request.kind} join of two streams without {missing} on their event times changes over time",
            "bound both event times, such as a.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts + INTERVAL '1' HOUR",
            request.span,
        )
    context.warn(
        f"the join of {_listed(left)} with {_listed(right)} keeps every row of both streams for ever; bound their "
        "event times to let go of old rows"
    )
    state = State("every row of both streams", None)
    on = all_of(equalities) if request.condition is None else request.condition
    node = _node(left, right, request, kind="inner", strategy="stream", state=state)
    return PlannedJoin(node, on, JoinTime("forever", "inner", ends=_same_ends(left, right, request)))


def refuse_every_pair(left: Side, right: Side, request: JoinRequest) -> None:
    """Raises for a join of streams that nothing ends, of which one only grows, without a condition on both of them.

    The view store would keep every pair. Two sides whose rows replace each other have as many as they have keys.
    """
    if request.kind in ("semi", "anti") or any(_compares(conjunct, left, right) for conjunct in request.conjuncts):
        return
    if (_grows(left.node) and _endless(right.node)) or (_endless(left.node) and _grows(right.node)):
        raise _every_pair(left, right, request)


def _endless(node: Node, *, added: bool = False) -> bool:
    """Whether rows of a relation are rows of a stream, one by one; `added`: of one that rows are only added to."""
    if isinstance(node, Scan):
        return node.kind == "stream" and (not added or node.changes is Mode.APPEND)
    by_rows = isinstance(node, Core | Filter | Project | Unnest | WindowAssign | Join | SetOperation)
    return by_rows and (isinstance(node, Core) or any(_endless(below, added=added) for below in node.inputs))


def _grows(node: Node) -> bool:
    return _endless(node, added=True)


def _every_pair(left: Side, right: Side, request: JoinRequest) -> UnsupportedError:
    return UnsupportedError(
        "UNBOUNDED_CROSS_JOIN",
        f"the join of {_listed(left)} with {_listed(right)} needs a condition on both of them",
        hint=f"say in ON or WHERE which rows belong together, for example {_example(left, right)}",
        span=request.span,
    )


def _listed(side: Side) -> str:
    return ", ".join(shown_alias(leaf.alias) for leaf in side.leaves)


def _example(left: Side, right: Side) -> str:
    """An equality of two relations, for a hint."""
    names = [side.leaves[-1].alias for side in (left, right)]
    one, other = names if not any(name.startswith(HIDDEN_PREFIX) for name in names) else ("a", "b")
    return f"{one}.key = {other}.key"


def _bounded_times(left: Side, right: Side, request: JoinRequest) -> tuple[TimeColumn, TimeColumn, TimeBounds] | None:
    """The time of each side between which both bounds stand; where there are several, the one that the left side
    carries already, so that Spark has to follow no more than one."""
    carried = left.carrier
    first = (carried.table, carried.name) if isinstance(carried, exp.Column) else None
    for one in sorted(left.times, key=lambda time: (time != first, time)):
        for other in sorted(right.times):
            bounds = time_bounds(request.conjuncts, {one}, {other})
            if bounds.complete:
                return one, other, bounds
    return None


def _window_join(left: Side, right: Side, request: JoinRequest) -> PlannedJoin | None:
    """L.window_start = R.window_start AND L.window_end = R.window_end: equality of the windows themselves."""
    for first in left.windows:
        for second in right.windows:
            used = [c for c in request.conjuncts if _same_bound(c, first, second)]
            if not used:
                continue
            if left.windows[first] != right.windows[second] and _closed(left) and _closed(right):
                continue  # rows that have the same bound, as they may have any other value
            if left.windows[first] != right.windows[second]:
                raise ResolutionError(
                    "WINDOW_MISMATCH",
                    f'the windows of "{first}", {left.windows[first]}, and "{second}", {right.windows[second]}, differ',
                    hint="join relations of the same window, or group both by their windows first",
                    span=span_of(used[0]) or request.span,
                )
            rest = (
                [c for c in conjuncts_of(request.condition) if c not in used] if request.condition is not None else []
            )
            same = exp.EQ(this=column(WINDOW_COLUMN, first), expression=column(WINDOW_COLUMN, second))
            spec = left.windows[first]
            state = State("the rows of open windows of both sides", "dropped when the window closes")
            kind = "inner" if request.kind == "cross" else request.kind
            node = _node(left, right, request, kind=kind, strategy="stream", window=spec, state=state)
            time = JoinTime("window", kind, (first, WINDOW_COLUMN), (second, WINDOW_COLUMN))
            return PlannedJoin(node, all_of([same, *rest]), time)
    return None


def _same_ends(left: Side, right: Side, request: JoinRequest) -> tuple[TimeColumn, TimeColumn] | None:
    """The windows of both sides that end at the same time in all rows that are joined; None where none have to."""
    if not (_closed(left) and _closed(right)):
        return None
    for first in left.windows:
        for second in right.windows:
            bounds = [_bound_of(each.this) for each in request.conjuncts if _same_bound(each, first, second)]
            if any(bound is not None and bound[1] != "start" for bound in bounds):
                return (first, WINDOW_COLUMN), (second, WINDOW_COLUMN)
    return None


def _closed(side: Side) -> bool:
    """Whether the windows of a side have closed below the join: its rows are groups of them."""
    return any(isinstance(node, Aggregate) and node.window is not None for node in all_nodes(side.node))


def _interval(
    left: Side, right: Side, request: JoinRequest, one: TimeColumn, other: TimeColumn, bounds: TimeBounds
) -> PlannedJoin:
    first, second = ".".join(one), ".".join(other)
    low, high = bounds.low_us or 0, bounds.high_us or 0
    if low > high:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"the bounds of the join leave no time: {bounds.words(first, second)}",
            span=request.span,
        )
    kept = duration_words(max(abs(low), abs(high)))
    state = State(
        "rows of both sides that may still match", f"rows older than the bound ({kept}) and the watermark are dropped"
    )
    kind = "inner" if request.kind == "cross" else request.kind
    node = _node(
        left, right, request, kind=kind, strategy="stream", time_bound=bounds.words(first, second), state=state
    )
    return PlannedJoin(
        node, _interval_condition(left, right, request, one, other), JoinTime("interval", kind, one, other, low, high)
    )


def _interval_condition(
    left: Side, right: Side, request: JoinRequest, one: TimeColumn, other: TimeColumn
) -> exp.Expr | None:
    """The condition, with the conjuncts of WHERE that connect the rows or bound their times: Spark forgets by them."""
    own = conjuncts_of(request.condition) if request.condition is not None else []
    bounding = [conjunct for conjunct in own if time_bounds([conjunct], {one}, {other}) != TimeBounds()]
    told = [
        _opaque(conjunct) if conjunct not in bounding and _of_one_side(conjunct, left, right) else conjunct
        for conjunct in own
    ]
    wanted = [
        conjunct
        for conjunct in request.conjuncts
        if conjunct not in own
        and (
            (request.condition is None and connects(conjunct, left.aliases, right.aliases))
            or time_bounds([conjunct], {one}, {other}) != TimeBounds()
        )
    ]
    return all_of([*told, *wanted])


def _of_one_side(conjunct: exp.Expr, left: Side, right: Side) -> bool:
    tables = {found.table for found in conjunct.find_all(exp.Column)}
    return tables <= left.aliases or tables <= right.aliases


def _opaque(conjunct: exp.Expr) -> exp.Expr:
    """The same condition in a form that Spark does not look into. With `b.v > 0` as it stands, rows of b without a
    partner never come out of an outer join (seen on Spark 4.2); as if it were a bound on the time of b."""
    return exp.Coalesce(this=exp.Paren(this=conjunct.copy()), expressions=[exp.false()])


def no_equal_nulls(condition: exp.Expr | None) -> exp.Expr | None:
    """The condition of a full join of streams, told that NULL equals nothing: Spark finds such rows by the bytes of
    their keys, and of two NULLs those are equal."""
    if condition is None:
        return None
    keys = [conjunct.this for conjunct in conjuncts_of(condition) if isinstance(conjunct, exp.EQ)]
    there = [exp.Not(this=exp.Is(this=exp.Paren(this=key.copy()), expression=exp.Null())) for key in keys]
    return all_of([condition, *there])


def connects(conjunct: exp.Expr, left: set[str], right: set[str]) -> bool:
    """Whether a condition is an equality of relations on the left with relations on the right, by their names."""
    if not isinstance(conjunct, exp.EQ | exp.NullSafeEQ):
        return False
    first = {found.table for found in conjunct.this.find_all(exp.Column)}
    second = {found.table for found in conjunct.expression.find_all(exp.Column)}
    if not first or not second:
        return False
    return (first <= left and second <= right) or (first <= right and second <= left)


def _compares(conjunct: exp.Expr, left: Side, right: Side) -> bool:
    """Whether a condition speaks of both sides."""
    tables = {found.table for found in conjunct.find_all(exp.Column)}
    return bool(tables & left.aliases) and bool(tables & right.aliases)


def _open(left: Side, right: Side) -> bool:
    return any(leaf.open for leaf in (*left.leaves, *right.leaves))


def _same_bound(conjunct: exp.Expr, first: str, second: str) -> bool:
    if not isinstance(conjunct, exp.EQ):
        return False
    one, other = _bound_of(conjunct.this), _bound_of(conjunct.expression)
    if one is None or other is None or one[1] != other[1]:
        return False
    return {one[0], other[0]} == {first, second}


def _bound_of(node: exp.Expr) -> tuple[str, str] | None:
    if isinstance(node, exp.Column) and node.name == WINDOW_COLUMN:
        return node.table, "window"
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Column) and node.this.name == WINDOW_COLUMN:
        return node.this.table, node.expression.name
    return None


def all_of(conditions: list[exp.Expr]) -> exp.Expr | None:
    """The condition that all of these hold; None where there is none. What was taken out of brackets is put back."""
    result: exp.Expr | None = None
    for condition in conditions:
        part: exp.Expr = condition.copy()
        if len(conditions) > 1 and isinstance(part, exp.Or):
            part = exp.Paren(this=part)
        result = part if result is None else exp.And(this=result, expression=part)
    return result


def _updating(message: str, hint: str, span: Span | None) -> NotYetError:
    return NotYetError("UPDATING_JOIN", message, hint=hint, span=span, mode=Mode.RETRACT.value)


def written_condition(condition: exp.Expr | None) -> str | None:
    """A condition as the user wrote it, for EXPLAIN."""
    return format_tree(condition) if condition is not None else None
