"""Rows from arrays and maps: UNNEST, LATERAL VIEW, LATERAL subqueries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.check_types import SPLIT_HINT
from penstock.plan.lateral import reads_relations
from penstock.plan.nodes import Join, Node, Unnest, Values
from penstock.plan.relation import Field
from penstock.plan.scope import Leaf, Scope
from penstock.plan.store_unnest import with_ordinal
from penstock.plan.table_functions import (
    Generator,
    is_table_function,
    names_of,
    rows_of_values,
    table_function,
    table_of,
)
from penstock.plan.trees import call, column, identifier, number, type_of
from penstock.sql.format import format_tree
from penstock.sql.spans import span_of
from penstock.types import INT, STRING, SqlType

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


def plan_unnest(item: exp.Expr, scope: Scope, binder: ExpressionBinder, *, outer: bool) -> LateralJoin:
    """`[CROSS | LEFT] JOIN UNNEST(…)`, or a LATERAL function."""
    inner = item.this if isinstance(item, exp.Lateral | exp.Table) else item
    if isinstance(inner, exp.Unnest):
        generator = _generator(inner, item.args.get("alias"), item, binder)
    elif isinstance(values := _written_rows(inner), exp.Values):
        generator = rows_of_values(item, values, binder)
    else:
        generator = table_function(item, binder)
    relation = exp.Lateral(this=generator.call, alias=generator.alias())
    return _join(relation, generator.table, generator.fields, item, scope, outer=outer or generator.outer)


def _join(
    relation: exp.Lateral, table: str, fields: list[Field], item: exp.Expr, scope: Scope, *, outer: bool
) -> LateralJoin:
    leaf = Leaf(table, tuple(fields))
    scope.add(leaf, span_of(item))
    # a join and not LATERAL VIEW: Spark reads lateral views after all joins, and a later join may use these columns
    clause = exp.Join(this=relation, side="LEFT", on=exp.true()) if outer else exp.Join(this=relation, kind="CROSS")
    return LateralJoin(clause, leaf, format_tree(item.this if isinstance(item, exp.Lateral | exp.Table) else item))


def unnest_as_source(item: exp.Expr, scope: Scope, binder: ExpressionBinder) -> tuple[exp.Expr, Node]:
    """UNNEST, or a function that makes rows, as the first relation of a FROM clause: a table of its own."""
    inner = item.this if isinstance(item, exp.Lateral | exp.Table) else item
    if isinstance(inner, exp.Unnest):
        generator = _generator(inner, item.args.get("alias"), item, binder)
    else:
        generator = table_function(item, binder)
    source = exp.Table(this=generator.call, alias=generator.alias())
    start = Values(fields=(), bounded=True, rows=1)
    made = _join(exp.Lateral(this=generator.call), generator.table, generator.fields, item, scope, outer=False)
    return source, made.over(start)


def _generator(unnest: exp.Unnest, alias: exp.Expr | None, item: exp.Expr, binder: ExpressionBinder) -> Generator:
    arrays = [binder.bind(each) for each in unnest.expressions]
    for array, written in zip(arrays, unnest.expressions, strict=True):
        container = type_of(array)
        if container is not None and container.name not in (("ARRAY", "MAP") if len(arrays) == 1 else ("ARRAY",)):
            wanted = "an array or a map" if len(arrays) == 1 else "arrays"
            raise ResolutionError(
                "TYPE_MISMATCH",
                f"UNNEST needs {wanted}, not {container}",
                hint=SPLIT_HINT if container == STRING else None,
                span=span_of(written),
            )
    alias = alias or unnest.args.get("alias")
    table, names = table_of(alias, "unnest"), names_of(alias)
    ordinal = _ordinal(unnest, names)
    if len(arrays) > 1:
        return _side_by_side(arrays, table, names, ordinal, item)
    (array,) = arrays
    container = type_of(array)
    if not names:
        names = _default_names(container, table if alias is not None else None)
    structs = len(names) > 1 and not (container is not None and container.name == "MAP")
    types = _element_types(container, fields=structs)
    fields = [Field(name, types[i] if i < len(types) else None, qualifier=table) for i, name in enumerate(names)]
    if ordinal is None:
        return Generator(call("inline" if structs else "explode", array), table, fields)
    # posexplode counts from 0 and puts the place first; zipped with its places the array gives both as SQL has them
    place = exp.Lambda(this=_counted(), expressions=[identifier("__x"), identifier("__i")])
    fields.append(Field(ordinal, INT, qualifier=table))
    if not structs:
        zipped = call("arrays_zip", array, call("transform", array.copy(), place))
        return Generator(with_ordinal(call("inline", zipped)), table, fields)
    inner = _struct_fields(container, len(names), item)
    row = call("struct", *[exp.Dot(this=column("__x"), expression=identifier(name)) for name in inner], _counted())
    rows = exp.Lambda(this=row, expressions=[identifier("__x"), identifier("__i")])
    return Generator(with_ordinal(call("inline", call("transform", array, rows))), table, fields)


def _counted() -> exp.Expr:
    """The place of an element, from 1."""
    return exp.Add(this=column("__i"), expression=number(1))


def _side_by_side(
    arrays: list[exp.Expr], table: str, names: list[str], ordinal: str | None, item: exp.Expr
) -> Generator:
    """UNNEST of several arrays: the first elements in one row, then the second ones; what one lacks is NULL."""
    if names and len(names) != len(arrays):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"UNNEST of {len(arrays)} arrays has {len(arrays)} columns, and {len(names)} names are given",
            hint=f"write AS {table}(a, b, …) with a name for each",
            span=span_of(item),
        )
    names = names or [f"value{place}" for place in range(1, len(arrays) + 1)]
    fields = []
    for name, array in zip(names, arrays, strict=True):
        types = _element_types(type_of(array), fields=False)
        fields.append(Field(name, types[0] if types else None, qualifier=table))
    # an array that is not there has no elements, and takes none away from the others
    arrays = [call("coalesce", array, call("array")) for array in arrays]
    zipped = call("arrays_zip", *arrays)
    if ordinal is not None:
        longest = call("greatest", *[call("size", array.copy()) for array in arrays])
        # a sequence from 1 to 0 would count down
        places = call("if", exp.GT(this=longest, expression=number(0)), call("sequence", number(1), longest.copy()),
                      call("array"))  # fmt: skip
        zipped = call("arrays_zip", *[array.copy() for array in arrays], places)
        fields.append(Field(ordinal, INT, qualifier=table))
    made = call("inline", zipped)
    return Generator(made if ordinal is None else with_ordinal(made), table, fields)


def _struct_fields(container: SqlType | None, count: int, item: exp.Expr) -> list[str]:
    element = container.elements[0] if container is not None else None
    if element is None or element.name != "STRUCT" or len(element.fields) != count:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{count} columns and WITH ORDINALITY are asked of an array whose elements do not have {count} fields",
            hint="name the element with one column and read its fields with a dot",
            span=span_of(item),
        )
    return [field.name for field in element.fields]


def _default_names(container: SqlType | None, alias: str | None) -> list[str]:
    """What the columns are called when the alias has no names for them: the fields of a struct, as in Flink and
    PostgreSQL, and a single value as the relation itself, as in PostgreSQL and BigQuery."""
    if container is not None and container.name == "MAP":
        return ["key", "value"]
    element = container.elements[0] if container is not None else None
    if element is not None and element.name == "STRUCT" and len(element.fields) > 1:
        return [inner.name for inner in element.fields]
    return [alias or "value"]


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


def plan_lateral_view(lateral: exp.Lateral, scope: Scope, binder: ExpressionBinder) -> LateralJoin:
    """LATERAL VIEW [OUTER] explode(…) t AS a, b."""
    generator = table_function(lateral, binder)
    relation = exp.Lateral(this=generator.call, alias=generator.alias())
    outer = bool(lateral.args.get("outer")) or generator.outer
    return _join(relation, generator.table, generator.fields, lateral, scope, outer=outer)


def makes_rows_itself(item: exp.Expr) -> bool:
    """Whether a relation of a FROM clause is made of values, and of no other relation but those in front of it."""
    if isinstance(item, exp.Lateral):
        return not isinstance(item.this, exp.Query | exp.Subquery) or _written_rows(item.this) is not None
    return isinstance(item, exp.Unnest) or (isinstance(item, exp.Table) and is_table_function(item.this))


def _written_rows(item: exp.Expr) -> exp.Values | None:
    """The VALUES in brackets."""
    found = item.this if isinstance(item, exp.Subquery) else item
    return found if isinstance(found, exp.Values) else None


def lateral_join(relation: Relation, item: exp.Lateral, scope: Scope, *, outer: bool) -> LateralJoin:
    """A LATERAL query, to be asked for each row of what stands in front of it."""
    table = table_of(item.args.get("alias"), "lateral")
    tree = exp.Lateral(this=exp.Subquery(this=relation.tree), alias=exp.TableAlias(this=identifier(table)))
    fields = [replace(entry, qualifier=table) for entry in relation.fields if not entry.hidden]
    made = _join(tree, table, fields, item, scope, outer=outer)
    made.query = relation.node if reads_relations(relation) else None
    return made
