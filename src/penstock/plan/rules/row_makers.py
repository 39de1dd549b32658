"""Turns functions of a SELECT list that make rows into lateral views.

    SELECT id, EXPLODE(tags) AS tag FROM t
    -> SELECT id, __rows.__made_1 AS tag FROM t LATERAL VIEW EXPLODE(tags) __rows AS __made_1

So there is one way in which rows are made, for Spark as for the view store. A key of GROUP BY may be one, too. What is
made of groups, of functions with OVER or of nothing is made of the rows of a subquery:

    SELECT k, EXPLODE(ARRAY_AGG(v)) AS v FROM t GROUP BY k
    -> SELECT k, __rows.__made_1 AS v FROM (SELECT k, ARRAY_AGG(v) AS __qualified_made_1 FROM t GROUP BY k) AS __given
       LATERAL VIEW EXPLODE(__qualified_made_1) __rows AS __made_1
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.catalog.functions import find_function
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.rules.inner_order import QUALIFIED, order_inside
from penstock.plan.rules.qualify import OUTSIDE, named_items
from penstock.plan.table_functions import is_table_function
from penstock.plan.trees import inside_out, own_nodes

_ROWS: Final = "__rows"
_GIVEN: Final = "__given"
_MADE: Final = "__made"
# Without a name of its own the column is called like the function, as in PostgreSQL; Spark has names for the others.
_NAMED: Final = frozenset({"unnest", "generate_series", "jsonb_array_elements", "jsonb_object_keys"})


def row_makers(tree: exp.Expr) -> exp.Expr:
    """The query without such functions in its SELECT lists, where one alone stands in a list over rows."""
    for select in inside_out(tree, exp.Select):
        found = [item for item in select.expressions if is_table_function(_call(item))]
        if len(found) != 1:
            continue
        if select.args.get("from_") is not None and not _over(select) and _rewrite(select, found[0]):
            continue
        made = _of_subquery(select, found[0])
        if select is tree:
            tree = made
        else:
            select.replace(made)
    return tree


def _of_subquery(select: exp.Select, item: exp.Expr) -> exp.Select:
    """The query over a subquery, which gives what the function takes beside the other columns."""
    inner = select.copy()
    for clause in OUTSIDE:
        inner.set(clause, None)
    place = next(place for place, each in enumerate(select.expressions) if each is item)
    given = list(_call(item).expressions)
    names = [f"{QUALIFIED}_made_{number}" for number in range(1, len(given) + 1)]
    inner.set("expressions", [each for at, each in enumerate(inner.expressions) if at != place])
    items, outputs = named_items(inner)
    arguments = [exp.alias_(each.copy(), name, quoted=True) for each, name in zip(given, names, strict=True)]
    outside = {clause: select.args.get(clause) for clause in OUTSIDE}
    ordering: list[exp.Expr] = []
    if isinstance(outside["order"], exp.Order) and outside["distinct"] is None:
        outside["order"], ordering = order_inside(outside["order"], [*items, item], f"{QUALIFIED}_order_")
    inner.set("expressions", [*items, *arguments, *ordering])
    maker = item.copy()
    _call(maker).set("expressions", [exp.column(name, quoted=True) for name in names])
    if len(outputs) < len(items):  # several stars are one outside, which stands in front
        place = len(outputs)
    source = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(_GIVEN, quoted=True)))
    made = exp.Select(expressions=[*outputs[:place], maker, *outputs[place:]], from_=exp.From(this=source), **outside)
    _rewrite(made, maker)
    return made


def _call(item: exp.Expr) -> exp.Expr:
    found: exp.Expr = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
    return found


def _over(select: exp.Select) -> bool:
    """Functions with OVER see the rows before others are made of them."""
    parts = [*select.expressions, *([select.args["qualify"]] if select.args.get("qualify") is not None else [])]
    return any(isinstance(node, exp.Window) for part in parts for node in own_nodes(part))


def _rewrite(select: exp.Select, item: exp.Expr) -> bool:
    """Changes a query whose function takes its rows; whether it does."""
    call = _call(item)
    names = _names(item)
    made = [f"{_MADE}_{place}" for place in range(1, len(names) + 1)]
    if not _by_rows(select, call, made):
        return False
    alias = exp.TableAlias(this=exp.to_identifier(_ROWS), columns=[exp.to_identifier(name) for name in made])
    select.append("laterals", exp.Lateral(this=call.copy(), view=True, alias=alias))
    outputs: list[exp.Expr] = [
        exp.Alias(this=_column(inner), alias=name.copy()) for inner, name in zip(made, names, strict=True)
    ] or [exp.Column(this=exp.Star(), table=exp.to_identifier(_ROWS))]
    for output in outputs:
        output.meta.update(item.meta)
    place = next(place for place, each in enumerate(select.expressions) if each is item)
    select.set("expressions", [*select.expressions[:place], *outputs, *select.expressions[place + 1 :]])
    return True


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
