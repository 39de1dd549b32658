"""A relation by its name alone, as a value: the row, as a struct of its columns, as in PostgreSQL.

    SELECT cat, JSON_AGG(t ORDER BY id) FROM t GROUP BY cat
    -> SELECT cat, JSON_AGG(STRUCT(t.id, t.cat) ORDER BY id) FROM t GROUP BY cat

A column of that name goes first. Where an outer join has no partner for a row, the other one's is NULL: a row of which
every column is NULL counts as none there.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.foreign_json import WHOLE_ROW
from penstock.plan.relation import HIDDEN_PREFIX
from penstock.plan.scope import same_name
from penstock.plan.trees import own_nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.plan.scope import Leaf, Scope

_CLAUSES: Final = ("expressions", "where", "group", "having", "order")
_WRITES_JSON: Final = frozenset({"to_json", "row_to_json"})


def with_whole_rows(written: exp.Select, scope_of: Callable[[exp.Select], Scope]) -> exp.Select:
    """The SELECT with structs in the place of such names; itself where there are none."""
    names = {item.alias_or_name.casefold() for item in _relations(written)}
    if not any(column.name.casefold() in names for column in _bare_columns(written)):
        return written
    scope = scope_of(written)
    made = written.copy()
    missing = _without_partner(made)
    for column in _bare_columns(made):
        leaf = next((leaf for leaf in scope.leaves if _means(leaf, column)), None)
        if leaf is not None and scope.find(column) is None and not (leaf.open or leaf.inside):
            _write_row(column, leaf, may_miss=leaf.alias.casefold() in missing)
    return made


def _relations(select: exp.Select) -> list[exp.Expr]:
    from_ = select.args.get("from_")
    first = [from_.this] if isinstance(from_, exp.From) else []
    return [*first, *(join.this for join in select.args.get("joins") or [])]


def _bare_columns(select: exp.Select) -> list[exp.Column]:
    parts = [select.args.get(clause) for clause in _CLAUSES]
    trees = [tree for part in parts for tree in (part if isinstance(part, list) else [part]) if tree is not None]
    nodes = [node for tree in trees for node in own_nodes(tree)]
    return [
        node
        for node in nodes
        if isinstance(node, exp.Column) and node.args.get("table") is None and isinstance(node.this, exp.Identifier)
    ]


def _means(leaf: Leaf, column: exp.Column) -> bool:
    return same_name(leaf.alias, column.name, quoted=bool(column.this.quoted))


def _without_partner(select: exp.Select) -> set[str]:
    """The names of the relations on a side of an outer join that may have no partner for a row."""
    found: set[str] = set()
    before: list[str] = []
    for place, item in enumerate(_relations(select)):
        name = item.alias_or_name.casefold()
        side = select.args["joins"][place - 1].side.upper() if place else ""
        found |= {name} if side in ("LEFT", "FULL") else set()
        found |= set(before) if side in ("RIGHT", "FULL") else set()
        before.append(name)
    return found


def _write_row(column: exp.Column, leaf: Leaf, *, may_miss: bool) -> None:
    names = [
        entry.name
        for entry in leaf.fields
        if not (entry.hidden or entry.pseudo or entry.name.startswith(HIDDEN_PREFIX))
    ]
    columns = {name: exp.column(name, leaf.alias, quoted=True) for name in names}
    for each in columns.values():
        each.meta.update(column.meta)
    parts = [
        exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=each) for name, each in columns.items()
    ]
    row: exp.Expr = exp.Struct(expressions=parts)
    row.meta[WHOLE_ROW] = True
    row.meta.update(column.meta)
    if may_miss:
        nulls: list[exp.Expr] = [exp.Is(this=each.copy(), expression=exp.Null()) for each in columns.values()]
        none = reduce(lambda one, other: exp.And(this=one, expression=other), nulls)
        row = exp.Case(ifs=[exp.If(this=none, true=exp.Null())], default=row)
        row.meta.update(column.meta)
    around = column.parent
    if isinstance(around, exp.Select):
        row = exp.alias_(row, column.name, quoted=True)
    elif isinstance(around, exp.Anonymous) and around.name.lower() in _WRITES_JSON and len(around.expressions) == 1:
        around.set("this", "row_to_json")  # with the fields that are NULL, as PostgreSQL has them
    column.replace(row)
