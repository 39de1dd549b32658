"""Turns QUALIFY into a filter over a subquery.

    SELECT a, b FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1
    -> SELECT a, b
       FROM (SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS __qualified_1 FROM t) AS __qualified
       WHERE __qualified_1 = 1

The window functions of the condition, and columns it uses that are not selected, are computed inside under names of
ours, which `*` leaves out.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.names import output_name
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.rules.inner_order import QUALIFIED, order_inside
from penstock.plan.scope import same_name
from penstock.plan.trees import inside_out

OUTSIDE = ("order", "limit", "offset", "distinct")


def qualify(tree: exp.Expr) -> exp.Expr:
    """The query without QUALIFY."""
    for select in inside_out(tree, exp.Select):
        clause = select.args.get("qualify")
        if isinstance(clause, exp.Qualify):
            replacement = _rewrite(select, clause)
            if select is tree:
                tree = replacement
            else:
                select.replace(replacement)
    return tree


def _rewrite(select: exp.Select, clause: exp.Qualify) -> exp.Select:
    inner = select.copy()
    for key in ("qualify", *OUTSIDE):
        inner.set(key, None)
    items, outputs = named_items(inner)
    # wrapped, so that the condition itself can be replaced like any part of it
    condition = exp.Paren(this=_without_aliases(select, clause.this.copy()))
    added: list[exp.Expr] = []
    for node in _moved(condition, items):
        name = f"{QUALIFIED}_{len(added) + 1}"
        added.append(exp.alias_(node.copy(), name, quoted=True))
        reference = exp.column(name, quoted=True)
        reference.meta.update(node.meta)
        node.replace(reference)
    outside = {key: select.args.get(key) for key in OUTSIDE}
    if isinstance(outside["order"], exp.Order) and outside["distinct"] is None:
        outside["order"], ordering = order_inside(outside["order"], items, f"{QUALIFIED}_", len(added))
        added += ordering
    inner.set("expressions", [*items, *added])
    source = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(QUALIFIED, quoted=True)))
    where = exp.Where(this=condition.this.copy())
    return exp.Select(expressions=outputs, from_=exp.From(this=source), where=where, **outside)


def named_items(inner: exp.Select) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The SELECT list with a name for every column, and the references to it from outside."""
    items: list[exp.Expr] = []
    outputs: list[exp.Expr] = []
    for position, item in enumerate(inner.expressions):
        items.append(item.copy())
        if is_star(item):
            # From outside one star gives the columns of all that stand side by side.
            if not (outputs and isinstance(outputs[-1], exp.Star)):
                outputs.append(exp.Star())
            continue
        name = item.alias if isinstance(item, exp.Alias) else output_name(item, position)
        if not isinstance(item, exp.Alias | exp.Column):
            items[-1] = exp.alias_(item.copy(), name, quoted=True)
        reference = exp.column(name, quoted=True)
        reference.meta.update(item.meta)
        outputs.append(reference)
    named = [output.this for output in outputs if isinstance(output, exp.Column)]
    for star in outputs:
        if isinstance(star, exp.Star) and named:  # the others have names, and their own places
            star.set("except_", [name.copy() for name in named])
    return items, outputs


def is_star(item: exp.Expr) -> bool:
    """Whether an item of a SELECT list stands for all columns, of everything or of one relation."""
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _without_aliases(select: exp.Select, condition: exp.Expr) -> exp.Expr:
    """The condition with window functions in place of the output names that stand for them."""

    def replaced(node: exp.Expr) -> exp.Expr:
        named = alias_of(select, node)
        inside = named is not None and node.find_ancestor(exp.Window) is not None
        return named.copy() if named is not None and (inside or isinstance(named, exp.Window)) else node

    return condition.transform(replaced)


def _moved(condition: exp.Expr, items: list[exp.Expr]) -> list[exp.Expr]:
    """What must be computed inside: window functions, and columns that the SELECT list does not give."""
    windows = list(condition.find_all(exp.Window))
    selected = [item.alias_or_name for item in items]
    columns = [
        column
        for column in condition.find_all(exp.Column)
        if column.find_ancestor(exp.Window) is None
        and (column.args.get("table") is not None or not any(_same(name, column) for name in selected))
    ]
    return [*windows, *columns]


def _same(name: str, column: exp.Column) -> bool:
    return same_name(name, column.name, quoted=bool(column.this.quoted))
