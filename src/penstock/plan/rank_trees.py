"""The rows of a window with their ranks, as text that Spark runs on a stream.

All rows of a window are collected and sorted. ROW_NUMBER is the place of a row. For RANK and DENSE_RANK the places
are found at which a row differs from the one before: what lies between two of them are the rows of one rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.joins import all_of
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.trees import aliased, call, column, dot, identifier, number, select, subquery

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROW: Final = "__row"
_PLACE: Final = "__position"
_SORTED: Final = "__top"
_STARTS: Final = "__starts"
_BEGINS: Final = "__begins"
_DENSE: Final = "__dense"


def rank_tree(
    base: exp.Select,
    names: list[str],
    ranks: Mapping[str, str],
    order: exp.Order,
    groups: list[str],
    limit: int | None,
) -> exp.Select:
    """The columns `names` of `base` and the ranks under their names, with the hidden window.

    `base` gives the columns of `groups` and those of the order, `__o0`, …, too. With a limit, the first rows of each
    group are enough where nothing but ROW_NUMBER is asked for; otherwise the query around leaves out the rest.
    """
    orders = [f"__o{place}" for place in range(len(order.expressions))]
    pairs: list[exp.Expr] = []
    for name in [*names, *orders]:
        pairs += [exp.Literal.string(name), column(name, "__base")]
    rows = call("array_sort", call("collect_list", call("named_struct", *pairs)), _comparator(order))
    numbered = set(ranks.values()) == {"row_number"}
    if numbered and limit is not None:
        rows = call("slice", rows, number(1), number(limit))
    grouped = select(
        [column(WINDOW_COLUMN, "__base"), aliased(rows, _SORTED)],
        subquery(base, "__base"),
        group=exp.Group(expressions=[column(name, "__base") for name in groups]),
    )
    shown: list[exp.Expr] = [aliased(dot(column(_ROW, "__ranked"), name), name) for name in names]
    if numbered:
        view = _exploded(column(_SORTED, "__grouped"), "__ranked", _PLACE, _ROW)
        shown += [aliased(_next(column(_PLACE, "__ranked")), name) for name in ranks]
        return select([*shown, column(WINDOW_COLUMN, "__grouped")], subquery(grouped, "__grouped"), laterals=[view])
    begins, dense = column(_BEGINS, "__tied"), column(_DENSE, "__tied")
    values = {
        "row_number": _next(exp.Add(this=begins, expression=column(_PLACE, "__ranked"))),
        "rank": _next(begins),
        "dense_rank": _next(dense),
    }
    shown += [aliased(values[rank].copy(), name) for name, rank in ranks.items()]
    ends = call("coalesce", call("get", column(_STARTS, "__parted"), _next(dense)), _size(column(_SORTED, "__parted")))
    tied = call("slice", column(_SORTED, "__parted"), _next(begins), exp.Sub(this=ends, expression=begins.copy()))
    views = [
        _exploded(column(_STARTS, "__parted"), "__tied", _DENSE, _BEGINS),
        _exploded(tied, "__ranked", _PLACE, _ROW),
    ]
    source = subquery(_parted(grouped, orders), "__parted")
    return select([*shown, column(WINDOW_COLUMN, "__parted")], source, laterals=views)


def _parted(grouped: exp.Select, orders: list[str]) -> exp.Select:
    """The sorted rows with the places, from 0, at which those of another rank begin."""
    rows = column(_SORTED, "__grouped")
    before = call("get", rows.copy(), exp.Sub(this=column("__i"), expression=number(1)))
    same = all_of(
        [exp.NullSafeEQ(this=dot(column("__x"), name), expression=dot(before.copy(), name)) for name in orders]
    )
    first = exp.EQ(this=column("__i"), expression=number(0))
    begins = exp.Or(this=first, expression=exp.Not(this=exp.Paren(this=same)))
    place = exp.Case(ifs=[exp.If(this=begins, true=column("__i"))])
    places = call("transform", rows.copy(), exp.Lambda(this=place, expressions=[identifier("__x"), identifier("__i")]))
    known = exp.Not(this=exp.Is(this=column("__s"), expression=exp.Null()))
    starts = call("filter", places, exp.Lambda(this=known, expressions=[identifier("__s")]))
    return select([column(WINDOW_COLUMN, "__grouped"), rows, aliased(starts, _STARTS)], subquery(grouped, "__grouped"))


def _next(tree: exp.Expr) -> exp.Expr:
    return exp.Add(this=tree.copy(), expression=number(1))


def _size(rows: exp.Expr) -> exp.Expr:
    return call("size", rows)


def _exploded(rows: exp.Expr, alias: str, place: str, value: str) -> exp.Lateral:
    names = exp.TableAlias(this=identifier(alias), columns=[identifier(place), identifier(value)])
    return exp.Lateral(this=call("posexplode", rows), view=True, alias=names)


def _comparator(order: exp.Order) -> exp.Lambda:
    """(l, r) -> CASE … END, an order over structs with NULLs and directions as written."""
    branches: list[exp.Expr] = []
    for position, entry in enumerate(order.expressions):
        left, right = (dot(column(name), f"__o{position}") for name in ("__l", "__r"))
        first = -1 if entry.args.get("nulls_first") else 1
        down = bool(entry.args.get("desc"))
        no_left = exp.Is(this=left.copy(), expression=exp.Null())
        no_right = exp.Is(this=right.copy(), expression=exp.Null())
        one = exp.And(this=no_left, expression=exp.Not(this=no_right.copy()))
        other = exp.And(this=exp.Not(this=no_left.copy()), expression=no_right)
        for condition, value in (
            (one, first),
            (other, -first),
            (exp.LT(this=left.copy(), expression=right.copy()), 1 if down else -1),
            (exp.GT(this=left.copy(), expression=right.copy()), -1 if down else 1),
        ):
            branches.append(exp.If(this=condition, true=number(value)))
    body = exp.Case(ifs=branches, default=number(0))
    return exp.Lambda(this=body, expressions=[identifier("__l"), identifier("__r")])
