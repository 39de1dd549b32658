"""One event time for each operator: Spark marks the time columns of streams, and an operator may see one mark only.

    SELECT a.ts, b.ts FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR JOIN c ON …

The first join needs the marks of both columns; what comes out of it has both, and the second join, or a window over the
result, fails. So a column that is used beyond the join that needs its mark is used there as a copy without one. A join
that waits for ever gets no marks at all: Spark would drop rows behind the watermark, and nothing asks for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.plan.closing import final_time
from penstock.plan.prune import columns_read
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.spark_blocks import aggregates, origins, outputs, relations, stream_joins
from penstock.plan.trees import aliased, call, column, dot, select, subquery
from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.plan.join_times import JoinTime, TimeColumn

_PLAIN: Final = "__plain_"


def column_words(name: str) -> str:
    """How a column is told of that may be one of these copies, or the window that a GROUP BY adds."""
    own = name.removeprefix(_PLAIN)
    return "the window" if own == WINDOW_COLUMN else own


def settle_marks(tree: exp.Expr, times: Mapping[str, str]) -> None:
    """Takes marks away in a tree, in place, where more than one would meet; `times` are the event times of streams."""
    _settle(tree, times, None, kept_above=False)


def _settle(query: exp.Expr, times: Mapping[str, str], wanted: str | None, *, kept_above: bool) -> None:
    """`kept_above`: an operator above keeps rows, and looks at the marks of this query's columns; `wanted` is the one
    it goes by, where it does."""
    if isinstance(query, exp.SetOperation):
        names = outputs(query.this)
        place = names.index(wanted) if wanted in names else None
        for side in (query.this, query.expression):
            _settle(side, times, outputs(side)[place] if place is not None else None, kept_above=kept_above)
    if not isinstance(query, exp.Select):
        return
    joins = stream_joins(query)
    keeps = kept_above or aggregates(query) or query.args.get("distinct") is not None
    goes_by = {alias: name for _, time in joins for alias, name in time.columns}
    final = final_time(query, wanted)
    if final is not None:
        goes_by.setdefault(*final)
    for alias, below in relations(query).items():
        _settle(below, times, goes_by.get(alias), kept_above=keeps or bool(joins))
    if joins:
        _Block(query, times).settle(final if keeps else None, one=keeps)


class _Block:
    """A SELECT that joins streams."""

    def __init__(self, query: exp.Select, times: Mapping[str, str]) -> None:
        self.query = query
        self.times = times
        self.joins = stream_joins(query)
        # The join at which a relation comes in; what stands before the first join comes in there.
        self.enters = {join.this.alias_or_name: place for place, (join, _) in enumerate(self.joins)}

    def settle(self, final: TimeColumn | None, *, one: bool) -> None:
        """Makes copies of columns whose marks must end. `one`: no mark but the final one may leave the block."""
        for place, (join, time) in enumerate(self.joins):
            if time.left is not None and not self._lasts(time.left, place):
                raise _no_single_time(join, [earlier for _, earlier in self.joins[:place]])
        plain: dict[TimeColumn, list[exp.Column]] = {}
        for where, node in self._references():
            name = (node.table, node.name)
            if self._marked(node) and not self._keeps(name, where, final, one=one):
                plain.setdefault(name, []).append(node)
        for name, nodes in plain.items():
            for node in nodes:
                node.set("this", exp.to_identifier(f"{_PLAIN}{name[1]}", quoted=True))
        for alias in {name[0] for name in plain}:
            self._copy(alias, [name[1] for name in plain if name[0] == alias])

    def _references(self) -> Iterator[tuple[int | None, exp.Column]]:
        """The columns that the block itself reads, with the join in whose condition they stand."""
        below = {id(query) for query in relations(self.query).values()}
        conditions = {id(join.args.get("on")): place for place, (join, _) in enumerate(self.joins)}
        pending: list[tuple[int | None, exp.Expr]] = [(None, self.query)]
        while pending:
            around, node = pending.pop()
            place = conditions.get(id(node), around)
            if isinstance(node, exp.Column):
                yield place, node
            pending += [(place, inner) for inner in node.iter_expressions() if id(inner) not in below]

    def _marked(self, node: exp.Column) -> bool:
        return any(self.times.get(origin.table.name) == origin.column for origin in origins(self.query, node))

    def _keeps(self, name: TimeColumn, place: int | None, final: TimeColumn | None, *, one: bool) -> bool:
        if place is not None:
            return name in self.joins[place][1].columns
        return (not one or name == final) and self._lasts(name, len(self.joins))

    def _lasts(self, name: TimeColumn, upto: int) -> bool:
        """Whether every join between the one that brings a column in and this one goes by it."""
        first = self.enters.get(name[0], 0)
        return all(name in time.columns for _, time in self.joins[first:upto])

    def _copy(self, alias: str, names: list[str]) -> None:
        """Gives a relation of the FROM clause a copy of some columns without their marks."""
        item = self._item(alias)
        shown = outputs(item.this) if isinstance(item, exp.Subquery) else sorted(columns_read(self.query)[alias])
        items: list[exp.Expr] = [column(name, alias) for name in shown if not name.startswith(_PLAIN)]
        known = {node.name for node in items}
        items += [column(name, alias) for name in names if name not in known]
        items += [aliased(_unmarked(column(name, alias)), f"{_PLAIN}{name}") for name in names]
        inner = item.copy()
        item.replace(subquery(select(items, inner), alias))

    def _item(self, alias: str) -> exp.Expr:
        from_ = self.query.args["from_"]
        items = [from_.this, *(join.this for join in self.query.args.get("joins") or [])]
        found: exp.Expr = next(item for item in items if item.alias_or_name == alias)
        return found


def _unmarked(node: exp.Column) -> exp.Expr:
    """The same value, computed in a way that Spark does not see through: it would find the mark again."""
    if node.name == WINDOW_COLUMN:
        start, end = (dot(node.copy(), part) for part in ("start", "end"))
        return call("named_struct", exp.Literal.string("start"), start, exp.Literal.string("end"), end)
    return call("timestamp_micros", call("unix_micros", node))


def _no_single_time(join: exp.Join, earlier: list[JoinTime]) -> NotYetError:
    message = "a chain of joins that goes by different times of what is joined already, in a job, is not there yet"
    hint = "bound each join by a time that bounds the join before it too"
    if any(not time.closes for time in earlier):
        message = "a join within a time bound over a join without one, in a job, is not there yet"
        hint = "bound the event times of the other join too"
    return NotYetError("QUERY_NOT_YET", message, hint=hint, span=span_of(join.this))
