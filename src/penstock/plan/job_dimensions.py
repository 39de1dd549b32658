"""The dimensions of a job: relations that each batch sees as a whole, in one version.

A dimension table is always one; a bounded table is one where it stands on the bounded side of a join with a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.nodes import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Limit,
    Node,
    Project,
    Rank,
    Scan,
    SetOperation,
    Sort,
    Unnest,
    Values,
    all_nodes,
)
from penstock.plan.spark_blocks import aggregates, relations, selects
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import identifier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.plan.logical import LogicalPlan
    from penstock.plan.relation import Field
    from penstock.types import SqlType

DIMENSION_VIEW: Final = "__dimension_"
_QUERY_VIEW: Final = f"{DIMENSION_VIEW}query_"
# What Spark does with all the rows of a dimension, whatever the stream does.
_STATIC: Final = (Filter, Project, Values, Unnest, Join, SetOperation, Deduplicate, Sort, Limit, Rank)
_LENGTH: Final = "INTERVAL"  # no dimension keeps one
_WIDEST: Final = 32
# Bytes of a value.
_WIDTHS: Final = {
    "BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "UTINYINT": 2, "INT": 4, "USMALLINT": 4, "FLOAT": 4, "DATE": 4,
    "BIGINT": 8, "UINT": 8, "DOUBLE": 8, "TIMESTAMP": 8, "DECIMAL": 16, "UBIGINT": 16, "STRING": 24, "BINARY": 24,
}  # fmt: skip


@frozen
class DimensionPlan:
    """One reading of a dimension. `view` is the temporary view under which the job's text reads it.

    columns: those that are needed. keys: those that the join compares for equality with the stream, none where it
    compares something else, too deep to see. `kept`: Spark does not read it, the view store keeps its rows beside those
    of the streams.
    """

    id: str  # the relation's name; `name#2`, … for further readings
    view: str
    relation: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    kept: bool = False


@frozen
class StaticView:
    """A query over dimensions alone that aggregates, sorts or puts rows together: a view of its own, which each batch
    computes anew from the versions it sees. `dimensions` are the ids of those it reads."""

    view: str
    sql: str
    dimensions: tuple[str, ...]


def static_nodes(plan: LogicalPlan) -> frozenset[int]:
    """The ids of the operators on the bounded side of joins with a stream."""
    return frozenset(
        id(below)
        for node in plan.nodes()
        if isinstance(node, Join) and node.static_input is not None
        for below in all_nodes(node.static_input)
    )


def static_relations(plan: LogicalPlan) -> frozenset[str]:
    """The names of the relations that a job sees as a whole."""
    inside = static_nodes(plan)
    joined = {scan.relation for scan in plan.scans() if id(scan) in inside}
    return frozenset(joined | {node.relation for node in plan.subquery_nodes() if isinstance(node, Scan)})


def narrowest(fields: Sequence[Field]) -> tuple[str, ...]:
    """One column of a dimension of which none is needed: its rows count all the same, and Spark reads no empty rows."""
    known = [field for field in fields if not field.hidden and field.type is not None and field.type.name != _LENGTH]
    found = min(known, key=lambda field: _width(field.type), default=None)
    return () if found is None else (found.name,)


def _width(type_: SqlType | None) -> int:
    return _WIDTHS.get(type_.name, _WIDEST) if type_ is not None else _WIDEST


def check_static(node: Node) -> None:
    """Raises QUERY_NOT_YET for what a job does not do with a dimension before the join, or in a subquery."""
    if isinstance(node, Scan) and node.kind in ("dimension", "table"):
        return
    if isinstance(node, _STATIC) or (isinstance(node, Aggregate) and node.window is None):
        return
    what = f'{node.kind} "{node.relation}"' if isinstance(node, Scan) else node.label
    raise NotYetError(
        "QUERY_NOT_YET",
        f"{what} beside a stream in a job is not there yet",
        hint="join a dimension or a bounded table, or a query over them without windows",
    )


def kept_beside(read: Mapping[str, tuple[str, ...]], others: Sequence[DimensionPlan]) -> tuple[DimensionPlan, ...]:
    """The dimensions whose rows the view store keeps, with the columns that it reads, beside those that Spark reads."""
    taken = [other.relation for other in others]
    return tuple(
        DimensionPlan(
            name if name not in taken else f"{name}#{taken.count(name) + 1}", "", name, columns, (), kept=True
        )
        for name, columns in read.items()
    )


def is_static(below: exp.Expr) -> bool:
    """Whether a relation of a job's tree reads dimensions only."""
    if isinstance(below, exp.Table):
        return below.name.startswith(DIMENSION_VIEW)
    found = [table for table in below.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    return all(table.name.startswith(DIMENSION_VIEW) for table in found)


def static_views(tree: exp.Query, dimensions: Sequence[DimensionPlan]) -> tuple[StaticView, ...]:
    """Takes the queries over dimensions alone that do more than filter out of a tree, in place; it reads views then."""
    found: list[StaticView] = []
    known = {dimension.view: dimension.id for dimension in dimensions}
    for query in _whole_queries(tree):
        view = f"{_QUERY_VIEW}{len(found)}"
        read = [known[table.name] for table in query.find_all(exp.Table) if table.name in known]
        found.append(StaticView(view, spark_sql(query.this), tuple(read)))
        query.replace(exp.Table(this=identifier(view), alias=exp.TableAlias(this=identifier(query.alias))))
    return tuple(found)


def _whole_queries(tree: exp.Expr) -> list[exp.Subquery]:
    """The outermost subqueries of FROM clauses that are over dimensions alone and keep more than one row in mind."""
    if isinstance(tree, exp.SetOperation):
        return [*_whole_queries(tree.this), *_whole_queries(tree.expression)]
    if not isinstance(tree, exp.Select):
        return []
    items = [tree.args["from_"].this] if tree.args.get("from_") is not None else []
    items += [join.this for join in tree.args.get("joins") or []]
    found: list[exp.Subquery] = []
    for item in items:
        if isinstance(item, exp.Subquery):
            whole = is_static(item.this) and _keeps(item.this)
            found += [item] if whole else _whole_queries(item.this)
    return found


def _keeps(query: exp.Expr) -> bool:
    clauses = ("distinct", "order", "limit", "offset")
    return isinstance(query, exp.SetOperation) or any(
        aggregates(block)
        or any(block.args.get(clause) is not None for clause in clauses)
        or any(item.find(exp.Window) is not None for item in block.expressions)
        or any(isinstance(below, exp.SetOperation) for below in relations(block).values())
        for block in selects(query)
    )


def join_keys(tree: exp.Expr, table: exp.Table) -> tuple[str, ...]:
    """The columns of a table that an equality in the query around it compares with another relation."""
    for select in selects(tree):
        for alias, below in relations(select).items():
            if below is table:
                return tuple(dict.fromkeys(_compared(select, alias)))
    return ()


def _compared(select: exp.Select, alias: str) -> list[str]:
    conditions = [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on") is not None]
    where = select.args.get("where")
    if where is not None:
        conditions.append(where.this)
    found: list[str] = []
    for condition in conditions:
        for part in _conjuncts(condition):
            if isinstance(part, exp.EQ):
                found += _key_of(part.this, part.expression, alias) + _key_of(part.expression, part.this, alias)
    return found


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        return [*_conjuncts(condition.this), *_conjuncts(condition.expression)]
    return [condition]


def _key_of(side: exp.Expr, other: exp.Expr, alias: str) -> list[str]:
    if not isinstance(side, exp.Column) or side.table != alias:
        return []
    owners = {column.table for column in other.find_all(exp.Column)}
    return [side.name] if owners and alias not in owners else []
