"""Which rows came too late: the query that finds them among the re-read rows of a batch.

Every scan is read again with one more column, `__source`. The query carries it from the scans to the first operator
above each of them that waits for the watermark, through projections, filters, UNNEST and UNION ALL, and there counts,
for every source row that reaches the operator, the windows it belongs to and those that had closed. A source row is
listed once, also where UNNEST makes several rows of it: all of them have its time, and so they miss the same windows.

The rules are those by which Spark drops rows. A window is closed when its end is not after the watermark, and a row of
a session stands for the window from its own time to its time plus the gap. A side of a join within a time bound, and
DISTINCT with a time, take no row whose time is not after the watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import InternalError
from penstock.plan.closing import closes, distinct_key, time_joins
from penstock.plan.job_dimensions import is_static
from penstock.plan.join_times import join_time
from penstock.plan.joins import conjuncts_of
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.spark_blocks import aggregates, is_window_call, relations, selects, stream_joins, window_key
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import aliased, call, column, dot, number, select, subquery

if TYPE_CHECKING:
    from penstock.plan.job_plan import JobPlan
    from penstock.plan.join_times import JoinTime, TimeColumn

SOURCE_COLUMN: Final = "__source"  # STRUCT<scan STRING, partition INT, offset BIGINT, row STRING>
LATE_COLUMNS: Final = (SOURCE_COLUMN, "event_time", "missed", "windows")
_TIME: Final = "__time"
_WATERMARK: Final = "${W}"


def late_sql(job: JobPlan, watermark_us: int) -> str:
    """Spark SQL over the re-read scan views: for each source row that missed a window under the watermark, its
    `__source`, `event_time`, and how many of its `windows` it `missed`; late is one that missed all. Of an operator
    without windows a row has one chance, and so one window.

    Only for a job that uses event time: in others nothing is ever late.
    """
    if job.late is None:
        raise InternalError("nothing is late in a job without windows")
    return job.late.replace(_WATERMARK, str(watermark_us))


def late_text(tree: exp.Expr) -> str | None:
    """The text of `late_sql` with a mark in the place of the watermark."""
    found: exp.Query | None = None
    for query in _late_queries(tree):
        found = query if found is None else exp.Union(this=found, expression=query, distinct=False)
    return spark_sql(found) if found is not None else None


def _late_queries(tree: exp.Expr) -> list[exp.Select]:
    """For each scan the rows that miss the first operator above it that waits."""
    found: list[exp.Select] = []
    for block in selects(tree):
        if time_joins(block):
            made = [_fresh(block, only=alias) for alias in _sides(block)]
            found += [_side(side, alias) for side, alias in zip(made, _sides(block), strict=True) if side is not None]
        elif closes(block):
            fresh = _fresh(block)
            found += [_rows(fresh)] if fresh is not None else []
    return found


def _fresh(block: exp.Select, only: str | None = None) -> exp.Select | None:
    """A copy of a SELECT over rows that have waited for nothing below it, in all relations or one; None without any.

    Of a UNION ALL the branches that wait are left out: what they let through is in time.
    """
    made = block.copy()
    for alias, below in relations(made).items():
        if isinstance(below, exp.Table) or is_static(below) or only not in (None, alias):
            continue
        fresh = _unwaited(below)
        if fresh is None:
            return None
        if fresh is not below:
            below.replace(fresh)
    return made


def _unwaited(query: exp.Expr) -> exp.Expr | None:
    if isinstance(query, exp.SetOperation):
        left, right = _unwaited(query.this), _unwaited(query.expression)
        if left is None or right is None:
            return left if right is None else right
        query.set("this", left)
        query.set("expression", right)
        return query
    if not isinstance(query, exp.Select) or closes(query):
        return None
    return _fresh(query)


# windows and DISTINCT


def _rows(block: exp.Select) -> exp.Select:
    """The rows that reach a windowed aggregate or DISTINCT, counted by source row; the SELECT is changed in place."""
    key = window_key(block) or distinct_key(block)
    assert key is not None
    kept = key.copy()
    source, time = _carried(block)
    if is_window_call(key):
        time = key.expressions[0].copy()
    for clause in ("group", "having", "distinct"):
        block.set(clause, None)
    if is_window_call(key) or (isinstance(key, exp.Column) and key.name == WINDOW_COLUMN):
        assert time is not None
        return _counted(block, source, time, kept)
    return _counted(block, source, kept, None)


def _counted(block: exp.Select, source: exp.Expr, time: exp.Expr, window: exp.Expr | None) -> exp.Select:
    """The rows of a SELECT by source row: with how many of their windows closed; without a window, whether in time."""
    rows = "__rows"
    items = [aliased(source, SOURCE_COLUMN), aliased(time, _TIME)]
    ends: exp.Expr = column(_TIME, rows)
    if window is not None:
        items.insert(0, aliased(window, WINDOW_COLUMN))
        ends = dot(column(WINDOW_COLUMN, rows), "end")
    block.set("expressions", items)
    watermark = call("timestamp_micros", exp.Var(this=_WATERMARK))
    missed = call("count_if", exp.LTE(this=ends, expression=watermark))
    counted: list[exp.Expr] = [
        column(SOURCE_COLUMN, rows),
        aliased(call("min", column(_TIME, rows)), "event_time"),
        aliased(missed, "missed"),
        aliased(call("count", exp.Star()), "windows"),
    ]
    return select(
        counted,
        subquery(block, rows),
        group=exp.Group(expressions=[column(SOURCE_COLUMN, rows)]),
        having=exp.Having(this=exp.GT(this=missed.copy(), expression=number(0))),
    )


# joins


def _sides(block: exp.Select) -> list[str]:
    """The relations of a SELECT that come into one of its joins as they are."""
    first, joined = _first_and_joined(block)
    comes_in = [alias for alias in relations(block) if alias == first or alias in joined]
    return [alias for alias in comes_in if _bound_of(block, alias) is not None]


def _first_and_joined(block: exp.Select) -> tuple[str, dict[str, JoinTime]]:
    """The stream that the FROM clause begins with, and those that are joined to it."""
    joined = {join.this.alias_or_name: time for join, time in stream_joins(block)}
    streams = [alias for alias, below in relations(block).items() if alias not in joined and not is_static(below)]
    return streams[0], joined


def _bound_of(block: exp.Select, alias: str) -> TimeColumn | None:
    """The time or window by which a relation comes into its join."""
    first, joined = _first_and_joined(block)
    time = stream_joins(block)[0][1] if alias == first else joined[alias]
    side = time.left if alias == first else time.right
    return side if side is not None and side[0] == alias else None


def _side(made: exp.Select, alias: str) -> exp.Select:
    """The rows of one side of a join, counted by source row; the SELECT is changed in place."""
    bound = _bound_of(made, alias)
    assert bound is not None
    kept = _conditions(made, alias)
    for clause in ("group", "having", "distinct", "where"):
        made.set(clause, None)
    _only(made, alias)
    source, time = _carried(made)
    if kept:
        made.set("where", exp.Where(this=exp.and_(*kept, copy=False)))
    if bound[1] == WINDOW_COLUMN:
        assert time is not None
        return _counted(made, source, time, column(WINDOW_COLUMN, alias))
    return _counted(made, source, column(bound[1], alias), None)


def _only(block: exp.Select, alias: str) -> None:
    """Leaves of a FROM clause what one side of a join is made of."""
    first, _ = _first_and_joined(block)
    joins = block.args.get("joins") or []
    if alias != first:
        block.set("from_", exp.From(this=next(join.this for join in joins if join.this.alias_or_name == alias)))
        block.set("joins", [])
        return
    kept = []
    for join in joins:
        time = join_time(join)
        if time is not None and time.of_streams:
            break
        kept.append(join)
    block.set("joins", kept)


def _conditions(block: exp.Select, alias: str) -> list[exp.Expr]:
    """What a row of one side must be like to count at all: another one is not missed, in time or not."""
    first, _ = _first_and_joined(block)
    joins = [(join, time) for join, time in stream_joins(block) if alias in (first, join.this.alias_or_name)]
    join, time = joins[0]
    kept_by = ("left", "anti", "full") if alias == first else ("right", "full")
    found: list[exp.Expr] = []
    on = join.args.get("on")
    if time.kind not in kept_by and on is not None:
        for conjunct in conjuncts_of(on):
            found += _own_condition(conjunct, alias)
    added_by = ("right", "full") if alias == first else ("left", "anti", "full")
    where = block.args.get("where")
    # A row that a later outer join adds with NULLs is not the row that came in.
    if where is not None and not any(each.kind in added_by for _, each in joins):
        found += [each.copy() for each in conjuncts_of(where.this) if _aliases(each) == {alias}]
    return found


def _own_condition(conjunct: exp.Expr, alias: str) -> list[exp.Expr]:
    """What a part of a join's condition asks of one side alone: of an equality, that there is a value."""
    if _aliases(conjunct) == {alias}:
        return [conjunct.copy()]
    if isinstance(conjunct, exp.EQ):
        sides = [side for side in (conjunct.this, conjunct.expression) if _aliases(side) == {alias}]
        return [exp.Not(this=exp.Is(this=exp.Paren(this=side.copy()), expression=exp.Null())) for side in sides]
    return []


def _aliases(tree: exp.Expr) -> set[str]:
    return {found.table for found in tree.find_all(exp.Column)}


# carrying


def _carried(block: exp.Select) -> tuple[exp.Expr, exp.Expr | None]:
    """Makes the relations of a SELECT give the source, and the time of a window that is assigned below; returns both
    as the SELECT can name them."""
    source: exp.Expr | None = None
    time: exp.Expr | None = None
    for alias, below in relations(block).items():
        if is_static(below):
            continue
        source = column(SOURCE_COLUMN, alias)
        if not isinstance(below, exp.Table) and _carry(below):
            time = column(_TIME, alias)
    assert source is not None
    return source, time


def _carry(query: exp.Expr) -> bool:
    """Adds the hidden columns to a query in place; returns whether it gives the time of a window."""
    if isinstance(query, exp.SetOperation):
        _carry(query.this)
        _carry(query.expression)
        return False  # a UNION ALL carries a time, never a window
    assert isinstance(query, exp.Select)
    assert not aggregates(query)
    source, time = _carried(query)
    added = [aliased(source, SOURCE_COLUMN)]
    for item in query.expressions:
        if is_window_call(item.unalias()):
            time = item.unalias().expressions[0].copy()
    if time is not None:
        added.append(aliased(time, _TIME))
    query.set("expressions", [*query.expressions, *added])
    return time is not None
