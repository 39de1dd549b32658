"""LATERAL queries: what is asked anew for each row of what stands in front of them.

    FROM customers AS c, LATERAL (SELECT o.id FROM orders AS o WHERE o.customer = c.id ORDER BY o.at DESC LIMIT 3) AS t

Where only equalities connect the two, the query can be asked once for all rows in front, and joined with them:

    FROM customers AS c JOIN (SELECT id, __by0 FROM (SELECT id, __by0, ROW_NUMBER() OVER (PARTITION BY __by0 ORDER BY …)
    AS __place FROM (SELECT o.id, o.customer AS __by0, … FROM orders AS o)) WHERE __place <= 3) AS t ON c.id = t.__by0

That is a join like any other: with a dimension beside a stream, and with a key where the view store answers it. Any
other one is left as it is, for Spark over bounded tables, and for the view store over the rows that it keeps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.context import Relation
from penstock.plan.joins import all_of, conjuncts_of
from penstock.plan.nodes import Aggregate, Core, Filter, Limit, Node, Rank, Scan, Sort, all_nodes
from penstock.plan.relation import Field, Mode
from penstock.plan.spark_blocks import aggregates
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import aliased, call, column, number, own_nodes, select, subquery, type_of, whole_number
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit

if TYPE_CHECKING:
    from penstock.plan.context import PlanContext
    from penstock.plan.scope import Scope

_BY: Final = "__by"
_ORDER: Final = "__order"
_PLACE: Final = "__place"
_ASKED: Final = "__asked"
_PLACED: Final = "__placed"
_CONNECTED: Final = "connect it by equalities with what stands in front, and keep the result as a materialized view"
_WINDOWED: Final = (
    "keep the result as a materialized view, and group by windows that close in a subquery that sees nothing of "
    "what stands in front: LATERAL (SELECT … FROM (SELECT window_start, k, … FROM … GROUP BY …) AS w WHERE …)"
)


@frozen
class Asked:
    """A LATERAL query that is asked once: its rows belong to those in front for which the conditions hold."""

    relation: Relation
    by: tuple[tuple[exp.Expr, str], ...]  # what stands in front, and the column that it must be equal to

    def condition(self, alias: str) -> exp.Expr | None:
        """The condition of the join with it; None: every row belongs to every row."""
        found: exp.Expr | None = None
        for front, name in self.by:
            equal = exp.EQ(this=front.copy(), expression=column(name, alias))
            found = equal if found is None else exp.And(this=found, expression=equal)
        return found


def lateral_query(context: PlanContext, item: exp.Lateral, scope: Scope, *, bounded: bool) -> Relation:
    """The query of a LATERAL relation; `bounded` tells of what stands in front of it."""
    inner = item.this.this if isinstance(item.this, exp.Subquery) else item.this
    context.depth += 1
    relation = context.bind_query(context, inner, scope, None)
    context.depth -= 1
    if not relation.node.bounded:
        closes = any(isinstance(node, Aggregate) and node.emit is Emit.FINAL for node in all_nodes(relation.node))
        raise _updating("a LATERAL subquery over a stream is not there yet", item, _WINDOWED if closes else _CONNECTED)
    aggregates_rows = any(isinstance(node, Aggregate) for node in all_nodes(relation.node))
    if not bounded and aggregates_rows and not reads_relations(relation):
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "a LATERAL subquery that aggregates beside a stream is not there yet",
            hint="use a function over the array instead, for example aggregate(items, 0, (a, i) -> a + i.quantity)",
            span=span_of(item),
        )
    return relation


def reads_relations(relation: Relation) -> bool:
    """Whether a query reads more than the row in front of it."""
    return any(isinstance(node, Scan | Core) for node in all_nodes(relation.node))


def beside_a_stream(item: exp.Lateral) -> NotYetError:
    """The error for a LATERAL query beside a stream that Spark cannot run."""
    return _updating("a LATERAL subquery over a table beside a stream is not there yet", item)


def _updating(message: str, item: exp.Lateral, hint: str = _CONNECTED) -> NotYetError:
    return NotYetError(
        "UPDATING_SUBQUERY",
        message,
        hint=hint,
        span=span_of(item),
        mode=Mode.RETRACT.value,
    )


def asked_once(relation: Relation, scope: Scope) -> Asked | None:
    """A LATERAL query without what it sees of the rows in front; None where more than equalities connect them."""
    tree = relation.tree
    if not isinstance(tree, exp.Select) or relation.window is not None or relation.open or relation.unmerged:
        return None
    front = {leaf.alias for leaf in scope.leaves}
    seen = [node for node in tree.find_all(exp.Column) if _of_front(node, tree, front)]
    if not seen:
        return Asked(relation, ())
    if not _by_rows_or_groups(tree):
        return None
    where = tree.args.get("where")
    equal: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for conjunct in conjuncts_of(where.this) if where is not None else []:
        sides = _sides(conjunct, tree, front)
        if sides is not None:
            equal.append(sides)
        else:
            rest.append(conjunct)
    inside = {id(node) for one, _ in equal for node in one.find_all(exp.Column)}
    if any(id(node) not in inside for node in seen):
        return None
    return _asked(relation, tree, equal, rest)


def _asked(
    relation: Relation, tree: exp.Select, equal: list[tuple[exp.Expr, exp.Expr]], rest: list[exp.Expr]
) -> Asked | None:
    made = tree.copy()
    assert isinstance(made, exp.Select)
    names = [item.alias_or_name for item in made.expressions]
    by = [f"{_BY}{place}" for place in range(len(equal))]
    for name, (_, own) in zip(by, equal, strict=True):
        made.append("expressions", aliased(own.copy(), name))
        if made.args.get("group") is not None:
            made.args["group"].append("expressions", own.copy())
    where = all_of(rest)
    made.set("where", exp.Where(this=where) if where is not None else None)
    order, limit, offset = (made.args.get(clause) for clause in ("order", "limit", "offset"))
    for clause in ("order", "limit", "offset"):
        made.set(clause, None)
    hidden = tuple(Field(name, type_of(own), hidden=True) for name, (_, own) in zip(by, equal, strict=True))
    node = _below(relation.node)
    if limit is not None or offset is not None:
        terms = _terms(made, order, by)
        if terms is None:
            return None
        first = whole_number(offset.expression) or 0 if offset is not None else 0
        last = first + (whole_number(limit.expression) or 0) if limit is not None else None
        made = _placed(made, [*names, *by], by, terms, first, last)
        node = _placing(relation.node, node, [own for _, own in equal], first, last)
    node = replace(node, fields=(*(entry for entry in relation.fields if entry.name in names), *hidden))
    return Asked(Relation(node, made), tuple((one, name) for (one, _), name in zip(equal, by, strict=True)))


def _of_front(node: exp.Column, tree: exp.Select, front: set[str]) -> bool:
    """Whether a column of a query, or of one inside it, is of a relation in front of it."""
    if node.table not in front:
        return False
    block = node.find_ancestor(exp.Select)
    while block is not None:
        if node.table in _aliases(block):
            return False
        if block is tree:
            return True
        block = block.find_ancestor(exp.Select)
    return False


def _aliases(block: exp.Select) -> set[str]:
    from_ = block.args.get("from_")
    items = [from_.this] if isinstance(from_, exp.From) else []
    items += [join.this for join in block.args.get("joins") or []]
    return {item.alias_or_name for item in [*items, *(block.args.get("laterals") or [])]}


def _by_rows_or_groups(tree: exp.Select) -> bool:
    """Whether rows, or groups, of one value of a key do not see those of another, and there are none without rows."""
    group = tree.args.get("group")
    if aggregates(tree) and not isinstance(group, exp.Group):
        return False
    sets = (exp.GroupingSets, exp.Cube, exp.Rollup, exp.Tuple)
    if group is not None and any(isinstance(entry, sets) for entry in group.expressions):
        return False
    nodes = [node for item in tree.expressions for node in own_nodes(item)]
    return not any(isinstance(node, exp.Window) for node in nodes)


def _sides(conjunct: exp.Expr, tree: exp.Select, front: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """Of an equality of something in front with something in the query, the two."""
    if not isinstance(conjunct, exp.EQ) or any(isinstance(node, exp.Query) for node in conjunct.walk()):
        return None
    for one, other in ((conjunct.this, conjunct.expression), (conjunct.expression, conjunct.this)):
        columns = [[_of_front(node, tree, front) for node in side.find_all(exp.Column)] for side in (one, other)]
        if columns[0] and columns[1] and all(columns[0]) and not any(columns[1]):
            return one, other
    return None


def _terms(made: exp.Select, order: exp.Expr | None, by: list[str]) -> list[exp.Ordered] | None:
    """The order of a query by its output columns; what it does not give is added to it under a hidden name."""
    found: list[exp.Ordered] = []
    for place, entry in enumerate(order.expressions if order is not None else []):
        inner = entry.this
        name = inner.name if isinstance(inner, exp.Column) and not inner.table else f"{_ORDER}{place}"
        if name == f"{_ORDER}{place}":
            if made.args.get("distinct") is not None:
                return None
            made.append("expressions", aliased(inner.copy(), name))
        flags = {flag: entry.args.get(flag) for flag in ("desc", "nulls_first")}
        found.append(exp.Ordered(this=column(name, _ASKED), **flags))
    return found or [exp.Ordered(this=column(by[0], _ASKED), desc=False, nulls_first=True)]


def _placed(
    made: exp.Select, names: list[str], by: list[str], terms: list[exp.Ordered], first: int, last: int | None
) -> exp.Select:
    over = exp.Window(
        this=call("row_number"),
        partition_by=[column(name, _ASKED) for name in by],
        order=exp.Order(expressions=terms),
        over="OVER",
    )
    shown: list[exp.Expr] = [column(name, _ASKED) for name in names]
    placed = select([*shown, aliased(over, _PLACE)], subquery(made, _ASKED))
    place = column(_PLACE, _PLACED)
    condition: exp.Expr | None = exp.LTE(this=place, expression=number(last)) if last is not None else None
    if first:
        behind = exp.GT(this=place.copy(), expression=number(first))
        condition = behind if condition is None else exp.And(this=condition, expression=behind)
    where = {"where": exp.Where(this=condition)} if condition is not None else {}
    return select([column(name, _PLACED) for name in names], subquery(placed, _PLACED), **where)


def _below(node: Node) -> Node:
    """The operator below ORDER BY and LIMIT."""
    while isinstance(node, Limit | Sort):
        node = node.inputs[0]
    return node


def _placing(above: Node, below: Node, by: list[exp.Expr], first: int, last: int | None) -> Node:
    """The operators that take the first rows of each value."""
    order = ""
    while above is not below:
        order = ", ".join(above.order_by) if isinstance(above, Sort) else order
        above = above.inputs[0]
    keys = ", ".join(node.name if isinstance(node, exp.Column) else spark_sql(node, pretty=False) for node in by)
    words = f"PARTITION BY {keys}" + (f" ORDER BY {order}" if order else "")
    rank = Rank(fields=below.fields, inputs=(below,), bounded=True, functions=(f"ROW_NUMBER() OVER ({words})",))
    parts = [f"ROW_NUMBER() > {first}"] if first else []
    parts += [f"ROW_NUMBER() <= {last}"] if last is not None else []
    return Filter(fields=rank.fields, inputs=(rank,), bounded=True, condition=" AND ".join(parts) or "TRUE")
