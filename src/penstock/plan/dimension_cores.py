"""Joins of a stream with dimensions, put below what the view store answers.

    SELECT b.price, a.category, d.label
    FROM bid AS b LEFT JOIN auction AS a ON a.id = b.auction LEFT JOIN dim AS d ON d.k = b.auction

The rows of bid are only added, and what each of them meets in dim is a matter of its own: Spark joins the two in every
batch, as it does where nothing else stands beside them, and the store keeps the rows that come out. So a row meets
the version of its batch, wherever the join stands in the query. The same goes for a condition on the rows of one
stream that asks dimensions, such as b.auction IN (SELECT k FROM dim).

The condition has to speak of that stream and of dimensions alone, and nothing in front of the join may make up rows of
the stream, as a RIGHT JOIN does. Any other dimension is kept by the store: see stores.views.dimension_table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.context import CoreQuery
from penstock.plan.core_rows import only_added
from penstock.plan.decimal_types import spark_type
from penstock.plan.finish_plan import ONCE
from penstock.plan.joins import all_of, conjuncts_of
from penstock.plan.nodes import Core, Scan
from penstock.plan.relation import Field
from penstock.plan.spark_blocks import outputs, relations, scans
from penstock.plan.trees import (
    aliased,
    column,
    identifier,
    nondeterministic_call,
    select,
    stand_in,
    subquery,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INNER: Final = ("", "INNER", "CROSS")
_CORE: Final = "__joined"


@frozen
class _Below:
    """What goes below in one SELECT: a stream, the joins of it with dimensions, and conditions that ask dimensions."""

    stream: str
    joins: tuple[exp.Join, ...]
    conditions: tuple[exp.Expr, ...]


class DimensionCores:
    """Takes such joins out of a tree, which is changed in place; what they give becomes known as relations."""

    def __init__(self, tree: exp.Query, known: dict[str, Scan | Core], cores: Sequence[CoreQuery]) -> None:
        self._known = known
        self.cores = list(cores)
        self.aliases: set[str] = set()  # of the dimensions that are joined below
        for block in list(tree.find_all(exp.Select)):
            while (below := self._found(block)) is not None:
                self._put(block, below)

    # what goes below

    def _found(self, block: exp.Select) -> _Below | None:
        items = [block.args["from_"].this] if block.args.get("from_") is not None else []
        joins = block.args.get("joins") or []
        items += [join.this for join in joins]
        if block.args.get("laterals") or not all(isinstance(item, exp.Table | exp.Subquery) for item in items):
            return None
        if len(relations(block)) != len(items):
            return None
        self._stream_first(block)
        for place, alias in enumerate(relations(block)):
            if not self._adds(block, alias) or not _is_there(block, place):
                continue
            found = self._joins_with(block, alias, place)
            asked = tuple(each for each in self._asking(block, alias) if _stays_there(block, place))
            if found or asked:
                return _Below(alias, tuple(found), asked)
        return None

    def _stream_first(self, block: exp.Select) -> None:
        """A dimension in front of a stream, the rows of which are kept, stands behind it as well."""
        joins = block.args.get("joins") or []
        if not joins:
            return
        from_, join = block.args["from_"], joins[0]
        kept = join.side in ("", "RIGHT") and join.kind in ("", "INNER", "OUTER", "CROSS") and not join.method
        if kept and self._is_dimension(from_.this) and self._adds(block, join.this.alias_or_name):
            first, second = from_.this.copy(), join.this.copy()
            from_.set("this", second)
            join.set("this", first)
            join.set("side", "LEFT" if join.side == "RIGHT" else None)

    def _adds(self, block: exp.Select, alias: str) -> bool:
        table = relations(block)[alias]
        return isinstance(table, exp.Table) and table.name in self._known and only_added(self._known[table.name])

    def _is_dimension(self, item: exp.Expr) -> bool:
        read = [self._known.get(table.name) for table in scans(item)]
        return bool(read) and all(isinstance(each, Scan) and each.looked_up for each in read)

    def _joins_with(self, block: exp.Select, stream: str, place: int) -> list[exp.Join]:
        """The joins of a stream with dimensions, in their order."""
        found: list[exp.Join] = []
        own = {stream}
        for at, join in enumerate(block.args.get("joins") or [], start=1):
            if at <= place:
                continue
            if join.side in ("RIGHT", "FULL"):
                break  # it makes up rows of the stream
            alias = join.this.alias_or_name
            if not self._is_dimension(join.this) or not _keeps_stream(join):
                continue
            on = join.args.get("on")
            if on is None:
                on = _compared(block, alias, own)
            if on is None or not _speaks_of(on, own | {alias}, stream):
                continue
            join.set("on", on)
            found.append(join)
            if join.kind not in ("SEMI", "ANTI"):
                own.add(alias)
        return found

    def _asking(self, block: exp.Select, stream: str) -> list[exp.Expr]:
        """The conditions of WHERE on the rows of a stream that ask dimensions."""
        where = block.args.get("where")
        found: list[exp.Expr] = []
        for part in conjuncts_of(where.this) if where is not None else []:
            if not scans(part) or not self._is_dimension(part) or nondeterministic_call(part) is not None:
                continue
            if {node.table for node in part.find_all(exp.Column) if _of_block(node, part)} == {stream}:
                found.append(part)
        return found

    # putting it there

    def _put(self, block: exp.Select, below: _Below) -> None:
        table = relations(block)[below.stream]
        assert isinstance(table, exp.Table)
        source = self._known[table.name]
        fields = list(source.fields)
        items: list[exp.Expr] = [
            aliased(typed(column(entry.name, below.stream), entry.type), entry.name) for entry in fields
        ]
        names: dict[tuple[str, str], str] = {}
        for join in below.joins:
            if join.kind in ("SEMI", "ANTI"):
                continue
            for entry in self._fields(join.this):
                taken = {known.name.casefold() for known in fields}
                choices = (f"{join.this.alias_or_name}_{entry.name}", f"{entry.name}_{len(fields)}")
                name = next(each for each in choices if each.casefold() not in taken)
                names[join.this.alias_or_name, entry.name] = name
                items.append(aliased(typed(column(entry.name, join.this.alias_or_name), entry.type), name))
                fields.append(Field(name, entry.type, nullable=entry.nullable or join.side == "LEFT"))
        dimensions = dict.fromkeys(
            scan.name for part in (*(join.this for join in below.joins), *below.conditions) for scan in scans(part)
        )
        earlier = next((core for core in self.cores if core.relation == table.name), None)
        first = subquery(earlier.tree.copy(), below.stream) if earlier is not None else table.copy()
        where = all_of([each.copy() for each in below.conditions])
        rows = select(items, first, joins=[_plain(join) for join in below.joins])
        if where is not None:
            rows.set("where", exp.Where(this=where))
        words = source.words if isinstance(source, Core) else source.relation
        words += f" {'joined with' if below.joins else 'filtered by'} {' and '.join(dimensions)}"
        shown = tuple(
            Field(entry.name, entry.type, nullable=entry.nullable, processing_time=entry.processing_time)
            for entry in fields
        )
        node = Core(fields=shown, bounded=True, relation=f"{_CORE}_{len(self.cores)}", words=words)
        static = frozenset(dimensions) | (earlier.static if earlier is not None else frozenset())
        self.cores.append(CoreQuery(node.relation, rows, node, words, static))
        self._known[node.relation] = node
        self.aliases |= {join.this.alias_or_name for join in below.joins}
        self._take_out(block, below, names)
        table.replace(exp.Table(this=identifier(node.relation), alias=exp.TableAlias(this=identifier(below.stream))))

    def _fields(self, item: exp.Expr) -> list[Field]:
        if isinstance(item, exp.Table):
            return list(self._known[item.name].fields)
        query = item.this
        first = query
        while isinstance(first, exp.SetOperation):
            first = first.this
        types = [spark_type(shown.unalias()) for shown in first.expressions]
        return [Field(name, kind) for name, kind in zip(outputs(query), types, strict=True)]

    def _take_out(self, block: exp.Select, below: _Below, names: Mapping[tuple[str, str], str]) -> None:
        """The SELECT without these joins and conditions, over the columns of the rows that they give."""
        gone = {id(join) for join in below.joins}
        block.set("joins", [join for join in block.args.get("joins") or [] if id(join) not in gone])
        where = block.args.get("where")
        if where is not None:
            rest = [
                part.copy() for part in conjuncts_of(where.this) if not any(part is each for each in below.conditions)
            ]
            made = all_of(rest)
            block.set("where", exp.Where(this=made) if made is not None else None)
        block.set("expressions", [_named(item) for item in block.expressions])
        inside = {id(query) for query in relations(block).values()}
        for node in [
            each for each in block.walk(prune=lambda each: id(each) in inside) if isinstance(each, exp.Column)
        ]:
            name = names.get((node.table, node.name))
            if name is not None and _of_block(node, block):
                node.replace(stand_in(typed(column(name, below.stream), spark_type(node)), node))


def _is_there(block: exp.Select, place: int) -> bool:
    """Whether the rows of a relation are not made up where it stands, and are all of them."""
    if place == 0:
        return True
    join = (block.args.get("joins") or [])[place - 1]
    return join.side == "" and join.kind in _INNER and not join.method


def _stays_there(block: exp.Select, place: int) -> bool:
    """Whether no join behind a relation makes up rows of it."""
    joins = block.args.get("joins") or []
    return not any(join.side in ("RIGHT", "FULL") for join in joins[place:])


def _keeps_stream(join: exp.Join) -> bool:
    if join.method not in ("", ONCE):
        return False
    return (join.side == "" and join.kind in _INNER) or (
        join.side == "LEFT" and join.kind in ("", "OUTER", "SEMI", "ANTI")
    )


def _compared(block: exp.Select, alias: str, own: set[str]) -> exp.Expr | None:
    """What WHERE says of a dimension that is named without a condition, where every join beside it is an inner one."""
    where, joins = block.args.get("where"), block.args.get("joins") or []
    if where is None or any(join.side or join.kind not in _INNER for join in joins):
        return None
    parts = [part for part in conjuncts_of(where.this) if _speaks_of(part, own | {alias}, alias)]
    return all_of([part.copy() for part in parts if {node.table for node in part.find_all(exp.Column)} & own])


def _speaks_of(condition: exp.Expr, aliases: set[str], wanted: str) -> bool:
    """Whether a condition is one on some relations alone, one of them among it."""
    if condition.find(exp.Query) is not None or nondeterministic_call(condition) is not None:
        return False
    owners = {node.table for node in condition.find_all(exp.Column)}
    return wanted in owners and owners <= aliases


def _of_block(node: exp.Column, block: exp.Expr) -> bool:
    """Whether a column is one of the FROM clause around, and not of a subquery that has a relation of that name."""
    around = node.parent
    while around is not None and around is not block:
        if isinstance(around, exp.Select) and node.table in relations(around):
            return False
        around = around.parent
    return True


def _plain(join: exp.Join) -> exp.Join:
    """A join as Spark writes it."""
    made = join.copy()
    made.set("method", None)
    if made.kind == "CROSS" and made.args.get("on") is not None:
        made.set("kind", "INNER")
    return made


def _named(item: exp.Expr) -> exp.Expr:
    return aliased(item.copy(), item.name) if isinstance(item, exp.Column) else item
