"""Turns EXISTS and IN over a window into a semi join, NOT EXISTS and NOT IN into an anti join.

    SELECT … FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.window_start = l.window_start)
    -> SELECT … FROM l LEFT SEMI JOIN r ON r.k = l.k AND r.window_start = l.window_start

    SELECT … FROM l WHERE l.k IN (SELECT k FROM r WHERE r.window_start = l.window_start)
    -> SELECT … FROM l LEFT SEMI JOIN r ON l.k = r.k AND r.window_start = l.window_start

Only where the subquery compares window bounds: any other EXISTS over a stream has a result that changes over time,
unless it is bound in time (`timed_exists`), and over a bounded table Spark does it by itself. Every column in the
condition must say its relation, because inside a join an unqualified name could mean another column than it does inside
the subquery.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.plan.joins import all_of, conjuncts_of

_BOUNDS = frozenset({"window_start", "window_end"})
HasValue = Callable[[exp.Select, exp.Column], bool]


def window_exists(tree: exp.Expr) -> exp.Expr:
    """The query with semi and anti joins in place of EXISTS over windows."""
    exists_as_joins(tree, _compares_bounds)
    return tree


def exists_as_joins(tree: exp.Expr, wanted: Callable[[exp.Expr], bool], has_value: HasValue | None = None) -> bool:
    """Put semi and anti joins in place of EXISTS and IN whose condition is wanted; whether there are any.

    `has_value` tells of a column of a SELECT whether it is never NULL: NOT IN then compares nothing but equality, by
    which rows can be joined. Where it may be NULL, something else in the condition has to be equal.
    """
    found = [
        _rewrite(select, select.args["where"], wanted, has_value or _unknown)
        for select in list(tree.find_all(exp.Select))
        if isinstance(select.args.get("where"), exp.Where)
    ]
    return any(found)


def _unknown(select: exp.Select, column: exp.Column) -> bool:
    return False


def _compares_bounds(condition: exp.Expr) -> bool:
    return any(column.name.casefold() in _BOUNDS for column in condition.find_all(exp.Column))


def _rewrite(select: exp.Select, where: exp.Where, wanted: Callable[[exp.Expr], bool], has_value: HasValue) -> bool:
    kept: list[exp.Expr] = []
    joins: list[exp.Join] = []
    for conjunct in conjuncts_of(where.this):
        join = _join(select, conjunct, wanted, has_value)
        if join is None:
            kept.append(conjunct)
        else:
            joins.append(join)
    if not joins:
        return False
    select.set("joins", [*(select.args.get("joins") or []), *joins])
    condition = all_of(kept)
    select.set("where", exp.Where(this=condition) if condition is not None else None)
    return True


def _join(
    select: exp.Select, conjunct: exp.Expr, wanted: Callable[[exp.Expr], bool], has_value: HasValue
) -> exp.Join | None:
    negated = isinstance(conjunct, exp.Not)
    asked = conjunct.this if negated else conjunct
    inner = asked.this if isinstance(asked, exp.Exists) else asked.args.get("query")
    if isinstance(inner, exp.Subquery):
        inner = inner.this
    if not isinstance(inner, exp.Select) or not _plain(inner):
        return None
    condition = inner.args["where"].this
    if not wanted(condition):
        return None
    columns = list(condition.find_all(exp.Column))
    if any(column.args.get("table") is None for column in columns) or condition.find(exp.Query) is not None:
        return None
    source = inner.args["from_"].this
    if isinstance(asked, exp.In):
        equal = _equal(asked.this, inner, select if negated else None, has_value)
        if equal is None:
            return None
        condition = exp.And(this=equal, expression=condition.copy())
    return exp.Join(this=source.copy(), kind="ANTI" if negated else "SEMI", on=condition.copy())


def _equal(value: exp.Expr, inner: exp.Select, leaves_out: exp.Select | None, has_value: HasValue) -> exp.Expr | None:
    """What IN compares, or NOT IN of the query that `leaves_out` rows; None where a name could mean another column
    inside a join."""
    alias = inner.args["from_"].this.alias_or_name
    item = inner.expressions[0].unalias() if len(inner.expressions) == 1 else None
    if not isinstance(item, exp.Column) or isinstance(item.this, exp.Star) or not alias:
        return None
    if not isinstance(value, exp.Column) or value.args.get("table") is None:
        return None
    other = item.copy()
    if other.args.get("table") is None:
        other.set("table", exp.to_identifier(alias))
    equal: exp.Expr = exp.EQ(this=value.copy(), expression=other)
    if leaves_out is None:
        return equal
    # NOT IN leaves a row out also where it is not known whether it is in
    unsure = [side for select, side in ((leaves_out, value), (inner, other)) if not has_value(select, side)]
    for side in unsure:
        equal = exp.Or(this=equal, expression=exp.Is(this=side.copy(), expression=exp.Null()))
    return exp.Paren(this=equal) if unsure else equal


def _plain(inner: exp.Select) -> bool:
    """One relation and a condition, nothing else."""
    others = ("joins", "laterals", "group", "having", "qualify", "distinct", "order", "limit", "offset", "with_")
    return (
        inner.args.get("from_") is not None
        and isinstance(inner.args.get("where"), exp.Where)
        and not any(inner.args.get(key) for key in others)
    )
