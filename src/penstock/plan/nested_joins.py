"""Joins in brackets: `t LEFT JOIN (u JOIN q ON u.id = q.id) ON t.id = u.id`.

In front of all others the brackets say nothing. Elsewhere the join inside is a relation of its own: a subquery with
every column of u and q, each under a name that no other has, and the scope knows which of them `u.id` means.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan.relation import HIDDEN_PREFIX
from penstock.plan.scope import Inside, Leaf
from penstock.plan.trees import aliased, column
from penstock.sql.nodes import WindowTable

if TYPE_CHECKING:
    from collections.abc import Sequence

NESTED = f"{HIDDEN_PREFIX}nested"


def unbracketed(item: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
    """An item of a FROM clause without brackets that only hold together a join: its first relation, and the joins
    behind that."""
    joins = item.args.get("joins") or []
    if not _only_brackets(item):
        alone = item.copy() if joins else item
        alone.set("joins", None)
        return alone, list(joins)
    first, inner = unbracketed(item.this)
    return first, [*inner, *joins]


def _only_brackets(item: exp.Expr) -> bool:
    """Whether there is no query in brackets, but a relation or a join, which keep their names."""
    if not isinstance(item, exp.Subquery) or item.alias:
        return False
    inner = item.this
    if isinstance(inner, exp.Subquery):
        return bool(inner.alias or inner.args.get("joins")) or _only_brackets(inner)
    return isinstance(inner, exp.Table | WindowTable)


def joined_columns(leaves: Sequence[Leaf], joins: Sequence[exp.Expr]) -> tuple[list[exp.Expr], dict[str, Inside]]:
    """The SELECT list that gives every column of a join in brackets, and what each of its columns is called."""
    items: list[exp.Expr] = []
    known: dict[str, Inside] = {}
    merged = _merged(leaves, joins)
    for name in merged:
        items.append(aliased(exp.Column(this=exp.Identifier(this=name, quoted=True)), name))
        known[name] = Inside(None, name, bare=True)
    gone = {place + 1 for place, join in enumerate(joins) if str(join.args.get("kind")).upper() in ("SEMI", "ANTI")}
    for place, leaf in enumerate(leaves):
        for entry in leaf.fields if place not in gone else ():
            if entry.hidden or entry.name.startswith(HIDDEN_PREFIX):
                continue
            owner, shown = leaf.owner(entry), leaf.shown(entry)
            made = _unlike(f"{owner}_{shown}" if owner else shown, known)
            items.append(aliased(column(shown, owner), made))
            bare = not leaf.inside or leaf.inside[entry.name].bare
            bare = bare and shown.casefold() not in map(str.casefold, merged)
            known[made] = Inside(owner, shown, bare=bare, pseudo=entry.pseudo)
    return items, known


def named_inside(leaf: Leaf, inside: dict[str, Inside]) -> Leaf:
    """A join in brackets, whose columns have these names."""
    fields = tuple(
        replace(entry, pseudo=True) if entry.name in inside and inside[entry.name].pseudo else entry
        for entry in leaf.fields
    )
    return replace(leaf, fields=fields, inside=inside)


def _merged(leaves: Sequence[Leaf], joins: Sequence[exp.Expr]) -> list[str]:
    """The columns that USING or NATURAL make one of."""
    found: dict[str, str] = {}
    for place, join in enumerate(joins):
        names = [each.name if hasattr(each, "name") else str(each) for each in join.args.get("using") or []]
        if str(join.args.get("method")).upper() == "NATURAL":
            front, behind = leaves[: place + 1], leaves[place + 1]
            shown = [behind.shown(entry) for entry in behind.fields if not entry.hidden]
            names = [name for name in shown if any(leaf.matching(name, quoted=False) for leaf in front)]
        found.update((name.casefold(), name) for name in names)
    return list(found.values())


def _unlike(name: str, known: dict[str, Inside]) -> str:
    taken = {other.casefold() for other in known}
    found, count = name, 1
    while found.casefold() in taken:
        count += 1
        found = f"{name}_{count}"
    return found
