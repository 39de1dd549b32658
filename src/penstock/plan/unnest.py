"""Rows from arrays and maps: UNNEST, LATERAL VIEW, LATERAL subqueries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.catalog.functions import find_function
from penstock.errors import NotYetError, ResolutionError
from penstock.plan.lateral import reads_relations
from penstock.plan.nodes import Join, Node, Unnest, Values
from penstock.plan.relation import Field
from penstock.plan.scope import Leaf, Scope
from penstock.plan.trees import call, column, identifier, number, type_of
from penstock.sql.format import format_tree
from penstock.sql.spans import span_of
from penstock.types import INT, SqlType

if TYPE_CHECKING:
    from penstock.plan.context import Relation
    from penstock.plan.expressions import ExpressionBinder


@dataclass(slots=True)
class LateralJoin:
    """A relation made from each row of what stands in front of it: the clause, and the operator over its input."""

    clause: exp.Join
    leaf: Leaf
    text: str
    query: Node | None = None  # what is asked for each row, where it reads a relation

    def over(self, node: Node) -> Node:
        """The operator with its input."""
        if self.query is not None:
            return Join(
                fields=node.fields + self.leaf.fields,
                inputs=(node, self.query),
                bounded=node.bounded and self.query.bounded,
                kind="left" if self.clause.side else "inner",
                strategy="batch",
                condition="LATERAL: for each row",
            )
        return Unnest(
            fields=node.fields + self.leaf.fields,
            inputs=(node,),
            mode=node.mode,
            event_time=node.event_time,
            bounded=node.bounded,
            expression=self.text,
        )


def plan_unnest(item: exp.Unnest | exp.Lateral, scope: Scope, binder: ExpressionBinder, *, outer: bool) -> LateralJoin:
    """`[CROSS | LEFT] JOIN UNNEST(…)`, or a LATERAL function."""
    inner = item.this if isinstance(item, exp.Lateral) else item
    if isinstance(inner, exp.Unnest):
        generator = _generator(inner, item.args.get("alias"), item, binder)
    else:
        generator = _table_function(item, binder)
    relation = exp.Lateral(this=generator.call, alias=generator.alias())
    return _join(relation, generator.table, generator.fields, item, scope, outer=outer)


def _join(
    relation: exp.Lateral, table: str, fields: list[Field], item: exp.Expr, scope: Scope, *, outer: bool
) -> LateralJoin:
    leaf = Leaf(table, tuple(fields))
    scope.add(leaf, span_of(item))
    # a join and not LATERAL VIEW: Spark reads lateral views after all joins, and a later join may use these columns
    clause = exp.Join(this=relation, side="LEFT", on=exp.true()) if outer else exp.Join(this=relation, kind="CROSS")
    return LateralJoin(clause, leaf, format_tree(item.this if isinstance(item, exp.Lateral) else item))


def unnest_as_source(item: exp.Unnest | exp.Lateral, scope: Scope, binder: ExpressionBinder) -> tuple[exp.Expr, Node]:
    """UNNEST as the first relation of a FROM clause: a table of its own."""
    inner = item.this if isinstance(item, exp.Lateral) else item
    if not isinstance(inner, exp.Unnest):
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "a LATERAL relation with nothing in front of it is not there yet",
            hint="leave LATERAL out, or put the relation it refers to in front",
            span=span_of(item),
        )
    generator = _generator(inner, item.args.get("alias"), item, binder)
    source = exp.Table(this=generator.call, alias=generator.alias())
    start = Values(fields=(), bounded=True, rows=1)
    made = _join(exp.Lateral(this=generator.call), generator.table, generator.fields, item, scope, outer=False)
    return source, made.over(start)


@dataclass(slots=True)
class _Generator:
    """A call that makes rows, and the columns they have."""

    call: exp.Expr
    table: str
    fields: list[Field]

    def alias(self) -> exp.TableAlias:
        columns = [identifier(entry.name) for entry in self.fields]
        return exp.TableAlias(this=identifier(self.table), columns=columns)


def _generator(unnest: exp.Unnest, alias: exp.Expr | None, item: exp.Expr, binder: ExpressionBinder) -> _Generator:
    if len(unnest.expressions) != 1:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "UNNEST of several arrays at once is not there yet",
            hint="join one UNNEST for each array, or zip them first with arrays_zip",
            span=span_of(item),
        )
    array = binder.bind(unnest.expressions[0])
    container = type_of(array)
    if container is not None and container.name not in ("ARRAY", "MAP"):
        raise ResolutionError("TYPE_MISMATCH", f"UNNEST needs an array or a map, not {container}", span=span_of(item))
    alias = alias or unnest.args.get("alias")
    names = _names(alias)
    ordinal = _ordinal(unnest, names)
    if not names:
        names = _default_names(container)
    structs = len(names) > 1 and not (container is not None and container.name == "MAP")
    if structs and ordinal is not None:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "WITH ORDINALITY over an array of structs is not there yet",
            hint="name the element with one column and read its fields with a dot",
            span=span_of(item),
        )
    table = _table(alias, "unnest")
    types = _element_types(container, fields=structs)
    fields = [Field(name, types[i] if i < len(types) else None, qualifier=table) for i, name in enumerate(names)]
    if structs:
        return _Generator(call("inline", array), table, fields)
    if ordinal is None:
        return _Generator(call("explode", array), table, fields)
    # posexplode counts from 0 and puts the place first; zipped with its places the array gives both as SQL has them
    place = exp.Lambda(
        this=exp.Add(this=column("__i"), expression=number(1)), expressions=[identifier("__x"), identifier("__i")]
    )
    zipped = call("arrays_zip", array, call("transform", array.copy(), place))
    return _Generator(call("inline", zipped), table, [*fields, Field(ordinal, INT, qualifier=table)])


def _default_names(container: SqlType | None) -> list[str]:
    """What the columns are called when the alias has none: the fields of a struct, as Flink and PostgreSQL have it."""
    if container is not None and container.name == "MAP":
        return ["key", "value"]
    element = container.elements[0] if container is not None else None
    if element is not None and element.name == "STRUCT" and len(element.fields) > 1:
        return [inner.name for inner in element.fields]
    return ["value"]


def _ordinal(unnest: exp.Unnest, names: list[str]) -> str | None:
    """The name of the ordinality column: the last name of the alias."""
    offset = unnest.args.get("offset")
    if not offset:
        return None
    if isinstance(offset, exp.Identifier) and offset.name not in names:
        return str(offset.name)
    return names.pop() if len(names) > 1 else "ordinality"


def _element_types(container: SqlType | None, *, fields: bool) -> list[SqlType | None]:
    if container is None:
        return []
    if container.name == "MAP":
        return list(container.elements)
    element = container.elements[0]
    return [inner.type for inner in element.fields] if fields and element.name == "STRUCT" else [element]


def _table_function(lateral: exp.Expr, binder: ExpressionBinder) -> _Generator:
    """LATERAL VIEW explode(…) t AS a, b; LATERAL TABLE(f(…)) AS t(a, b)."""
    function = lateral.this
    info = find_function(function.name) if isinstance(function, exp.Anonymous) else None
    if info is None or info.kind != "generator":
        name = function.name if isinstance(function, exp.Anonymous) else "this"
        raise NotYetError(
            "CLAUSE_NOT_YET",
            f"{name} as a table function is not there yet",
            hint="use UNNEST of an array, or a function that returns an array",
            span=span_of(lateral),
        )
    table = _table(lateral.args.get("alias"), "lateral")
    names = _names(lateral.args.get("alias")) or ["col"]
    return _Generator(binder.bind(function), table, [Field(name, None, qualifier=table) for name in names])


def plan_lateral_view(lateral: exp.Lateral, scope: Scope, binder: ExpressionBinder) -> LateralJoin:
    """LATERAL VIEW [OUTER] explode(…) t AS a, b."""
    generator = _table_function(lateral, binder)
    relation = exp.Lateral(this=generator.call, alias=generator.alias())
    outer = bool(lateral.args.get("outer"))
    return _join(relation, generator.table, generator.fields, lateral, scope, outer=outer)


def lateral_join(relation: Relation, item: exp.Lateral, scope: Scope, *, outer: bool) -> LateralJoin:
    """A LATERAL query, to be asked for each row of what stands in front of it."""
    table = _table(item.args.get("alias"), "lateral")
    tree = exp.Lateral(this=exp.Subquery(this=relation.tree), alias=exp.TableAlias(this=identifier(table)))
    fields = [replace(entry, qualifier=table) for entry in relation.fields if not entry.hidden]
    made = _join(tree, table, fields, item, scope, outer=outer)
    made.query = relation.node if reads_relations(relation) else None
    return made


def _table(alias: exp.Expr | None, otherwise: str) -> str:
    return alias.name if isinstance(alias, exp.TableAlias) and alias.name else otherwise


def _names(alias: exp.Expr | None) -> list[str]:
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return [name.name for name in columns or []]
