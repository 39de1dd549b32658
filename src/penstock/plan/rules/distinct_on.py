"""Turns DISTINCT ON into a ranked subquery.

SELECT DISTINCT ON (user_id) user_id, url FROM clicks ORDER BY user_id, ts DESC
-> SELECT user_id, url FROM (SELECT user_id, url, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY user_id, ts DESC)
   AS __qualified_1 FROM clicks) AS __qualified WHERE __qualified_1 = 1
"""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.rules.qualify import qualify


def distinct_on(tree: exp.Expr) -> exp.Expr:
    """The query without DISTINCT ON."""
    for select in list(tree.find_all(exp.Select)):
        distinct = select.args.get("distinct")
        on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
        if on is None:
            continue
        keys = [key.copy() for key in (on.expressions if isinstance(on, exp.Tuple) else [on])]
        order = select.args.get("order")
        rank = exp.Window(
            this=exp.Anonymous(this="ROW_NUMBER", expressions=[]),
            partition_by=keys,
            order=order.copy()
            if order is not None
            else exp.Order(expressions=[exp.Ordered(this=key.copy(), nulls_first=True) for key in keys]),
            over="OVER",
        )
        place = next((node.meta for node in on.walk() if "start" in node.meta), None)
        rank.this.meta.update(place or {})
        select.set("distinct", None)
        if not any(select.args.get(clause) for clause in ("limit", "offset")):
            select.set("order", None)  # it has said which row of each key is taken
        select.set("qualify", exp.Qualify(this=exp.EQ(this=rank, expression=exp.Literal.number(1))))
    return qualify(tree)
