"""Reading the bound tree of a query: its blocks, their windows, and where a column comes from.

The tree is our own, so its shapes are few: a SELECT reads tables and subqueries under aliases, every column names its
alias, and a window is a call of `window` or `session_window`, or a hidden column that holds one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.join_times import JoinTime, join_time
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.trees import aggregate_text, has_aggregate, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_WINDOW_CALLS: Final = frozenset({"window", "session_window"})
_MICROS: Final = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


@frozen
class Origin:
    """A column of a scan that a value comes from unchanged."""

    table: exp.Table
    column: str


def is_window_call(node: exp.Expr) -> bool:
    """Whether a node puts a row into its windows; in a SELECT list it may make several rows of one."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _WINDOW_CALLS


def makes_rows(item: exp.Expr) -> bool:
    """Whether an item of a SELECT list changes the number of rows."""
    return any(is_window_call(node) or _explodes(node) for node in own_nodes(item))


def _explodes(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in ("explode", "posexplode", "inline", "stack")


def scans(tree: exp.Expr) -> list[exp.Table]:
    """The named relations of a tree, as they stand in the text."""
    return [table for table in tree.find_all(exp.Table, bfs=False) if isinstance(table.this, exp.Identifier)]


def relations(select: exp.Select) -> dict[str, exp.Table | exp.Query]:
    """The tables and queries of a FROM clause by alias; what UNNEST makes is not among them."""
    from_ = select.args.get("from_")
    items = [from_.this] if isinstance(from_, exp.From) else []
    items += [join.this for join in select.args.get("joins") or []]
    found: dict[str, exp.Table | exp.Query] = {}
    for item in items:
        if isinstance(item, exp.Subquery):
            found[item.alias] = item.this
        elif isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            found[item.alias or item.name] = item
    return found


def item_of(select: exp.Select, name: str) -> exp.Expr | None:
    """What a SELECT computes under an output name."""
    for item in select.expressions:
        if item.alias_or_name == name:
            unaliased: exp.Expr = item.unalias()
            return unaliased
    return None


def outputs(query: exp.Expr) -> list[str]:
    """The output names of a query."""
    while isinstance(query, exp.SetOperation):
        query = query.this
    return [item.alias_or_name for item in query.expressions]


def aggregates(select: exp.Select) -> bool:
    """Whether a SELECT groups or aggregates its rows."""
    if select.args.get("group") is not None:
        return True
    having = select.args.get("having")
    return having is not None or any(has_aggregate(item) for item in select.expressions)


def group_keys(select: exp.Select) -> list[exp.Expr]:
    """The keys of a GROUP BY, those inside GROUPING SETS included."""
    group = select.args.get("group")
    if not isinstance(group, exp.Group):
        return []
    found: list[exp.Expr] = []
    for entry in group.expressions:
        for key in _leaves(entry):
            if key not in found:
                found.append(key)
    return found


def _leaves(entry: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(entry, exp.GroupingSets | exp.Cube | exp.Rollup | exp.Tuple):
        for inner in entry.expressions:
            yield from _leaves(inner)
    elif isinstance(entry, exp.Paren):
        yield from _leaves(entry.this)
    else:
        yield entry


def first_keys(select: exp.Select) -> tuple[str, ...]:
    """The output columns by which a SELECT keeps first rows; none where it does not, or keeps what is distinct."""
    distinct = select.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    return tuple(name.name for name in on.expressions) if on is not None else ()


def window_key(select: exp.Select) -> exp.Expr | None:
    """The key of a GROUP BY that is a window."""
    for key in group_keys(select):
        if is_window_call(key) or (isinstance(key, exp.Column) and key.name == WINDOW_COLUMN):
            return key
    return None


def stream_joins(select: exp.Select) -> list[tuple[exp.Join, JoinTime]]:
    """The joins of a SELECT in which Spark keeps rows of streams, in order."""
    found = [(join, join_time(join)) for join in select.args.get("joins") or []]
    return [(join, time) for join, time in found if time is not None and time.of_streams]


def window_call(select: exp.Select, key: exp.Expr) -> tuple[exp.Select, exp.Anonymous] | None:
    """The call behind the window key of a GROUP BY, and the SELECT it stands in; None where that window has closed
    below already: in a grouped query, or in a join of windows."""
    while True:
        if isinstance(key, exp.Anonymous):
            return select, key
        if isinstance(key, exp.Column) and _joined(select, key):
            return None
        inner = relations(select).get(key.table) if isinstance(key, exp.Column) else None
        if not isinstance(inner, exp.Select) or aggregates(inner) or inner.args.get("distinct") is not None:
            return None
        found = item_of(inner, key.name)
        if found is None:
            return None
        select, key = inner, found


def finds_sessions(select: exp.Select) -> bool:
    """Whether the rows of a SELECT are grouped by sessions, and it shows them."""
    key = window_key(select)
    found = window_call(select, key) if key is not None else None
    sessions = found is not None and found[1].name.lower() == "session_window"
    return sessions and item_of(select, WINDOW_COLUMN) is not None


def _joined(select: exp.Select, window: exp.Column) -> bool:
    """Whether a SELECT joins by a window."""
    return any((window.table, window.name) in time.columns for _, time in stream_joins(select))


def own_window_calls(select: exp.Select) -> list[exp.Anonymous]:
    """The windows that a SELECT itself puts its rows into."""
    own = [*select.expressions, *group_keys(select)]
    return [
        node for tree in own for node in own_nodes(tree) if isinstance(node, exp.Anonymous) and is_window_call(node)
    ]


def length_us(call: exp.Anonymous) -> int:
    """How far behind a row the last of its windows can end: the size of a window, the gap of a session."""
    return lengths_us(call)[0]


def lengths_us(call: exp.Anonymous) -> list[int]:
    """The durations of a window, in Spark's order: its size, then its slide and its offset where they are given."""
    texts = [str(each.this).split() for each in call.expressions[1:]]
    return [int(count) * _MICROS[unit.rstrip("s")] for count, unit in texts]


def origins(select: exp.Select, value: exp.Expr) -> list[Origin]:
    """The columns of scans that a time or window in a SELECT comes from; behind a UNION ALL there are several."""
    if isinstance(value, exp.Anonymous) and (is_window_call(value) or value.name.lower() == "window_time"):
        return origins(select, value.expressions[0])
    if not isinstance(value, exp.Column):
        return []
    below = relations(select).get(value.table)
    if isinstance(below, exp.Table):
        return [Origin(below, value.name)]
    return _origins_below(below, value.name) if below is not None else []


def _origins_below(query: exp.Expr, name: str) -> list[Origin]:
    if isinstance(query, exp.SetOperation):
        place = outputs(query).index(name)
        sides = (query.this, query.expression)
        return [origin for side in sides for origin in _origins_below(side, outputs(side)[place])]
    if not isinstance(query, exp.Select):
        return []
    found = item_of(query, name)
    return origins(query, found) if found is not None else []


def selects(tree: exp.Expr) -> list[exp.Select]:
    """The SELECTs of a tree from the top, without those inside expressions."""
    if isinstance(tree, exp.SetOperation):
        return [*selects(tree.this), *selects(tree.expression)]
    if not isinstance(tree, exp.Select):
        return []
    below = [query for query in relations(tree).values() if not isinstance(query, exp.Table)]
    return [tree, *(inner for query in below for inner in selects(query))]


def aggregate_nodes(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregates inside an expression, each as a whole."""
    if aggregate_text(tree) is not None:
        return [tree]
    if isinstance(tree, exp.Subquery):
        return []
    return [found for inner in tree.iter_expressions() for found in aggregate_nodes(inner)]
