"""Rows in front of a join as of PROCTIME() that change, and that no key tells apart.

    FROM o LEFT JOIN p ON o.id = p.order_id JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur

Such rows are told apart by all that the query reads of them, and equal ones by their number:

    SELECT id, amount, cur, ROW_NUMBER() OVER (PARTITION BY id, amount, cur) AS __copy FROM …

A row that comes beside equal ones has the next number, and meets what is there then; those before it keep what they
have met. One that goes takes the last number. Rows of streams that are equal in what is read, of the conditions in
front as well, share their fate: they find their partner in the same batch, so which of them goes makes no difference.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.plan.spark_blocks import outputs
from penstock.plan.trees import aliased, call, column, number, select, subquery

_COPY: Final = "__copy"
_EQUAL: Final = "__rows"


def with_copies(query: exp.Query) -> exp.Query:
    """The query with the number of each row among equal ones."""
    names = outputs(query)
    over = exp.Window(
        this=call("row_number"),
        partition_by=[column(name, _EQUAL) for name in names],
        order=exp.Order(expressions=[exp.Ordered(this=number(1), desc=False, nulls_first=True)]),  # they are all equal
    )
    shown: list[exp.Expr] = [column(name, _EQUAL) for name in names]
    return select([*shown, aliased(over, _COPY)], subquery(query.copy(), _EQUAL))


def asked_of_rows(query: exp.Expr) -> list[str]:
    """The output columns of a query that its own joins and conditions ask for."""
    joins = query.args.get("joins") or []
    asking = [query.args.get("where"), *(join.args.get("on") for join in joins)]
    asking += [join.this for join in joins if isinstance(join.this, exp.Lateral)]
    asked = {(node.table, node.name) for each in asking if each is not None for node in each.find_all(exp.Column)}
    plain = [item for item in query.expressions if isinstance(item.unalias(), exp.Column)]
    return [item.alias_or_name for item in plain if (item.unalias().table, item.unalias().name) in asked]
