"""The joins of a SELECT that has no key as a subquery of their own, which may have one.

    SELECT u.name, COUNT(DISTINCT r.id) FROM l LEFT JOIN r ON l.k = r.k JOIN u ON r.w = u.k GROUP BY u.name

Rows of l and r meet by one column, their pairs meet rows of u by another, and groups are by a third. Kept in between,
each step has a key: what a row touches is found without going through all the others.

What the groups are made by is computed there as well, since only a column can be a key; and so is what only Spark knows
of a row, which is then asked once for each row that comes and not again for each group that it is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.core_rows import AROUND_CALLS, of_rows
from penstock.plan.decimal_types import spark_type
from penstock.plan.finish_keys import keys_of
from penstock.plan.spark_blocks import aggregates, group_keys, relations
from penstock.plan.store_text import store_expression
from penstock.plan.trees import aggregate_text, aliased, column, own_nodes, stand_in, subquery, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

_JOINED: Final = "__joined"
_WHOLE: Final = ("laterals", "order", "limit", "offset")
_CLAUSES: Final = ("where", "group", "having", "distinct")


def set_joins_apart(query: exp.Select) -> bool:
    """Puts the first joins of a SELECT, as many as have a key, into a subquery of it, in place; whether it did."""
    joins = query.args.get("joins") or []
    if len(relations(query)) != len(joins) + 1 or any(query.args.get(clause) for clause in _WHOLE):
        return False
    if any(isinstance(node, exp.Subquery | exp.Exists) for part in _above(query, 0) for node in part.walk()):
        return False
    makes_more = aggregates(query) or query.args.get("distinct") is not None or _has_over(query)
    for count in range(len(joins) if makes_more else len(joins) - 1, -1, -1):
        made = _apart(query, count)
        if made is not None:
            for name, value in made.args.items():
                query.set(name, value)
            return True
    return False


def _apart(query: exp.Select, count: int) -> exp.Select | None:
    made = query.copy()
    assert isinstance(made, exp.Select)
    joins = made.args.get("joins") or []
    aliases = list(relations(made))[: count + 1]
    made.set("expressions", [_named(item) for item in made.expressions])
    computed = list(_computed(made, count, aliases))
    if not joins[:count] and not computed:
        return None
    taken: list[tuple[exp.Expr, str]] = []  # what is read of the first rows, and under which name

    def take(node: exp.Expr) -> exp.Expr:
        if node not in computed and not (isinstance(node, exp.Column) and node.table in aliases):
            return node
        name = next((known for value, known in taken if value == node), None)
        if name is None:
            words = f"{node.table}_{node.name}" if isinstance(node, exp.Column) else "value"
            name = f"{words}_{len(taken)}"
            taken.append((node.copy(), name))
        return stand_in(typed(column(name, _JOINED), spark_type(node)), node)

    for part in [*_above(made, count)]:
        changed = part.transform(take, copy=False)
        if changed is not part:
            part.replace(changed)
    read: list[exp.Expr] = [aliased(value, name) for value, name in taken]
    first = exp.Select(expressions=read, from_=made.args["from_"].copy(), joins=[join.copy() for join in joins[:count]])
    if not read or not keys_of(first):
        return None
    made.set("from_", exp.From(this=subquery(first, _JOINED)))
    made.set("joins", joins[count:])
    return made


def _computed(query: exp.Select, count: int, aliases: list[str]) -> Iterator[exp.Expr]:
    """The keys of groups and parts that are no plain columns, and what only Spark knows of a row."""
    items = query.expressions
    overs = [over for item in items for over in item.find_all(exp.Window)]
    keys = group_keys(query) + [key for over in overs for key in over.args.get("partition_by") or []]
    if query.args.get("distinct") is not None:
        keys += [item.unalias() for item in items]
    yield from (key for key in keys if not isinstance(key, exp.Column) and _can_be_kept(key, aliases))
    of_groups = [*items, query.args.get("having")] if aggregates(query) else []
    for part in _above(query, count):
        yield from _only_sparks(part, aliases, inside=all(part is not other for other in of_groups))


def _only_sparks(node: exp.Expr, aliases: list[str], *, inside: bool) -> Iterator[exp.Expr]:
    """The largest parts of a tree that only Spark knows; `inside`: each row is seen, not each group."""
    of_many = isinstance(node.parent, AROUND_CALLS) and node.parent.this is node  # a function of many rows
    if inside and not of_many and _can_be_kept(node, aliases) and store_expression(node) is None:
        yield node
        return
    for child in node.iter_expressions() if not isinstance(node, exp.Lambda) else ():
        yield from _only_sparks(child, aliases, inside=inside or aggregate_text(node) is not None)


def _can_be_kept(node: exp.Expr, aliases: list[str]) -> bool:
    return of_rows(node, aliases) and spark_type(node) is not None


def _above(query: exp.Select, count: int) -> Iterator[exp.Expr]:
    """What a SELECT does with the rows of its first joins."""
    yield from query.expressions
    yield from (query.args[clause] for clause in _CLAUSES if query.args.get(clause) is not None)
    yield from (join.args["on"] for join in (query.args.get("joins") or [])[count:] if join.args.get("on") is not None)


def _named(item: exp.Expr) -> exp.Expr:
    return aliased(column(item.name, item.table), item.name) if isinstance(item, exp.Column) else item


def _has_over(query: exp.Select) -> bool:
    return any(isinstance(node, exp.Window) for item in query.expressions for node in own_nodes(item))
