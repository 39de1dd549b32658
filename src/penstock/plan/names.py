"""What a column of a SELECT list is called when it has no AS, and one call that the planner knows by name."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.nodes import WindowCall


def output_name(expression: exp.Expr, position: int) -> str:
    """A column's own name, a call's name in lower case, else its position: `price`, `count`, `_c2`."""
    if isinstance(expression, exp.Column):
        return str(expression.name)
    if isinstance(expression, exp.Dot):
        return str(expression.expression.name)
    if isinstance(expression, WindowCall):
        return "window"
    if isinstance(expression, exp.Filter | exp.WithinGroup | exp.Window | exp.Paren | exp.Cast | exp.TryCast):
        return output_name(expression.this, position)
    if isinstance(expression, exp.Anonymous):
        return str(expression.name).lower()
    return f"_c{position}"


def is_proctime(expression: exp.Expr | None) -> bool:
    """Whether an expression is PROCTIME(), the time at which a row is processed."""
    return isinstance(expression, exp.Anonymous) and expression.name.casefold() == "proctime"
