"""Which columns of a SELECT are known to have a value in every row: what NOT IN needs to be a plain comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.catalog.model import SourceDefinition
from penstock.plan.joins import conjuncts_of
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog


def never_null(catalog: Catalog, select: exp.Select, column: exp.Column) -> bool:
    """Whether a column, named with its relation, has a value in every row of a SELECT over one relation: the stream
    declares it NOT NULL, and its other rows are dead letters, or WHERE leaves them out."""
    source = select.args["from_"].this if select.args.get("from_") is not None else None
    if source is None or select.args.get("joins") or select.args.get("laterals"):
        return False
    if column.table.casefold() != source.alias_or_name.casefold():
        return False
    return _left_out(select, column) or _declared(catalog, source, column)


def _left_out(select: exp.Select, column: exp.Column) -> bool:
    """Whether `column IS NOT NULL` is one of the conditions."""
    where = select.args.get("where")
    asked = [node.this for node in conjuncts_of(where.this) if isinstance(node, exp.Not)] if where is not None else []
    return any(
        isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) and _same(node.this, column)
        for node in asked
    )


def _same(one: exp.Expr, other: exp.Column) -> bool:
    return (
        isinstance(one, exp.Column)
        and one.name.casefold() == other.name.casefold()
        and one.table.casefold() == other.table.casefold()
    )


def _declared(catalog: Catalog, source: exp.Expr, column: exp.Column) -> bool:
    if not isinstance(source, exp.Table) or source.args.get("db") or not isinstance(source.this, exp.Identifier):
        return False
    if any(with_query.alias.casefold() == source.name.casefold() for with_query in source.root().find_all(exp.CTE)):
        return False  # the name is that of a query
    found = catalog.find(Name(source.name, quoted=bool(source.this.quoted)))
    if not isinstance(found, SourceDefinition):
        return False
    named = [entry for entry in found.columns if entry.name.casefold() == column.name.casefold()]
    return bool(named) and all(entry.physical and not entry.nullable for entry in named)
