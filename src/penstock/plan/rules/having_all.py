"""Takes comparisons with all rows of a subquery out of HAVING.

    SELECT k, SUM(v) FROM t GROUP BY k HAVING SUM(v) >= ALL (SELECT w FROM u)
    -> SELECT k, sum
       FROM (SELECT k, SUM(v) AS sum, SUM(v) AS __qualified_1 FROM t GROUP BY k) AS __having
       WHERE __qualified_1 >= ALL (SELECT w FROM u)

Such a comparison becomes EXISTS over the subquery, and an aggregate cannot stand inside that. The values before the
comparison, and columns that the subquery takes from around it, are computed inside under names of ours.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.joins import conjuncts_of
from penstock.plan.names import output_name
from penstock.plan.quantified import is_quantified
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.rules.qualify import QUALIFIED, named_items
from penstock.plan.scope import same_name
from penstock.plan.trees import own_nodes, subquery, whole_number

_HAVING = "__having"
_OUTSIDE = ("order", "limit", "offset", "distinct")


def having_all(tree: exp.Expr) -> exp.Expr:
    """The query without comparisons of that kind in HAVING.

    Beside OVER they stay: what is left out by HAVING must not be counted there.
    """
    for select in list(tree.find_all(exp.Select)):
        clause = select.args.get("having")
        if not isinstance(clause, exp.Having) or select.args.get("qualify") is not None or _has_over(select):
            continue
        moved = [each for each in conjuncts_of(clause.this) if any(is_quantified(node) for node in own_nodes(each))]
        if not moved:
            continue
        replacement = _Rewrite(select).made(moved)
        if select is tree:
            tree = replacement
        else:
            select.replace(replacement)
    return tree


def _has_over(select: exp.Select) -> bool:
    return any(isinstance(node, exp.Window) for item in select.expressions for node in own_nodes(item))


class _Rewrite:
    def __init__(self, select: exp.Select) -> None:
        self._select = select
        self._items, self._outputs = named_items(select)
        self._added: list[exp.Expr] = []

    def made(self, moved: list[exp.Expr]) -> exp.Select:
        select = self._select
        having = select.args["having"].this
        stays = [each.copy() for each in conjuncts_of(having) if not any(each is other for other in moved)]
        where = exp.Where(this=exp.and_(*(self._outer(each) for each in moved), copy=False))
        outside = {key: select.args[key].copy() for key in _OUTSIDE if select.args.get(key) is not None}
        if "order" in outside:
            self._move_order(outside["order"])
        inner = select.copy()
        for key in _OUTSIDE:
            inner.set(key, None)
        inner.set("having", exp.Having(this=exp.and_(*stays, copy=False)) if stays else None)
        inner.set("expressions", [*self._items, *self._keys(), *self._added])
        source = exp.From(this=subquery(inner, _HAVING))
        return exp.Select(expressions=self._outputs, from_=source, where=where, **outside)

    def _outer(self, condition: exp.Expr) -> exp.Expr:
        """A condition over what is computed inside."""
        made = exp.Paren(this=condition.copy())
        for node in list(own_nodes(made.this)):
            if is_quantified(node):
                value = node.this
                for each in list(value.expressions) if isinstance(value, exp.Tuple) else [value]:
                    self._move(each)
                self._move_from_around(node.args.get("query") or node.expression.this)
        return made

    def _move(self, node: exp.Expr) -> None:
        value = node
        named = alias_of(self._select, node)
        if named is not None and named.find(exp.Anonymous, exp.Func) is not None:
            value = named  # HAVING may name an output column
        name = f"{QUALIFIED}_{len(self._added) + 1}"
        self._added.append(exp.alias_(value.copy(), name, quoted=True))
        reference = exp.column(name, quoted=True)
        reference.meta.update(node.meta)
        node.replace(reference)

    def _move_from_around(self, query: exp.Expr) -> None:
        """Columns of the subquery that name a relation which it does not read."""
        read = query.find_all(exp.Table, exp.Subquery, exp.Lateral, exp.Unnest)
        known = {each.alias_or_name.casefold() for each in read}
        for found in list(query.find_all(exp.Column)):
            if found.table and found.table.casefold() not in known:
                self._move(found)

    def _keys(self) -> list[exp.Expr]:
        """Columns of GROUP BY that are not selected: the subquery may take them by their bare name."""
        group = self._select.args.get("group")
        names = [output_name(item, place) for place, item in enumerate(self._items)]
        found: list[exp.Expr] = []
        for key in group.expressions if group is not None else []:
            if isinstance(key, exp.Column) and not any(same_name(name, key.name, quoted=True) for name in names):
                found.append(key.copy())
                names.append(key.name)
        return found

    def _move_order(self, order: exp.Order) -> None:
        names = [item.alias_or_name for item in self._items]
        for term in order.expressions:
            by = term.this
            bare = isinstance(by, exp.Column) and not by.table
            named = bare and any(same_name(name, by.name, quoted=False) for name in names)
            if whole_number(by) is None and not named:
                self._move(by)
