"""A SELECT cut above its FROM clause: the rows as a subquery, and what is made of them.

    SELECT d.name, COUNT(DISTINCT b.price) AS n FROM bids AS b JOIN names AS d ON b.item = d.id GROUP BY d.name

becomes

    SELECT name, COUNT(DISTINCT price) AS n FROM (SELECT d.name, b.price FROM … JOIN …) AS __rows GROUP BY name

so that Spark can run the join, whose rows are only added, below an answer that changes (see append_cores).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.trees import aliased, column, select, subquery
from penstock.sql.nodes import WindowCall, WindowPart

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS: Final = "__rows"
_BELOW: Final = ("from_", "joins", "laterals", "where")
_ABOVE: Final = ("group", "having", "order")
# What cannot be moved without knowing what its names mean.
_FIXED: Final = (exp.Subquery, exp.Exists, exp.Lambda, exp.Dot, WindowCall, WindowPart)


def split_rows(tree: exp.Expr) -> exp.Select | None:
    """The same SELECT over a subquery of the rows of its FROM clause; None where it joins nothing, or cannot be cut."""
    if not isinstance(tree, exp.Select) or not (_joins(tree) or tree.args.get("laterals")):
        return None
    made = tree.copy()
    assert isinstance(made, exp.Select)
    for item in made.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            return None
        if not isinstance(item, exp.Alias | exp.Column):
            return None  # its name is its text
    parts = [*made.expressions, *(made.args[clause] for clause in _ABOVE if made.args.get(clause) is not None)]
    if any(isinstance(node, _FIXED) for part in parts for node in part.walk()):
        return None
    names = _names(made, parts)
    if names is None:
        return None
    rows = exp.Select(**{clause: made.args[clause] for clause in _BELOW if made.args.get(clause)})
    rows.set("expressions", [aliased(node, name) for node, name in names.items()] or [aliased(exp.Null(), ROWS)])
    made.set("expressions", [_replaced(item, names) for item in made.expressions])
    for clause in _ABOVE:
        if made.args.get(clause) is not None:
            _replace_in(made.args[clause], names)
    for clause in _BELOW:
        made.set(clause, None)
    made.set("from_", select([], subquery(rows, ROWS)).args["from_"])
    return made


def _joins(tree: exp.Select) -> bool:
    from_ = tree.args.get("from_")
    return bool(tree.args.get("joins") or (isinstance(from_, exp.From) and from_.this.args.get("joins")))


def _columns(parts: list[exp.Expr]) -> Iterator[exp.Column]:
    for part in parts:
        yield from part.find_all(exp.Column)


def _names(tree: exp.Select, parts: list[exp.Expr]) -> dict[exp.Expr, str] | None:
    """The columns that are read above the FROM clause, each with a name of its own; None where a name may mean an
    output column instead."""
    outputs = {item.alias.casefold() for item in tree.expressions if isinstance(item, exp.Alias)}
    above = [tree.args[clause] for clause in _ABOVE if tree.args.get(clause) is not None]
    if any(not node.table and node.name.casefold() in outputs for node in _columns(above)):
        return None
    found: dict[exp.Expr, str] = {}
    for node in _columns(parts):
        if node.args.get("db") is not None or isinstance(node.this, exp.Star):
            return None
        if node in found:
            continue
        used = {name.casefold() for name in found.values()}
        choices = [node.name, f"{node.table}_{node.name}", f"{node.name}_{len(found)}"]
        found[node.copy()] = next(name for name in choices if name.casefold() not in used)
    return found


def _replaced(item: exp.Expr, names: dict[exp.Expr, str]) -> exp.Expr:
    if isinstance(item, exp.Column):
        return aliased(_moved(item, names), item.name)
    _replace_in(item, names)
    return item


def _replace_in(tree: exp.Expr, names: dict[exp.Expr, str]) -> None:
    for node in list(tree.find_all(exp.Column)):
        node.replace(_moved(node, names))


def _moved(node: exp.Column, names: dict[exp.Expr, str]) -> exp.Expr:
    made = column(names[node], ROWS)
    made.meta.update(node.meta)
    return made
