"""Which rows came too late: the query that finds them among the re-read rows of a batch.

Every scan is read again with one more column, `__source`. The query carries it from the scans to the first windowed
aggregate above each of them, through projections, filters, UNNEST and UNION ALL, and there counts, for every source
row that reaches the aggregate, the windows it belongs to and those that had closed. A source row is listed once, also
where UNNEST makes several rows of it: all of them have its time, and so they miss the same windows.

The rules are those by which Spark drops rows: a window is closed when its end is not after the watermark, and a row of
a session stands for the window from its own time to its time plus the gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import InternalError
from penstock.plan.job_dimensions import is_static
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.spark_blocks import aggregates, is_window_call, relations, selects, window_key
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import aliased, call, column, dot, number, select, subquery

if TYPE_CHECKING:
    from penstock.plan.job_plan import JobPlan

SOURCE_COLUMN: Final = "__source"  # STRUCT<scan STRING, partition INT, offset BIGINT, row STRING>
LATE_COLUMNS: Final = (SOURCE_COLUMN, "event_time", "missed", "windows")
_TIME: Final = "__time"
_WATERMARK: Final = "${W}"


def late_sql(job: JobPlan, watermark_us: int) -> str:
    """Spark SQL over the re-read scan views: for each source row that missed a window under the watermark, its
    `__source`, `event_time`, and how many of its `windows` it `missed`; late is one that missed all.

    Only for a job that uses event time: in others nothing is ever late.
    """
    if job.late is None:
        raise InternalError("nothing is late in a job without windows")
    return job.late.replace(_WATERMARK, str(watermark_us))


def late_text(tree: exp.Expr) -> str | None:
    """The text of `late_sql` with a mark in the place of the watermark."""
    found: exp.Query | None = None
    for block in selects(tree):
        if _first_window(block):
            query = _late_rows(block.copy())
            found = query if found is None else exp.Union(this=found, expression=query, distinct=False)
    return spark_sql(found) if found is not None else None


def _first_window(block: exp.Select) -> bool:
    """Whether a SELECT groups by a window over rows that no window below has closed."""
    if window_key(block) is None:
        return False
    return not any(window_key(inner) is not None for inner in selects(block)[1:])


def _late_rows(block: exp.Select) -> exp.Select:
    """The rows that reach a windowed aggregate, counted by source row."""
    key = window_key(block)
    assert key is not None
    window = key.copy()
    items: list[exp.Expr] = [aliased(window, WINDOW_COLUMN)]
    source, time = _carried(block)
    if is_window_call(key):
        time = key.expressions[0].copy()
    assert time is not None
    items += [aliased(source, SOURCE_COLUMN), aliased(time, _TIME)]
    for clause in ("group", "having"):
        block.set(clause, None)
    block.set("expressions", items)
    rows = "__rows"
    watermark = call("timestamp_micros", exp.Var(this=_WATERMARK))
    closed = exp.LTE(this=dot(column(WINDOW_COLUMN, rows), "end"), expression=watermark)
    missed = call("count_if", closed)
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
