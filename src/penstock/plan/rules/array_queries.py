"""Turns ARRAY(SELECT …) into an aggregate of the rows.

    SELECT ARRAY(SELECT v FROM u WHERE u.k = t.k ORDER BY w DESC) FROM t
    -> SELECT (SELECT ARRAY_AGG(v ORDER BY w DESC) FROM u WHERE u.k = t.k) FROM t

Without an order the values themselves are it: which row comes first is nothing that a stream tells. NULLs are elements,
and no rows make an empty array, as in PostgreSQL.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.foreign_aggregates import KEEPS_NULLS
from penstock.errors import ResolutionError
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.trees import column, inside_out, own_nodes, subquery, whole_number
from penstock.sql.spans import span_of

_ROWS = "__array"
_VALUE = "__qualified_value"
_WHOLE = ("group", "having", "distinct", "limit", "offset", "qualify", "windows")


def array_queries(tree: exp.Expr) -> exp.Expr:
    """The query with scalar subqueries in the place of ARRAY(SELECT …)."""
    for node in inside_out(tree, exp.Anonymous):
        inner = node.expressions[0] if node.name.upper() == "ARRAY" and len(node.expressions) == 1 else None
        if isinstance(inner, exp.Query) and not isinstance(inner, exp.Subquery):
            node.replace(exp.Subquery(this=_collected(inner, node)))
    return tree


def _collected(query: exp.Query, place: exp.Anonymous) -> exp.Select:
    items = query.selects
    if len(items) != 1 or isinstance(items[0], exp.Star) or items[0].is_star:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"ARRAY(SELECT …) takes one column, and the subquery has {len(items) if not query.is_star else 'a *'}",
            hint="select one column, or STRUCT(a, b) for several in one",
            span=span_of(place),
        )
    plain = isinstance(query, exp.Select) and not any(query.args.get(clause) for clause in _WHOLE)
    calls = (exp.Anonymous, exp.Window)  # of which any may aggregate
    if plain and not any(isinstance(node, calls) for node in own_nodes(items[0])):
        made = query.copy()
        assert isinstance(made, exp.Select)
        made.set("order", None)
        made.set("expressions", [_aggregate(items[0].unalias(), _terms(query), place)])
        return made
    return _over_rows(query, place)


def _over_rows(query: exp.Query, place: exp.Anonymous) -> exp.Select:
    """The rows as a relation, where they are more than a reading of one; their order comes along."""
    inner = query.copy()
    terms: list[exp.Expr] = []
    if isinstance(inner, exp.Select):
        items = [exp.alias_(inner.expressions[0].unalias().copy(), _VALUE, quoted=True)]
        for number, term in enumerate(_terms(query)):
            name = f"{_VALUE}_{number}"
            if inner.args.get("distinct") is None:
                items.append(exp.alias_(term.this.copy(), name, quoted=True))
            by = column(_VALUE if inner.args.get("distinct") is not None else name, _ROWS)
            terms.append(exp.Ordered(this=by, desc=term.args.get("desc"), nulls_first=term.args.get("nulls_first")))
        inner.set("expressions", items)
        value = column(_VALUE, _ROWS)
    else:
        value = column(query.selects[0].alias_or_name, _ROWS)
    chooses = inner.args.get("limit") is not None or inner.args.get("offset") is not None
    if isinstance(inner, exp.Select):
        inner.set("order", exp.Order(expressions=_terms(query)) if chooses and terms else None)
    return exp.Select(expressions=[_aggregate(value, terms, place)], from_=exp.From(this=subquery(inner, _ROWS)))


def _terms(query: exp.Query) -> list[exp.Expr]:
    """The order of the rows, in expressions of their own relations."""
    order = query.args.get("order")
    found: list[exp.Expr] = []
    for term in order.expressions if order is not None else []:
        made = term.copy()
        if isinstance(query, exp.Select):
            named = alias_of(query, term.this)
            if named is None and whole_number(term.this) == 1:
                named = query.expressions[0].unalias()
            if named is not None:
                made.set("this", named.copy())
        found.append(made)
    return found


def _aggregate(value: exp.Expr, terms: list[exp.Expr], place: exp.Anonymous) -> exp.Expr:
    by = [term.copy() for term in terms] or [exp.Ordered(this=value.copy(), desc=False, nulls_first=True)]
    order = exp.Order(this=value.copy(), expressions=by)
    order.set(KEEPS_NULLS, True)
    made = exp.Anonymous(this="ARRAY_AGG", expressions=[order])
    made.meta.update(place.meta)
    return made
