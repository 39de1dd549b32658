"""How many rows of a ranked subquery the SELECT around it keeps."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.plan.context import RankLimit
from penstock.plan.joins import conjuncts_of
from penstock.plan.scope import same_name
from penstock.plan.trees import whole_number

_FLIPPED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {exp.GTE: exp.LTE, exp.GT: exp.LT}


def ranked_subquery(written: exp.Select) -> RankLimit | None:
    """How many rows of a ranked subquery a SELECT keeps: `WHERE rn <= 3` around `ROW_NUMBER() … AS rn`."""
    from_ = written.args.get("from_")
    where = written.args.get("where")
    if not isinstance(from_, exp.From) or not isinstance(where, exp.Where) or written.args.get("joins"):
        return None
    inner = from_.this
    if not isinstance(inner, exp.Subquery) or not isinstance(inner.this, exp.Select):
        return None
    ranked = [
        item.alias
        for item in inner.this.expressions
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Window)
    ]
    for conjunct in conjuncts_of(where.this):
        for name in ranked:
            limit = _limit(conjunct, name)
            if limit is not None:
                return RankLimit(name, limit)
    return None


def _limit(conjunct: exp.Expr, name: str) -> int | None:
    left, right = conjunct.args.get("this"), conjunct.args.get("expression")
    kind: type[exp.Expr] = type(conjunct)
    if isinstance(right, exp.Column) and isinstance(left, exp.Literal):
        left, right = right, left
        kind = _FLIPPED.get(kind, kind)
    value = whole_number(right)
    if value is None or not isinstance(left, exp.Column):
        return None
    if not same_name(name, left.name, quoted=bool(left.this.quoted)):
        return None
    if kind is exp.LTE:
        return value
    if kind is exp.LT:
        return value - 1
    return 1 if kind is exp.EQ and value == 1 else None
