"""A query that the view store answers anew for each batch: which rows it keeps for that, and the text of the answer.

Spark only ever adds rows to a stream. A query whose answer changes as rows come (the best three of a key, an outer
join without a bound) is cut: the core, in Spark, reads, filters and computes; the store keeps the rows that come out of
it, and the finish answers the query over them, inside the transaction of the batch. Where the query has a key, only the
keys that the batch touched are answered anew. What differs from the rows of the view is what has changed.

A finish has stages. Each is a query whose answer the store keeps, over kept rows and over the answers of earlier
stages; the last one is the view. What changed in the answer of a stage touches keys of the stages above it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.plan.pane_plan import PanePlan
    from penstock.types import SqlType

ONCE: Final = "AS_OF_NOW"  # the method of a join whose rows are met once: see met_once
SIDE: Final = "__side"  # in a batch: the place of the kept rows that a row belongs to
FORGOTTEN: Final = "__forgotten"  # of rows of views with a state_ttl: the column with the time at which they are
CLOCK_CALL: Final = "__moving_clock"  # the function by which texts ask the clock of the view: see moving_clock
# The functions by which the text of windows that are shown when they close asks which ones a batch closes: those that
# end after one watermark, and not after the other. See final_windows.
CLOSED_AFTER: Final = "__closed_after"
CLOSED_UPTO: Final = "__closed_upto"
ASKED: Final = "__spark_"  # how the names of functions begin by which the store asks Spark


@frozen
class Asked:
    """An expression of a finish that only Spark knows: the store calls it as a function, and Spark computes it.

    `text` is Spark SQL over the columns a0, a1, …, which have the types `arguments`; `type` is that of its value.
    `words` are for EXPLAIN. `functions` are those of the user's in it. `name` is made of all that: another text has
    another name.
    """

    name: str
    text: str
    arguments: tuple[SqlType, ...]
    type: SqlType
    words: str
    functions: tuple[str, ...] = ()


@frozen
class KeptColumn:
    """A column of kept rows, as a batch gives it. None as type: the one that Spark finds."""

    name: str
    type: SqlType | None


@frozen
class RowChanges:
    """How the rows of a relation replace each other: `key` and `version` are kept columns. Without a key they do not:
    each change brings a whole row, or takes away one that is equal to it.

    A batch has further columns for such rows: whether the row is gone, and its place, by which later ones are told from
    earlier ones. Without a version the last row of a key counts. With one the row of the highest version does, whenever
    it came, and deleted keys are remembered, so that an older row does not bring them back.
    """

    key: tuple[str, ...]
    version: str | None
    gone: str
    partition: str
    offset: str


@frozen
class Placed:
    """A term of an order, over a kept column."""

    column: str
    descending: bool
    nulls_first: bool


@frozen
class BestOfKey:
    """The rows that an answer can be made of: the first `count` of each key by an order, or of all without a key.

    `number` is the function that counts them; RANK and DENSE_RANK give rows that tie the same number.
    """

    count: int
    by: tuple[str, ...]
    order: tuple[Placed, ...]
    number: str = "row_number"


@frozen
class WindowEnds:
    """The kept column with the times of rows, and the windows that they are in: when the last of those has closed, the
    row is let go of."""

    column: str
    panes: PanePlan


@frozen
class Closing:
    """The windows of a view that shows each of them once, when the watermark has passed its end. `times` are the kept
    columns with the times of their rows."""

    panes: PanePlan
    times: tuple[str, ...]


@frozen
class KeptRows:
    """The rows of one relation that the store keeps. `shown` are their columns in the user's words, for EXPLAIN.

    Rows are only added, unless `changes` says how they replace each other. Of a materialized view nothing is kept a
    second time: `read` is DuckDB's text over its name that gives the columns.

    `since` and `until` are kept columns with times: a row is shown when the clock of the view has reached all of the
    first, and as long as it has reached none of the others. See plan.moving_clock. `stamps` are columns with the time
    at which a row of a materialized view came: such rows are kept a second time, with it. `FORGOTTEN` is one of them,
    and of the second, where a `state_ttl` is to let go of what follows from such rows.

    `passing`: stages that are answered once have read the rows when their batch is over, and nothing is kept of them.

    `dimension`: the rows are those of the version of a dimension that the batch sees; of another version than before,
    what differs comes and goes. `read` is then the text over the name of the dimension, whose rows no batch of Spark
    brings.

    `distinct`: no stage counts how often a row is there, so it is kept once. `best`: no stage sees any but these, so
    others are let go when nobody goes back to before they were behind. See kept_fewer.

    `ends`: nothing sees a row when the windows of its time have closed.
    """

    relation: str
    columns: tuple[KeptColumn, ...]
    shown: tuple[str, ...]
    changes: RowChanges | None = None
    read: str | None = None
    since: tuple[str, ...] = ()
    until: tuple[str, ...] = ()
    stamps: tuple[str, ...] = ()
    passing: bool = False
    dimension: bool = False
    distinct: bool = False
    best: BestOfKey | None = None
    ends: WindowEnds | None = None

    @property
    def of_view(self) -> bool:
        """Whether they are the rows of a materialized view."""
        return self.read is not None and not self.dimension

    @property
    def fewer(self) -> str:
        """In words, which of the rows that come are kept; empty: all of them."""
        columns = f"({', '.join(self.shown)})"
        if self.distinct:
            return f"each distinct {columns} of {self.relation}"
        return f"{self._best(self.best)} of {self.relation} {columns}" if self.best is not None else ""

    @property
    def few(self) -> bool:
        """Whether a fixed number of rows is kept, and those of the last batches."""
        return self.best is not None and not self.best.by

    @property
    def grows(self) -> bool:
        """Whether nothing bounds how many rows are kept."""
        return self.changes is None and self.read is None and not (self.until or self.passing or self.few or self.ends)

    @property
    def warning(self) -> str:
        """In words, that nothing bounds how many rows are kept."""
        if self.distinct:
            return f"state grows for ever where new values come: {self.words} is kept"
        if self.best is not None:
            return f"state grows for ever where new keys come: {self.words}, are kept"
        return f"state grows for ever: {self.words} is kept; filter or aggregate before"

    @property
    def bound(self) -> str | None:
        """In words, what bounds how many rows are kept; None where nothing is kept, or nothing does."""
        if self.dimension:
            return f"as many rows as there are in {self.relation}"
        if self.stamps:
            return f"as many rows as there are in {self.relation}"
        if self.read is not None or self.grows or self.passing:
            return None
        if self.ends is not None:
            time = self._named((self.ends.column,))
            return f"a row of {self.relation} goes when the windows of its {time} have been closed for 100 batches"
        if self.changes is not None:
            return "as many rows as there are at the source"
        if self.best is not None:
            return f"{self._best(self.best)} of {self.relation} and the rows of the last 100 batches"
        return f"a row of {self.relation} is forgotten when the clock passed {self._named(self.until)} 100 batches ago"

    @property
    def shown_while(self) -> str:
        """In words, when rows are shown; empty: always."""
        since = f"from {self._named(self.since)} on" if self.since else ""
        until = f"until the clock reaches {self._named(self.until)}" if self.until else ""
        return " ".join(filter(None, ["shown" if since or until else "", since, until]))

    def _named(self, columns: tuple[str, ...]) -> str:
        names = {entry.name: shown for entry, shown in zip(self.columns, self.shown, strict=True)}
        return " and ".join(names[name] for name in columns)

    @property
    def changed_by(self) -> tuple[str, ...]:
        """The columns by which rows replace each other, then the version, in the user's words; none: they do not."""
        if self.changes is None:
            return ()
        names = {entry.name: shown for entry, shown in zip(self.columns, self.shown, strict=True)}
        found = [names[name] for name in self.changes.key]
        if self.changes.version is not None:
            found.append(f"version {names[self.changes.version]}")
        return tuple(found)

    @property
    def words(self) -> str:
        """What is kept, for EXPLAIN."""
        listed = f"{self.relation} ({', '.join(self.shown)})"
        if self.dimension:
            return f"the current version of {listed}"
        if self.distinct:
            return self.fewer
        if self.best is not None:
            return f"{self.fewer}, those of the last 100 batches included"
        if self.ends is not None and self.changes is None:
            return f"the rows of {listed} in windows that are open"
        if self.ends is not None and self.changed_by:
            return f"the latest row by ({', '.join(self.changed_by)}) of {listed} in windows that are open"
        if self.changes is None:
            return f"every row of {listed}"
        if not self.changes.key:
            return f"every row of {listed} that has not gone again"
        more = ", deleted keys included" if self.changes.version is not None else ""
        return f"the latest row by ({', '.join(self.changed_by)}) of {listed}{more}"

    def _best(self, best: BestOfKey) -> str:
        names = {entry.name: shown for entry, shown in zip(self.columns, self.shown, strict=True)}
        by = f" by ({', '.join(names[name] for name in best.by)})" if best.by else ""
        if best.number != "row_number":
            return f"the rows of {best.number.upper()} {best.count} or better{by}"
        return f"the best {best.count} rows{by}" if best.count > 1 else f"the best row{by}"


@frozen
class Leaf:
    """A reading of kept rows, or of the answer of an earlier stage, in the text of a stage.

    `source` is the place among the sources of the plan: first all kept rows, then the stages. `columns` are the names
    that the text uses, each with the name of the column of the source; `key` are columns of the source by which rows
    belong to a touched key, in the order of the stage's `keys`. `fresh`: only the rows that the batch brings.
    """

    name: str
    source: int
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    fresh: bool = False


@frozen
class Stage:
    """A query whose answer the store keeps.

    `text` is DuckDB's, over the names of the leaves, and gives `columns`; of the last stage those of the view come
    first, and others only carry a key. `keys` are the columns by which the answer falls into parts that do not see each
    other; none: it is answered as a whole. `unique` are the columns that tell the rows apart; None: the same row may be
    there twice. `words` name the stage in EXPLAIN: the user's name of the subquery. `timed`: the text asks the clock of
    the view, so that any row of the answer may be another one as time goes on. `once`: the answer for the rows of a
    batch is added to it and never made anew; see plan.met_once. `meets`: the same for rows that change. Of the leaf
    with a key the rows that come are answered, beside the others as they are then; what a row gave goes when it goes.
    `pairs`: so is what new rows of any relation make with all that is there of the others; see plan.added_pairs.
    """

    words: str
    leaves: tuple[Leaf, ...]
    text: str
    columns: tuple[tuple[str, SqlType], ...]
    keys: tuple[str, ...]
    unique: tuple[str, ...] | None
    timed: bool = False
    once: bool = False
    meets: bool = False
    pairs: bool = False


@frozen
class FinishPlan:
    """How the store answers a query: the rows that it keeps, and the stages over them, each behind those it reads.

    `asked` are the expressions in their texts that Spark computes. `closing`: the last stage is asked once for each
    window, when that closes.
    """

    rows: tuple[KeptRows, ...]
    stages: tuple[Stage, ...]
    asked: tuple[Asked, ...] = ()
    closing: Closing | None = None

    @property
    def view(self) -> Stage:
        """The stage whose answer is the view."""
        return self.stages[-1]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which the view falls into parts."""
        return self.view.keys

    @property
    def unique(self) -> tuple[str, ...] | None:
        """The columns that tell the rows of the view apart."""
        return self.view.unique

    @property
    def keeps(self) -> str:
        """In words, what is kept: rows, and the answers of the stages below the view."""
        kept_here = [each for each in self.rows if (not each.of_view or each.stamps) and not each.passing]
        answers = [f"the answer of {stage.words}" for stage in self.stages[:-1]]
        return " and ".join([*(each.words for each in kept_here), *answers])

    @property
    def takes_longer(self) -> bool:
        """Whether the view is answered as a whole after each batch, over ever more rows."""
        below = [leaf.source for leaf in self.view.leaves]
        return not self.keys and any(place >= len(self.rows) or not self.rows[place].few for place in below)

    @property
    def only_adds(self) -> bool:
        """Whether rows are only added to the view."""
        return self.view.once or self.view.pairs

    @property
    def by_rows(self) -> bool:
        """Whether each row of the view is made of one row, and of nothing else, when that comes."""
        return self.view.once and len(self.stages) == 1 and all(leaf.fresh for leaf in self.view.leaves)

    @property
    def moves(self) -> bool:
        """Whether the answer changes as time goes on, without any row that comes."""
        return any(rows.since or rows.until for rows in self.rows) or any(stage.timed for stage in self.stages)

    @property
    def forgets(self) -> bool:
        """Whether rows of materialized views count for a time only."""
        return any(FORGOTTEN in rows.until for rows in self.rows)

    @property
    def clocked(self) -> bool:
        """Whether the store has to know the time of the view."""
        return self.moves or any(rows.stamps for rows in self.rows)

    def stage_of(self, source: int) -> Stage | None:
        """The stage at a place among the sources; None: there are kept rows."""
        return self.stages[source - len(self.rows)] if source >= len(self.rows) else None

    def with_types(self, found: Mapping[str, SqlType]) -> FinishPlan:
        """The plan with the types that Spark found for the columns of a batch in the place of unknown ones."""
        rows = tuple(
            replace(
                kept,
                columns=tuple(
                    entry if entry.type is not None else replace(entry, type=found[entry.name])
                    for entry in kept.columns
                ),
            )
            for kept in self.rows
        )
        return replace(self, rows=rows)
