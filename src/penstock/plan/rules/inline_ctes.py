"""Puts each common table expression in the place where it is used.

    WITH recent AS (SELECT * FROM trades) SELECT count(*) FROM recent r
    -> SELECT count(*) FROM (SELECT * FROM trades) AS r

Spark's own checks of streaming queries do not look inside WITH, so no WITH ever reaches it.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import ResolutionError, UnsupportedError
from penstock.plan.scope import same_name
from penstock.sql.spans import span_of


def inline_ctes(tree: exp.Expr) -> exp.Expr:
    """The query without WITH; recursive ones are refused."""
    return _inline(tree, {})


def _inline(tree: exp.Expr, outer: dict[str, exp.CTE]) -> exp.Expr:
    visible = dict(outer)
    with_ = tree.args.get("with_")
    if isinstance(with_, exp.With):
        if with_.args.get("recursive"):
            raise UnsupportedError(
                "RECURSIVE_QUERY",
                "recursive queries are not offered",
                hint="write the steps out, as many as the data is deep",
                span=span_of(with_.expressions[0]) or span_of(tree),
            )
        own: set[str] = set()
        for cte in with_.expressions:
            name = cte.alias.casefold()
            if name in own:
                raise ResolutionError(
                    "DUPLICATE_ALIAS",
                    f'two queries of one WITH clause are called "{cte.alias}"',
                    span=span_of(cte.args["alias"]),
                )
            own.add(name)
            cte.set("this", _inline(cte.this, visible))
            visible[name] = cte
        tree.set("with_", None)
    for key, value in list(tree.args.items()):
        if isinstance(value, exp.Expr):
            _visit(tree, key, value, visible)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, exp.Expr):
                    _visit(tree, key, item, visible)
    return tree


def _visit(parent: exp.Expr, key: str, node: exp.Expr, visible: dict[str, exp.CTE]) -> None:
    if isinstance(node, exp.Table) and not node.args.get("db") and isinstance(node.this, exp.Identifier):
        cte = _find(node.this, visible)
        if cte is not None:
            node.replace(_in_place(node, cte))
            return
    _inline(node, visible)


def _find(name: exp.Identifier, visible: dict[str, exp.CTE]) -> exp.CTE | None:
    cte = visible.get(name.name.casefold())
    return cte if cte is not None and same_name(cte.alias, name.name, quoted=bool(name.quoted)) else None


def _in_place(table: exp.Table, cte: exp.CTE) -> exp.Subquery:
    alias = table.args.get("alias")
    name = alias.this if isinstance(alias, exp.TableAlias) and alias.this is not None else table.this
    columns = (alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None) or cte.args["alias"].args.get(
        "columns"
    )
    table_alias = exp.TableAlias(this=name.copy(), columns=[column.copy() for column in columns or []])
    return exp.Subquery(this=cte.this.copy(), alias=table_alias, joins=table.args.get("joins"))
