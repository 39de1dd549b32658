"""Functions of the user: over Arrow arrays and over values, aggregates, from modules, after a restart, and failing."""

from __future__ import annotations

import asyncio
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock
from penstock import JobFailed, PenstockError
from tests.engine.answers import at, in_order, job, ms, read, until
from tests.engine.shared_functions import Span, plus_one, shout

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

STREAM = "CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts)"
TUMBLE = "TUMBLE(ts, INTERVAL '10' SECOND)"


def put(db: penstock.Database, *rows: tuple[str | None, int | None, float]) -> None:
    db.append("s", [{"k": k, "v": v, "ts": ms(second)} for k, v, second in rows])


def spread(values: pa.Array) -> int | None:
    found = pc.min_max(values).as_py()
    return None if found["min"] is None else found["max"] - found["min"]


def weighted(values: list[int], weights: list[int]) -> float:
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def test_functions_everywhere(db: penstock.Database) -> None:
    """Q1, Q4, Q7: in jobs, in windows, in keys and filters, in db.stream, select_once and batch; one name, one answer."""
    db.execute(STREAM)
    offset = 100  # a closure: sent as it is

    def shifted(values: pa.Array) -> pa.Array:
        return pc.add(values, offset)

    db.register_function("shifted", shifted, ["BIGINT"], "BIGINT")
    db.register_function("bucket", lambda v: "none" if v is None else "big" if v > 2 else "small", ["BIGINT"], str)
    db.register_function("spread", spread, [pa.int64()], "BIGINT", aggregate=True)
    db.register_function("weighted", weighted, aggregate=True)
    db.register_function("span", Span, ["BIGINT"], aggregate=True)
    db.register_function("rounded", lambda v: v.round(1), ["DOUBLE"], float, takes="pandas")
    assert in_order(db.sql("SHOW FUNCTIONS").rows())[4] == ("spread", "BIGINT", "BIGINT", "python", "aggregate")
    db.execute(f"""
        CREATE MATERIALIZED VIEW plain AS
            SELECT k, shifted(v) AS far, bucket(v) AS b FROM s WHERE bucket(v) <> 'none';
        CREATE MATERIALIZED VIEW keyed AS
            SELECT bucket(v) AS b, COUNT(*) AS n, SUM(shifted(v)) AS total, span(v) AS sp FROM s GROUP BY bucket(v);
        CREATE MATERIALIZED VIEW windowed AS
            SELECT TUMBLE_START({TUMBLE[7:]} AS start, COUNT(*) AS n, spread(v) AS sp, rounded(AVG(v)) AS mean,
                   spread(v) FILTER (WHERE v < 5) AS low, weighted(v, v + 1) AS w, span(v) AS whole
            FROM s WHERE v IS NOT NULL GROUP BY {TUMBLE} HAVING spread(v) >= 0;
        CREATE MATERIALIZED VIEW running AS SELECT k, spread(v) AS sp FROM s GROUP BY k;
    """)
    put(db, ("a", 1, 1), ("a", 4, 2), ("b", 9, 3), (None, None, 4), ("b", 5, 12))
    db.settle()
    put(db, ("a", 7, 25))
    db.settle()
    assert read(db, "plain") == in_order(
        [("a", 101, "small"), ("a", 104, "big"), ("b", 109, "big"), ("b", 105, "big"), ("a", 107, "big")]
    )
    assert read(db, "keyed") == [("big", 4, 425, 5), ("none", 1, None, None), ("small", 1, 101, 0)]
    assert "merge" in str(db.sql("EXPLAIN SELECT k, span(v) AS sp FROM s GROUP BY k").rows())
    assert not (db.path / "jobs" / "keyed" / "checkpoint" / "state").exists(), (
        "no value is kept of an aggregate in parts"
    )
    assert read(db, "windowed") == [(at(0), 3, 8, 4.7, 3, 112 / 17, 8), (at(10), 1, 0, 5.0, None, 5.0, 0)]
    assert read(db, "running") == [(None, None), ("a", 6), ("b", 4)]

    # over views, where Spark answers because of the function, and over streams
    assert db.sql("SELECT shifted(n) AS m FROM keyed WHERE bucket(n) = 'big'").rows() == [(104,)]
    assert db.sql("SELECT spread(far) AS s, COUNT(*) AS n FROM plain").rows() == [(8, 5)]
    once = f"SELECT TUMBLE_START({TUMBLE[7:]} AS start, spread(v) AS sp FROM s GROUP BY {TUMBLE}"
    assert in_order(db.select_once(once).rows()) == [(at(0), 8), (at(10), 0), (at(20), 0)]

    async def first() -> list[dict[str, object]]:
        async for batch in db.stream("SELECT shifted(v) AS f FROM s WHERE v = 9"):
            return batch.to_pylist()  # type: ignore[no-any-return]
        return []

    assert asyncio.run(first()) == [{"f": 109}]
    assert "ArrowEvalPython" in str(db.sql("EXPLAIN PHYSICAL SELECT shifted(v) FROM s").rows())

    # in computed columns and inserts; what depends on a function keeps it
    db.register_function("opposite", pc.negate, ["BIGINT"], "BIGINT", takes="arrow")
    db.execute("CREATE STREAM c (v BIGINT, w AS shifted(v), z AS v * 2 + 1); CREATE STREAM d (v BIGINT)")
    db.execute("INSERT INTO d SELECT opposite(w) FROM c")
    db.append("c", [{"v": 1}])
    db.settle()
    assert db.select_once("SELECT * FROM d").rows() == [(-101,)]
    assert db.select_once("SELECT * FROM c").rows() == [(1, 101, 3)]
    for name, told in (("shifted", "stream c"), ("opposite", "job insert_d calls it")):
        with pytest.raises(PenstockError, match=told) as refused:
            db.execute(f"DROP FUNCTION {name}")
        assert refused.value.condition == "DEPENDENT_OBJECTS"
    db.execute("DROP FUNCTION opposite CASCADE")
    assert "insert_d" not in {found.name for found in db.jobs()}
    db.execute("DROP FUNCTION rounded CASCADE")
    assert {name for name, *_ in db.sql("SHOW FUNCTIONS").rows()} == {"shifted", "bucket", "spread", "weighted", "span"}
    assert "windowed" not in {found.name for found in db.jobs()}


def test_failing_rows(db: penstock.Database) -> None:
    """Q6: the error names the function, in a job, a query and a loop; or the row has NULL, and no other."""
    db.execute(STREAM)

    def picky(values: pa.Array) -> pa.Array:
        if 3 in values.to_pylist():
            raise ValueError("three is\nnot wanted")
        return values

    def inverse(value: int) -> float:
        return 1 / value

    db.register_function("picky", picky, ["BIGINT"], "BIGINT")
    db.register_function("lenient", picky, ["BIGINT"], "BIGINT", on_error="null")
    db.register_function("inverse", inverse, on_error="null")
    db.register_function("short", lambda values: values[:1], ["BIGINT"], "BIGINT", takes="arrow")
    db.register_function("wrong", lambda value: f"{value} apples", ["BIGINT"], "BIGINT")
    db.execute("CREATE MATERIALIZED VIEW strict AS SELECT picky(v) AS v FROM s")
    db.execute("CREATE MATERIALIZED VIEW soft AS SELECT v, lenient(v) AS l, inverse(v) AS i FROM s")
    put(db, ("a", 1, 1), ("a", 2, 1))
    db.settle()
    put(db, ("a", 0, 1), ("a", 3, 1), ("a", 4, 1))
    with pytest.raises(JobFailed) as failed:
        db.settle()
    assert "[FUNCTION_FAILED] function picky failed: ValueError: three is not wanted" in failed.value.message
    assert (job(db, "strict").state, read(db, "strict")) == ("failed", [(1,), (2,)])
    until(lambda: len(read(db, "soft")) == 5)
    assert read(db, "soft") == [(0, 0, None), (1, 1, 1.0), (2, 2, 0.5), (3, None, 1 / 3), (4, 4, 0.25)]
    for name, told in (
        ("picky", "three is not wanted"),
        ("short", "it returned 1 values for"),
        ("wrong", "function wrong"),
    ):
        with pytest.raises(PenstockError) as refused:
            db.sql(f"SELECT {name}(v) FROM soft ORDER BY v")
        assert refused.value.condition == "FUNCTION_FAILED"
        assert told in refused.value.message, refused.value.message
    # mended, the job goes on where it stopped
    db.register_function("picky", plus_one, ["BIGINT"], "BIGINT")
    db.execute("RESUME JOB strict")
    db.settle()
    assert read(db, "strict") == [(1,), (1,), (2,), (4,), (5,)]


def leaves(v: int) -> int:
    import os

    return v if v < 5 else os._exit(3)


def crashes(v: int) -> int:
    """As a native library would: by an address that nobody has, so that the system ends the process."""
    import ctypes

    return v if v < 5 else len(ctypes.string_at(0))


@pytest.mark.parametrize("fatal", [leaves, crashes])
def test_a_function_that_ends_its_process(db: penstock.Database, fatal: Callable[[int], int]) -> None:
    """The worker is gone without a word: the job tries some times, fails soon, and names the function."""
    import time

    db.execute(STREAM)
    db.register_function("leave", fatal, ["BIGINT"], "BIGINT")
    db.register_function("same", lambda v: v, ["BIGINT"], "BIGINT")
    put(db, ("a", 1, 1))
    db.execute("CREATE MATERIALIZED VIEW left_alone AS SELECT leave(v) AS v FROM s")
    db.settle()
    began = time.monotonic()
    put(db, ("a", 9, 2))
    until(lambda: job(db, "left_alone").state == "failed", 180)
    assert (job(db, "left_alone").error or "").startswith(
        "[FUNCTION_FAILED] job left_alone: a Python worker ended while "
    )
    assert (job(db, "left_alone").error or "").endswith(" it ran function leave")
    assert read(db, "left_alone") == [(1,)]
    with pytest.raises(PenstockError, match="one of the functions leave, same"):
        db.execute("CREATE MATERIALIZED VIEW both AS SELECT leave(v) AS v, same(v) AS w FROM s")
    assert time.monotonic() - began < 300, "a job that tried for ever would take longer on any machine"
    db.register_table("t", [{"v": 7}])
    with pytest.raises(PenstockError) as raised:
        db.sql("SELECT leave(v) FROM t")
    assert raised.value.condition == "FUNCTION_FAILED"
    assert raised.value.message == "the query: a Python worker ended while it ran function leave"
    db.register_function("leave", lambda v: v, ["BIGINT"], "BIGINT")
    db.execute("RESUME JOB left_alone")
    db.settle()
    assert read(db, "left_alone") == [(1,), (9,)]


def test_functions_from_modules_and_files_after_the_start(
    db: penstock.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q2: a module, a wheel, a file and a text are loaded while the database runs; what cannot be is told by name."""
    db.execute(STREAM)
    put(db, ("ab", 2, 1))
    db.register_function("started", lambda v: v, ["BIGINT"], int)
    assert db.select_once("SELECT started(v) FROM s").rows() == [(2,)]  # Spark and its workers run from here on

    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "late_module.py").write_text("def twice(v: int) -> int:\n    return 2 * v\n")
    wheel = tmp_path / "pack-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pack/__init__.py", "")
        archive.writestr("pack/texts.py", "def backwards(text: str) -> str:\n    return text[::-1]\n")
    file = tmp_path / "own.py"
    file.write_text("import late_module\n\ndef four(v: int) -> int:\n    return 2 * late_module.twice(v)\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(modules), str(wheel)])
    db.execute(f"""
        CREATE FUNCTION twice(v BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS 'late_module.twice';
        CREATE FUNCTION backwards(t STRING) LANGUAGE python AS 'pack.texts:backwards';
        CREATE FUNCTION four(v BIGINT) RETURNS BIGINT AS '{file}:four';
        CREATE FUNCTION tenfold(v BIGINT) RETURNS BIGINT WITH (on_error = 'null') AS $$
        def tenfold(v):
            return 10 * v
        $$;
        CREATE MATERIALIZED VIEW made AS
            SELECT twice(v) AS a, backwards(k) AS b, four(v) AS c, tenfold(v) AS d, twice(twice(v)) AS e FROM s;
    """)
    db.settle()
    assert read(db, "made") == [(4, "ba", 8, 20, 8)]
    for text, told in (
        ("'nowhere.at_all'", "function f cannot be loaded from module nowhere: ModuleNotFoundError"),
        ("'late_module.thrice'", "AttributeError"),
        (f"'{tmp_path / 'gone.py'}:f'", "function f cannot be loaded: gone.py: No such file"),
        ("$$\nimport nowhere\ndef f(v):\n    return v\n$$", "function f cannot be loaded"),
    ):
        with pytest.raises(PenstockError) as refused:
            db.execute(f"CREATE FUNCTION f(v BIGINT) RETURNS BIGINT AS {text}")
        assert refused.value.condition == "FUNCTION_MISSING"
        assert told in refused.value.message, refused.value.message
    with pytest.raises(PenstockError, match="does not say what it returns"):
        db.register_function("f", lambda v: v)
    with pytest.raises(PenstockError, match="function f is no aggregate in parts"):
        db.execute("CREATE AGGREGATE f(v BIGINT) RETURNS BIGINT WITH (merge = true) AS 'late_module.twice'")


def test_after_a_restart(opened: Callable[..., penstock.Database]) -> None:
    """Q2, Q4: a function that can be imported is there again; jobs of one that cannot wait, say so, and go on."""
    db = opened()
    db.execute(STREAM)
    db.register_function("shout", shout)
    db.register_function("own", lambda v: v + 1, ["BIGINT"], int)
    db.register_function("span", Span, ["BIGINT"], aggregate=True)
    db.execute("CREATE MATERIALIZED VIEW kept AS SELECT shout(k) AS k, span(v) AS sp FROM s GROUP BY shout(k)")
    db.execute("CREATE MATERIALIZED VIEW waits AS SELECT own(v) AS v FROM s")
    db.execute("CREATE STREAM c (v BIGINT, w AS own(v)); CREATE MATERIALIZED VIEW computed AS SELECT w FROM c")
    db.append("c", [{"v": 10}])
    put(db, ("a", 1, 1))
    db.settle()
    db.close()
    for attempt in range(2):  # also when nobody registered it the last time
        db = opened()
        put(db, ("b", 2 + attempt, 2))
        with pytest.raises(JobFailed, match=r"FUNCTION_MISSING.*own.*register"):
            db.settle()
        assert job(db, "waits").state == "failed"
        if attempt == 0:
            db.close()
    db.register_function("own", lambda v: v + 1, ["BIGINT"], int)
    db.settle()
    assert read(db, "kept") == [("A!", 0), ("B!", 1)]
    assert read(db, "waits") == [(2,), (3,), (4,)]
    assert read(db, "computed") == [(11,)]
