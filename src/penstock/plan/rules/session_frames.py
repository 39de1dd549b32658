"""Turns sessions as the frame of a window function into parts of their own.

    SELECT k, COUNT(*) OVER (PARTITION BY k ORDER BY ts SESSION WITH GAP INTERVAL '10' SECOND) AS n FROM t
    -> SELECT k, COUNT(*) OVER (PARTITION BY k, session) AS n
       FROM (SELECT k, SUM(begins) OVER (PARTITION BY k ORDER BY ts) AS session
             FROM (SELECT k, ts, CASE WHEN ts < LAG(ts) OVER (PARTITION BY k ORDER BY ts) + INTERVAL '10' SECOND
                                      THEN 0 ELSE 1 END AS begins
                   FROM t))

As in RisingWave, a session goes on where the next row comes before the gap is over. Rows of the same time are in one,
and so are those without a time: a sum without a frame counts all of them. What the window functions and the SELECT list
read is computed first, under names of ours, which `*` leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError
from penstock.plan.check_over import called_over
from penstock.plan.rules.inner_order import QUALIFIED, order_above
from penstock.plan.rules.qualify import OUTSIDE, is_star, named_items
from penstock.plan.time_bounds import constant_us
from penstock.plan.trees import call, number, whole_number
from penstock.sql.spans import own_span, span_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.errors import Span

_READ, _BEGINS, _SESSION = f"{QUALIFIED}_read", f"{QUALIFIED}_begins", f"{QUALIFIED}_session"
_ROWS, _BEGUN = "__rows", "__begun"
# These go by the whole partition, whatever the frame is.
_WITHOUT_FRAME: Final = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
)
# Of these the order of the rows is part of the value.
_IN_ORDER: Final = frozenset(
    {"first_value", "last_value", "nth_value", "first", "last", "array_agg", "collect_list", "listagg", "string_agg"}
)
# What stands around the values of a call.
_AROUND: Final = (
    exp.Distinct, exp.Filter, exp.IgnoreNulls, exp.Order, exp.Ordered, exp.RespectNulls, exp.Where, exp.WithinGroup,
)  # fmt: skip
_VALUES: Final = (exp.Anonymous, exp.Column, exp.Query, exp.Func)


def session_frames(tree: exp.Expr) -> exp.Expr:
    """The query without such frames."""
    for select in reversed(list(tree.find_all(exp.Select))):
        if not any(_own_frames(select)):
            continue
        made = _Sessions(select).made()
        if select is tree:
            tree = made
        else:
            select.replace(made)
    return tree


def _own_frames(select: exp.Select) -> list[exp.Window]:
    found = [node for node in select.find_all(exp.Window) if _is_session(node)]
    return [node for node in found if node.find_ancestor(exp.Select) is select]


def _is_session(node: exp.Expr) -> bool:
    spec = node.args.get("spec") if isinstance(node, exp.Window) else None
    return spec is not None and spec.args.get("kind") == "SESSION"


class _Sessions:
    """Writes a SELECT anew: its rows, which of them begin a session, the numbers of the sessions, and what is asked."""

    def __init__(self, select: exp.Select) -> None:
        self._select = select
        self._read: list[exp.Expr] = []  # what is computed for the functions
        self._begins: list[exp.Expr] = []  # which rows begin a session
        self._numbers: list[exp.Expr] = []  # of sessions
        self._known: dict[tuple[exp.Expr, ...], str] = {}

    def made(self) -> exp.Select:
        for node in _own_frames(self._select):
            _check(node)
        rows = self._select.copy()
        for clause in OUTSIDE:
            rows.set(clause, None)
        inner, seen = named_items(rows)
        written = iter([item for item in rows.expressions if not is_star(item)])
        plain = [item for item, each in zip(inner, rows.expressions, strict=True) if not _has_frame(each)]
        columns = [(each, None if isinstance(each, exp.Star) else self._column(next(written), each)) for each in seen]
        names = {each.name for each, over in columns if over is None}
        passed = [_among(each, names) for each, over in columns if over is None]
        outside = {clause: self._select.args.get(clause) for clause in OUTSIDE}
        if isinstance(outside["order"], exp.Order) and outside["distinct"] is None:
            outside["order"] = order_above(outside["order"], self._select.expressions, self._over_sessions)
        rows.set("expressions", [*plain, *self._read, *self._begins])
        hidden = [_passed(each) for each in self._read]
        numbered = exp.Select(expressions=[*passed, *hidden, *self._numbers], from_=_from(rows, _BEGUN))
        shown = [_among(each, names) if over is None else over for each, over in columns]
        return exp.Select(expressions=shown, from_=_from(numbered, _ROWS), **outside)

    def _column(self, item: exp.Expr, seen: exp.Expr) -> exp.Expr | None:
        """A column that goes by sessions, over the rows with their numbers; None for any other."""
        if not _has_frame(item):
            return None
        return exp.alias_(self._over_sessions(item.unalias().copy()), seen.name, quoted=True)

    def _over_sessions(self, node: exp.Expr) -> exp.Expr:
        """A part of the SELECT list, over the rows with the numbers of their sessions."""
        if _is_session(node):
            assert isinstance(node, exp.Window)
            return self._in_session(node)
        if not _has_frame(node):
            return self._taken(node)
        for child in list(node.iter_expressions()):
            child.replace(self._over_sessions(child))
        return node

    def _in_session(self, node: exp.Window) -> exp.Window:
        keys = [self._taken(key) for key in node.args.get("partition_by") or []]
        ordered, spec = node.args["order"].expressions[0], node.args["spec"]
        by = self._taken(ordered.this)
        session = self._session(node.args.get("partition_by") or [], ordered.this, keys, by, spec.args["start"])
        function = node.this
        self._take_values(function)
        made = exp.Window(this=function, partition_by=[*(key.copy() for key in keys), session], over="OVER")
        called = called_over(node)
        if spec.args.get("exclude") or (called is not None and called.name.lower() in _IN_ORDER):
            order = ordered.copy()
            order.set("this", by.copy())
            made.set("order", exp.Order(expressions=[order]))
            made.set("spec", _every_row(spec.args.get("exclude")))
        return made

    def _session(
        self, written: list[exp.Expr], time: exp.Expr, keys: list[exp.Expr], by: exp.Expr, gap: exp.Expr
    ) -> exp.Expr:
        """The number of the session of a row, counted once for all functions that go by it."""
        what = (*written, time, gap)
        name = self._known.get(what)
        if name is None:
            name = self._known[what] = f"{_SESSION}_{len(self._known) + 1}"
            begins = f"{_BEGINS}_{len(self._known)}"
            before = _over(call("LAG", time), written, time)
            goes_on = exp.LT(this=time.copy(), expression=exp.Add(this=before, expression=gap.copy()))
            first = exp.Case(ifs=[exp.If(this=goes_on, true=number(0))], default=number(1))
            self._begins.append(exp.alias_(first, begins, quoted=True))
            counted = _over(call("SUM", exp.column(begins, quoted=True)), keys, by)
            self._numbers.append(exp.alias_(counted, name, quoted=True))
        return exp.column(name, quoted=True)

    def _take_values(self, node: exp.Expr) -> None:
        """The values that a function takes are computed with the rows."""
        for child in list(node.iter_expressions()):
            if isinstance(child, _AROUND) or (
                isinstance(node, _AROUND) and called_over(exp.Window(this=node)) is child
            ):
                self._take_values(child)
            else:
                child.replace(self._taken(child))

    def _taken(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Star) or not any(isinstance(each, _VALUES) for each in node.walk()):
            return node.copy()
        for each in self._read:
            if each.this == node:
                return _reference(each.alias, node)
        name = f"{_READ}_{len(self._read) + 1}"
        self._read.append(exp.alias_(node.copy(), name, quoted=True))
        return _reference(name, node)


def _check(node: exp.Window) -> None:
    """Raise what is wrong with a frame, at its place."""
    spec = node.args["spec"]
    place = span_of(spec) or span_of(node)
    function = called_over(node)
    if function is not None and function.name.lower() in _WITHOUT_FRAME:
        raise _invalid(
            f"{function.name} goes by all rows of a partition and has no frame",
            "select FIRST_VALUE(ts) OVER (… SESSION WITH GAP …) in a subquery, and number by PARTITION BY that",
            own_span(function),
        )
    order = node.args.get("order")
    terms = len(order.expressions) if isinstance(order, exp.Order) else 0
    if terms != 1:
        raise _invalid(
            f"a session goes by one column of an order, not by {terms or 'none'}",
            "write OVER (PARTITION BY k ORDER BY ts SESSION WITH GAP INTERVAL '5' MINUTE)",
            place,
        )
    gap = spec.args["start"]
    length = constant_us(gap) if isinstance(gap, exp.Interval) else whole_number(gap)
    if length is None or length <= 0:
        raise _invalid(
            "the gap of sessions is longer than nothing, and equally long for all rows",
            "write INTERVAL '5' MINUTE, no months, or a whole number where the order is by numbers",
            span_of(gap) or place,
        )
    above: exp.Expr = node
    while above.parent is not None and not isinstance(above.parent, exp.Select):
        above = above.parent
    if above.arg_key != "expressions":
        raise NotYetError(
            "UPDATING_WINDOW_FUNCTION",
            "sessions as the frame of a window function stand in the SELECT list and in QUALIFY, nowhere else yet",
            hint="give the value a name in the SELECT list of a subquery, and use that",
            span=place,
        )


def _among(output: exp.Expr, names: Collection[str]) -> exp.Expr:
    """A reference to columns, of which only some are there: a star need not leave the others out."""
    made = output.copy()
    if isinstance(made, exp.Star):
        left_out = [each for each in made.args.get("except_") or [] if each.name in names]
        made.set("except_", left_out or None)
    return made


def _has_frame(item: exp.Expr) -> bool:
    """Whether a session is the frame of a function in it, outside of subqueries."""
    return any(_is_session(node) for node in item.walk(prune=lambda inner: isinstance(inner, exp.Query)))


def _over(function: exp.Expr, keys: list[exp.Expr], time: exp.Expr) -> exp.Window:
    order = exp.Order(expressions=[exp.Ordered(this=time.copy(), nulls_first=True)])
    return exp.Window(this=function, partition_by=[key.copy() for key in keys], order=order, over="OVER")


def _every_row(exclude: object) -> exp.WindowSpec:
    ends = {"start": "UNBOUNDED", "start_side": "PRECEDING", "end": "UNBOUNDED", "end_side": "FOLLOWING"}
    return exp.WindowSpec(kind="ROWS", **ends, exclude=exclude)


def _from(query: exp.Select, name: str) -> exp.From:
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    return exp.From(this=exp.Subquery(this=query, alias=alias))


def _passed(item: exp.Expr) -> exp.Expr:
    return exp.alias_(exp.column(item.alias, quoted=True), item.alias, quoted=True)


def _reference(name: str, node: exp.Expr) -> exp.Expr:
    made = exp.column(name, quoted=True)
    made.meta.update({key: value for key, value in node.meta.items() if key in ("line", "col", "start", "end", "stop")})
    return made


def _invalid(message: str, hint: str, span: Span | None) -> ResolutionError:
    return ResolutionError("INVALID_ARGUMENT", message, hint=hint, span=span)
