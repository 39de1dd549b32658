"""Puts the definitions of a WINDOW clause in the place of their names.

SELECT sum(x) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY ts)
-> SELECT sum(x) OVER (PARTITION BY k ORDER BY ts) FROM t
"""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.sql.spans import span_of

_PARTS = ("partition_by", "order", "spec")


def named_windows(tree: exp.Expr) -> exp.Expr:
    """The query without WINDOW clauses."""
    for select in list(tree.find_all(exp.Select)):
        defined = {window.name.casefold(): window for window in select.args.get("windows") or []}
        select.set("windows", None)
        for call in list(select.find_all(exp.Window)):
            alias = call.args.get("alias")
            if isinstance(alias, exp.Identifier) and call.find_ancestor(exp.Select) is select:
                _inline(call, alias, defined)
    return tree


def _inline(call: exp.Window, alias: exp.Identifier, defined: dict[str, exp.Expr]) -> None:
    window = defined.get(alias.name.casefold())
    if window is None:
        raise ResolutionError(
            "UNKNOWN_COLUMN",
            f'there is no window "{alias.name}" in a WINDOW clause',
            hint=f"the windows are: {', '.join(defined)}" if defined else "write OVER (…) with the definition itself",
            span=span_of(alias) or span_of(call),
        )
    for part in _PARTS:
        value = window.args.get(part)
        if value and not call.args.get(part):
            call.set(part, [item.copy() for item in value] if isinstance(value, list) else value.copy())
    call.set("alias", None)
