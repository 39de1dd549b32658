"""Joins with the last row before a moment, where several rows have the same moment.

An ASOF join of the view store takes any of them. In a view the choice must not change from batch to batch, so of the
rows of one key and moment only the first is joined with, in the order of the other columns.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.plan.joins import conjuncts_of
from penstock.plan.prune import columns_read
from penstock.plan.store_terms import DiffersError
from penstock.plan.trees import aliased, call, column, number, select, subquery

_VERSIONS: Final = "__versions"
_PLACE: Final = "__place"


def one_version_a_moment(tree: exp.Expr) -> None:
    """Lets each ASOF join of a tree, which is changed in place, see one row for each key and moment."""
    for join in [found for found in tree.find_all(exp.Join) if found.method == "ASOF"]:
        block = join.parent
        on = join.args.get("on")
        if not isinstance(block, exp.Select) or on is None or not isinstance(join.this, exp.Table | exp.Subquery):
            raise DiffersError
        alias = join.this.alias_or_name
        told = [_of(part, alias) for part in conjuncts_of(on)]
        names = sorted(columns_read(block).get(alias, set()))
        over = exp.Window(
            this=call("row_number"),
            partition_by=told,
            order=exp.Order(expressions=[exp.Ordered(this=told[0].copy(), desc=False, nulls_first=True)]),
        )
        numbered = select([*(column(name, alias) for name in names), aliased(over, _PLACE)], join.this.copy())
        first = exp.EQ(this=column(_PLACE, _VERSIONS), expression=number(1))
        shown: list[exp.Expr] = [column(name, _VERSIONS) for name in names]
        versions = select(shown, subquery(numbered, _VERSIONS), where=exp.Where(this=first))
        join.set("this", subquery(versions, alias))


def _of(part: exp.Expr, alias: str) -> exp.Expr:
    """What a comparison with another relation asks of this one: a column, or what is computed of its columns."""
    for side in (part.args.get("this"), part.args.get("expression")):
        if not isinstance(side, exp.Expr):
            continue
        read = list(side.find_all(exp.Column))
        if read and all(each.table == alias for each in read):
            return side.copy()
    raise DiffersError
