"""Windows joined with a largest value of their own: the rows that have it, found without a join.

    SELECT b.auction, b.price FROM TUMBLE(…) AS b
    JOIN (SELECT window_start, window_end, MAX(price) AS highest FROM TUMBLE(…) GROUP BY window_start, window_end) AS m
    ON b.window_start = m.window_start AND b.window_end = m.window_end AND b.price = m.highest

Both sides are the same rows, so each row of a window is compared with the largest value of its own window. That is a
condition on the rows of one window, which are all known when it closes:

    SELECT b.auction, b.price FROM TUMBLE(…) AS b GROUP BY b.window, b.auction, b.price HAVING __largest(b.price)

The GROUP BY stands for rows that are kept until their window closes; two that are equal stay two. Where the rows are
those of a windowed aggregate already, the condition stands above it, in WHERE. What is read of the other side is the
same here: its window, its keys and, in every row that is left, its largest value.

`__largest(value, key, …)` is no function: the conjuncts before it hold for the rows that are compared, those behind it
for the rows that are shown.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.joins import all_of, conjuncts_of
from penstock.plan.prune import columns_read, prune
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.same_rows import renamed, same_rows
from penstock.plan.spark_blocks import group_keys, relations, selects, stream_joins, window_call, window_key
from penstock.plan.trees import (
    aggregate_text,
    aliased,
    call,
    column,
    has_aggregate,
    number,
    select,
    subquery,
    type_of,
    typed,
)
from penstock.types import BOOLEAN, INT

LARGEST: Final = "__largest"
SMALLEST: Final = "__smallest"
_JOINED: Final = frozenset({"expressions", "from_", "joins", "where"})
_GROUPED: Final = frozenset({"expressions", "from_", "where", "group"})
_CALLS: Final = {"max": LARGEST, "min": SMALLEST}
_REACHES: Final = {LARGEST: exp.GTE, SMALLEST: exp.LTE}
_FLIPPED: Final = {exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ}
# 0.0 and -0.0 are equal, and which of them is the largest value of a window nobody says: it is shown as 0.0.
_TWO_ZEROS: Final = frozenset({"FLOAT", "DOUBLE"})


@frozen
class BestRows:
    """A query without the join. `rows`: it is about rows as they come, not about those of an aggregate; `words` is what
    the user wrote for the value. `left`: the rows are the left side of the join."""

    tree: exp.Query
    rows: bool
    words: str
    left: bool


def best_rows(tree: exp.Query) -> BestRows | None:
    """The query in one pass over its rows; None where it is no join of windows with their own largest value."""
    tree = tree.copy()
    prune(tree)
    joined = [block for block in selects(tree) if stream_joins(block)]
    if len(joined) != 1:
        return None
    block = joined[0]
    joins = stream_joins(block)
    if len(block.args["joins"]) != 1 or {name for name, value in block.args.items() if value} - _JOINED:
        return None
    _, time = joins[0]
    sides = [alias for alias, _ in time.columns]
    orders = [sides] if time.kind == "semi" else [sides, sides[::-1]]
    if time.bound != "window" or time.kind not in ("inner", "semi"):
        return None
    for rows, best in orders:
        made = _Block(block, rows, best).made()
        if made is not None:
            query, words, of_rows = made
            if block is not tree:
                block.replace(query)
            return BestRows(query if block is tree else tree, of_rows, words, left=rows == sides[0])
    return None


@frozen
class _Value:
    """An aggregate of the other side that may be the one that rows are compared with."""

    marker: str
    tree: exp.Expr  # over the rows
    words: str


class _Block:
    """A SELECT that joins `rows` with `best`, the largest values of the same rows."""

    def __init__(self, block: exp.Select, rows: str, best: str) -> None:
        self.block = block
        self.rows = rows
        self.best = best
        self.keys: list[exp.Expr] = []  # by which the largest values are taken, beside the window
        self.known: dict[str, exp.Expr] = {}  # what a column of the other side is, over the rows
        self.values: dict[str, _Value] = {}

    def made(self) -> tuple[exp.Select, str, bool] | None:
        inner = self._aggregate()
        if inner is None:
            return None
        conditions = self._conditions()
        found = next(((each, name) for each in conditions for name in self.values if self._compares(each, name)), None)
        if found is None:
            return None
        own, name = found
        value = self.values[name]
        conditions = [each for each in conditions if each is not own]
        shown = _shown(value.tree)
        if shown is not None:
            self.known[name] = shown
        for each in inner:  # the rows that are compared have passed the same conditions as those that are shown
            if each not in conditions:
                return None
            conditions.remove(each)
        after = [self._over_rows(each) for each in conditions]
        items = [self._over_rows(item) for item in self.block.expressions]
        if any(tree is None for tree in (*after, *items)) or not self._by_all_keys(conditions):
            return None
        marker = call(value.marker, value.tree.copy(), *(key.copy() for key in self.keys))
        left = [each for each in after if each is not None and not _always(each)]
        query = select([item for item in items if item is not None], self._source())
        of_rows = window_call(self._alone(), column(WINDOW_COLUMN, self.rows)) is not None
        if of_rows:
            _keep_rows(query, self.rows, inner, marker, left)
        else:
            query.set("where", exp.Where(this=all_of([*inner, marker, *left])))
        return query, value.words, of_rows

    def _aggregate(self) -> list[exp.Expr] | None:
        """Reads the other side; the conditions of its WHERE over the rows, None where it is not about the same rows."""
        query = relations(self.block).get(self.best)
        rows = relations(self.block).get(self.rows)
        if not isinstance(query, exp.Select) or rows is None:
            return None
        if {name for name, value in query.args.items() if value} - _GROUPED or len(relations(query)) != 1:
            return None
        query = _assigned(query)
        (alias, below), window = next(iter(relations(query).items())), window_key(query)
        keys = group_keys(query)
        if window != column(WINDOW_COLUMN, alias) or keys != query.args["group"].expressions:
            return None
        if not same_rows(rows, below):
            return None
        aliases = {alias: self.rows}
        self.keys = [renamed(key, aliases) for key in keys if not _reads_window(key)]
        for item in query.expressions:
            tree = item.unalias()
            if not has_aggregate(tree):
                self.known[item.alias_or_name] = renamed(tree, aliases)
            elif isinstance(tree, exp.Anonymous) and tree.name.lower() in _CALLS and len(tree.expressions) == 1:
                argument = renamed(tree.expressions[0], aliases)
                marker = _CALLS[tree.name.lower()]
                self.values[item.alias_or_name] = _Value(marker, argument, aggregate_text(tree) or tree.name)
        where = query.args.get("where")
        return [] if where is None else [renamed(each, aliases) for each in conjuncts_of(where.this)]

    def _conditions(self) -> list[exp.Expr]:
        """What a pair of rows must fulfil beside being of one window."""
        found: list[exp.Expr] = []
        (join,) = self.block.args["joins"]
        for clause in (join.args.get("on"), self.block.args.get("where")):
            condition = clause.this if isinstance(clause, exp.Where) else clause
            found += conjuncts_of(condition) if condition is not None else []
        windows = [column(WINDOW_COLUMN, alias) for alias in (self.rows, self.best)]
        same = [exp.EQ(this=one, expression=other) for one, other in (windows, windows[::-1])]
        return [each for each in found if each not in same]

    def _compares(self, condition: exp.Expr, name: str) -> bool:
        """Whether a condition says that a row has the largest value of its window: it reaches it, or is equal to it."""
        value, other = self.values[name], column(name, self.best)
        kind: type[exp.Expr] = type(condition)
        if kind not in _FLIPPED:
            return False
        one, two = condition.this.unnest(), condition.expression.unnest()
        if one == other:
            one, two, kind = two, one, _FLIPPED[kind]
        return two == other and one == value.tree.unnest() and kind in (exp.EQ, _REACHES[value.marker])

    def _by_all_keys(self, conditions: list[exp.Expr]) -> bool:
        """Whether rows meet the values of their own key, and no other."""
        shown = {tree: name for name, tree in self.known.items()}
        for key in self.keys:
            if key not in shown:
                return False
            other = column(shown[key], self.best)
            if not any(
                isinstance(each, exp.EQ | exp.NullSafeEQ) and {each.this, each.expression} == {key, other}
                for each in conditions
            ):
                return False
        return True

    def _over_rows(self, tree: exp.Expr) -> exp.Expr | None:
        """An expression over the rows alone; None where it reads something else of the other side."""
        made = exp.Paren(this=tree.copy())
        for node in list(made.find_all(exp.Column)):
            if node.table != self.best:
                continue
            if node.name not in self.known:
                return None
            known = self.known[node.name].copy()
            node.replace(known if isinstance(known, exp.Column | exp.Dot | exp.Anonymous) else exp.Paren(this=known))
        inner: exp.Expr = made.this
        return inner

    def _source(self) -> exp.Expr:
        (join,) = self.block.args["joins"]
        items = [self.block.args["from_"].this, join.this]
        found: exp.Expr = next(item for item in items if item.alias_or_name == self.rows)
        return found.copy()

    def _alone(self) -> exp.Select:
        return exp.Select(expressions=[], from_=exp.From(this=self._source()))


def _assigned(query: exp.Select) -> exp.Select:
    """A SELECT that groups by a window call, with the window as a column of its rows: as if it were GROUP BY
    window_start, window_end over TUMBLE(TABLE …)."""
    window = window_key(query)
    if not isinstance(window, exp.Anonymous):
        return query
    (alias,) = relations(query)
    made = query.copy()
    for node in [node for node in made.find_all(exp.Anonymous) if node == window]:
        node.replace(column(WINDOW_COLUMN, alias))
    read = sorted(columns_read(made).get(alias, set()) - {WINDOW_COLUMN})
    items: list[exp.Expr] = [aliased(column(name, alias), name) for name in read]
    rows = select([*items, aliased(window.copy(), WINDOW_COLUMN)], made.args["from_"].this)
    made.set("from_", exp.From(this=subquery(rows, alias)))
    return made


def _keep_rows(
    query: exp.Select, rows: str, inner: list[exp.Expr], marker: exp.Anonymous, after: list[exp.Expr]
) -> None:
    """Makes rows into something that is kept until its window closes: by all that is read of them later."""
    keys: list[exp.Expr] = [column(WINDOW_COLUMN, rows)]
    whole = [*(item.unalias() for item in query.expressions), *marker.expressions]
    for tree in (*whole, *after):
        parts = [tree] if not _reads_window(tree) and tree not in after else list(tree.find_all(exp.Column))
        for part in parts:
            if part not in keys and part.find(exp.Column) is not None and not _reads_window(part):
                keys.append(part.copy())
    if inner:
        query.set("where", exp.Where(this=all_of(inner)))
    query.set("group", exp.Group(expressions=keys))
    query.set("having", exp.Having(this=all_of([marker, *after])))


def _reads_window(tree: exp.Expr) -> bool:
    return any(node.name == WINDOW_COLUMN for node in tree.find_all(exp.Column))


def _always(condition: exp.Expr) -> bool:
    """Whether a condition is the equality of a window with itself."""
    return isinstance(condition, exp.EQ) and condition.this == condition.expression and _reads_window(condition.this)


def _shown(value: exp.Expr) -> exp.Expr | None:
    """The largest value of a window as a row that has it tells it; None where that might be another one."""
    found = type_of(value)
    if found is None:
        return None
    if found.name not in _TWO_ZEROS:
        return value
    zero = typed(exp.Cast(this=typed(number(0), INT), to=exp.DataType.build(found.name)), found)
    none = typed(exp.EQ(this=value.copy(), expression=zero.copy()), BOOLEAN)
    return typed(exp.Case(ifs=[exp.If(this=none, true=zero)], default=value.copy()), found)


def split_conditions(keep: exp.Expr) -> tuple[exp.Expr | None, exp.Anonymous, exp.Expr | None]:
    """What holds for the rows that are compared, the comparison, and what holds for those that are shown."""
    found = conjuncts_of(keep)
    place = next(at for at, each in enumerate(found) if isinstance(each, exp.Anonymous) and each.name in _REACHES)
    marker = found[place]
    assert isinstance(marker, exp.Anonymous)
    return all_of(found[:place]), marker, all_of(found[place + 1 :])
