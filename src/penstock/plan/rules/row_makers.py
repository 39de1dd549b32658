"""Turns functions of a SELECT list that make rows into lateral views.

    SELECT id, EXPLODE(tags) AS tag FROM t
    -> SELECT id, __rows.__made_1 AS tag FROM t LATERAL VIEW EXPLODE(tags) __rows AS __made_1

So there is one way in which rows are made, for Spark as for the view store. A key of GROUP BY may be one, too; over
groups such a function is left as it is.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.catalog.functions import find_function
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.table_functions import is_table_function
from penstock.plan.trees import own_nodes

_ROWS: Final = "__rows"
_MADE: Final = "__made"
# Without a name of its own the column is called like the function, as in PostgreSQL; Spark has names for the others.
_NAMED: Final = frozenset({"unnest", "generate_series", "jsonb_array_elements", "jsonb_object_keys"})


def row_makers(tree: exp.Expr) -> exp.Expr:
    """The query without such functions in its SELECT lists, where one alone stands in a list over rows."""
    for select in list(tree.find_all(exp.Select)):
        found = [item for item in select.expressions if is_table_function(_call(item))]
        if len(found) == 1 and select.args.get("from_") is not None and not _over(select):
            _rewrite(select, found[0])
    return tree


def _call(item: exp.Expr) -> exp.Expr:
    found: exp.Expr = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
    return found


def _over(select: exp.Select) -> bool:
    """Functions with OVER see the rows before others are made of them."""
    parts = [*select.expressions, *([select.args["qualify"]] if select.args.get("qualify") is not None else [])]
    return any(isinstance(node, exp.Window) for part in parts for node in own_nodes(part))


def _rewrite(select: exp.Select, item: exp.Expr) -> None:
    call = _call(item)
    names = _names(item)
    made = [f"{_MADE}_{place}" for place in range(1, len(names) + 1)]
    if not _by_rows(select, call, made):
        return
    alias = exp.TableAlias(this=exp.to_identifier(_ROWS), columns=[exp.to_identifier(name) for name in made])
    select.append("laterals", exp.Lateral(this=call.copy(), view=True, alias=alias))
    outputs: list[exp.Expr] = [
        exp.Alias(this=_column(inner), alias=name.copy()) for inner, name in zip(made, names, strict=True)
    ] or [exp.Column(this=exp.Star(), table=exp.to_identifier(_ROWS))]
    for output in outputs:
        output.meta.update(item.meta)
    place = next(place for place, each in enumerate(select.expressions) if each is item)
    select.set("expressions", [*select.expressions[:place], *outputs, *select.expressions[place + 1 :]])


def _by_rows(select: exp.Select, call: exp.Expr, made: list[str]) -> bool:
    """Whether the function is computed of rows; as a key of groups its value stands there in its place."""
    group = select.args.get("group")
    if not isinstance(group, exp.Group):
        return select.args.get("having") is None and not any(_aggregates(item) for item in select.expressions)
    keys = [key for key in group.expressions if key == call or alias_of(select, key) == call]
    if len(made) != 1:
        return False
    for key in keys:
        key.replace(_column(made[0]))
    return bool(keys)


def _aggregates(item: exp.Expr) -> bool:
    calls = [find_function(node.name) for node in own_nodes(item) if isinstance(node, exp.Anonymous)]
    return any(info is not None and info.kind == "aggregate" for info in calls)


def _names(item: exp.Expr) -> list[exp.Identifier]:
    """How the columns are called; none where the function knows best."""
    if isinstance(item, exp.Aliases):
        return [name for name in item.expressions if isinstance(name, exp.Identifier)]
    if isinstance(item, exp.Alias):
        return [item.args["alias"]]
    return [exp.to_identifier(item.name.lower())] if item.name.lower() in _NAMED else []


def _column(name: str) -> exp.Column:
    return exp.column(name, table=_ROWS)
