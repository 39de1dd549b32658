"""SELECT DISTINCT, the first row of each key, and sessions that are grouped again, as steps of a job.

Spark's text would hold every row back until the watermark has passed it.

In text DISTINCT is an aggregate, which emits a row when it is complete. As an operator of its own it lets the first row
of its kind through at once, and only remembers it. So the text below each DISTINCT becomes a view, from which the
duplicates are dropped, and the query reads the view.

A column that holds sessions makes Spark find sessions anew wherever it is grouped by: those of the groups, not those
that have closed. So below another GROUP BY, sessions become a view too, in which that column is a window as any other.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.spark_blocks import finds_sessions, first_keys, outputs, selects, window_call, window_key
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import aliased, call, column, dot, identifier, select

_VIEW: Final = "__distinct_"


@frozen
class DistinctStep:
    """Rows whose duplicates are dropped: the temporary view they are read under, and the text that gives them.

    keys: the columns in which duplicates are equal; none: all of them.
    sessions: the column of sessions that have closed, in rows of which none is dropped.
    """

    view: str
    sql: str
    keys: tuple[str, ...] = ()
    sessions: str | None = None


def distinct_steps(tree: exp.Query) -> tuple[exp.Query, tuple[DistinctStep, ...]]:
    """The tree without DISTINCT, over the views of the steps; those that others stand on come first."""
    made: exp.Query = tree.copy()
    found: list[DistinctStep] = []
    again = _grouped_again(made)
    for block in reversed(selects(made)):
        sessions = WINDOW_COLUMN if again and block is not made and finds_sessions(block) else None
        if block.args.get("distinct") is None and sessions is None:
            continue
        view, keys = f"{_VIEW}{len(found)}", first_keys(block)
        block.set("distinct", None)
        names: list[exp.Expr] = [column(name, view) for name in outputs(block)]
        read = select(names, exp.Table(this=identifier(view), alias=exp.TableAlias(this=identifier(view))))
        found.append(DistinctStep(view, spark_sql(block), keys, sessions))
        if block is made:
            made = read
        else:
            block.replace(read)
    return made, tuple(found)


def plain_sessions(tree: exp.Query) -> None:
    """The same for a query that ends, in place: below another GROUP BY, sessions are two times."""
    if not _grouped_again(tree):
        return
    for block in selects(tree)[1:]:
        key = window_key(block)
        if key is None or not finds_sessions(block):
            continue
        bounds = [part for name in ("start", "end") for part in (exp.Literal.string(name), dot(key.copy(), name))]
        place = next(at for at, item in enumerate(block.expressions) if item.alias_or_name == WINDOW_COLUMN)
        block.expressions[place].replace(aliased(call("named_struct", *bounds), WINDOW_COLUMN))


def _grouped_again(tree: exp.Query) -> bool:
    """Whether a query groups by windows that have closed below."""
    keys = [(block, window_key(block)) for block in selects(tree)]
    return any(key is not None and window_call(block, key) is None for block, key in keys)
