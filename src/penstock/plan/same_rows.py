"""Whether two bound queries give the same rows: they read, join, filter and group the same, under whatever aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from penstock.plan.spark_blocks import makes_rows
from penstock.plan.trees import column, nondeterministic_call

_COMPARED: Final = frozenset({"expressions", "from_", "joins", "where", "group", "having"})
_CLAUSES: Final = ("where", "group", "having")


def same_rows(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether both give the same rows each time they are asked; the other may show fewer columns of them.

    Only what is told apart surely is taken for the same: no LIMIT, no DISTINCT, no subqueries inside expressions,
    nothing that differs from time to time.
    """
    if isinstance(one, exp.Table) and isinstance(other, exp.Table):
        return _unnamed(one) == _unnamed(other)
    if not isinstance(one, exp.Select) or not isinstance(other, exp.Select):
        return False
    if not _plain(one) or not _plain(other) or len(_items(one)) != len(_items(other)):
        return False
    aliases: dict[str, str] = {}
    for mine, theirs in zip(_items(one), _items(other), strict=True):
        if not _same_relation(mine, theirs):
            return False
        aliases[theirs.alias_or_name] = mine.alias_or_name
    return _same_joins(one, other, aliases) and _same_clauses(one, other, aliases) and _shows(one, other, aliases)


def renamed(tree: exp.Expr, aliases: Mapping[str, str]) -> exp.Expr:
    """A copy of an expression over relations of other aliases."""

    def under(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.table not in aliases or isinstance(node.this, exp.Star):
            return node
        made = column(node.name, aliases[node.table])
        made.meta.update(node.meta)
        return made

    return tree.copy().transform(under, copy=False)


def _plain(query: exp.Select) -> bool:
    if {name for name, value in query.args.items() if value} - _COMPARED:
        return False
    own = [*query.expressions, *(query.args[name] for name in _CLAUSES if query.args.get(name))]
    own += [join.args["on"] for join in query.args.get("joins") or [] if join.args.get("on") is not None]
    return not any(tree.find(exp.Query) is not None or nondeterministic_call(tree) is not None for tree in own)


def _items(query: exp.Select) -> list[exp.Expr]:
    """What stands in the FROM clause, in order."""
    from_ = query.args.get("from_")
    first = [from_.this] if isinstance(from_, exp.From) else []
    return [*first, *(join.this for join in query.args.get("joins") or [])]


def _same_relation(one: exp.Expr, other: exp.Expr) -> bool:
    if isinstance(one, exp.Subquery) and isinstance(other, exp.Subquery):
        return same_rows(one.this, other.this)
    if isinstance(one, exp.Table) and isinstance(other, exp.Table):
        return same_rows(one, other)
    return one == other  # what UNNEST makes, with the aliases it names


def _unnamed(table: exp.Table) -> exp.Table:
    made = table.copy()
    made.set("alias", None)
    return made


def _same_joins(one: exp.Select, other: exp.Select, aliases: Mapping[str, str]) -> bool:
    for mine, theirs in zip(one.args.get("joins") or [], other.args.get("joins") or [], strict=True):
        kept, compared = mine.copy(), renamed(theirs, aliases)
        for join in (kept, compared):
            join.set("this", None)
        if kept != compared:
            return False
    return True


def _same_clauses(one: exp.Select, other: exp.Select, aliases: Mapping[str, str]) -> bool:
    for name in _CLAUSES:
        mine, theirs = one.args.get(name), other.args.get(name)
        if (mine is None) != (theirs is None):
            return False
        if mine is not None and theirs is not None and not _same_clause(mine, renamed(theirs, aliases)):
            return False
    return True


def _same_clause(one: exp.Expr, other: exp.Expr) -> bool:
    if isinstance(one, exp.Group) and isinstance(other, exp.Group):  # in whatever order the keys are written
        return set(one.expressions) == set(other.expressions) and _without_keys(one) == _without_keys(other)
    return one == other


def _without_keys(group: exp.Group) -> exp.Expr:
    made = group.copy()
    made.set("expressions", [])
    return made


def _shows(one: exp.Select, other: exp.Select, aliases: Mapping[str, str]) -> bool:
    """Whether the one has every column of the other, and no more that make rows."""
    mine = {item.alias_or_name: item.unalias() for item in one.expressions}
    theirs = {item.alias_or_name: renamed(item.unalias(), aliases) for item in other.expressions}
    if any(mine.get(name) != tree for name, tree in theirs.items()):
        return False
    return not any(makes_rows(tree) for name, tree in mine.items() if name not in theirs)
