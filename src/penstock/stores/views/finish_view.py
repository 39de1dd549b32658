"""A view that the store answers from rows that it keeps: see plan.finish_plan.

A batch adds its rows to the kept ones. The keys that it touches are answered anew, stage by stage: their rows leave the
answer, the new ones come in, and what differs touches keys of the next stage. What differs in the last one, the view,
is the log of changes. A stage without a key is answered as a whole. An earlier batch is gone back to in the same way:
by taking the rows of later ones away, putting back what they had replaced, and answering the keys that this touches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import InternalError
from penstock.stores.duckdb_types import to_duckdb
from penstock.stores.views.closing_windows import ClosingWindows
from penstock.stores.views.database import one_row
from penstock.stores.views.dimension_table import VERSION
from penstock.stores.views.finish_text import FinishText
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.once_text import OnceText
from penstock.stores.views.shown_rows import set_clock
from penstock.stores.views.touched_keys import ALL_KEYS, Keys
from penstock.stores.views.view_table import KEPT_BATCHES, NO_VIEWS, TIDY_EVERY, BatchMark, ViewTable, picked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import duckdb
    import pyarrow as pa

    from penstock.stores.views.model import SeenVersion
    from penstock.stores.views.stage_text import StageText


# Where a condition on the clock says nothing of when its answer changes, it is asked so often.
_ASKED_EVERY_US: Final = 1_000_000


class FinishView:
    """The tables of a finished view: v<n> with its rows, l<n> with its log, r<n>_0, r<n>_1, … with kept rows, and
    g<n>_1, g<n>_2, … with the answers of the stages below the view."""

    keyed = True

    def __init__(self, number: int, spec: ViewSpec, views: Mapping[str, ViewTable] = NO_VIEWS) -> None:
        """`views` are those that it may be built on, by their names."""
        self.id = number
        self.spec = spec
        if spec.finish is None:
            raise InternalError(f"view {spec.name} has no finish")
        self._text = FinishText(number, spec, spec.finish, views)
        self._closing = None if self._text.closing is None else ClosingWindows(number, spec.name, self._text.closing)
        self._clocks = f"store.t{number}"  # of batches, where rows are kept or shown for a time
        self.clocked = self._text.clocked  # texts ask its clock
        self.parents: tuple[ViewTable, ...] = tuple({rows.parent.id: rows.parent for rows in self._text.views}.values())
        self.fed = bool(self._text.kept)  # batches bring rows of its own

    def create(self, writer: duckdb.DuckDBPyConnection) -> None:
        for statement in self._text.creates():
            writer.execute(statement)
        if self._timed:
            writer.execute(f"CREATE TABLE {self._clocks} (batch BIGINT, clock BIGINT)")
        if self._closing is not None:
            self._closing.create(writer)

    @property
    def _timed(self) -> bool:
        return self.clocked or self.spec.ttl_us is not None

    def drop(self, writer: duckdb.DuckDBPyConnection) -> None:
        for table in self._text.tables:
            writer.execute(f"DROP TABLE {table}")
        writer.execute(f"DROP TABLE IF EXISTS {self._clocks}")
        if self._closing is not None:
            self._closing.drop(writer)

    def apply(self, writer: duckdb.DuckDBPyConnection, rows: pa.Table, mark: BatchMark) -> int:
        if mark.batch % TIDY_EVERY == 0:
            self._tidy(writer, mark.batch - KEPT_BATCHES)
        new = self._new_versions(writer, mark)
        closes = self._closing is not None and self._closing.moves(writer, mark)
        if not rows.num_rows and not self._timed and not new and not closes:
            return 0
        text = self._text
        before = self._move_clock(writer, mark)
        self._see(writer, mark, new)
        names, stored = text.given
        # Where a statement fails, the transaction ends and takes the name with it.
        writer.register("bt", picked(rows, self.spec.name, names, stored))
        for kept in text.kept:
            for statement in kept.adds(mark.batch):
                writer.execute(statement)
        writer.unregister("bt")
        for view in text.views:
            writer.execute(view.unchanged())
        over = None if self.spec.ttl_us is None else self._expire(writer, mark, mark.clock_us - self.spec.ttl_us)
        self._cross(writer, before)

        def once(stage: OnceText) -> list[str]:
            if self._closing is not None and not closes:
                return stage.stays()
            # What the view shows is no state.
            return stage.comes(mark.batch, None if stage is self._text.stages[-1] else over)

        return self._log_differences(writer, mark) if self._answer(writer, once) else 0

    def _new_versions(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark) -> dict[str, SeenVersion]:
        """The versions that a batch sees where they are not there yet, by the names of the dimensions."""
        there = {each.relation: one_row(writer, each.current()) for each in self._text.dimensions}
        return {
            each.relation: each
            for each in mark.versions
            if each.relation in there and there[each.relation] != (each.number,)
        }

    def _see(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark, new: Mapping[str, SeenVersion]) -> None:
        """Bring in the rows of new versions; other dimensions stay what they are."""
        for dimension in self._text.dimensions:
            version = new.get(dimension.relation)
            if version is None:
                writer.execute(dimension.unchanged())
                continue
            writer.register(VERSION, to_duckdb(version.read()))
            for statement in dimension.sees(mark.batch, version.number):
                writer.execute(statement)
            writer.unregister(VERSION)
            if not self.fed:  # what batches bring is not kept here, so nobody goes back
                for statement in dimension.stays():
                    writer.execute(statement)

    def _expire(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark, upto_us: int) -> int | None:
        """Let go of the rows of batches that were run before a time, and tell the last of those. Nobody can go back
        before that any more."""
        row = one_row(writer, f"SELECT max(batch) FROM {self._clocks} WHERE clock <= {upto_us}")
        if not self.clocked:
            writer.execute(f"INSERT INTO {self._clocks} VALUES ({mark.batch}, {mark.clock_us})")
        if row is None or row[0] is None:
            return None
        for kept in self._text.kept:
            for statement in kept.expires(row[0]):
                writer.execute(statement)
        writer.execute(f"DELETE FROM {self._clocks} WHERE batch <= {row[0]} AND batch < {mark.batch}")
        writer.execute("UPDATE store.views SET floor = ? WHERE id = ?", [mark.batch, self.id])
        return int(row[0])

    def _clock(self, writer: duckdb.DuckDBPyConnection) -> int:
        """The time that the view shows; 0 before its first batch."""
        row = one_row(writer, f"SELECT max(clock) FROM {self._clocks}")
        return 0 if row is None or row[0] is None else int(row[0])

    def _move_clock(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark) -> int:
        """Bring the clock of the view to the time of a batch, never back; the time before."""
        if not self.clocked:
            return 0
        before = self._clock(writer)
        now = max(before, mark.clock_us or mark.at_us)
        if not self.fed:
            writer.execute(f"DELETE FROM {self._clocks}")  # nobody goes back here
        writer.execute(f"INSERT INTO {self._clocks} VALUES ({mark.batch}, {now})")
        writer.execute(set_clock(now))
        return before

    def _cross(self, writer: duckdb.DuckDBPyConnection, before_us: int) -> None:
        """Rows that the clock brought in or took out have changed too."""
        if not self.clocked:
            return
        now = self._clock(writer)
        for source in self._text.sources:
            for statement in source.crosses(before_us, now):
                writer.execute(statement)

    def due(self, reader: duckdb.DuckDBPyConnection) -> int | None:
        """The time at which the answer may be another one though no row comes; None: never."""
        if not self.clocked:
            return None
        clock = self._clock(reader)
        times = [clock + _ASKED_EVERY_US] if any(stage.timed for stage in self._text.stages) else []
        for source in self._text.sources:
            query = source.shown.due(source.present, clock)
            row = one_row(reader, query) if query is not None else None
            times += [int(row[0])] if row is not None and row[0] is not None else []
        return min(times, default=None)

    def refresh(self, writer: duckdb.DuckDBPyConnection, moved: Collection[int], mark: BatchMark) -> int:
        """Views that it is built on have changed, told by their numbers, or time has gone on: answer what that
        touches."""
        before = self._move_clock(writer, mark)
        self._see(writer, mark, self._new_versions(writer, mark))
        for kept in self._text.kept:
            writer.execute(kept.unchanged())
        for view in self._text.views:
            for statement in view.changed() if view.parent.id in moved else [view.unchanged()]:
                writer.execute(statement)
        self._cross(writer, before)
        return self._log_differences(writer, mark) if self._answer(writer, _as_it_is) else 0

    def refill(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark) -> int:
        """Answer everything from what the store holds now; what differs is logged as the changes of the batch."""
        self._move_clock(writer, mark)
        self._see(writer, mark, self._new_versions(writer, mark))
        for view in self._text.views:
            for statement in view.filled():
                writer.execute(statement)
        for stage in self._text.stages:
            if stage in self._text.kept_as_they_are:
                continue  # what its rows have met stays
            for statement in _as_it_is(stage) if isinstance(stage, OnceText) else stage.answers(ALL_KEYS):
                writer.execute(statement)
        return self._log_differences(writer, mark)

    def _log_differences(self, writer: duckdb.DuckDBPyConnection, mark: BatchMark) -> int:
        """What differs between `nw` and `od` becomes changes of the view; how many."""
        row = one_row(writer, self._text.logs(mark))
        assert row is not None
        return int(row[0])

    def _answer(self, writer: duckdb.DuckDBPyConnection, once: Callable[[OnceText], list[str]]) -> bool:
        """Answers what the changed rows touch, stage by stage; whether the view was among it. `nw` and `od` are then
        its rows. `once` gives the statements for what is answered once."""
        answered = False
        for stage in self._text.stages:
            if isinstance(stage, OnceText):
                for statement in once(stage):
                    writer.execute(statement)
                answered = bool(_count(writer, "nw") or _count(writer, "od"))
            else:
                answered = self._answer_stage(writer, stage)
            if stage is not self._text.stages[-1]:
                writer.execute(stage.changes() if answered else stage.unchanged())
        return answered

    def _answer_stage(self, writer: duckdb.DuckDBPyConnection, stage: StageText) -> bool:
        """Answers the touched keys of a stage; whether there were any."""
        writer.execute(stage.touched())
        row = one_row(writer, stage.counted())
        assert row is not None
        keys = ALL_KEYS if stage.timed else Keys.counted(row)
        # An aggregate of all rows has a row from the first batch on, whatever came in it.
        answered = stage.timed or bool(keys.touched) or not (stage.keyed or _count(writer, stage.source.table))
        for statement in stage.answers(keys) if answered else ():
            writer.execute(statement)
        return answered

    def undo(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        text = self._text
        for kept in text.tables_of_rows:
            for statement in kept.forgets(batch):
                writer.execute(statement)
        for view in text.views:
            writer.execute(view.unchanged())
        if self.clocked:
            before = self._clock(writer)
            writer.execute(f"DELETE FROM {self._clocks} WHERE batch > {batch}")
            writer.execute(set_clock(self._clock(writer)))
            self._cross(writer, before)
        # Rows whose time is over may all be forgotten: the clocks tell that there were batches.
        if any(
            _count(writer, seen)
            for seen in ([self._clocks] if self.clocked else [kept.seen for kept in text.tables_of_rows])
        ):
            self._answer(writer, lambda stage: stage.goes(f"batch > {batch}"))
        else:  # as it was before the first batch: not even an aggregate of all rows has a row
            for stage in text.stages:
                writer.execute(f"DELETE FROM {stage.source.table}")
        writer.execute(f"DELETE FROM {text.log} WHERE batch > {batch}")
        if self.spec.ttl_us is not None:
            writer.execute(f"DELETE FROM {self._clocks} WHERE batch > {batch}")
        if self._closing is not None:
            self._closing.undo(writer, batch)

    def _tidy(self, writer: duckdb.DuckDBPyConnection, floor: int) -> None:
        """Let go of rows that were replaced long ago; nobody goes back behind `floor`."""
        then = 0
        if self.clocked:
            row = one_row(writer, f"SELECT max(clock) FROM {self._clocks} WHERE batch <= {floor}")
            then = 0 if row is None or row[0] is None else int(row[0])
            # Of those before, the last one is still wanted: it is what the view shows of a batch after it.
            writer.execute(f"DELETE FROM {self._clocks} WHERE batch <= {floor} AND clock < {then}")
        statements = [statement for kept in self._text.tables_of_rows for statement in kept.tidies(floor, then)]
        if self._closing is not None and floor > 0:
            closed_us = self._closing.tidy(writer, floor)
            statements += [statement for kept in self._text.kept for statement in kept.closes(closed_us)]
        if floor <= 0 or not statements:
            return
        for statement in statements:
            writer.execute(statement)
        writer.execute("UPDATE store.views SET floor = ? WHERE id = ? AND floor < ?", [floor, self.id, floor])

    def forget_shown(self, writer: duckdb.DuckDBPyConnection, batch: int) -> None:
        """Nobody reads what the view shows, only its changes: let go of rows that came up to a batch and stay as they
        are."""
        last = self._text.stages[-1]
        if isinstance(last, OnceText):
            for statement in last.goes(f"batch <= {batch}"):
                writer.execute(statement)

    def select(self) -> str:
        return self._text.shown

    def whole(self) -> str:
        return f"{self._text.shown} ORDER BY ALL"

    def changes(self, since: int, limit: int) -> str:
        return (
            f"SELECT seq, op, batch, wm, done, {self._text.logged} FROM {self._text.log} "
            f"WHERE seq > {since} ORDER BY seq LIMIT {limit}"
        )

    def log(self) -> str:
        return self._text.log


def _as_it_is(stage: OnceText) -> list[str]:
    """What is answered once stays as it is: no batch of its own is worked on."""
    return stage.goes("false")


def _count(writer: duckdb.DuckDBPyConnection, table: str) -> int:
    row = one_row(writer, f"SELECT count(*) FROM {table}")
    assert row is not None
    return int(row[0])
