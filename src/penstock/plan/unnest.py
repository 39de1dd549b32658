"""Rows from arrays and maps: UNNEST, LATERAL VIEW, LATERAL subqueries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.catalog.functions import find_function
from penstock.errors import NotYetError, ResolutionError
from penstock.plan.nodes import Node, Unnest
from penstock.plan.relation import Field
from penstock.plan.scope import Leaf, Scope
from penstock.plan.trees import call, identifier, subquery, type_of
from penstock.sql.format import format_tree
from penstock.sql.spans import span_of
from penstock.types import BIGINT, SqlType

if TYPE_CHECKING:
    from penstock.plan.context import PlanContext
    from penstock.plan.expressions import ExpressionBinder


def plan_unnest(
    context: PlanContext,
    node: Node,
    item: exp.Unnest | exp.Lateral,
    scope: Scope,
    binder: ExpressionBinder,
    *,
    outer: bool,
) -> tuple[exp.Expr, Node]:
    """The clause and operator for `[CROSS | LEFT] JOIN UNNEST(…)` or a LATERAL relation."""
    if isinstance(item, exp.Lateral):
        inner = item.this
        if isinstance(inner, exp.Subquery | exp.Query):
            return _lateral_query(context, node, item, scope, outer=outer)
        if not isinstance(inner, exp.Unnest):
            return plan_lateral(node, item, scope, binder, outer=outer)
        unnest = inner
    else:
        unnest = item
    if len(unnest.expressions) != 1:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "UNNEST of several arrays at once is not there yet",
            hint="join one UNNEST for each array, or zip them first with arrays_zip",
            span=span_of(item),
        )
    array = binder.bind(unnest.expressions[0])
    ordinality = bool(unnest.args.get("offset"))
    alias = item.args.get("alias") or unnest.args.get("alias")
    names = _names(alias)
    offset = unnest.args.get("offset")
    if isinstance(offset, exp.Identifier) and len(names) < 2 + _width(array):
        names.append(offset.name)
    return _generate(node, scope, array, _table(alias, "unnest"), names, item, outer=outer, ordinality=ordinality)


def _width(array: exp.Expr) -> int:
    del array
    return 0


def _generate(
    node: Node,
    scope: Scope,
    array: exp.Expr,
    table: str,
    names: list[str],
    item: exp.Expr,
    *,
    outer: bool,
    ordinality: bool,
) -> tuple[exp.Expr, Node]:
    container = type_of(array)
    if container is not None and container.name not in ("ARRAY", "MAP"):
        raise ResolutionError(
            "TYPE_MISMATCH", f"UNNEST needs an array or a map, not {container}", span=span_of(item)
        )
    types = _element_types(container)
    wanted = names[:-1] if ordinality and len(names) > 1 else names
    if len(wanted) > 1 and container is not None and container.name == "ARRAY":
        function, types = "inline", types or [None] * len(wanted)
    else:
        function = "posexplode" if ordinality else "explode"
        if container is not None and container.name == "ARRAY" and types and len(wanted) <= 1:
            types = [container.elements[0]]
    if ordinality and function == "inline":
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "WITH ORDINALITY over an array of structs is not there yet",
            hint="name the element with one column and read its fields with a dot",
            span=span_of(item),
        )
    if not names:
        names = ["key", "value"] if container is not None and container.name == "MAP" else ["value"]
        wanted = names
    fields = [Field(name, types[i] if i < len(types) else None, qualifier=table) for i, name in enumerate(wanted)]
    columns = [identifier(name) for name in wanted]
    if ordinality:
        ordinal = names[-1] if len(names) > 1 else "ordinality"
        columns = [identifier(ordinal), *columns]
        fields = [Field(ordinal, BIGINT, qualifier=table), *fields]
    clause = exp.Lateral(
        this=call(function, array),
        view=True,
        outer=outer or None,
        alias=exp.TableAlias(this=identifier(table), columns=columns),
    )
    return clause, _enter(node, scope, table, fields, item)


def _element_types(container: SqlType | None) -> list[SqlType | None]:
    if container is None:
        return []
    if container.name == "MAP":
        return list(container.elements)
    element = container.elements[0]
    return [inner.type for inner in element.fields] if element.name == "STRUCT" else [element]


def plan_lateral(
    node: Node, lateral: exp.Lateral, scope: Scope, binder: ExpressionBinder, *, outer: bool = False
) -> tuple[exp.Expr, Node]:
    """LATERAL VIEW explode(…) t AS a, b; LATERAL TABLE(f(…)) AS t(a, b)."""
    function = lateral.this
    if isinstance(function, exp.Anonymous):
        info = find_function(function.name)
        if info is None or info.kind != "generator":
            raise NotYetError(
                "CLAUSE_NOT_YET",
                f"{function.name} as a table function is not there yet",
                hint="use UNNEST of an array, or a function that returns an array",
                span=span_of(lateral),
            )
    bound = binder.bind(function)
    table = _table(lateral.args.get("alias"), "lateral")
    names = _names(lateral.args.get("alias")) or ["col"]
    fields = [Field(name, None, qualifier=table) for name in names]
    clause = exp.Lateral(
        this=bound,
        view=True,
        outer=(outer or bool(lateral.args.get("outer"))) or None,
        alias=exp.TableAlias(this=identifier(table), columns=[identifier(name) for name in names]),
    )
    return clause, _enter(node, scope, table, fields, lateral)


def _lateral_query(
    context: PlanContext, node: Node, item: exp.Lateral, scope: Scope, *, outer: bool
) -> tuple[exp.Expr, Node]:
    inner = item.this.this if isinstance(item.this, exp.Subquery) else item.this
    context.depth += 1
    relation = context.bind_query(context, inner, scope, None)
    context.depth -= 1
    if not relation.node.bounded:
        error = NotYetError(
            "UPDATING_SUBQUERY",
            "a LATERAL subquery over a stream is not there yet",
            hint="for the first N rows of each key, see the window top-N in docs/sql/queries.md",
            span=span_of(item),
        )
        error.mode = "retract"
        raise error
    table = _table(item.args.get("alias"), "lateral")
    tree = exp.Lateral(this=subquery(relation.tree, table).this, alias=exp.TableAlias(this=identifier(table)))
    tree = exp.Lateral(this=exp.Subquery(this=relation.tree), alias=exp.TableAlias(this=identifier(table)))
    fields = [replace(entry, qualifier=table) for entry in relation.fields if not entry.hidden]
    join = exp.Join(this=tree, side="LEFT" if outer else None, kind=None if outer else "CROSS")
    if outer:
        join.set("on", exp.true())
    return join, _enter(node, scope, table, fields, item)


def _enter(node: Node, scope: Scope, table: str, fields: list[Field], item: exp.Expr) -> Node:
    scope.add(Leaf(table, tuple(fields)), span_of(item))
    return Unnest(
        fields=node.fields + tuple(fields),
        inputs=(node,),
        mode=node.mode,
        event_time=node.event_time,
        bounded=node.bounded,
        expression=format_tree(item.this if isinstance(item, exp.Lateral) else item),
    )


def _table(alias: exp.Expr | None, otherwise: str) -> str:
    return alias.name if isinstance(alias, exp.TableAlias) and alias.name else otherwise


def _names(alias: exp.Expr | None) -> list[str]:
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return [name.name for name in columns or []]
