"""Windows over rows that the view store keeps, as plain queries: of rows that change, and of sessions that show each
change before they close.

    TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '10' SECOND)
    -> SELECT *, <the start of its ten seconds> AS window_start, … FROM c WHERE ts IS NOT NULL

A row of hopping or cumulating windows is there once for each of them. The rows of a session follow one another within
the gap: each that comes later than that begins a new one, and its number tells it from the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.finish_plan import CLOSED_AFTER, CLOSED_UPTO
from penstock.plan.moving_clock import MOVING
from penstock.plan.nodes import Scan, WindowAssign, all_nodes
from penstock.plan.relation import Mode
from penstock.plan.rules.inner_order import QUALIFIED
from penstock.plan.scope import field_tree
from penstock.plan.trees import aliased, call, column, own_nodes, select, subquery, typed
from penstock.sql.nodes import WindowCall, WindowPart, WindowTable
from penstock.sql.statements import Emit
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from penstock.plan.context import PlanContext, Relation
    from penstock.plan.nodes import Node
    from penstock.plan.windows import WindowSpec

CLOSED_BY_CLOCK: Final = "windows over processing time are shown when they have ended, and their rows are kept for ever"
_CLOSING: Final = "penstock_closing_window"
_STAYS: Final = "penstock_windows_stay"
_WINDOWED: Final = "__windowed"
_MOST: Final = 64  # readings of a relation that one query should have
_MILLISECOND_US: Final = 1_000
_SHIFTS, _SHIFT = "__windows", f"{QUALIFIED}_shift"
# Names that * leaves out.
_TIME, _SAME_TIME, _BEGINS, _SESSION = (f"{QUALIFIED}_{name}" for name in ("time", "same_time", "begins", "session"))
_BOUNDS: Final = {"start": "window_start", "end": "window_end", "rowtime": "window_time"}


def shows_changes(context: PlanContext) -> bool:
    """Whether windows are shown before they close."""
    return context.emit is Emit.CHANGES or (context.emit is None and context.settings.emit_changes_always)


def never_closes(node: Node) -> bool:
    """Whether the rows of a source below replace each other, or the window is one of the clock, which closes nothing
    among rows that are kept: what is made of them is never final."""
    if on_clock(node):
        return True
    scans = [scan for scan in all_nodes(node) if isinstance(scan, Scan)]
    return any(scan.changes is not Mode.APPEND and scan.kind == "stream" for scan in scans)


def on_clock(node: Node) -> bool:
    """Whether there is a window over processing time below."""
    return any(isinstance(each, WindowAssign) and each.window.processing for each in all_nodes(node))


def of_closed_windows(rows: exp.Query) -> exp.Select:
    """The rows of windows that have ended by the clock of the view, which moves with each batch."""
    made = _select([exp.Star()], exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(_WINDOWED))))
    ended = exp.LTE(this=exp.column(_BOUNDS["end"]), expression=exp.Anonymous(this=MOVING, expressions=[]))
    made.set("where", exp.Where(this=ended))
    return made


def when_they_close(windowed: Relation, spec: WindowSpec) -> Relation:
    """Of rows with the bounds of their windows, those of the windows that a batch closes."""
    shown: list[exp.Expr] = [
        aliased(field_tree(entry, _WINDOWED, windowed.window), entry.name) for entry in windowed.fields
    ]
    end = typed(column("window_end", _WINDOWED), TIMESTAMP)
    upto = exp.LTE(this=end.copy(), expression=typed(call(CLOSED_UPTO), TIMESTAMP))
    upto.meta[_CLOSING] = spec
    closes = exp.And(this=exp.GT(this=end, expression=typed(call(CLOSED_AFTER), TIMESTAMP)), expression=upto)
    windowed.tree = select(shown, subquery(windowed.tree, _WINDOWED), where=exp.Where(this=closes))
    windowed.direct = False
    return windowed


def stay_here(rows: exp.Query) -> exp.Query:
    """The rows of windows, marked as those of the view store, which Spark is not to find by itself."""
    rows.meta[_STAYS] = True
    if isinstance(rows, exp.SetOperation):
        for side in (rows.this, rows.expression):
            stay_here(side)
    return rows


def stays_here(tree: exp.Expr) -> bool:
    """Whether a query is one that `stay_here` marked."""
    return bool(tree.meta.get(_STAYS))


def closing_spec(block: exp.Select) -> WindowSpec | None:
    """The windows of a SELECT that `when_they_close` made; None for any other."""
    where = block.args.get("where")
    for node in where.find_all(exp.LTE) if where is not None else ():
        spec: WindowSpec | None = node.meta.get(_CLOSING)
        if spec is not None and node.find_ancestor(exp.Select) is block:
            return spec
    return None


def windowed_rows(item: WindowTable, spec: WindowSpec, time: exp.Expr) -> exp.Query:
    """The rows of a relation with the bounds of their windows."""
    source = item.this
    if spec.kind == "SESSION":
        return _sessions(source, spec, time, item.args["window"].args.get("keys") or [])
    shifts = _shifts(spec)
    if len(shifts) > _MOST:
        return _numbered(source, spec, time, len(shifts))
    made: exp.Query | None = None
    for start, end, inside in (_bounds(spec, time, shift) for shift in shifts):
        rows = _select([exp.Star(), *_shown(_time(start), _time(end), _time(_plus(end, -_MILLISECOND_US)))], source)
        there: exp.Expr = _there(time)
        rows.set("where", exp.Where(this=there if inside is None else exp.And(this=there, expression=inside)))
        made = rows if made is None else exp.Union(this=made, expression=rows, distinct=False)
    assert made is not None
    return made


def _numbered(source: exp.Expr, spec: WindowSpec, time: exp.Expr, count: int) -> exp.Select:
    """The same for many windows a row, which are counted instead of written out."""
    first = 1 if spec.kind == "CUMULATE" else 0
    shift = exp.Cast(this=exp.column(_SHIFT, quoted=True), to=exp.DataType.build("BIGINT"))
    start, end, inside = _bounds(spec, time, shift)
    bounds = _shown(_time(start), _time(end), _time(_plus(end, -_MILLISECOND_US)))
    made = _select([exp.Star(), *bounds], source)
    numbers = _call("sequence", _number(first), _number(first + count - 1))
    names = exp.TableAlias(
        this=exp.to_identifier(_SHIFTS, quoted=True), columns=[exp.to_identifier(_SHIFT, quoted=True)]
    )
    made.set("joins", [exp.Join(this=exp.Unnest(expressions=[numbers], alias=names), kind="CROSS")])
    there = _there(time)
    made.set("where", exp.Where(this=there if inside is None else exp.And(this=there, expression=inside)))
    return made


def grouped_by_table(select: exp.Select, *, sessions_only: bool) -> exp.Select | None:
    """GROUP BY SESSION(ts, …), k over one relation as GROUP BY window_start, window_end, k over the rows of its
    windows; None where that is not what the query is."""
    group, from_ = select.args.get("group"), select.args.get("from_")
    if not isinstance(group, exp.Group) or not isinstance(from_, exp.From) or select.args.get("joins"):
        return None
    calls = [key for key in group.expressions if isinstance(key, WindowCall)]
    others = [key for key in group.expressions if not isinstance(key, WindowCall)]
    source = from_.this
    if len(calls) != 1 or not isinstance(source, exp.Table | exp.Subquery) or source.args.get("joins"):
        return None
    session = calls[0].kind == "SESSION"
    if (sessions_only and not session) or (session and not all(isinstance(key, exp.Column) for key in others)):
        return None
    made = select.copy()
    window = calls[0].copy()
    if session:
        window.set("keys", [exp.Column(this=key.this.copy()) for key in others])
    table = WindowTable(this=source.copy(), window=window, alias=source.args["alias"].copy() if source.alias else None)
    if isinstance(source, exp.Subquery):
        table.this.set("alias", None)
    made.set("from_", exp.From(this=table))
    # the time of a window follows from its end, and is a key only where it is asked for: a sink has keys to show
    nodes = _clause_nodes(made)
    timed = any(isinstance(node, WindowPart) and str(node.args["part"]) == "rowtime" for node in nodes)
    timed = timed or any(isinstance(node, exp.Column) and node.name.casefold() == "window_time" for node in nodes)
    bounds: list[exp.Expr] = [exp.column(name) for name in _BOUNDS.values() if timed or name != "window_time"]
    made.set("group", exp.Group(expressions=[*bounds, *(key.copy() for key in others)]))
    for part in [node for node in _clause_nodes(made) if isinstance(node, WindowPart)]:
        name = _BOUNDS.get(str(part.args["part"]))
        if name is None or part.this != calls[0]:
            return None
        alone = part.parent is made  # a column of the SELECT list keeps the name that it had
        part.replace(exp.alias_(exp.column(name), name) if alone else exp.column(name))
    return None if any(isinstance(node, WindowCall) for node in _clause_nodes(made)) else made


def _clause_nodes(select: exp.Select) -> list[exp.Expr]:
    """What a SELECT says itself: neither its CTEs nor what it reads, which may have windows of their own."""
    clauses = [part for name, part in select.args.items() if name not in ("with_", "from_", "joins", "laterals")]
    trees = [tree for part in clauses for tree in (part if isinstance(part, list) else [part])]
    return [node for tree in trees if isinstance(tree, exp.Expr) for node in own_nodes(tree)]


def _sessions(source: exp.Expr, spec: WindowSpec, time: exp.Expr, keys: list[exp.Expr]) -> exp.Select:
    def column(name: str) -> exp.Column:
        return exp.column(name, quoted=True)

    # A star leaves names of ours out, such as that of the time at which a row came: it is handed on by name.
    carried = [time] if time.name.startswith(QUALIFIED) else []
    timed = _select([exp.Star(), *carried, _as(_call("unix_micros", time), _TIME)], source)
    timed.set("where", exp.Where(this=_there(time)))
    before = _over(_call("lag", column(_TIME)), keys, column(_TIME))
    late = exp.GT(this=exp.Sub(this=column(_TIME), expression=before), expression=_number(spec.gap_us))
    begins = exp.Case(ifs=[exp.If(this=late, true=_number(1))], default=_number(0))
    begun = _select([exp.Star(), *carried, _as(column(_TIME), _SAME_TIME), _as(begins, _BEGINS)], _inner(timed))
    # rows of the same time are in one session: a frame by values counts all of them
    number = _over(_call("sum", column(_BEGINS)), keys, column(_SAME_TIME))
    numbered = _select([exp.Star(), *carried, _as(number, _SESSION)], _inner(begun))
    session = [*keys, column(_SESSION)]
    first, last = (_over(_call(name, time), session, None) for name in ("min", "max"))
    gap, short = (_interval(micros) for micros in (spec.gap_us, spec.gap_us - _MILLISECOND_US))
    end, last_moment = exp.Add(this=last, expression=gap), exp.Add(this=last.copy(), expression=short)
    return _select([exp.Star(), *_shown(first, end, last_moment)], _inner(numbered))


def _shifts(spec: WindowSpec) -> list[int]:
    """By how many slides the windows of a row lie before its last one; of a cumulating window, its steps."""
    if spec.kind == "CUMULATE":
        return list(range(1, spec.size_us // spec.step_us + 1))
    return list(range(-(-spec.size_us // (spec.slide_us or spec.size_us))))


def _bounds(spec: WindowSpec, time: exp.Expr, shift: int | exp.Expr) -> tuple[exp.Expr, exp.Expr, exp.Expr | None]:
    """Start and end in microseconds, and whether the row is in that window, where it may not be."""
    moment = _call("unix_micros", time)
    slide = spec.size_us if spec.kind == "CUMULATE" else spec.slide_us or spec.size_us
    into = _call("pmod", _plus(moment, -spec.offset_us), _number(slide))
    began = exp.Paren(this=exp.Sub(this=moment.copy(), expression=into))
    if spec.kind == "CUMULATE":
        end = _moved(began, shift, spec.step_us)
        return began, end, exp.GT(this=end.copy(), expression=moment.copy())
    start = _moved(began, shift, -slide)
    end = _plus(start, spec.size_us)
    return start, end, exp.GT(this=end.copy(), expression=moment.copy()) if spec.size_us % slide else None


def _shown(start: exp.Expr, end: exp.Expr, time: exp.Expr) -> list[exp.Expr]:
    return [_as(value, name) for value, name in zip((start, end, time), _BOUNDS.values(), strict=True)]


def _select(items: list[exp.Expr], source: exp.Expr) -> exp.Select:
    return exp.Select(expressions=[item.copy() for item in items], from_=exp.From(this=source.copy()))


def _inner(query: exp.Select) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("__rows", quoted=True)))


def _over(call: exp.Expr, keys: list[exp.Expr], order: exp.Expr | None) -> exp.Window:
    by = exp.Order(expressions=[exp.Ordered(this=order, nulls_first=True)]) if order is not None else None
    return exp.Window(this=call, partition_by=[key.copy() for key in keys], order=by, over="OVER")


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _as(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(value, name, quoted=True)


def _there(time: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=time.copy(), expression=exp.Null()))


def _time(micros: exp.Expr) -> exp.Expr:
    return _call("timestamp_micros", micros)


def _interval(micros: int) -> exp.Interval:
    return exp.Interval(this=exp.Literal.string(str(micros)), unit=exp.var("MICROSECOND"))


def _number(value: int) -> exp.Expr:
    return exp.Literal(this=str(value), is_string=False)


def _moved(value: exp.Expr, times: int | exp.Expr, micros: int) -> exp.Expr:
    """A moment later, or earlier, by so many times a length."""
    if isinstance(times, int):
        return _plus(value, times * micros)
    kind = exp.Add if micros > 0 else exp.Sub
    length = exp.Mul(this=times.copy(), expression=_number(abs(micros)))
    return exp.Paren(this=kind(this=value.copy(), expression=length))


def _plus(value: exp.Expr, micros: int) -> exp.Expr:
    if micros == 0:
        return value.copy()
    kind = exp.Add if micros > 0 else exp.Sub
    return exp.Paren(this=kind(this=value.copy(), expression=_number(abs(micros))))
