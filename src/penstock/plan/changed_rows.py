"""What Spark hands over with the rows of a source whose rows change: whether a row is gone, and its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.trees import aliased, call, column

if TYPE_CHECKING:
    from penstock.plan.finish_plan import KeptRows

# In the view of a scan whose rows change, beside the declared columns.
DELETED: Final = "__deleted"
PLACE: Final = ("__partition", "__offset")


def change_items(rows: KeptRows, condition: exp.Expr | None, *, own: bool) -> list[exp.Expr]:
    """The columns of a batch by which rows replace each other; NULL in the rows of other relations.

    A row that does not meet the condition is none for the query, as one that is deleted.
    """
    changes = rows.changes
    if changes is None:
        return []
    names = (changes.gone, changes.partition, changes.offset)
    if not own:
        return [aliased(exp.Null(), name) for name in names]
    values = (_gone(rows, condition), *(column(name, rows.relation) for name in PLACE))
    return [aliased(value, name) for value, name in zip(values, names, strict=True)]


def only_present(rows: KeptRows, value: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """A value that is computed, for rows that are not gone: WHERE may be what keeps it from failing."""
    if isinstance(value, exp.Column):
        return value
    return exp.Case(ifs=[exp.If(this=_gone(rows, condition), true=exp.Null())], default=value)


def _gone(rows: KeptRows, condition: exp.Expr | None) -> exp.Expr:
    gone: exp.Expr = column(DELETED, rows.relation)
    if condition is None:
        return gone
    left_out = exp.Not(this=call("coalesce", exp.Paren(this=condition.copy()), exp.false()))
    return exp.Case(ifs=[exp.If(this=gone, true=exp.true())], default=left_out)
