"""SELECT DISTINCT, and the first row of each key, as steps of a job.

Spark's text would hold every row back until the watermark has passed it.

In text DISTINCT is an aggregate, which emits a row when it is complete. As an operator of its own it lets the first row
of its kind through at once, and only remembers it. So the text below each DISTINCT becomes a view, from which the
duplicates are dropped, and the query reads the view.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.spark_blocks import first_keys, outputs, selects
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import column, identifier, select

_VIEW: Final = "__distinct_"


@frozen
class DistinctStep:
    """Rows whose duplicates are dropped: the temporary view they are read under, and the text that gives them.

    keys: the columns in which duplicates are equal; none: all of them.
    """

    view: str
    sql: str
    keys: tuple[str, ...] = ()


def distinct_steps(tree: exp.Query) -> tuple[exp.Query, tuple[DistinctStep, ...]]:
    """The tree without DISTINCT, over the views of the steps; those that others stand on come first."""
    made: exp.Query = tree.copy()
    found: list[DistinctStep] = []
    for block in reversed(selects(made)):
        if block.args.get("distinct") is None:
            continue
        view, keys = f"{_VIEW}{len(found)}", first_keys(block)
        block.set("distinct", None)
        names: list[exp.Expr] = [column(name, view) for name in outputs(block)]
        read = select(names, exp.Table(this=identifier(view), alias=exp.TableAlias(this=identifier(view))))
        found.append(DistinctStep(view, spark_sql(block), keys))
        if block is made:
            made = read
        else:
            block.replace(read)
    return made, tuple(found)
