"""Puts each common table expression in the place where it is used.

    WITH recent AS (SELECT * FROM trades) SELECT count(*) FROM recent r
    -> SELECT count(*) FROM (SELECT * FROM trades) AS r

Spark's own checks of streaming queries do not look inside WITH, so no WITH ever reaches it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from penstock.errors import ResolutionError, ScriptError, UnsupportedError
from penstock.plan.scope import same_name
from penstock.sql.spans import span_of

# A query used twice in a query used twice … doubles with every step, and every level costs depth.
MAX_COPIES: Final = 1_000
MAX_LEVELS: Final = 40


@dataclass(slots=True)
class _Common:
    """A query of a WITH clause, and what putting it in place costs: copies of it and of those inside, and levels."""

    cte: exp.CTE
    copies: int
    levels: int


@dataclass(slots=True)
class _Cost:
    copies: int = 0
    levels: int = 0

    def add(self, common: _Common) -> None:
        self.copies += common.copies
        self.levels = max(self.levels, common.levels)
        if self.copies > MAX_COPIES or self.levels > MAX_LEVELS:
            raise ScriptError(
                "STATEMENT_TOO_DEEP",
                f"the queries of the WITH clause stand in each other more than {MAX_LEVELS} deep or {MAX_COPIES} times",
                hint="store a part of it as a materialized view",
                span=span_of(common.cte.args["alias"]),
            )


def inline_ctes(tree: exp.Expr) -> exp.Expr:
    """The query without WITH; recursive ones are refused."""
    return _inline(tree, {}, _Cost())


def _inline(tree: exp.Expr, outer: dict[str, _Common], cost: _Cost) -> exp.Expr:
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
            own_cost = _Cost()
            cte.set("this", _inline(cte.this, visible, own_cost))
            visible[name] = _Common(cte, own_cost.copies + 1, own_cost.levels + 1)
        tree.set("with_", None)
    for value in list(tree.args.values()):
        if isinstance(value, exp.Expr):
            _visit(value, visible, cost)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, exp.Expr):
                    _visit(item, visible, cost)
    return tree


def _visit(node: exp.Expr, visible: dict[str, _Common], cost: _Cost) -> None:
    if isinstance(node, exp.Table) and not node.args.get("db") and isinstance(node.this, exp.Identifier):
        common = _find(node.this, visible)
        if common is not None:
            cost.add(common)
            node.replace(_in_place(node, common.cte))
            return
    _inline(node, visible, cost)


def _find(name: exp.Identifier, visible: dict[str, _Common]) -> _Common | None:
    common = visible.get(name.name.casefold())
    if common is None or not same_name(common.cte.alias, name.name, quoted=bool(name.quoted)):
        return None
    return common


def _in_place(table: exp.Table, cte: exp.CTE) -> exp.Subquery:
    alias = table.args.get("alias")
    name = alias.this if isinstance(alias, exp.TableAlias) and alias.this is not None else table.this
    columns = (alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None) or cte.args["alias"].args.get(
        "columns"
    )
    table_alias = exp.TableAlias(this=name.copy(), columns=[column.copy() for column in columns or []])
    return exp.Subquery(this=cte.this.copy(), alias=table_alias, joins=table.args.get("joins"))
