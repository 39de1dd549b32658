"""The scans of a query taken out of it: which rows of each Spark hands over, and what it computes for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from sqlglot import exp

from penstock.plan.decimal_types import spark_type
from penstock.plan.finish_plan import CLOCK_CALL, ONCE, KeptColumn, KeptRows, RowChanges
from penstock.plan.guards import Guard, guarded_parts, loose_conjunctions, may_fail, tried, where_it_failed
from penstock.plan.joins import conjuncts_of
from penstock.plan.kept_clock import CLOCKS, has_random, shown_name
from penstock.plan.moving_clock import asks_marks, clock_bounds, reads_clock
from penstock.plan.nodes import Scan
from penstock.plan.null_rows import left_out, made_up, null_of_nulls
from penstock.plan.prune import columns_read
from penstock.plan.relation import Mode
from penstock.plan.spark_blocks import aggregates, relations, scans
from penstock.plan.store_aggregates import is_list
from penstock.plan.store_terms import UNKNOWN, kept
from penstock.plan.store_text import writable
from penstock.plan.store_unnest import arrays_of, makes_rows_of
from penstock.plan.trees import (
    aggregate_text,
    call,
    column,
    identifier,
    nondeterministic_call,
    nondeterministic_name,
    own_nodes,
    stand_in,
    type_of,
    typed,
)
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from penstock.plan.moving_clock import ClockBound
    from penstock.plan.nodes import Core
    from penstock.types import SqlType

_SCALAR = (exp.Anonymous, exp.Binary, exp.Unary, exp.Case, exp.Cast, exp.If, exp.Between, exp.In, exp.Func, exp.Dot)
_INNER = ("", "INNER")
AROUND_CALLS = (exp.Window, exp.IgnoreNulls, exp.RespectNulls, exp.Filter)
_NOT_SCALAR = (exp.Subquery, exp.Select, exp.Window, exp.Star, exp.Distinct, exp.Filter, exp.Alias)


@dataclass(slots=True)
class LeafRows:
    """One reading of a relation. `given` are its columns in the finish, with the kept column of each."""

    name: str
    relation: str
    rows: int
    given: dict[str, str]

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return tuple(self.given.items())

    def kept_name(self, name: str) -> str:
        return self.given[name]


class CoreRows:
    """Takes the scans out of a tree, which is changed in place: every table becomes a leaf with a name of its own."""

    def __init__(
        self, tree: exp.Query, known: Mapping[str, Scan | Core], *, guarded: bool, tried: bool = False
    ) -> None:
        """`guarded`: what may fail for some rows is computed for no others than the query computes it for; `tried`:
        also where only the rows of other relations say which these are."""
        self._guarded = guarded
        self._tries = tried
        self.leaves: list[LeafRows] = []
        self._known = known
        self._relations: list[str] = []
        self._values: list[dict[str, exp.Expr]] = []  # of each relation, what its kept columns hold
        self._conditions: list[list[exp.Expr]] = []
        self._bounds: list[dict[str, str]] = []  # of each relation, kept columns with times, and which side they bound
        self._leaf_of: dict[int, LeafRows] = {}
        tables = scans(tree)
        uses: dict[str, int] = {}
        for table in tables:
            uses[table.name] = uses.get(table.name, 0) + 1
        for table in tables:
            self._add_leaf(table)
        for block in list(tree.find_all(exp.Select)):
            self._take(block, uses)
        for table in tables:
            leaf = self._leaf_of[id(table)]
            table.meta["penstock_columns"] = tuple(leaf.given)

    @property
    def types(self) -> dict[str, dict[str, SqlType | None]]:
        """The columns of each leaf and their types."""
        return {leaf.name: {name: self._type(leaf, name) for name in leaf.given} for leaf in self.leaves}

    @property
    def kept(self) -> tuple[KeptRows, ...]:
        """The rows that are kept of each relation."""
        return tuple(
            KeptRows(
                relation,
                tuple(KeptColumn(name, type_of(value)) for name, value in self._values[place].items()),
                tuple(_words(value) for value in self._values[place].values()),
                self._changes(place),
                since=tuple(name for name, side in self._bounds[place].items() if side == "since"),
                until=tuple(name for name, side in self._bounds[place].items() if side == "until"),
                stamps=tuple(name for name, value in self._values[place].items() if reads_clock(value)),
            )
            for place, relation in enumerate(self._relations)
        )

    @property
    def added(self) -> frozenset[str]:
        """The leaves whose rows Spark only ever adds."""
        return frozenset(leaf.name for leaf in self.leaves if only_added(self._known[leaf.relation]))

    @property
    def added_below(self) -> frozenset[str]:
        """The leaves of materialized views that rows are only added to."""
        return frozenset(leaf.name for leaf in self.leaves if _added_view(self._known[leaf.relation]))

    @property
    def moves(self) -> bool:
        """Whether rows come into what is shown, or leave it, as time goes on."""
        return any(self._bounds)

    @property
    def row_keys(self) -> dict[str, tuple[str, ...] | None]:
        """Of each leaf, the columns that tell its rows apart: None where nothing does, or the query reads not all."""
        found: dict[str, tuple[str, ...] | None] = {}
        for leaf in self.leaves:
            scan = self._known[leaf.relation]
            values = self._values[leaf.rows]
            names = {
                value.name: name
                for name, kept_name in leaf.given.items()
                if isinstance(value := values[kept_name], exp.Column)
            }
            apart = isinstance(scan, Scan) and (scan.looked_up or scan.changes is not Mode.APPEND)
            key = scan.key if isinstance(scan, Scan) and apart else None
            found[leaf.name] = tuple(names[each] for each in key) if key is not None and {*key} <= {*names} else None
        return found

    @property
    def dimensions(self) -> dict[str, tuple[str, ...]]:
        """The dimensions whose rows are kept, each with the columns that are read of it."""
        found: dict[str, tuple[str, ...]] = {}
        for place, relation in enumerate(self._relations):
            scan = self._known[relation]
            if isinstance(scan, Scan) and scan.looked_up:
                trees = [*self._values[place].values(), *self._conditions[place]]
                read = {node.name for tree in trees for node in tree.find_all(exp.Column)}
                found[relation] = tuple(entry.name for entry in scan.fields if entry.name in read)
        return found

    def value(self, name: str) -> exp.Expr:
        """What a kept column holds, as Spark computes it."""
        return next(values[name] for values in self._values if name in values).copy()

    def condition(self, place: int) -> exp.Expr | None:
        """The rows of a relation that are kept: those for which this holds; None: all."""
        found: exp.Expr | None = None
        for each in self._conditions[place]:
            grouped = exp.Paren(this=each.copy())
            found = grouped if found is None else exp.And(this=found, expression=grouped)
        return found

    def kept_time(self, relation: str, time: str) -> str:
        """The kept column of a relation that holds a time of its rows as it is."""
        leaf = next(each for each in self.leaves if each.relation == relation)
        return self._kept_name(leaf, typed(column(time, relation), TIMESTAMP))

    def _add_leaf(self, table: exp.Table) -> None:
        relation = table.name
        if relation not in self._relations:
            self._relations.append(relation)
            self._values.append({})
            self._conditions.append([])
            self._bounds.append({})
        leaf = LeafRows(f"__leaf_{len(self.leaves)}", relation, self._relations.index(relation), {})
        self.leaves.append(leaf)
        self._leaf_of[id(table)] = leaf
        self._keep_keys(leaf)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=identifier(relation)))
        table.set("this", identifier(leaf.name))

    def _changes(self, place: int) -> RowChanges | None:
        """How the rows of a relation replace each other; None: they are only added."""
        scan = self._known[self._relations[place]]
        if not _replaced(scan):
            return None
        names = {value.name: name for name, value in self._values[place].items() if isinstance(value, exp.Column)}
        key = tuple(names[name] for name in scan.key or ())
        version = names[scan.version] if scan.version is not None and key else None
        return RowChanges(key, version, f"__r{place}_gone", f"__r{place}_partition", f"__r{place}_offset")

    def _keep_keys(self, leaf: LeafRows) -> None:
        """Of rows that replace each other, what they do it by is kept whether the query reads it or not."""
        scan = self._known[leaf.relation]
        if not _replaced(scan):
            return
        wanted = {*(scan.key or ()), scan.version}
        for entry in scan.fields:
            if entry.name in wanted:
                self._kept_name(leaf, typed(column(entry.name, leaf.relation), entry.type))

    def _take(self, block: exp.Select, uses: Mapping[str, int]) -> None:
        """Moves of a SELECT into the core what belongs there, and notes the columns that the rest of it reads."""
        own = {
            alias: self._leaf_of[id(below)] for alias, below in relations(block).items() if isinstance(below, exp.Table)
        }
        if not own:
            return
        for alias in self._filtered(block, own, uses):
            self._push(block, alias, own[alias])
        for alias, leaf in own.items():
            self._hoist(block, alias, leaf)
        if len(own) == 1 and len(relations(block)) == 1:
            self._keep_times(block, *next(iter(own.items())))
        read, keys = columns_read(block), self._keys_in_front(block, own)
        for alias, leaf in own.items():
            for entry in self._known[leaf.relation].fields:
                if entry.name in read.get(alias, ()) or entry.name in keys.get(alias, ()):
                    self._keep(leaf, entry.name, typed(column(entry.name, leaf.relation), entry.type))
            if not leaf.given:  # only whether there is a row
                entry = self._known[leaf.relation].fields[0]
                self._keep(leaf, entry.name, typed(column(entry.name, leaf.relation), entry.type))

    def _keys_in_front(self, block: exp.Select, own: Mapping[str, LeafRows]) -> dict[str, tuple[str, ...]]:
        """By which columns the rows in front of a join are told apart that are to meet what is there once: they are
        read, whether the query does it or not."""
        first = block.args["from_"].this.alias_or_name
        if first not in own or not any(join.method == ONCE for join in block.args.get("joins") or []):
            return {}
        scan = self._known[own[first].relation]
        return {first: scan.key or ()} if isinstance(scan, Scan) and scan.changes is not Mode.APPEND else {}

    def _filtered(self, block: exp.Select, own: Mapping[str, LeafRows], uses: Mapping[str, int]) -> list[str]:
        """The aliases whose conditions can be moved below the joins."""
        kinds = [(join.side.upper(), join.kind.upper()) for join in block.args.get("joins") or []]
        inner = all(side == "" and kind in ("", "INNER", "CROSS") for side, kind in kinds)
        first = block.args["from_"].this.alias_or_name
        keeps = all(side in ("", "LEFT") for side, _ in kinds)
        return [
            alias for alias, leaf in own.items() if uses[leaf.relation] == 1 and (inner or (alias == first and keeps))
        ]

    def _push(self, block: exp.Select, alias: str, leaf: LeafRows) -> None:
        where = block.args.get("where")
        if where is None:
            return
        rest: list[exp.Expr] = []
        for conjunct in conjuncts_of(where.this):
            if of_rows(conjunct, [alias]) and self._computed_below(leaf, alias, conjunct):
                self._conditions[leaf.rows].append(_moved(conjunct, alias, leaf.relation))
            elif (bounds := clock_bounds(conjunct)) is not None and self._bound(leaf, alias, bounds):
                continue
            else:
                rest.append(conjunct)
        made: exp.Expr | None = None
        for conjunct in rest:
            made = conjunct if made is None else exp.And(this=made, expression=conjunct)
        block.set("where", exp.Where(this=made) if made is not None else None)

    def _bound(self, leaf: LeafRows, alias: str, bounds: list[ClockBound]) -> bool:
        """Keeps the times between which the rows of a relation are shown; whether that can be."""
        if not all(of_rows(each.time, [alias]) and self._computed_below(leaf, alias, each.time) for each in bounds):
            return False
        for each in bounds:
            name = self._kept_name(leaf, typed(_moved(each.time, alias, leaf.relation), TIMESTAMP))
            if self._bounds[leaf.rows].setdefault(name, each.side) != each.side:
                return False
        return True

    def _hoist(self, block: exp.Select, alias: str, leaf: LeafRows) -> None:
        """Lets Spark compute the keys that are no plain columns, and what the store cannot."""
        group = block.args.get("group")
        keys = list(group.expressions) if isinstance(group, exp.Group) else []
        overs = [node for item in block.expressions for node in item.find_all(exp.Window)]
        keys += [key for over in overs for key in over.args.get("partition_by") or []]
        # For the rows that an outer join makes up Spark computes nothing.
        computable = null_of_nulls if alias in made_up(block) else _any_value
        wanted = [key for key in keys if isinstance(key, _SCALAR) and of_rows(key, [alias]) and computable(key)]
        below = {id(query) for query in relations(block).values()}
        grouped = aggregates(block)
        elsewhere = self._tries and _may_leave_out(block, alias)
        of_block = _said_of_rows(block, alias)
        sure = tuple(guard for guard in of_block if not any(may_fail(each) for each in guard.conditions))
        loose = {place for each in _conditions(block) for place in loose_conjunctions(each)}
        guards: dict[int, Guard] = {}

        def visit(node: exp.Expr, *, inside: bool, under: tuple[Guard, ...]) -> None:
            """`inside`: each row is seen, not each group. `under`: when what stands here is computed."""
            made = makes_rows_of(node)
            if id(node) not in loose:
                guards.update((id(part), guard) for part, guard in guarded_parts(node))
            for child in list(node.iter_expressions()) if made is None else arrays_of(made):
                if id(child) in below or (isinstance(child, exp.Table) and makes_rows_of(child) is None):
                    continue
                if isinstance(child, exp.Lambda) or (isinstance(child, exp.Select) and node is not block):
                    continue  # what is inside is of its parameters; a query of its own
                when = under
                if node is block:  # what an ON says of a row that WHERE leaves out may still keep another one from it
                    when = () if isinstance(child, exp.Join) else sure if isinstance(child, exp.Where) else of_block
                if id(child) in guards:
                    when = (*when, guards[id(child)])
                hoists = isinstance(child, _SCALAR) and of_rows(child, [alias]) and computable(child)
                if (child is node.args.get("this") and isinstance(node, AROUND_CALLS)) or is_list(child):
                    hoists = False  # a function of many rows
                # Of a field of a struct with its name, and of a WHEN of a CASE, only what they hold is a value.
                if isinstance(child, exp.PropertyEQ) or (isinstance(child, exp.If) and isinstance(node, exp.Case)):
                    hoists = False
                key = child in wanted
                hoists = hoists and (key or (inside and not self._writable(leaf, alias, child)))
                if hoists and self._computed_below(leaf, alias, child):
                    value = None if key or not elsewhere else self._tried(leaf, alias, child)
                    value = value or self._computed(leaf, alias, child, of_block if key else when)
                    if value is not None:
                        child.replace(value)
                        continue
                rows = aggregate_text(child) is not None or isinstance(child, exp.Where | exp.Join)
                visit(child, inside=inside or rows, under=when)

        visit(block, inside=not grouped, under=())

    def _keep_times(self, block: exp.Select, alias: str, leaf: LeafRows) -> None:
        """Lets Spark say at which time each row came, where the query asks for it: see kept_clock."""
        scan = self._known[leaf.relation]
        of_view = in_store(scan)
        if isinstance(scan, Scan) and scan.looked_up:
            return  # each version is the rows of one moment
        for item in [*block.expressions, block.args.get("where")] if not aggregates(block) else []:
            for node in list(own_nodes(item)) if item is not None else []:
                if nondeterministic_call(node) is not node:
                    continue
                if not of_view:
                    made = self._computed(leaf, alias, node)
                    assert made is not None
                    node.replace(made)
                elif nondeterministic_name(node).casefold() in CLOCKS:
                    node.replace(self._stamp(leaf, alias, node))
                    # A row that is another one now has come now, whatever of it the query reads.
                    for entry in scan.fields:
                        self._kept_name(leaf, typed(column(entry.name, leaf.relation), entry.type))

    def _stamp(self, leaf: LeafRows, alias: str, node: exp.Expr) -> exp.Expr:
        """The time at which a row of a view came: the clock of the view that reads it, kept with the row."""
        clock, kind = typed(call(CLOCK_CALL), TIMESTAMP), type_of(node) or TIMESTAMP
        if kind != TIMESTAMP:
            clock = typed(exp.Cast(this=clock, to=exp.DataType.build(kind.spark(), dialect="spark")), kind)
        return stand_in(typed(column(self._keep(leaf, None, clock), alias), kind), node)

    def _writable(self, leaf: LeafRows, alias: str, value: exp.Expr) -> bool:
        fields = self._known[leaf.relation].fields
        return writable(value, {alias: {entry.name: kept(entry.type) or UNKNOWN for entry in fields}})

    def _computed_below(self, leaf: LeafRows, alias: str, value: exp.Expr) -> bool:
        """Whether a value is computed where its rows come from. The rows of a view are not kept a second time: what
        only Spark knows would be asked for all of them again, and not for those that a batch touches. Those of a
        dimension are not Spark's."""
        return not in_store(self._known[leaf.relation]) or self._writable(leaf, alias, value)

    def _computed(self, leaf: LeafRows, alias: str, value: exp.Expr, under: Collection[Guard] = ()) -> exp.Expr | None:
        """A value that Spark computes for each row; None where it may fail for rows that it is not computed for, and a
        row alone does not tell which those are."""
        found = spark_type(value)
        moved = typed(_moved(value, alias, leaf.relation), found)
        for guard in reversed([*under] if self._guarded and may_fail(value) else []):
            if not all(of_rows(each, [alias]) for each in guard.conditions):
                return None
            moved = typed(guard.around(moved, lambda each: _moved(each, alias, leaf.relation)), found)
        name = self._keep(leaf, None, moved)
        return stand_in(typed(column(name, alias), found), value)

    def _tried(self, leaf: LeafRows, alias: str, value: exp.Expr) -> exp.Expr | None:
        """A value that may fail, of rows that the query may leave out: Spark computes NULL where it fails, and is asked
        for those of the rows that are there where it has. None where the value cannot fail, or that does not show."""
        found = spark_type(value)
        once = has_random(value) or nondeterministic_call(value) is not None
        other = None if found is None or once or not may_fail(value) else tried(value)
        if other is None:
            return None
        name = self._keep(leaf, None, typed(_moved(other, alias, leaf.relation), found))
        return where_it_failed(value, typed(column(name, alias), found))

    def _keep(self, leaf: LeafRows, name: str | None, value: exp.Expr) -> str:
        """The name of a value in the finish; its kept column is shared by all readings of the relation."""
        found = self._kept_name(leaf, value)
        shown = name or f"__value{found.rsplit('_', 1)[1]}"
        leaf.given[shown] = found
        return shown

    def _kept_name(self, leaf: LeafRows, value: exp.Expr) -> str:
        values = self._values[leaf.rows]
        found = None if has_random(value) else next((own for own, other in values.items() if other == value), None)
        if found is None:
            found = f"__r{leaf.rows}_{len(values)}"
            values[found] = value
        return found

    def _type(self, leaf: LeafRows, name: str) -> SqlType | None:
        return kept(type_of(self._values[leaf.rows][leaf.given[name]])) or UNKNOWN


def in_store(scan: Scan | Core) -> TypeGuard[Scan]:
    """Whether the store finds the rows of a relation by itself: those of materialized views, and those of dimensions,
    which Spark does not read."""
    return isinstance(scan, Scan) and (scan.kind == "materialized view" or scan.looked_up)


def only_added(scan: Scan | Core) -> bool:
    """Whether Spark adds rows to a relation, and never takes one away."""
    return not isinstance(scan, Scan) or (not in_store(scan) and scan.changes is Mode.APPEND)


def _added_view(scan: Scan | Core) -> bool:
    return isinstance(scan, Scan) and scan.kind == "materialized view" and scan.changes is Mode.APPEND


def _any_value(_: exp.Expr) -> bool:
    return True


def _replaced(scan: Scan | Core) -> TypeGuard[Scan]:
    """Whether rows come that take the place of earlier ones; those of a view are the latest already."""
    return isinstance(scan, Scan) and scan.kind != "materialized view" and scan.changes is not Mode.APPEND


def of_rows(tree: exp.Expr, aliases: Collection[str]) -> bool:
    """Whether a tree is computed from one row of each of some relations alone."""
    columns = 0
    for node in tree.walk():
        if isinstance(node, _NOT_SCALAR) or aggregate_text(node) is not None or asks_marks(node):
            return False
        if isinstance(node, exp.Column):
            if node.table not in aliases:
                return False
            columns += 1
    return columns > 0


def _conditions(block: exp.Select) -> list[exp.Expr]:
    """What stands behind WHERE and ON."""
    found = [join.args.get("on") for join in block.args.get("joins") or []]
    if block.args.get("where") is not None:
        found.append(block.args["where"].this)
    return [each for each in found if each is not None]


def _may_leave_out(block: exp.Select, alias: str) -> bool:
    """Whether other relations say which rows of one a SELECT computes something for."""
    where = block.args.get("where")
    conditions = conjuncts_of(where.this) if where is not None else []
    return left_out(block, alias) or not all(of_rows(each, [alias]) for each in conditions)


def _said_of_rows(block: exp.Select, alias: str) -> tuple[Guard, ...]:
    """Which rows of a relation a SELECT computes something for, as far as it is said of them alone."""
    joins = block.args.get("joins") or []
    outer = [
        join.args["on"] for join in joins if join.args.get("on") is not None and (join.side or join.kind not in _INNER)
    ]
    said = [each for each in _conditions(block) if not any(each is other for other in outer)]
    parts = [conjunct for condition in said for conjunct in conjuncts_of(condition)]
    return tuple(Guard((), conjunct.copy()) for conjunct in parts if of_rows(conjunct, [alias]))


def _moved(tree: exp.Expr, alias: str, relation: str) -> exp.Expr:
    """The tree over the relation under its own name."""
    made = tree.copy()
    for node in [made] if isinstance(made, exp.Column) else list(made.find_all(exp.Column)):
        if node.table == alias:
            node.set("table", identifier(relation))
    return made


def _words(value: exp.Expr) -> str:
    from penstock.plan.spark_text import spark_sql

    if reads_clock(value):
        return "the time it came"
    if isinstance(value, exp.Column):
        return shown_name(value.name)
    plain = value.copy()
    for node in plain.find_all(exp.Column):
        node.set("table", None)
        node.this.set("quoted", False)
    return spark_sql(plain, pretty=False)
