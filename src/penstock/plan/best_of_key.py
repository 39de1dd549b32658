"""Queries that only see the best rows of a relation: of each key, or of all.

    SELECT … FROM (SELECT …, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, …) AS rn FROM l) AS x WHERE rn <= 3
    SELECT … FROM l ORDER BY v DESC, … LIMIT 3

A row that is behind three others of its key stays behind them, whatever comes. So it need not be kept once nobody goes
back to before those others came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.finish_plan import BestOfKey, Placed
from penstock.plan.own_conditions import conditions_on
from penstock.plan.spark_blocks import aggregates, item_of, relations, scans
from penstock.plan.trees import own_nodes, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBERS: Final = frozenset({"row_number", "rank", "dense_rank"})
_MORE: Final = ("where", "group", "having", "distinct", "joins", "laterals")


def best_of_scan(query: exp.Expr, name: str, kept: Mapping[str, str]) -> BestOfKey | None:
    """The best rows of a scan, where the query sees no others; `kept` are its columns with those that are kept."""
    found = [block for block in query.find_all(exp.Select) if _reads(block, name)]
    if len(found) != 1 or any(found[0].args.get(clause) for clause in _MORE) or aggregates(found[0]):
        return None
    block = found[0]
    if len(scans(block)) != 1 or any(isinstance(node, exp.Subquery | exp.Exists) for node in block.walk()):
        return None
    overs = [node for item in block.expressions for node in own_nodes(item) if isinstance(node, exp.Window)]
    if not overs:
        return _cut_off(block, kept)
    if len(overs) > 1 or any(block.args.get(clause) for clause in ("limit", "offset")):
        return None
    return _numbered(block, overs[0], kept)


def _reads(block: exp.Select, name: str) -> bool:
    return any(isinstance(below, exp.Table) and below.name == name for below in relations(block).values())


def _cut_off(block: exp.Select, kept: Mapping[str, str]) -> BestOfKey | None:
    """The rows of ORDER BY and LIMIT."""
    limit, offset, order = (block.args.get(clause) for clause in ("limit", "offset", "order"))
    first = whole_number(limit.expression) if isinstance(limit, exp.Limit) else None
    before = whole_number(offset.expression) if isinstance(offset, exp.Offset) else 0
    if not first or before is None or order is None:
        return None
    places = [_placed(entry, block, kept) for entry in order.expressions]
    known = tuple(each for each in places if each is not None)
    return BestOfKey(first + before, (), known) if len(known) == len(places) else None


def _numbered(block: exp.Select, over: exp.Window, kept: Mapping[str, str]) -> BestOfKey | None:
    """The rows up to a number that the query around asks for."""
    call = over.this
    number = call.name.lower() if isinstance(call, exp.Anonymous) and not call.expressions else ""
    item = next(item for item in block.expressions if any(node is over for node in own_nodes(item)))
    last = _last_asked(block, item.alias_or_name) if item.unalias() is over and number in _NUMBERS else None
    order = over.args.get("order")
    if not last or order is None or over.args.get("spec") is not None:
        return None
    keys = [_kept_name(key, kept) for key in over.args.get("partition_by") or []]
    places = [_placed(entry, block, kept) for entry in order.expressions]
    by, known = tuple(name for name in keys if name), tuple(each for each in places if each is not None)
    if len(by) < len(keys) or len(known) < len(places):
        return None
    # Of rows that the order does not tell apart any might be chosen, and another one than is shown.
    if number == "row_number" and {*kept.values()} - {*by, *(each.column for each in known)}:
        return None
    return BestOfKey(last, by, known, number)


def _last_asked(block: exp.Select, name: str) -> int | None:
    """The largest number that the query around lets through."""
    item = block.parent
    if not isinstance(item, exp.Subquery) or not isinstance(item.parent, exp.From | exp.Join):
        return None
    around = item.parent.parent
    if not isinstance(around, exp.Select):
        return None
    found = [_limit(each, name) for each in conditions_on(around, item.alias)]
    return min((limit for limit in found if limit is not None), default=None)


def _limit(condition: exp.Expr, name: str) -> int | None:
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.Between) and _is(condition.this, name):
        return whole_number(condition.args["high"])
    if not isinstance(condition, exp.Binary):
        return None
    left, right = condition.this, condition.expression
    if _is(left, name) and (limit := whole_number(right)) is not None:
        if isinstance(condition, exp.LTE | exp.EQ):
            return limit
        return limit - 1 if isinstance(condition, exp.LT) else None
    if _is(right, name) and (limit := whole_number(left)) is not None:
        if isinstance(condition, exp.GTE | exp.EQ):
            return limit
        return limit - 1 if isinstance(condition, exp.GT) else None
    return None


def _is(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and node.name == name


def _placed(entry: exp.Expr, block: exp.Select, kept: Mapping[str, str]) -> Placed | None:
    if not isinstance(entry, exp.Ordered):
        return None
    value = entry.this
    if isinstance(value, exp.Column) and not value.table:  # of ORDER BY: an output name
        item = item_of(block, value.name)
        value = item if item is not None else value
    name = _kept_name(value, kept)
    if name is None:
        return None
    return Placed(name, descending=bool(entry.args.get("desc")), nulls_first=bool(entry.args.get("nulls_first")))


def _kept_name(node: exp.Expr, kept: Mapping[str, str]) -> str | None:
    return kept.get(node.name) if isinstance(node, exp.Column) else None
