"""What the view store asks of Spark, with somebody else in Spark's place."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import InternalError, RuntimeFailure
from penstock.plan.finish_plan import SIDE, Asked
from penstock.plan.job_plan import plan_job
from penstock.stores.views import BatchCommit, ViewSpec, ViewStore
from penstock.stores.views.spec_text import spec_from_text, spec_to_text
from tests.unit.plan.analysis import planned

STREAMS = "CREATE STREAM a (id BIGINT, ts TIMESTAMP); CREATE STREAM b (id BIGINT, name STRING);"
QUERY = "SELECT a.id, FORMAT_STRING('%s %s', a.ts, b.name) AS x FROM a LEFT JOIN b ON a.id = b.id"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ARROW = {"BIGINT": pa.int64(), "STRING": pa.string(), "TIMESTAMP": pa.timestamp("us", tz="UTC")}


class Instead:
    """Writes down what it is asked, and makes a text of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, pa.Table]] = []

    def __call__(self, asked: Asked, rows: pa.Table) -> pa.ChunkedArray:
        self.asked.append((asked.text, rows))
        return pa.chunked_array([[" ".join(map(str, row.values())) for row in rows.to_pylist()]], pa.string())


def spec() -> ViewSpec:
    job = plan_job(planned(f"{STREAMS} CREATE MATERIALIZED VIEW v AS {QUERY};"))
    columns = tuple((column.name, column.type) for column in job.columns if column.type is not None)
    assert job.finish is not None
    return ViewSpec("v", columns, "finish", job.key, finish=job.finish)


def batch(number: int, given: dict[str, list[dict[str, object]]]) -> BatchCommit:
    """Rows of each stream, by name, as the core hands them over."""
    found = spec().finish
    assert found is not None
    rows = []
    for side, kept in enumerate(found.rows):
        for row in given.get(kept.relation, []):
            named = zip(kept.columns, kept.shown, strict=True)
            rows.append({SIDE: side} | {entry.name: row[shown] for entry, shown in named if shown in row})
    fields = [(SIDE, pa.int32())]
    fields += [(entry.name, ARROW[str(entry.type)]) for kept in found.rows for entry in kept.columns]
    table = pa.Table.from_pylist(rows, pa.schema(fields))
    return BatchCommit("v", number, f"hash {number}", view="v", rows=table)


def test_null_and_times_arrive_as_they_are() -> None:
    spark = Instead()
    with ViewStore.open(None, threads=1) as store:
        store.ask_with(spark)
        store.create_view(spec())
        ids: list[dict[str, object]] = [{"id": 1, "ts": NOON}, {"id": 2, "ts": None}]
        store.commit(batch(0, {"a": ids, "b": [{"id": 1, "name": "y"}]}))
        ((text, rows),) = spark.asked
        assert text == "format_string('%s %s', `a0`, `a1`)"
        assert rows.schema.types == [pa.timestamp("us", tz="UTC"), pa.string()]
        found = sorted(rows.to_pylist(), key=str)
        assert found == [{"a0": None, "a1": None}, {"a0": NOON, "a1": "y"}]
        answer = store.read('SELECT id, x FROM "v" ORDER BY id').table.to_pydict()
        assert answer == {"id": [1, 2], "x": [f"{NOON} y", "None None"]}


def test_only_touched_keys_are_asked_for_also_after_a_restart(tmp_path: Path) -> None:
    with ViewStore.open(tmp_path) as store:
        store.ask_with(Instead())
        store.create_view(spec())
        store.commit(batch(0, {"a": [{"id": each, "ts": NOON} for each in range(5000)]}))
    spark = Instead()
    with ViewStore.open(tmp_path) as store:
        store.ask_with(spark)
        store.commit(batch(1, {"b": [{"id": 7, "name": "y"}]}))
        assert [rows.num_rows for _, rows in spark.asked] == [1]
        assert store.read('SELECT count(*) AS n FROM "v"').table.to_pydict() == {"n": [5000]}


def test_what_spark_says_is_the_error_of_the_batch() -> None:
    def fails(asked: Asked, rows: pa.Table) -> pa.ChunkedArray:
        raise RuntimeFailure("DATA_ERROR", f"no such pattern (in {asked.words})", hint=f"{rows.num_rows} rows")

    with ViewStore.open(None, threads=1) as store:
        store.ask_with(fails)
        store.create_view(spec())
        with pytest.raises(RuntimeFailure) as raised:
            store.commit(batch(0, {"a": [{"id": 1, "ts": NOON}]}))
        assert raised.value.condition == "DATA_ERROR"
        assert "no such pattern (in format_string('%s %s', a.ts, b.name))" in raised.value.message
        assert store.read('SELECT * FROM "v"').table.num_rows == 0
        store.ask_with(Instead())
        store.commit(batch(0, {"a": [{"id": 1, "ts": NOON}]}))
        assert store.read('SELECT * FROM "v"').table.num_rows == 1


def test_somebody_must_be_there_to_ask() -> None:
    with ViewStore.open(None, threads=1) as store:
        store.create_view(spec())
        with pytest.raises(InternalError, match="nobody to compute"):
            store.commit(batch(0, {"a": [{"id": 1, "ts": NOON}]}))


def test_the_definition_comes_back_as_it_was() -> None:
    found = spec()
    assert found.finish is not None
    assert found.finish.asked
    assert spec_from_text(spec_to_text(found)) == found
