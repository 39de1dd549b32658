"""ORDER BY inside the brackets of an aggregate, where Spark has no such thing.

    FIRST_VALUE(x ORDER BY y)  ->  MIN_BY(x, y)
    SUM(x ORDER BY y)          ->  SUM(x), which no order changes

Lists have an order of their own, see penstock.catalog.foreign_aggregates.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.sql.spans import span_of

_LISTS: Final = frozenset(
    {"array_agg", "listagg", "string_agg", "group_concat", "json_agg", "jsonb_agg", "json_arrayagg", "map_agg"}
)
_CHOICES: Final = {"first": False, "first_value": False, "last": True, "last_value": True}


def without_order(node: exp.Anonymous) -> exp.Anonymous:
    """The call of an aggregate without an order inside, unless it is a list."""
    name = node.name.lower()
    orders = [argument for argument in node.expressions if isinstance(argument, exp.Order)]
    if not orders or name in _LISTS:
        return node
    made = node.copy()
    assert isinstance(made, exp.Anonymous)
    plain = [argument.this if isinstance(argument, exp.Order) else argument for argument in made.expressions]
    if name == "collect_list":
        made.set("this", "array_agg")
        return made
    if name not in _CHOICES:
        made.set("expressions", plain)
        return made
    terms = [term for order in orders for term in order.expressions]
    descending = {bool(term.args.get("desc")) for term in terms}
    if len(descending) > 1 or len(plain) > 1:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{node.name} takes one value and an order of one direction",
            hint="write MIN_BY or MAX_BY, or ROW_NUMBER() in a subquery",
            span=span_of(node),
        )
    keys = [term.this.copy() for term in terms]
    key = keys[0] if len(keys) == 1 else exp.Anonymous(this="struct", expressions=keys)
    made.set("this", "max_by" if _CHOICES[name] != (descending == {True}) else "min_by")
    made.set("expressions", [plain[0], key])
    return made
