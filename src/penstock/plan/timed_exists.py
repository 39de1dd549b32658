"""EXISTS and IN between two streams within a bound of time: the same semi and anti joins that a user may write.

    SELECT … FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.ts BETWEEN l.ts - INTERVAL '5' SECOND AND l.ts)
    -> SELECT … FROM l LEFT SEMI JOIN r ON r.k = l.k AND r.ts BETWEEN l.ts - INTERVAL '5' SECOND AND l.ts

`x NOT IN (SELECT y …)` also leaves a row out where x or y is NULL. Where neither can be, by NOT NULL in the definition
or IS NOT NULL in the query, it is the anti join on x = y; where one can, the rows that it may be compared with must be
equal in something else, since Spark joins streams by nothing but equality.

Whether there is a bound, only the plan of the join can tell. So the query is planned with joins, and if not every one
of them is bound in time and done by Spark, it is planned as it was written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import PenstockError
from penstock.plan.never_null import never_null
from penstock.plan.nodes import Join
from penstock.plan.relation import Mode
from penstock.plan.rules.window_exists import exists_as_joins

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog
    from penstock.plan.logical import LogicalPlan
    from penstock.sql.statements import Query


def timed_exists(query: Query, catalog: Catalog, plan: Callable[[Query], LogicalPlan]) -> LogicalPlan | None:
    """The plan of a query with joins in place of its EXISTS and IN; None where they are not bound in time."""
    tree = query.tree.copy()
    for select in tree.find_all(exp.Select):
        _qualify(select)
    if not exists_as_joins(tree, _compares_both, partial(never_null, catalog)):
        return None
    try:
        found = plan(replace(query, tree=tree))
    except PenstockError:  # told of the query as it was written
        return None
    joins = [node for node in found.nodes() if isinstance(node, Join) and node.kind in ("semi", "anti")]
    timed = joins and all(join.time_bound is not None or join.window is not None for join in joins)
    return found if timed and found.mode is Mode.APPEND and not found.kept else None


def _qualify(select: exp.Select) -> None:
    """Say whose the columns of a SELECT over one relation are: beside a join, both relations may have one so named."""
    source = select.args.get("from_")
    name = source.this.alias_or_name if source is not None else ""
    if not name or select.args.get("joins") or select.args.get("laterals"):
        return
    given = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
    group = select.args.get("group")
    parts = [*select.expressions, select.args.get("where"), *(group.expressions if group is not None else [])]
    for part in filter(None, parts):
        for column in part.find_all(exp.Column):
            own = column.find_ancestor(exp.Query) is select and column.args.get("table") is None
            if own and not isinstance(column.this, exp.Star) and column.name.casefold() not in given:
                column.set("table", exp.to_identifier(name, quoted=True))


def _compares_both(condition: exp.Expr) -> bool:
    """Whether a condition is about more than one relation."""
    return len({column.table.casefold() for column in condition.find_all(exp.Column)}) > 1
