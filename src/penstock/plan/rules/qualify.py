"""Turns QUALIFY into a filter over a subquery.

    SELECT a, b FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1
    -> SELECT a, b FROM (SELECT a, b, ROW_NUMBER() OVER (…) AS __qualify_1 FROM t) AS __qualified WHERE __qualify_1 = 1
"""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.rules.group_by_references import alias_of

QUALIFIED = "__qualified"


def qualify(tree: exp.Expr) -> exp.Expr:
    """The query without QUALIFY."""
    for select in list(tree.find_all(exp.Select)):
        clause = select.args.get("qualify")
        if isinstance(clause, exp.Qualify):
            replacement = _rewrite(select, clause)
            if select is tree:
                tree = replacement
            else:
                select.replace(replacement)
    return tree


def _rewrite(select: exp.Select, clause: exp.Qualify) -> exp.Select:
    outer_items = [_output(select, position) for position in range(len(select.expressions))]
    condition = clause.this.copy()
    for column in list(condition.find_all(exp.Column)):
        named = alias_of(select, column)
        if isinstance(named, exp.Window):
            column.replace(named.copy()) if column is not condition else None
            if column is condition:
                condition = named.copy()
    calls: list[exp.Expr] = []
    for number, window in enumerate(_windows(condition), start=1):
        name = f"{QUALIFIED}_{number}"
        calls.append(exp.alias_(window.copy(), name, quoted=True))
        reference = exp.column(name, quoted=True)
        reference.meta.update(window.meta)
        if window is condition:
            condition = reference
        else:
            window.replace(reference)
    inner = select.copy()
    inner.set("qualify", None)
    for modifier in ("order", "limit", "offset", "distinct"):
        inner.set(modifier, None)
    inner.set("expressions", [*inner.expressions, *calls])
    source = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(QUALIFIED, quoted=True)))
    return exp.Select(
        expressions=outer_items,
        from_=exp.From(this=source),
        where=exp.Where(this=condition),
        **{key: select.args.get(key) for key in ("order", "limit", "offset", "distinct")},
    )


def _windows(condition: exp.Expr) -> list[exp.Window]:
    return [node for node in condition.find_all(exp.Window) if node.find_ancestor(exp.Query) is None]


def _output(select: exp.Select, position: int) -> exp.Expr:
    """The outer reference to a column of the inner SELECT list."""
    item = select.expressions[position]
    if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
        # the calls added inside must not come out again: the binder leaves out names that begin with our prefix
        return exp.Star()
    name = item.alias_or_name or f"_c{position}"
    if not item.alias_or_name:
        select.expressions[position] = exp.alias_(item, name, quoted=True)
        select.set("expressions", select.expressions)
    reference = exp.column(name, quoted=True)
    reference.meta.update(item.meta)
    return reference
