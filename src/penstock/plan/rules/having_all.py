"""Takes comparisons with all rows of a subquery out of queries that aggregate.

    SELECT k, SUM(v) FROM t GROUP BY k HAVING SUM(v) >= ALL (SELECT w FROM u)
    -> SELECT k, sum
       FROM (SELECT k, SUM(v) AS sum, SUM(v) AS __qualified_1 FROM t GROUP BY k) AS __having
       WHERE __qualified_1 >= ALL (SELECT w FROM u)

Such a comparison becomes EXISTS over the subquery, and an aggregate cannot stand inside that. The values before the
comparison, and columns that the subquery takes from around it, are computed inside under names of ours. What HAVING
leaves out must not be counted by OVER, so that goes outside too, over what is computed inside.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.functions import find_function
from penstock.plan.check_over import has_over
from penstock.plan.joins import conjuncts_of
from penstock.plan.names import output_name
from penstock.plan.quantified import is_quantified
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.rules.inner_order import QUALIFIED
from penstock.plan.rules.qualify import named_items
from penstock.plan.scope import same_name
from penstock.plan.trees import inside_out, own_nodes, subquery, whole_number

_HAVING = "__having"
_OUTSIDE = ("order", "limit", "offset", "distinct", "qualify")
_AROUND_AGGREGATES = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def having_all(tree: exp.Expr) -> exp.Expr:
    """The query without comparisons of that kind over what is grouped."""
    for select in inside_out(tree, exp.Select):
        if not any(_compares(part) for part in _above_groups(select)) or not _aggregates(select):
            continue
        replacement = _Rewrite(select).made()
        if select is tree:
            tree = replacement
        else:
            select.replace(replacement)
    return tree


def _above_groups(select: exp.Select) -> list[exp.Expr]:
    """What is computed of groups, and not of rows."""
    clauses = [select.args.get(name) for name in ("having", "qualify", "order")]
    return [*select.expressions, *(clause for clause in clauses if clause is not None)]


def _aggregates(select: exp.Select) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(_is_aggregate(node) for item in select.expressions for node in own_nodes(item))


def _is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, with all that belongs to it; one with OVER is none."""
    if isinstance(node, _AROUND_AGGREGATES):
        return _is_aggregate(node.this) and not isinstance(node.parent, exp.Window)
    info = find_function(node.name) if isinstance(node, exp.Anonymous) else None
    return info is not None and info.kind == "aggregate" and not has_over(node)


def _compares(tree: exp.Expr) -> bool:
    """Whether a tree compares groups so; inside an aggregate it is rows that are compared."""
    return any(is_quantified(node) for node in _of_groups(tree))


def _stays_outside(tree: exp.Expr) -> bool:
    return any(is_quantified(node) or isinstance(node, exp.Window) for node in _of_groups(tree))


def _of_groups(tree: exp.Expr) -> list[exp.Expr]:
    return list(tree.walk(prune=lambda node: isinstance(node, exp.Subquery) or _is_aggregate(node)))


class _Rewrite:
    def __init__(self, select: exp.Select) -> None:
        self._select = select
        self._items, self._outputs = named_items(select)
        self._added: list[exp.Expr] = []

    def made(self) -> exp.Select:
        select = self._select
        clause = select.args.get("having")
        conjuncts = conjuncts_of(clause.this) if clause is not None else []
        moved = [each for each in conjuncts if _compares(each)]
        stays = [each.copy() for each in conjuncts if not any(each is other for other in moved)]
        outside = {key: select.args[key].copy() for key in _OUTSIDE if select.args.get(key) is not None}
        if moved:
            outside["where"] = exp.Where(this=exp.and_(*(self._outer(each) for each in moved), copy=False))
        items = self._computed_outside()
        if "qualify" in outside:
            self._lift(outside["qualify"].this)
        if "order" in outside:
            self._move_order(outside["order"])
        inner = select.copy()
        for key in _OUTSIDE:
            inner.set(key, None)
        inner.set("having", exp.Having(this=exp.and_(*stays, copy=False)) if stays else None)
        inner.set("expressions", [*items, *self._keys(items), *self._added])
        source = exp.From(this=subquery(inner, _HAVING))
        return exp.Select(expressions=self._outputs, from_=source, **outside)

    def _computed_outside(self) -> list[exp.Expr]:
        """The columns that are computed inside; the others become expressions over them."""
        inside: list[exp.Expr] = []
        for place, item in enumerate(self._items):
            if not _stays_outside(item):
                inside.append(item)
                continue
            made = item.copy()
            self._lift(made.this)
            self._outputs[place] = made
        return inside

    def _outer(self, condition: exp.Expr) -> exp.Expr:
        """A condition over what is computed inside."""
        made = exp.Paren(this=condition.copy())
        self._lift(made.this)
        return made

    def _lift(self, node: exp.Expr) -> None:
        """Computes inside what neither compares with all rows nor is a function with OVER."""
        if self._named_outside(node):
            return
        if not any(map(self._named_outside, _of_groups(node))) and (not _stays_outside(node) or _is_aggregate(node)):
            if node.find(exp.Column, exp.Anonymous, exp.Star) is not None:
                self._move(node)
        elif isinstance(node, exp.Window):
            parts = [*_arguments(node.this), *(node.args.get("partition_by") or [])]
            order = node.args.get("order")
            for part in [*parts, *(term.this for term in (order.expressions if order is not None else []))]:
                self._lift(part)
        elif is_quantified(node):
            for each in list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]:
                self._lift(each)
            self._move_from_around(node.args.get("query") or node.expression.this)
        else:
            for part in list(node.iter_expressions()):
                self._lift(part)

    def _named_outside(self, node: exp.Expr) -> bool:
        """Whether a bare name is that of a column which is computed outside."""
        named = alias_of(self._select, node)
        return named is not None and _stays_outside(named)

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

    def _keys(self, items: list[exp.Expr]) -> list[exp.Expr]:
        """Columns of GROUP BY that are not selected: the subquery may take them by their bare name."""
        group = self._select.args.get("group")
        names = [output_name(item, place) for place, item in enumerate(items)]
        found: list[exp.Expr] = []
        for key in group.expressions if group is not None else []:
            if isinstance(key, exp.Column) and not any(same_name(name, key.name, quoted=True) for name in names):
                found.append(key.copy())
                names.append(key.name)
        return found

    def _move_order(self, order: exp.Order) -> None:
        names = [output_name(item, place) for place, item in enumerate(self._outputs)]
        for term in order.expressions:
            by = term.this
            bare = isinstance(by, exp.Column) and not by.table
            named = bare and any(same_name(name, by.name, quoted=False) for name in names)
            if whole_number(by) is None and not named:
                self._lift(by)


def _arguments(function: exp.Expr) -> list[exp.Expr]:
    """What a function with OVER is computed of."""
    while isinstance(function, _AROUND_AGGREGATES):
        function = function.this
    return list(function.expressions) if isinstance(function, exp.Anonymous) else list(function.iter_expressions())
