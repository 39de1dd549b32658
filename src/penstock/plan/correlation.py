"""CORR for Spark, whose own divides by zero where a column does not vary.

    CORR(x, y)  ->  TRY_DIVIDE(REGR_SXY(x, y), SQRT(REGR_SXX(x, y) * REGR_SYY(x, y)))

The same quotient, NULL instead of an error. A condition around Spark's call would not help: Spark computes aggregates
before it looks at conditions.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.plan.trees import call

_NAME: Final = "corr"


def correlation(node: exp.Expr) -> exp.Expr | None:
    """What Spark is given for CORR with the FILTER and OVER behind it; None for anything else."""
    if not is_correlation(node):
        return None
    spreads = exp.Mul(this=_moment(node, "regr_sxx"), expression=_moment(node, "regr_syy"))
    return call("try_divide", _moment(node, "regr_sxy"), call("sqrt", spreads))


def is_correlation(node: exp.Expr) -> bool:
    """Whether this is CORR, with or without FILTER and OVER."""
    inner = _inner(node)
    return isinstance(inner, exp.Anonymous) and inner.name.lower() == _NAME


def _moment(node: exp.Expr, name: str) -> exp.Expr:
    made = node.copy()
    _inner(made).set("this", name)
    return made


def _inner(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Filter | exp.Window):
        node = node.this
    return node
