"""* in a query with GROUP BY ALL, which is what PIVOT is read as: the columns that it stands for, written out.

SELECT * EXCEPT (amount, status), SUM(amount) FILTER (WHERE status = 'paid') AS paid FROM orders GROUP BY ALL
-> SELECT customer, SUM(amount) FILTER (WHERE status = 'paid') AS paid FROM orders GROUP BY ALL
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan.relation import HIDDEN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.plan.scope import Scope


def with_columns_of_stars(written: exp.Select, scope_of: Callable[[exp.Select], Scope]) -> exp.Select:
    """The SELECT without a plain * where it groups by ALL; itself otherwise, and where the columns are not known."""
    group = written.args.get("group")
    grouped = isinstance(group, exp.Group) and group.args.get("all")
    if not grouped or not any(isinstance(item, exp.Star) for item in written.expressions):
        return written
    leaves = scope_of(written).leaves
    if len(leaves) != 1 or leaves[0].open or leaves[0].inside:
        return written
    leaf = leaves[0]
    made = written.copy()
    items: list[exp.Expr] = []
    for item in made.expressions:
        if not isinstance(item, exp.Star):
            items.append(item)
            continue
        excluded = {name.name.casefold() for name in item.args.get("except_") or []}
        shown = [entry for entry in leaf.fields if not entry.hidden and not entry.pseudo]
        names = [entry.name for entry in shown if not entry.name.startswith(HIDDEN_PREFIX)]
        items += [exp.column(name, leaf.alias, quoted=True) for name in names if name.casefold() not in excluded]
    made.set("expressions", items)
    return made
