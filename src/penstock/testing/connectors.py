"""What a connector has to keep to, as tests that you run against yours.

With pytest, name your connector in a class; every `test_…` below then runs against it:

    class TestMine(ConnectorConformance):
        connector = Mine
        options = {"path": "samples/rows.db"}

Without, `check_connector(Mine, {"path": …})` runs them all and raises AssertionError for the first that fails. None of
them starts Spark; `rows_of_job` runs a connector as a job, over a restart.

The connector needs some rows to be tested with, and they must not change meanwhile. At most `limit` rows of each
partition are read.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock.connectors.connector import Connector, ConnectorConfig
from penstock.connectors.cursors import Cursor, canonical
from penstock.connectors.exchange import Exchange
from penstock.connectors.reading import Reading

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
_PLACE: Final = ("__partition", "__offset")


class ConnectorConformance:
    """Tests of one connector; derive a class whose name begins with Test."""

    connector: ClassVar[type[Connector]]
    options: ClassVar[Mapping[str, Any]] = {}
    limit: ClassVar[int] = 1_000

    # what the tests stand on

    def cursor(self, partition: int = 0) -> Cursor:
        """A connector that is ready to read a partition; what it does wrong is told by name."""
        config = ConnectorConfig(_with_defaults(self.connector, self.options), stream="tested", partition=partition)
        return Cursor(self.connector.__name__, self.connector, config)

    def partitions(self) -> range:
        cursor = self.cursor()
        try:
            return range(cursor.partitions())
        finally:
            cursor.close()

    def read(self, cursor: Cursor, size: int, rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Batches of at most `size` rows, so many rows in all, or until there are none."""
        left = self.limit if rows is None else rows
        while left > 0 and (batch := cursor.next(min(size, left))) is not None:
            left -= batch.num_rows
            yield batch

    def rows(self, partition: int = 0, size: int = 1_000) -> list[Row]:
        cursor = self.cursor(partition)
        try:
            return _rows(self.read(cursor, size))
        finally:
            cursor.close()

    # the tests

    def test_it_has_rows_to_be_tested_with(self) -> None:
        assert any(self.rows(partition) for partition in self.partitions()), "no partition has a row"

    def test_partitions_are_counted_alike_by_every_object(self) -> None:
        count = len(self.partitions())
        for partition in range(count):
            cursor = self.cursor(partition)
            assert cursor.partitions() == count, f"partition {partition} counts {cursor.partitions()}, not {count}"
            cursor.close()

    def test_batches_have_the_schema_it_tells(self) -> None:
        for partition in self.partitions():
            cursor = self.cursor(partition)
            schema = cursor.schema()
            names = [name.casefold() for name in schema.names]
            assert names, "the schema has no columns"
            assert len(set(names)) == len(names), "two columns have the same name"
            for batch in self.read(cursor, 100):
                assert batch.schema.equals(schema), f"a batch has {batch.schema}, and the schema is {schema}"
            cursor.close()

    def test_no_batch_is_larger_than_asked_for(self) -> None:
        for partition in self.partitions():
            for size in (1, 7):
                cursor = self.cursor(partition)
                for batch in self.read(cursor, size, rows=20):
                    assert batch.num_rows <= size
                cursor.close()

    def test_rows_are_the_same_in_batches_of_any_size(self) -> None:
        for partition in self.partitions():
            whole = self.rows(partition, size=self.limit)
            for size in (1, 3, 64):
                assert self.rows(partition, size) == whole, f"batches of {size} rows hold other rows"

    def test_offsets_go_through_json_and_move_on(self) -> None:
        for partition in self.partitions():
            cursor = self.cursor(partition)
            before = cursor.current()
            for _ in self.read(cursor, 5):
                after = cursor.current()
                assert canonical(json.loads(json.dumps(after))) == after
                assert after != before, f"the offset is still {before} behind more rows"
                if type(before) is type(after) and isinstance(after, int | float | str | list):
                    assert after > before, f"offset {after} is not behind {before}"
                before = after
            cursor.close()

    def test_nothing_more_moves_nothing(self) -> None:
        for partition in self.partitions():
            cursor = self.cursor(partition)
            read = len(_rows(self.read(cursor, 500)))
            if read < self.limit:
                end = cursor.current()
                for _ in range(3):
                    assert cursor.next(10) is None, "a source that had nothing has rows again"
                    assert cursor.current() == end, "the offset moved, and no row was handed out"
                if self.connector.bounded:
                    assert not cursor.has_more(), "it is bounded and read to its end, and has_more() is true"
            cursor.close()

    def test_a_new_object_goes_on_at_any_offset(self) -> None:
        """What happens after a crash: another process, the offset as it was kept, the same rows behind it."""
        for partition in self.partitions():
            whole = self.rows(partition)
            places = self._places(partition, 7)
            for number, at in places[:: max(1, len(places) // 12)] + places[-1:]:
                cursor = self.cursor(partition)
                cursor.seek(number, json.loads(json.dumps(at)))
                if number:
                    assert cursor.current() == at, f"after seek_to_offset({at}) the offset is {cursor.current()}"
                rest = _rows(self.read(cursor, 13, rows=self.limit - number))
                assert rest == whole[number:], f"other rows behind offset {at}"
                cursor.close()

    def test_an_object_goes_back_and_forth(self) -> None:
        for partition in self.partitions():
            places = self._places(partition, 7)
            whole = self.rows(partition)
            cursor = self.cursor(partition)
            for number, at in (places[-1], places[0], places[len(places) // 2]):
                cursor.seek(number, at)
                found = _rows(self.read(cursor, 4, rows=min(10, self.limit - number)))
                assert found == whole[number : number + len(found)], f"other rows behind offset {at}"
                assert len(found) == min(10, len(whole) - number), f"rows are missing behind offset {at}"
            cursor.close()

    def test_commits_change_no_row(self) -> None:
        for partition in self.partitions():
            whole = self.rows(partition)
            cursor = self.cursor(partition)
            found: list[Row] = []
            for batch in self.read(cursor, 11):
                found += batch.to_pylist()
                cursor.commit(cursor.current())
                cursor.commit(cursor.current())  # again, as after a crash
            assert found == whole
            cursor.close()

    def test_watermarks_are_times_and_never_go_back(self) -> None:
        for partition in self.partitions():
            cursor = self.cursor(partition)
            marks = [cursor.watermark_ms(batch) for batch in self.read(cursor, 50)]
            told = [mark for mark in marks if mark is not None]
            assert told == sorted(told), "a watermark is behind an earlier one"
            cursor.close()

    def test_the_engine_reads_every_row_once(self) -> None:
        """Batch by batch as a job does; every batch is read again from its offsets, and holds the same rows."""
        expected = [row for partition in self.partitions() for row in self.rows(partition)]
        with TemporaryDirectory() as folder:
            found = self._as_a_job(Path(folder), max_rows=max(2, len(expected) // 4))
        assert _multiset(found) == _multiset(expected), "the batches together have other rows than the partitions"

    # how they go about it

    def _places(self, partition: int, size: int) -> list[tuple[int, Any]]:
        """The number and the offset of the row behind each batch, the beginning included."""
        cursor = self.cursor(partition)
        found = [(0, cursor.at), *((cursor.number, cursor.at) for _ in self.read(cursor, size))]
        cursor.close()
        return found

    def _as_a_job(self, folder: Path, max_rows: int) -> list[Row]:
        """The rows of each batch, as Spark is handed them; the reader is replaced now and then, as by a restart."""
        import pyarrow as pa

        from penstock.connectors.custom_reader import CustomStreamReader

        cursor = self.cursor()
        count, columns = cursor.partitions(), cursor.schema()
        cursor.close()
        exchange = Exchange(str(folder / "tested"))
        options = ConnectorConfig(_with_defaults(self.connector, self.options), stream="tested")
        exchange.set_up(self.connector.__name__, self.connector, options, count)
        schema = pa.schema([*columns, ("__partition", pa.int32()), ("__offset", pa.int64())])
        reader = CustomStreamReader(exchange, schema, Reading(run=1, max_rows=max_rows))
        start = reader.initialOffset()
        found: list[Row] = []
        numbers: dict[int, int] = {}
        for turn in range(self.limit):
            end = reader.latestOffset(start, None)  # type: ignore[arg-type]
            if end["p"] == start["p"] or min(end["p"].values()) > self.limit:
                break
            tasks = reader.partitions(start, end)
            ahead = reader.getCache(start, end)
            worker: CustomStreamReader = pickle.loads(pickle.dumps(reader))  # noqa: S301  a copy of our own
            again = _rows(batch for task in tasks for batch in worker.read(task))
            handed = again if ahead is None else _rows(ahead)
            assert _multiset(handed) == _multiset(again), "a batch that is read again has other rows"
            for row in handed:
                assert row["__offset"] == numbers.get(row["__partition"], 0), "rows are missing, or come twice"
                numbers[row["__partition"]] = row["__offset"] + 1
            found += handed
            exchange.write_committed(json.dumps(end))
            start = json.loads(json.dumps(end))
            if turn % 2:
                reader.stop()
                reader = CustomStreamReader(exchange, schema, Reading(run=turn + 2, max_rows=max_rows))
        reader.stop()
        return [
            {name: value for name, value in row.items() if name not in _PLACE}
            for row in found
            if row["__offset"] < self.limit
        ]


def conformance_tests() -> dict[str, Callable[[ConnectorConformance], None]]:
    """The tests by name."""
    return {
        name: test for name, test in vars(ConnectorConformance).items() if name.startswith("test_") and callable(test)
    }


def check_connector(
    connector: type[Connector], options: Mapping[str, Any] | None = None, *, limit: int = 1_000
) -> None:
    """Run every test against a connector; AssertionError or CONNECTOR_FAILED for the first that fails."""
    subject = type(
        "Subject", (ConnectorConformance,), {"connector": connector, "options": options or {}, "limit": limit}
    )()
    for name, test in conformance_tests().items():
        try:
            test(subject)
        except AssertionError as error:
            raise AssertionError(
                f"{connector.__name__}: {name.removeprefix('test_').replace('_', ' ')}: {error}"
            ) from None


def rows_of_job(
    path: str | Path, name: str, columns: str, options: str = "", *, timeout: float = 120.0
) -> list[tuple[Any, ...]]:
    """Run a registered connector as a job on Spark, stop and go on in the middle, and give back the rows of its view.

    `columns` and `options` are SQL: `"id BIGINT, city STRING"`, `"path = 'rows.db'"`. Rows come sorted by their texts.
    """
    from penstock.interfaces.database import connect

    given = f", {options}" if options else ""
    with connect(path) as db:
        db.execute(f"""
            CREATE STREAM tested ({columns}) WITH (connector = '{name}', max_rows_per_batch = 7{given});
            CREATE MATERIALIZED VIEW tested_rows AS SELECT * FROM tested;
        """)
    with connect(path) as db:  # the first batches are behind, the others come now
        db.settle(timeout)
        return sorted(db.sql("SELECT * FROM tested_rows").rows(), key=str)


def _with_defaults(connector: type[Connector], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as a job hands them over: typed, with defaults."""
    declared = connector.options
    if isinstance(declared, type):
        return dict(declared(**given))
    return {**{spec.key: spec.default for spec in declared if spec.default is not None}, **given}


def _rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    return [row for batch in batches for row in batch.to_pylist()]


def _multiset(rows: Iterable[Row]) -> list[str]:
    return sorted(map(repr, rows))
