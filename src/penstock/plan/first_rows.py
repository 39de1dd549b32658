"""The first row of each key that arrives: what an append-only stream without duplicates is.

    SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY PROCTIME()) AS rn FROM orders) WHERE rn = 1
    SELECT DISTINCT ON (id) id, amount, ts FROM orders

Which row is the first is known when it is there: it is let through at once, and its key is remembered. With the event
time among the keys, a key is forgotten when the watermark has passed it; otherwise all of them are kept for ever. An
order by anything but arrival is another question: a row that comes later could take the place of one that was shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.nodes import Deduplicate
from penstock.plan.projection import project
from penstock.plan.relation import Field, Mode, State
from penstock.plan.trees import aliased, identifier, nondeterministic_call, nondeterministic_name, number
from penstock.sql.format import format_tree
from penstock.types import INT

if TYPE_CHECKING:
    from penstock.plan.block import Block
    from penstock.plan.context import RankLimit, Relation
    from penstock.plan.nodes import Node

_KEY: Final = "__p"
_CLOCKS: Final = frozenset({"proctime", "now", "current_timestamp"})


def first_rows(block: Block, node: Node, limit: RankLimit | None) -> Relation | None:
    """The relation of a SELECT that keeps the row of each key that arrives first, or None where this is none."""
    ranked = [item for item in block.items if isinstance(item.tree, exp.Window)]
    if limit is None or limit.limit != 1 or node.mode is not Mode.APPEND or block.grouping is not None:
        return None
    if len(ranked) != 1 or len(block.binder.over) != 1 or ranked[0].field.name != limit.column:
        return None
    over = ranked[0]
    keys = list(over.tree.args.get("partition_by") or [])
    if not keys or not _is_rank(over.tree) or not _by_arrival(block, over.tree.args.get("order"), keys):
        return None
    over.tree, over.field = number(1), Field(over.field.name, INT, nullable=False)
    relation = project(block, node)
    tree = relation.tree
    assert isinstance(tree, exp.Select)
    names, hidden = _named(tree, keys)
    fields = relation.fields + tuple(Field(name, None, hidden=True) for name in hidden)
    bounded_by = relation.node.event_time
    forgotten = bounded_by is not None and bounded_by.column in names
    relation.node = Deduplicate(
        fields=fields,
        inputs=(relation.node,),
        event_time=bounded_by,
        state=State(
            "the keys that were seen",
            "dropped when the watermark passes their event time" if forgotten else None,
        ),
        first_of=tuple(format_tree(key) for key in block.binder.over[0].args["partition_by"]),
    )
    if not forgotten:
        block.context.warn(
            "the first row of each key is told by remembering every key for ever; add the event time to the keys to "
            "let go of old ones"
        )
    tree.set("distinct", exp.Distinct(on=exp.Tuple(expressions=[identifier(name) for name in names])))
    return relation


def ordered_by_arrival(tree: exp.Query) -> exp.Query:
    """The query with the order said that DISTINCT ON has where it names none: for the view store, which keeps rows in
    no order, that is the time of the batch that brought a row."""
    made = tree.copy()
    for select in made.find_all(exp.Select):
        distinct, order = select.args.get("distinct"), select.args.get("order")
        on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
        if on is None:
            continue
        keys = on.expressions if isinstance(on, exp.Tuple) else [on]
        terms = order.expressions if isinstance(order, exp.Order) else []
        if all(term.this in keys for term in terms):
            came = exp.Ordered(this=exp.Anonymous(this="PROCTIME", expressions=[]), nulls_first=True)
            select.set("order", exp.Order(expressions=[*(term.copy() for term in terms), came]))
    return made


def _is_rank(over: exp.Expr) -> bool:
    function = over.this
    return isinstance(function, exp.Anonymous) and function.name.lower() == "row_number"


def _by_arrival(block: Block, order: exp.Expr | None, keys: list[exp.Expr]) -> bool:
    """Whether an order puts the rows of a key in the order in which they arrive; what is in the key orders nothing."""
    terms = [entry for entry in order.expressions if entry.this not in keys] if isinstance(order, exp.Order) else []
    return not terms or (not terms[0].args.get("desc") and _is_arrival(block, terms[0].this))


def _is_arrival(block: Block, term: exp.Expr) -> bool:
    if isinstance(term, exp.Column):
        leaves = [leaf for leaf in block.scope.leaves if leaf.alias == term.table]
        return any(entry.processing_time for leaf in leaves for entry in leaf.fields if entry.name == term.name)
    return nondeterministic_call(term) is term and nondeterministic_name(term).casefold() in _CLOCKS


def _named(tree: exp.Select, keys: list[exp.Expr]) -> tuple[list[str], list[str]]:
    """The names under which a SELECT gives the keys; those that it did not give are added under hidden names."""
    names: list[str] = []
    hidden: list[str] = []
    for key in keys:
        found = next((item.alias_or_name for item in tree.expressions if item.unalias() == key), None)
        if found is None:
            found = f"{_KEY}{len(hidden)}"
            hidden.append(found)
            tree.append("expressions", aliased(key.copy(), found))
        names.append(found)
    return list(dict.fromkeys(names)), hidden
