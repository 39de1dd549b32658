"""The stages of a finish: the subqueries of a query that the view store keeps the answer of.

    SELECT category, AVG(final)
    FROM (SELECT id, category, MAX(price) AS final FROM … GROUP BY id, category)
    GROUP BY category

No column is a key of the whole: an auction knows its category, a bid does not. But the inner query has one, the
auction, and over its answer the outer one has another, the category. So the inner query becomes a stage of its own. A
bid changes the row of one auction, and that touches one category. A subquery also becomes a stage where the query
around goes by a coarser key: the store then does not aggregate all of that again for each row that comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.added_pairs import only_adds_pairs
from penstock.plan.finish_groups import outer_aliases, queries_within, set_groups_apart
from penstock.plan.finish_joins import set_joins_apart
from penstock.plan.finish_keys import keys_of, shown_key
from penstock.plan.finish_orders import NotFinishableError
from penstock.plan.finish_plan import ONCE, Leaf, Stage
from penstock.plan.finish_unique import unique_columns
from penstock.plan.front_copies import with_copies
from penstock.plan.met_once import by_added_rows, fresh_relations, meets_once, met, set_met_apart
from penstock.plan.moving_clock import reads_clock
from penstock.plan.own_conditions import conditions_on, conjuncts_in
from penstock.plan.prune import columns_read, prune
from penstock.plan.relation import HIDDEN_PREFIX
from penstock.plan.spark_blocks import aggregates, outputs, relations, scans
from penstock.plan.store_terms import UNKNOWN, DiffersError, quoted
from penstock.plan.store_text import kept_query
from penstock.plan.trees import aliased, column, identifier, own_nodes, select, subquery

if TYPE_CHECKING:
    from penstock.plan.core_rows import CoreRows
    from penstock.plan.store_asked import AskedOfSpark
    from penstock.types import SqlType

_INNER: Final = "__stage"  # what a stage reads is called so in it: the same query under another name is the same stage
_PUT_ABOVE: Final = "put the condition on the clock into the query around it"
_NOT_ALONE: Final = (
    "in front of a join as of PROCTIME() stands more than one relation or subquery",
    "put one into FROM, or a subquery of several, and other joins behind; or leave FOR SYSTEM_TIME out",
)
_OF_THE_CLOCK: Final = (
    "EMIT FINAL goes by event time, and so cannot the clock, or what is met as of PROCTIME()",
    "leave that out, or write EMIT CHANGES",
)
_CAST_IT: Final = "CAST what is computed, such as CAST(x * 1.5 AS DOUBLE), to the type that it has"
_ROWS_IN_FRONT: Final = "the rows in front"
_FRONT: Final = "__front_key"  # how the columns of an answer begin that tell whose rows in front they are of
_NOT_BY_ROWS: Final = ("distinct", "limit", "offset", "laterals", "joins")


class Stages:
    """Cuts a tree, which is changed in place, into stages over the rows that are kept for it."""

    def __init__(
        self, tree: exp.Query, rows: CoreRows, asked: AskedOfSpark, *, pairs: bool = False, closing: bool = False
    ) -> None:
        """`pairs`: where rows are only added to the answer of a join, they are. `closing`: the whole is asked once for
        each window, of rows that are kept, and has no stages."""
        self.made: list[Stage] = []
        self.trees: list[exp.Query] = []  # what the stages ask, over their leaves
        self._of_spark = asked
        self._types = rows.types
        self._read = {leaf.name: (leaf.rows, leaf.columns) for leaf in rows.leaves}
        self._row_keys = rows.row_keys
        self._kept = len(rows.kept)
        self._places: dict[str, int] = {}  # of stages, by what they ask
        self._added = rows.added
        pairs = pairs and not rows.moves and only_adds_pairs(tree, self._added)
        if closing and rows.moves:
            raise NotFinishableError(*_OF_THE_CLOCK)
        if closing or pairs:
            self.made.append(self._added_answers(tree, closing=closing))
            self.trees.append(tree)
            return
        meets = meets_once(tree)
        once = by_added_rows(tree, self._added) and not reads_clock(tree) if meets else _of_added_rows(tree, rows)
        if once and not meets:
            self._added |= rows.added_below
        if not once:
            self._take_met(tree)
            self._cut(tree)
        self.made.append(self._stage(tree, "the view", once=once))
        self.trees.append(tree)

    def _take_met(self, query: exp.Expr) -> None:
        """Takes what is answered once out of a query, as stages of their own."""
        if isinstance(query, exp.SetOperation):
            self._take_met(query.this)
            self._take_met(query.expression)
        if not isinstance(query, exp.Select) or not meets_once(query):
            return
        for item in _derived(query):
            if by_added_rows(item.this, self._added) and meets_once(item.this):
                self._take_out(query, item, once=True)
            else:
                self._take_met(item.this)
        apart = set_met_apart(query)
        if apart is not None:
            self._take_out(query, apart, once=True)
        if meets_once(query):
            raise NotFinishableError(*_NOT_ALONE)

    def _cut(self, query: exp.Expr) -> None:
        """Takes what is to be a stage out of a query, from below."""
        if isinstance(query, exp.SetOperation):
            self._cut_sides(query)
        if not isinstance(query, exp.Select):
            return
        for item in _derived(query):
            self._cut(item.this)
        if _by_rows(query):
            return  # it has the keys of what it reads
        own = keys_of(query)
        for item in _derived(query):
            inner = keys_of(item.this)
            if not inner or _plain(item.this):
                continue
            filtered = bool(conditions_on(query, item.alias))
            if not own or (len(own) < len(inner) and _reduces(item.this, filtered=filtered)):
                self._take_out(query, item)
        if not keys_of(query):
            self._cut_groups(query)
        while not keys_of(query) and set_joins_apart(query):
            self._take_out(query, _derived(query)[0])

    def _cut_groups(self, query: exp.Select) -> None:
        """Takes the groups out of a query that does more with them, and what the queries in its expressions read."""
        groups = set_groups_apart(query)
        if groups is not None:
            self._cut(groups.this)
            if keys_of(groups.this):
                self._take_out(query, groups)
        for inner in queries_within(query):
            if isinstance(inner, exp.Select) and not outer_aliases(inner):
                self._cut(inner)

    def _cut_sides(self, query: exp.SetOperation) -> None:
        for side in (query.this, query.expression):
            self._cut(side)
        if keys_of(query):
            return
        for place in ("this", "expression"):
            side = query.args[place]
            if keys_of(side) and not _plain(side):
                names = outputs(side)
                table = self._leaf(side, names, [], _INNER, f"a side of {query.key.upper()}")
                if table is not None:
                    query.set(place, select([column(name, _INNER) for name in names], table))

    def _take_out(self, query: exp.Select, item: exp.Subquery, *, once: bool = False) -> None:
        """Makes a subquery a stage, together with the conditions on its rows."""
        alias, names = item.alias, outputs(item.this)
        conditions = conditions_on(query, alias)
        if once:  # what a row has met stays, however long it is shown
            conditions = [each for each in conditions if not reads_clock(each)]
        before, rest = query.args.get("where"), [each for each in conjuncts_in(query) if each not in conditions]
        query.set("where", _where(rest))
        read = columns_read(query).get(alias, set())
        needed = [name for name in names if name in read] or names[:1]
        words = alias.strip("_") if alias.startswith(HIDDEN_PREFIX) else alias
        table = self._leaf(item.this, needed, conditions, alias, words, once=once)
        if table is None:
            query.set("where", before)
        else:
            item.replace(table)

    def _leaf(
        self,
        inner: exp.Expr,
        names: list[str],
        conditions: list[exp.Expr],
        alias: str,
        words: str,
        *,
        once: bool = False,
    ) -> exp.Table | None:
        """A reading of a query as a stage; None where its answer cannot be kept."""
        assert isinstance(inner, exp.Query)
        query = select([column(name, _INNER) for name in names], subquery(inner.copy(), _INNER))
        query.set("where", _where(conditions))
        for node in query.args["where"].find_all(exp.Column) if conditions else ():
            node.set("table", identifier(_INNER))
        prune(query)
        try:
            stage = self._stage(query, words, once=once)
        except NotFinishableError:
            if once:
                raise
            return None
        asked = self._asked(stage)
        place = self._places.get(asked)
        if place is None:
            place = self._places[asked] = len(self.made)
            self.made.append(stage)
            self.trees.append(query)
        name = f"__leaf_{len(self._read)}"
        self._read[name] = (self._kept + place, tuple((each, each) for each in names))
        self._types[name] = dict(stage.columns[: len(names)])
        apart = stage.unique is not None and set(stage.unique) <= set(names)
        self._row_keys[name] = stage.unique if apart else None
        table = exp.Table(this=identifier(name), alias=exp.TableAlias(this=identifier(alias)))
        table.meta["penstock_columns"] = tuple(names)
        return table

    def _asked(self, stage: Stage) -> str:
        """What a stage asks, whatever its readings are called: two that ask the same are one."""
        text = stage.text
        for leaf in stage.leaves:
            text = text.replace(quoted(leaf.name), repr((leaf.source, leaf.columns, leaf.key, leaf.fresh)))
        return text

    def _stage(self, query: exp.Query, words: str, *, once: bool = False) -> Stage:
        if once:
            return self._once(query, words)
        names = outputs(query)
        keys = keys_of(query)
        shown = tuple(shown_key(query, key, f"__key{place}") for place, key in enumerate(keys))
        text, columns = kept_query(query, self._types, self._of_spark)
        leaves: list[Leaf] = []
        for table in scans(query):
            source, read = self._read[table.name]
            own = dict(read)
            leaves.append(Leaf(table.name, source, read, tuple(own[key.leaves[table.name]] for key in keys)))
        known = tuple((name, _known(kind)) for name, kind in columns)
        unique = unique_columns(query, self._row_keys, names)
        return Stage(words, tuple(leaves), text, known, shown, unique, timed=reads_clock(query))

    def _once(self, query: exp.Query, words: str) -> Stage:
        """A stage that is answered for the rows of each batch alone; what they meet is there as a whole."""
        if reads_clock(query):
            raise NotFinishableError("rows that are met once are shown as long as the clock says", _PUT_ABOVE)
        if not by_added_rows(query, self._added):
            return self._meeting(query, words)
        self._keep_met(query)
        fresh = set(fresh_relations(query))
        text, columns = kept_query(query, self._types, self._of_spark)
        leaves = tuple(Leaf(each.name, *self._read[each.name], (), each.name in fresh) for each in scans(query))
        known = tuple((name, _known(kind)) for name, kind in columns)
        return Stage(words, leaves, text, known, (), None, once=True)

    def _keep_met(self, query: exp.Query) -> None:
        """What rows meet is kept up to date, and not made anew for each batch."""
        for item in list(met(query)):
            if not _plain(item.this):
                self._cut(item.this)
                table = self._leaf(item.this, outputs(item.this), [], item.alias, item.alias)
                if table is not None:
                    item.replace(table)

    def _meeting(self, query: exp.Query, words: str) -> Stage:
        """As `_once`, where the rows in front change: the answer tells by their key which rows are of which."""
        *around, block = _blocks_down_to_joins(query)
        front = block.args["from_"].this
        if isinstance(front, exp.Table) and not self._row_keys.get(front.name):
            front = self._as_subquery(front)
        if isinstance(front, exp.Subquery):
            keyless = unique_columns(front.this, self._row_keys, outputs(front.this)) is None
            if keyless:
                front.set("this", with_copies(front.this))
            self._cut(front.this)
            words = _ROWS_IN_FRONT if front.alias.startswith(HIDDEN_PREFIX) else front.alias
            try:
                table = self._leaf(front.this, outputs(front.this), [], front.alias, words)
            except DiffersError as error:
                if not keyless or error.why is None:
                    raise
                why = f"no key tells the rows in front of it apart, and {error.why}"
                raise NotFinishableError(why, error.hint) from error
            if table is None:
                raise NotFinishableError(*_NOT_ALONE)
            front.replace(table)
            front = table
        if not isinstance(front, exp.Table) or not by_added_rows(query, {front.name}):
            raise NotFinishableError(*_NOT_ALONE)
        self._keep_met(query)
        own = dict(self._read[front.name][1])
        names = self._row_keys[front.name]
        assert names is not None
        shown = tuple(f"{_FRONT}{place}" for place, _ in enumerate(names))
        for name, key in zip(names, shown, strict=True):
            block.append("expressions", aliased(column(name, front.alias), key))
            for outer in around:
                outer.append("expressions", aliased(column(key, outer.args["from_"].this.alias), key))
        text, columns = kept_query(query, self._types, self._of_spark)
        leaves = tuple(
            Leaf(each.name, *self._read[each.name], tuple(own[name] for name in names) if each is front else ())
            for each in scans(query)
        )
        known = tuple((name, _known(kind)) for name, kind in columns)
        unique = unique_columns(query, self._row_keys, outputs(query))
        return Stage(words, leaves, text, known, shown, unique, meets=True)

    def _as_subquery(self, table: exp.Table) -> exp.Subquery:
        """A reading of a relation in a subquery of its own, in its place."""
        names = [name for name, _ in self._read[table.name][1]]
        made = subquery(select([column(name, table.alias) for name in names], table.copy()), table.alias)
        made.this.find(exp.Table).meta["penstock_columns"] = table.meta["penstock_columns"]
        table.replace(made)
        return made

    def _added_answers(self, query: exp.Query, *, closing: bool) -> Stage:
        """The stage of what rows are only added to: a join, or windows that close."""
        if closing and (meets_once(query) or reads_clock(query)):
            raise NotFinishableError(*_OF_THE_CLOCK)
        text, columns = kept_query(query, self._types, self._of_spark)
        leaves = tuple(Leaf(each.name, *self._read[each.name], ()) for each in scans(query))
        known = tuple((name, _known(kind)) for name, kind in columns)
        return Stage("the view", leaves, text, known, (), None, once=closing, pairs=not closing)


def _blocks_down_to_joins(query: exp.Query) -> list[exp.Select]:
    """A query around such joins, from the outside in; the last SELECT has them."""
    found: list[exp.Select] = []
    block: exp.Expr = query
    while isinstance(block, exp.Select):
        found.append(block)
        if any(join.method == ONCE for join in block.args.get("joins") or []):
            return found
        below = block.args["from_"].this
        block = below.this if isinstance(below, exp.Subquery) else below
    raise NotFinishableError(*_NOT_ALONE)


def _of_added_rows(tree: exp.Query, rows: CoreRows) -> bool:
    """Whether each row of an answer is made of one row, of a stream or a view, that never leaves again."""
    if rows.moves or reads_clock(tree) or any(kept.stamps for kept in rows.kept):
        return False
    return by_added_rows(tree, rows.added | rows.added_below)


def _known(kind: SqlType | None) -> SqlType:
    if kind is None or kind == UNKNOWN:
        raise NotFinishableError("the type of a column is not known before it runs", _CAST_IT)
    return kind


def _derived(query: exp.Select) -> list[exp.Subquery]:
    """The subqueries of a FROM clause."""
    from_ = query.args.get("from_")
    items = [from_.this] if isinstance(from_, exp.From) else []
    items += [join.this for join in query.args.get("joins") or []]
    return [item for item in items if isinstance(item, exp.Subquery)]


def _by_rows(query: exp.Select) -> bool:
    """Whether a SELECT makes a row of each row of one relation, or leaves it out."""
    if any(query.args.get(clause) for clause in _NOT_BY_ROWS) or aggregates(query):
        return False
    trees = [query.args.get("where"), *query.expressions]
    nodes = [node for tree in trees if tree is not None for node in tree.walk()]
    return not any(isinstance(node, exp.Window | exp.Subquery | exp.Exists) for node in nodes)


def _plain(query: exp.Expr) -> bool:
    """Whether a query only filters and computes: its answer is no smaller, and no dearer, than what it reads."""
    if not isinstance(query, exp.Select) or not _by_rows(query):
        return False
    return all(isinstance(below, exp.Table) or _plain(below) for below in relations(query).values())


def _reduces(query: exp.Expr, *, filtered: bool) -> bool:
    """Whether the answer of a query is smaller than what it reads: aggregated, distinct, or the first rows of each."""
    if not isinstance(query, exp.Select):
        return False
    if aggregates(query) or query.args.get("distinct") is not None:
        return True
    if _by_rows(query):
        filtered = filtered or query.args.get("where") is not None
        return all(_reduces(below, filtered=filtered) for below in relations(query).values())
    over = any(isinstance(node, exp.Window) for item in query.expressions for node in own_nodes(item))
    return over and filtered


def _where(conditions: list[exp.Expr]) -> exp.Where | None:
    made: exp.Expr | None = None
    for each in conditions:
        made = each.copy() if made is None else exp.And(this=made, expression=each.copy())
    return exp.Where(this=made) if made is not None else None
