"""Windows that a query groups joined rows by, as windows over a subquery of these rows.

    SELECT d.name, COUNT(*) AS n FROM bids AS b JOIN names AS d ON b.item = d.id
    GROUP BY d.name, TUMBLE(b.ts, INTERVAL '10' SECOND)

becomes

    SELECT name, COUNT(*) AS n FROM (SELECT d.name AS name, b.ts AS ts FROM … JOIN …) AS __rows
    GROUP BY name, TUMBLE(ts, INTERVAL '10' SECOND)

which the view store answers where the joined rows change (see kept_windows). What a name means is asked of the scope of
the FROM clause: a column comes before an output of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.names import output_name
from penstock.plan.split_rows import ROWS
from penstock.plan.trees import aliased, subquery
from penstock.sql.nodes import WindowCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.plan.scope import Resolved, Scope

_BELOW: Final = ("from_", "joins", "laterals", "where")
_ABOVE: Final = ("group", "having", "order")
_ADDED: Final = ("window_start", "window_end", "window_time")


def over_joined_rows(written: exp.Select, scope_of: Callable[[exp.Select], Scope]) -> exp.Select:
    """The SELECT over a subquery of what it joins, where it groups that by a window; else the SELECT as it is.

    `scope_of` gives the relations of its FROM clause.
    """
    group = written.args.get("group")
    calls = [key for key in group.expressions if isinstance(key, WindowCall)] if isinstance(group, exp.Group) else []
    if len(calls) != 1 or not _joins(written):
        return written
    return _Rows(written, scope_of(written)).cut() or written


def _joins(written: exp.Select) -> bool:
    from_ = written.args.get("from_")
    inside = isinstance(from_, exp.From) and bool(from_.this.args.get("joins"))
    return inside or bool(written.args.get("joins") or written.args.get("laterals"))


class _Rows:
    """A SELECT, and the columns that its subquery is to have."""

    def __init__(self, written: exp.Select, scope: Scope) -> None:
        self.scope = scope
        self.made = written.copy()
        self.items: dict[exp.Expr, tuple[str, exp.Expr]] = {}  # what is read -> its name, and what is written for it
        named = [item.alias for item in written.expressions if isinstance(item, exp.Alias)]
        # a parameter of a lambda would hide a column of its name
        parameters = [name.name for node in written.find_all(exp.Lambda) for name in node.expressions]
        self.taken = {name.casefold() for name in (*_ADDED, *named, *parameters)}

    def cut(self) -> exp.Select | None:
        made = self.made
        if any(item.is_star for item in made.expressions):
            return None
        made.set("expressions", [_named(item, place) for place, item in enumerate(made.expressions)])
        above = [made.args[clause] for clause in _ABOVE if made.args.get(clause) is not None]
        parts = [*made.expressions, *above]
        if any(self._reads_rows(query) for part in parts for query in part.find_all(exp.Query)):
            return None
        self._computed_keys(parts)
        for node in [node for part in parts for node in _columns(part)]:
            found = self._found(node) if not _of_lambda(node) else None
            if found is not None:
                node.replace(exp.column(self._name(found.tree, node), quoted=True))
        rows = exp.Select(**{clause: made.args[clause] for clause in _BELOW if made.args.get(clause)})
        rows.set("expressions", [aliased(item, name) for name, item in self.items.values()])
        for clause in _BELOW:
            made.set(clause, None)
        made.set("from_", exp.From(this=subquery(rows, ROWS)))
        return made

    def _computed_keys(self, parts: list[exp.Expr]) -> None:
        """Sessions are found for columns: a key that is computed becomes one."""
        group = self.made.args["group"]
        if not any(isinstance(key, WindowCall) and key.kind == "SESSION" for key in group.expressions):
            return
        for key in [key.copy() for key in group.expressions if not isinstance(key, exp.Column | WindowCall)]:
            name = self._name(key, key)
            same = [node for part in parts for node in part.walk() if node == key]
            for node in same:
                node.replace(exp.column(name, quoted=True))

    def _name(self, read: exp.Expr, node: exp.Expr) -> str:
        """The column of the subquery for something that is read."""
        if read not in self.items:
            base = node.name if isinstance(node, exp.Column) else "key"
            name, number = base, 2
            while name.casefold() in self.taken:
                name, number = f"{base}_{number}", number + 1
            self.taken.add(name.casefold())
            self.items[read] = (name, node.copy())
        return self.items[read][0]

    def _reads_rows(self, query: exp.Expr) -> bool:
        """Whether a subquery names what is joined here, or might: it could not any more."""
        return any(self._found(node) is not None for node in _columns(query))

    def _found(self, node: exp.Column) -> Resolved | None:
        return self.scope.here([part for part in node.parts if isinstance(part, exp.Identifier)])


def _columns(part: exp.Expr) -> Iterator[exp.Column]:
    for node in part.find_all(exp.Column):
        if not isinstance(node.this, exp.Star):
            yield node


def _named(item: exp.Expr, place: int) -> exp.Expr:
    """An item of the SELECT list under the name that it has as it is written."""
    return item if isinstance(item, exp.Alias) else exp.alias_(item, output_name(item, place), quoted=True)


def _of_lambda(node: exp.Column) -> bool:
    """Whether a name is that of a parameter of a lambda around it."""
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        if any(parameter.name == node.parts[0].name for parameter in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False
