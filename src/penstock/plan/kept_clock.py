"""The clock in answers that change: each row has the time of the batch that brought it.

    SELECT a.id, b.price, NOW() FROM a LEFT JOIN b ON a.id = b.a
    -> SELECT a.id, b.price, GREATEST(a.now, b.now)
       FROM (SELECT *, NOW() AS now FROM a) AS a LEFT JOIN (SELECT *, NOW() AS now FROM b) AS b ON a.id = b.a

Spark writes that time down before the batch runs, so the batch has the same when it is run again; the store keeps it
with the row. What is made of several rows has the time of the newest of them: a group that of its last row, a pair of a
join that of the later one. A query over one stream keeps its calls: Spark computes them for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from penstock.plan.names import is_proctime
from penstock.plan.newest_rows import with_newest
from penstock.plan.trees import nondeterministic_call, nondeterministic_name, own_nodes
from penstock.sql.nodes import WindowCall, WindowTable

_NOW: Final = "__qualified_now"
_NAMELESS: Final = "__qualified_rows"
_CALLS: Final = frozenset({"now", "current_timestamp", "proctime", "current_date", "curdate", "localtimestamp"})
_NODES: Final = (exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp)
_CLAUSES: Final = ("where", "group", "having", "qualify", "order")
CLOCKS: Final = _CALLS


def is_clock_call(node: exp.Expr) -> bool:
    """Whether a written expression asks the clock."""
    if isinstance(node, _NODES):
        return node.this is None
    return isinstance(node, exp.Anonymous) and node.name.casefold() in _CALLS and not node.expressions


def is_random(node: exp.Expr) -> bool:
    """Whether a node is a call whose value differs each time, and is not that of a clock."""
    return nondeterministic_call(node) is node and nondeterministic_name(node).casefold() not in CLOCKS


def has_random(tree: exp.Expr) -> bool:
    """Whether there is such a call in a tree."""
    return any(is_random(node) for node in tree.walk())


def shown_name(name: str) -> str:
    """A column in the user's words."""
    return "the time it came" if name.startswith(_NOW) else name


def clock_calls(select: exp.Select) -> list[exp.Expr]:
    """The calls of a SELECT itself that ask the clock, without those of its joins and subqueries."""
    return [node for part in _parts(select) for node in own_nodes(part) if is_clock_call(node)]


def with_row_clocks(select: exp.Select, aggregate: Callable[[exp.Anonymous], bool]) -> exp.Select:
    """The SELECT with the times of its rows in the place of the clock; itself where there is nothing to do."""
    calls = clock_calls(select)
    grouped = _aggregates(select, aggregate)
    if not calls or (not grouped and _one_table(select)):
        return select
    made = select.copy()
    kinds: list[exp.Expr] = []
    for call in calls:
        if call not in kinds:
            kinds.append(call.copy())
    aliases: list[str] = []
    for item in _relations(made):
        if isinstance(item, exp.Unnest) or (isinstance(item, exp.Lateral) and not isinstance(item.this, exp.Query)):
            continue  # what a row is taken apart into came with it
        alias = _give(item, kinds, len(aliases))
        if alias is None:
            return select
        aliases.append(alias)
    if not aliases:
        return select
    for node in clock_calls(made):
        of_row = not grouped or node.find_ancestor(exp.Group, exp.Where) is not None or _inside(node, aggregate)
        if isinstance(node.parent, WindowCall):
            node.replace(exp.column(f"{_NOW}_{kinds.index(node)}", quoted=True))
        else:
            node.replace(_time(aliases, kinds.index(node), newest=not of_row))
    return made


def stands_on_clock(window: exp.Expr, source: exp.Expr, computed: Callable[[exp.Table, str], bool]) -> bool:
    """Whether the time of a window is one at which rows came: `computed` tells it of the columns of a relation."""
    time = window.args.get("time")
    if not isinstance(time, exp.Column):
        return False
    if time.name.startswith(_NOW):
        return True
    if isinstance(source, exp.Table):
        return computed(source, time.name)
    inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(inner, exp.Select):
        return False
    named = [item.unalias() for item in inner.expressions if item.alias_or_name == time.name]
    from_ = inner.args.get("from_")
    below = from_.this if isinstance(from_, exp.From) else None
    starred = any(isinstance(item, exp.Star) for item in inner.expressions)
    if not named and starred and isinstance(below, exp.Table):
        return computed(below, time.name)
    return any(is_proctime(item) or (isinstance(item, exp.Column) and isinstance(below, exp.Table)
                                     and computed(below, item.name)) for item in named)  # fmt: skip


def _aggregates(select: exp.Select, aggregate: Callable[[exp.Anonymous], bool]) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    calls = [node for item in select.expressions for node in own_nodes(item) if isinstance(node, exp.Anonymous)]
    return any(aggregate(call) and not isinstance(call.parent, exp.Window) for call in calls)


def _parts(select: exp.Select) -> list[exp.Expr]:
    return [*select.expressions, *(select.args[name] for name in _CLAUSES if select.args.get(name) is not None)]


def _relations(select: exp.Select) -> list[exp.Expr]:
    from_ = select.args.get("from_")
    items = [from_.this] if isinstance(from_, exp.From) else []
    return items + [join.this for join in select.args.get("joins") or []]


def _one_table(select: exp.Select) -> bool:
    items = _relations(select)
    return len(items) == 1 and isinstance(items[0], exp.Table)


def _give(item: exp.Expr, kinds: list[exp.Expr], place: int) -> str | None:
    """Adds the times of its rows to a relation; the alias by which they are read, None where nothing tells them. A
    subquery without an alias gets one, by its place among the relations of the SELECT."""
    shown: list[exp.Expr] = [
        exp.alias_(kind.copy(), f"{_NOW}_{number}", quoted=True) for number, kind in enumerate(kinds)
    ]
    alias = item.alias_or_name
    if isinstance(item, WindowTable):
        return alias if _give(item.this, kinds, place) is not None and alias else None
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier) and item.args.get("db") is None:
        if item.args.get("system_time") is not None or item.args.get("joins"):
            return None
        plain = item.copy()
        plain.set("alias", None)
        query = exp.Select(expressions=[exp.Star(), *shown], from_=exp.From(this=plain))
        item.replace(exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
        return alias
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
        made = with_newest(item.this, shown)
        if made is not None:
            item.set("this", made)
            if not alias:
                alias = f"{_NAMELESS}_{place}"
                item.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
            return alias
    return None


def _inside(node: exp.Expr, aggregate: Callable[[exp.Anonymous], bool]) -> bool:
    """Whether a call stands inside an aggregate: there it is of a row."""
    around = node.parent
    while around is not None and not isinstance(around, exp.Select):
        if isinstance(around, exp.Anonymous) and aggregate(around) and not isinstance(around.parent, exp.Window):
            return True
        around = around.parent
    return False


def _time(aliases: list[str], place: int, *, newest: bool) -> exp.Expr:
    times: list[exp.Expr] = [exp.column(f"{_NOW}_{place}", table=alias, quoted=True) for alias in aliases]
    made = times[0] if len(times) == 1 else exp.Anonymous(this="GREATEST", expressions=times)
    return exp.Anonymous(this="MAX", expressions=[made]) if newest else made
