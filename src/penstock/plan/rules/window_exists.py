"""Turns EXISTS over a window into a semi join, NOT EXISTS into an anti join.

    SELECT … FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.window_start = l.window_start)
    -> SELECT … FROM l LEFT SEMI JOIN r ON r.k = l.k AND r.window_start = l.window_start

Only where the subquery compares window bounds: any other EXISTS over a stream has a result that changes over time,
and over a bounded table Spark does it by itself. Every column in the condition must say its relation, because inside
a join an unqualified name could mean another column than it does inside the subquery.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.joins import all_of, conjuncts_of

_BOUNDS = frozenset({"window_start", "window_end"})


def window_exists(tree: exp.Expr) -> exp.Expr:
    """The query with semi and anti joins in place of EXISTS over windows."""
    for select in list(tree.find_all(exp.Select)):
        where = select.args.get("where")
        if isinstance(where, exp.Where):
            _rewrite(select, where)
    return tree


def _rewrite(select: exp.Select, where: exp.Where) -> None:
    kept: list[exp.Expr] = []
    joins: list[exp.Join] = []
    for conjunct in conjuncts_of(where.this):
        join = _join(conjunct)
        if join is None:
            kept.append(conjunct)
        else:
            joins.append(join)
    if not joins:
        return
    select.set("joins", [*(select.args.get("joins") or []), *joins])
    condition = all_of(kept)
    select.set("where", exp.Where(this=condition) if condition is not None else None)


def _join(conjunct: exp.Expr) -> exp.Join | None:
    negated = isinstance(conjunct, exp.Not)
    exists = conjunct.this if negated else conjunct
    inner = exists.this if isinstance(exists, exp.Exists) else None
    if isinstance(inner, exp.Subquery):
        inner = inner.this
    if not isinstance(inner, exp.Select) or not _plain(inner):
        return None
    condition = inner.args["where"].this
    columns = list(condition.find_all(exp.Column))
    if not any(column.name.casefold() in _BOUNDS for column in columns):
        return None
    if any(column.args.get("table") is None for column in columns) or condition.find(exp.Query) is not None:
        return None
    source = inner.args["from_"].this
    return exp.Join(this=source.copy(), kind="ANTI" if negated else "SEMI", on=condition.copy())


def _plain(inner: exp.Select) -> bool:
    """One relation and a condition, nothing else."""
    others = ("joins", "laterals", "group", "having", "qualify", "distinct", "order", "limit", "offset", "with_")
    return (
        inner.args.get("from_") is not None
        and isinstance(inner.args.get("where"), exp.Where)
        and not any(inner.args.get(key) for key in others)
    )
