"""What stands in front of a join as of PROCTIME(), as one relation.

    SELECT o.id, p.amount, r.rate FROM orders o JOIN payments p ON o.id = p.order_id
    JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.currency = r.currency

Each row in front meets what is there when it comes, so what a row is must be known first: o and p become a subquery
with their columns. The scope knows what o.id means there, as in a join in brackets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.core_rows import in_store, only_added
from penstock.plan.joins import conjuncts_of
from penstock.plan.nested_joins import NESTED, joined_columns, unbracketed
from penstock.plan.nodes import Core, Scan, all_nodes
from penstock.plan.pending_joins import PendingJoin
from penstock.plan.tables_first import with_tables_first
from penstock.sql.nodes import SystemTime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.plan.nodes import Node
    from penstock.plan.scope import Inside, Leaf, Scope
    from penstock.plan.unnest import LateralJoin

_FRONT: Final = "penstock_met_front"
_INSIDE: Final = "penstock_inside"
# Of these a condition on the rows in front may be made to be asked of them alone.
_MOVABLE: Final = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Interval, exp.Var, exp.Cast, exp.DataType,
    exp.DataTypeParam, exp.Paren, exp.Not, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.Between, exp.Is, exp.In, exp.Add, exp.Sub, exp.Mul, exp.NullSafeEQ,
)  # fmt: skip

# The relations of a FROM clause, the operator of the first one, and the joins behind it.
Planned = tuple["Scope", "Node", "Sequence[PendingJoin | LateralJoin]"]


def with_front_apart(written: exp.Select, plan: Callable[[exp.Select], Planned]) -> exp.Select:
    """The SELECT with one relation in front of its last join as of PROCTIME() whose rows are met once.

    `plan` plans its FROM clause, for that to be known.
    """
    from_ = written.args.get("from_")
    if not isinstance(from_, exp.From):
        return written
    first, joins = unbracketed(from_.this)
    joins += written.args.get("joins") or []
    if not any(_as_of(join) for join in joins):
        return written
    scope, node, pending = plan(written)
    if not scope.leaves:
        return written
    once = [isinstance(each, PendingJoin) and each.once for each in pending[: len(joins)]]
    added = _only_added(scope.leaves[0].alias, node, pending)
    ordered = with_tables_first(written, joins, pending, scope.leaves, node)
    if ordered is not None:
        return with_front_apart(ordered, plan)
    meets = [place for place, each in enumerate(once) if each and not _of_one(pending[place], added)]
    count = max(meets, default=0)
    if all(once[:count]):
        return _marked(written) if meets else written
    leaves = [scope.leaves[0], *(each.leaf for each in pending[:count])]
    made = written.copy()
    conditions = _moved(made, [leaf for leaf in leaves if leaf in scope.leaves], scope, joins[count:])
    query, inside = _joined(first, joins[:count], leaves)
    query.set("where", exp.Where(this=exp.and_(*conditions, copy=True)) if conditions else None)
    front = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(f"{NESTED}0", quoted=True)))
    front.meta[_FRONT] = True
    front.meta[_INSIDE] = inside
    made.set("from_", exp.From(this=front))
    made.set("joins", [join.copy() for join in joins[count:]])
    return made


def stands_in_front(item: exp.Expr) -> bool:
    """Whether the rows of a subquery meet once what is joined with them."""
    return bool(item.meta.get(_FRONT))


def names_inside(item: exp.Expr) -> dict[str, Inside]:
    """What the columns of a subquery that was made here are called; empty: it is one that somebody wrote."""
    found: dict[str, Inside] = item.meta.get(_INSIDE) or {}
    return found


def _only_added(first: str, node: Node, pending: Sequence[PendingJoin | LateralJoin]) -> set[str]:
    """The streams that rows are only added to, where no join in front makes up rows of them."""
    there = {first: node}
    for each in pending:
        if isinstance(each, PendingJoin) and each.kind in ("inner", "cross"):
            there[each.leaf.alias] = each.right.node
    return {
        alias
        for alias, below in there.items()
        if isinstance(below, Core) or (isinstance(below, Scan) and not in_store(below) and only_added(below))
    }


def _of_one(join: PendingJoin | LateralJoin, added: set[str]) -> bool:
    """Whether a join is one of one such stream with a dimension: Spark does it, wherever it stands."""
    if not isinstance(join, PendingJoin) or join.condition is None:
        return False
    scans = [each for each in all_nodes(join.right.node) if isinstance(each, Scan)]
    owners = {each.table for each in join.condition.find_all(exp.Column)} - {join.leaf.alias}
    return all(scan.looked_up for scan in scans) and len(owners) == 1 and owners <= added


def _as_of(join: exp.Expr) -> bool:
    return isinstance(join.this, exp.Table) and isinstance(join.this.args.get("system_time"), SystemTime)


def _marked(written: exp.Select) -> exp.Select:
    first = written.args["from_"].this
    if first.meta.get(_FRONT):
        return written
    made = written.copy()
    made.args["from_"].this.meta[_FRONT] = True
    return made


def _joined(first: exp.Expr, joins: list[exp.Expr], leaves: list[Leaf]) -> tuple[exp.Select, dict[str, Inside]]:
    """The subquery of the joins in front, with all their columns: those that nobody reads are taken out later."""
    items, inside = joined_columns(leaves, joins)
    copied = [join.copy() for join in joins]
    return exp.Select(expressions=items, from_=exp.From(this=first.copy()), joins=copied), inside


def _moved(made: exp.Select, leaves: list[Leaf], scope: Scope, behind: list[exp.Expr]) -> list[exp.Expr]:
    """The conditions of WHERE on the rows in front alone, taken out of it: by them relations between commas are joined,
    and the times of streams are bounded."""
    where = made.args.get("where")
    if where is None or any(join.args.get("side") not in (None, "", "LEFT") for join in behind):
        return []
    parts = conjuncts_of(where.this)
    moved = [part for part in parts if _movable(part) and _of_leaves(part, leaves, scope)]
    rest = [part for part in parts if not any(part is each for each in moved)]
    made.set("where", exp.Where(this=exp.and_(*rest, copy=True)) if rest else None)
    return moved


def _movable(part: exp.Expr) -> bool:
    return all(isinstance(node, _MOVABLE) for node in part.walk())


def _of_leaves(part: exp.Expr, leaves: list[Leaf], scope: Scope) -> bool:
    """Whether a condition reads relations in front, and no others."""
    read = list(part.find_all(exp.Column))
    found = [scope.here([name for name in node.parts if isinstance(name, exp.Identifier)]) for node in read]
    return bool(read) and all(each is not None and any(each.leaf is leaf for leaf in leaves) for each in found)
