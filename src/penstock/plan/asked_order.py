"""The order in which the answer to a query that is asked once is handed out.

    SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol ORDER BY n DESC, MAX(ts) LIMIT 3

The view store keeps the three rows, and no order among them. Whoever asks once sorts what is there in the end, by n and
by a further column that is not handed out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.rules.inner_order import QUALIFIED
from penstock.plan.store_terms import DiffersError, Term, quoted
from penstock.plan.store_text import ordered_text

if TYPE_CHECKING:
    from penstock.plan.job_model import JobPlan
    from penstock.plan.logical import LogicalPlan
    from penstock.sql.statements import Query
    from penstock.types import SqlType

_ADDED: Final = f"{QUALIFIED}_order"  # the columns that are added, none of which * stands for


def with_order_shown(query: Query) -> Query:
    """The query with what its rows are ordered by as further columns, where it does not select that."""
    tree = query.tree
    order = tree.args.get("order")
    group = tree.args.get("group")
    if not isinstance(tree, exp.Select) or order is None or not isinstance(tree.args.get("limit"), exp.Limit):
        return query
    if tree.args.get("distinct") is not None or (isinstance(group, exp.Group) and group.args.get("all")):
        return query  # a further column would make other rows
    made = tree.copy()
    shown = {item.alias_or_name.casefold() for item in made.expressions}
    every = any(item.is_star for item in made.expressions)
    for term in made.args["order"].expressions:
        inner = term.this if isinstance(term, exp.Ordered) else term
        named = isinstance(inner, exp.Column) and not inner.table and (every or inner.name.casefold() in shown)
        if named or isinstance(inner, exp.Literal):
            continue
        name = f"{_ADDED}{len(made.expressions)}"
        made.append("expressions", exp.alias_(inner.copy(), name, quoted=True))
        inner.replace(exp.column(name, quoted=True))
    return replace(query, tree=made) if len(made.expressions) > len(tree.expressions) else query


def answer_in_order(plan: LogicalPlan, job: JobPlan, view: str) -> str:
    """What reads the answer from the view that holds it, in the order that the query asks for."""
    types = {entry.name: entry.type for entry in job.columns}
    added = [quoted(name) for name in types if name.startswith(_ADDED)]
    left_out = f" EXCLUDE ({', '.join(added)})" if added else ""
    return f"SELECT *{left_out} FROM {quoted(view)}{_order(plan, types)}"


def _order(plan: LogicalPlan, types: dict[str, SqlType | None]) -> str:
    order = plan.spark.args.get("order")
    terms: list[str] = []
    for term in order.expressions if order is not None else ():
        name = term.this.name if isinstance(term.this, exp.Column) and not term.this.table else None
        if name not in types:
            return ""
        try:
            terms.append(ordered_text(Term(quoted(name), types[name]), term))
        except DiffersError:
            return ""
    return f" ORDER BY {', '.join(terms)}" if terms else ""
