"""Turns FETCH FIRST n ROWS WITH TIES into a rank.

    SELECT id, price FROM bids ORDER BY price DESC FETCH FIRST 3 ROWS WITH TIES
    -> SELECT id, price FROM bids QUALIFY RANK() OVER (ORDER BY price DESC) <= 3

Of DISTINCT, QUALIFY and an order by functions with OVER the rows are known first: the rank stands around them.

Behind an OFFSET the rows before it are left out one by one, whatever they tie with.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.rules.inner_order import QUALIFIED, column_name, order_inside, orders_over
from penstock.plan.trees import inside_out, number, whole_number
from penstock.sql.spans import span_of

_TIES = "__ties"
_ORDER = f"{QUALIFIED}_tie_"


def with_ties(tree: exp.Expr) -> exp.Expr:
    """The query without WITH TIES. Its own order stays, for whoever reads it; that of a subquery tells nothing."""
    for query in inside_out(tree, exp.Select, exp.SetOperation):
        fetch = query.args.get("limit")
        if isinstance(fetch, exp.Fetch):
            made = _ranked(query, fetch, outermost=query is tree)
            if query is tree:
                tree = made
            else:
                query.replace(made)
    return tree


def _ranked(query: exp.Query, fetch: exp.Fetch, *, outermost: bool) -> exp.Select:
    order, offset = query.args.get("order"), query.args.get("offset")
    if order is None:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            "WITH TIES has no meaning without an order",
            hint="add ORDER BY, or write ROWS ONLY",
            span=span_of(fetch),
        )
    count = _number(fetch.args["count"], fetch)
    first = _number(offset.expression, offset) if offset is not None else 0
    made = query.copy()
    for clause in ("order", "limit", "offset"):
        made.set(clause, None)
    if not isinstance(made, exp.Select) or _is_below(made, order):
        assert isinstance(made, exp.Query)
        if isinstance(made, exp.Select) and not _is_distinct(made):
            if made.args.get("distinct") is not None:
                made.set("order", order.copy())  # DISTINCT ON takes the first row of each key in the same order
            order, added = order_inside(order, made.expressions, _ORDER)
            made.set("expressions", [*made.expressions, *added])
        inner = exp.Subquery(this=made, alias=exp.TableAlias(this=exp.to_identifier(_TIES, quoted=True)))
        made = exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner))
    by = exp.Order(expressions=[_term(query, entry, wrapped=made) for entry in order.expressions])
    condition: exp.Expr = exp.LTE(this=_over("RANK", by, fetch), expression=number(first + count))
    if first:
        behind = exp.GT(this=_over("ROW_NUMBER", by, fetch), expression=number(first))
        condition = exp.And(this=behind, expression=condition)
    made.set("qualify", exp.Qualify(this=condition))
    if outermost:
        made.set("order", order.copy())
    return made


def _is_below(select: exp.Select, order: exp.Order) -> bool:
    """Whether the rows of a query are known before they have a rank."""
    return any(select.args.get(clause) for clause in ("distinct", "qualify")) or orders_over(select, order)


def _is_distinct(select: exp.Select) -> bool:
    distinct = select.args.get("distinct")
    return distinct is not None and distinct.args.get("on") is None


def _number(count: exp.Expr, place: exp.Expr) -> int:
    found = whole_number(count)
    if found is None:
        raise ResolutionError(
            "INVALID_ARGUMENT", "FETCH and OFFSET need a whole number", span=span_of(count) or span_of(place)
        )
    return found


def _term(query: exp.Query, entry: exp.Expr, *, wrapped: exp.Select) -> exp.Expr:
    """A term of the order; a number is a place in the SELECT list."""
    made = entry.copy()
    place = whole_number(made.this) if isinstance(made, exp.Ordered) else None
    items = _first_select(query).expressions
    if place is not None and 1 <= place <= len(items):
        item = items[place - 1]
        own = len(wrapped.expressions) == len(items) and item == wrapped.expressions[place - 1]
        made.set("this", item.unalias().copy() if own else exp.column(column_name(item, place - 1), quoted=True))
    return made


def _first_select(query: exp.Expr) -> exp.Expr:
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query


def _over(name: str, by: exp.Order, place: exp.Expr) -> exp.Window:
    call = exp.Anonymous(this=name, expressions=[])
    call.meta.update({key: place.meta[key] for key in ("line", "col", "start", "end") if key in place.meta})
    return exp.Window(this=call, order=by.copy(), over="OVER")
