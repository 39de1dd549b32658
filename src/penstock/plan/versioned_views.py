"""Views that show the latest row of each key, read as all versions of their rows: Flink's versioned views.

    CREATE VIEW versioned AS SELECT currency, rate, ts
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts DESC) AS rn FROM rates) WHERE rn = 1

    … FROM orders AS o JOIN versioned FOR SYSTEM_TIME AS OF o.ts AS v ON o.currency = v.currency

A join as of an event time wants the row of the key that was the latest at that time. So the rows of the view are then
all rows below it; the time by which it orders them is from when on a version holds, and the key says whose it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.joins import conjuncts_of
from penstock.plan.rank_limits import ranked_subquery
from penstock.plan.trees import aliased

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN: Final = ("joins", "laterals", "distinct", "group", "having", "qualify", "order", "limit", "offset")


@frozen
class Versions:
    """The columns of a relation that tell its versions apart: the key, and the time from which on one holds."""

    key: tuple[str, ...]
    time: str

    def renamed(self, before: Sequence[str], after: Sequence[str]) -> Versions:
        names = dict(zip(before, after, strict=False))
        return Versions(tuple(names.get(name, name) for name in self.key), names.get(self.time, self.time))


def all_versions(tree: exp.Query) -> tuple[exp.Query, Versions] | None:
    """The query of a view without its choice of the latest row of each key; None where it does not choose that."""
    if not isinstance(tree, exp.Select) or any(tree.args.get(clause) for clause in _PLAIN):
        return None
    limit, where = ranked_subquery(tree), tree.args.get("where")
    if limit is None or limit.limit != 1 or where is None or len(conjuncts_of(where.this)) != 1:
        return None
    made = tree.copy()
    inner = made.args["from_"].this.this
    if any(inner.args.get(clause) for clause in _PLAIN):
        return None
    over = [item for item in inner.expressions if item.find(exp.Window)]
    chosen = _chosen(over[0].unalias()) if len(over) == 1 else None
    if chosen is None:
        return None
    shown = [_shown(made.expressions, _shown(inner.expressions, name)) for name in (*chosen.key, chosen.time)]
    if None in shown:
        return None
    *key, time = [name for name in shown if name is not None]
    over[0].replace(aliased(exp.Literal.number(1), over[0].alias))
    made.set("where", None)
    return made, Versions(tuple(key), time)


def _chosen(window: exp.Expr) -> Versions | None:
    """The key and the time of `ROW_NUMBER() OVER (PARTITION BY key ORDER BY time DESC)`."""
    if not isinstance(window, exp.Window) or window.args.get("spec") is not None:
        return None
    call, order = window.this, window.args.get("order")
    numbers = isinstance(call, exp.RowNumber) or (isinstance(call, exp.Anonymous) and call.name.lower() == "row_number")
    keys = window.args.get("partition_by") or []
    by = order.expressions if isinstance(order, exp.Order) else []
    if not numbers or not keys or len(by) != 1 or not by[0].args.get("desc"):
        return None
    if not all(isinstance(each, exp.Column) for each in (*keys, by[0].this)):
        return None
    return Versions(tuple(key.name for key in keys), by[0].this.name)


def _shown(items: Sequence[exp.Expr], name: str | None) -> str | None:
    """The name that a column has above a SELECT list; None where it is not shown."""
    if name is None:
        return None
    for item in items:
        below = item.unalias()
        if isinstance(below, exp.Column) and not below.is_star and below.name.casefold() == name.casefold():
            return str(item.alias_or_name)
    return name if any(item.is_star for item in items) else None
