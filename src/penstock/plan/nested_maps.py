"""Maps as the values of a map that an aggregate makes.

    MAP_AGG(k, m)  ->  TRANSFORM_VALUES(MAP_AGG(k, SORT_ARRAY(MAP_ENTRIES(m))), (k, v) -> MAP_FROM_ENTRIES(v))

Of several values of a key the largest counts, and maps have no order. Their entries in the order of their keys do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.trees import call, type_of, typed
from penstock.sql.spans import own_span, span_of
from penstock.types import Field, SqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAKE_MAPS: Final = frozenset({"map_agg", "json_object_agg", "jsonb_object_agg", "json_objectagg"})


def with_entries(node: exp.Anonymous, bound: Sequence[exp.Expr]) -> list[exp.Expr] | None:
    """The arguments of such an aggregate with entries in the place of maps; None where its values are none."""
    kind = type_of(bound[1]) if node.name.lower() in _MAKE_MAPS and len(bound) == 2 else None
    if kind is None or not _holds_map(kind):
        return None
    if kind.name != "MAP" or any(map(_holds_map, kind.elements)):
        raise ResolutionError(
            "TYPE_MISMATCH",
            f"{node.name} keeps the largest of several values of a key, and values of type {kind} have no order",
            hint="give it TO_JSON(…) of them, which is a text",
            span=span_of(node.expressions[1]) or own_span(node),
        )
    key, value = kind.elements
    entry = SqlType("STRUCT", fields=(Field("key", key), Field("value", value)))
    entries = call("sort_array", call("map_entries", bound[1]))
    return [bound[0], typed(entries, SqlType("ARRAY", elements=(entry,)))]


def with_maps(made: exp.Expr) -> exp.Expr:
    """What Spark has for the aggregate of entries, with maps in their place again."""
    name, value = exp.to_identifier("k"), exp.to_identifier("v")
    again = exp.Lambda(this=call("map_from_entries", value.copy()), expressions=[name, value])
    if isinstance(made, exp.Anonymous) and made.name == "to_json":
        made.expressions[0].replace(call("transform_values", made.expressions[0].copy(), again))
        return made
    return call("transform_values", made, again)


def _holds_map(kind: SqlType) -> bool:
    return kind.name == "MAP" or any(map(_holds_map, (*kind.elements, *(part.type for part in kind.fields))))
