"""StreamingSQLExecutor, the bridge and the names of the texts, as far as they need no running job."""

from __future__ import annotations

import gc
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import PenstockError, StreamingSQLExecutor
from penstock.catalog.model import SourceDefinition
from penstock.connectors.offsets import Offset, ranges_between, spread
from penstock.connectors.reading import reading_of
from penstock.connectors.source import ScanRequest
from penstock.sql.statements import Name

DDL = """
    CREATE TABLE trades (
        symbol STRING,
        price DOUBLE,
        volume INT,
        ts TIMESTAMP,
        WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH (
        'connector' = 'kafka',
        'topic' = 'market-trades',
        'max-parallelism' = '16',
        'batch-size' = '10000',
        'format' = 'json'
    )
"""
QUERY = """
    SELECT
        t.symbol,
        s.NAME as security_name,
        s.SECTOR as sector,
        TUMBLE_START(t.ts, INTERVAL '1' MINUTE) as window_start,
        AVG(t.price) as avg_price,
        SUM(t.volume) as total_volume,
        COUNT(*) as trade_count
    FROM trades t
    LEFT JOIN securities s ON t.symbol = s.instrumentId
    GROUP BY
        t.symbol,
        s.NAME,
        s.SECTOR,
        TUMBLE(t.ts, INTERVAL '1' MINUTE)
    HAVING AVG(t.price) > 100
"""


def options(executor: StreamingSQLExecutor, relation: str) -> dict[str, tuple[str, str]]:
    """The options of a relation: value and where it comes from."""
    rows = executor.database.sql(f"SELECT name, value, source FROM penstock.options WHERE relation = '{relation}'")
    return {name: (value, source) for name, value, source in rows}


def test_the_call_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M1, M4, M7, H7, H8, H10, A1: the constructor, the import and the DDL as they are written there."""
    monkeypatch.chdir(tmp_path)
    with StreamingSQLExecutor(
        state_backend="tonbo",
        timer_backend="rocksdb",
        state_path="./state",
        checkpoint_interval_seconds=60,
        max_parallelism=16,
    ) as executor:
        assert executor.state_path == tmp_path / "state"
        executor.execute_ddl(DDL)
        columns = executor.database.sql(
            "SELECT name, type FROM penstock.columns WHERE relation = 'trades' ORDER BY position"
        ).rows()
        assert columns == [("symbol", "STRING"), ("price", "DOUBLE"), ("volume", "INT"), ("ts", "TIMESTAMP")]
        assert {name: value for name, (value, source) in options(executor, "trades").items() if source == "statement"} == {
            "connector": "kafka", "topic": "market-trades", "max_parallelism": "16", "batch_size": "10000", "format": "json",
        }  # fmt: skip
        monkeypatch.chdir("/")  # a relative path is resolved once
        assert executor.database.path == tmp_path / "state"
        with pytest.raises(PenstockError) as refused:
            StreamingSQLExecutor(state_path=tmp_path / "state")
        assert refused.value.condition == "ENGINE_ALREADY_RUNNING"
    assert StreamingSQLExecutor(state_path=tmp_path / "state").database.path == tmp_path / "state"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"state_backend": "tonbo"},
        {"state_backend": "marbledb"},
        {"checkpoint_interval_seconds": 60},
        {"max_parallelism": 16},
        {"timer_backend": "rocksdb"},
        {"state_backend": "memory", "checkpoint_interval_seconds": timedelta(minutes=1)},
    ],
    ids=str,
)
def test_every_parameter_is_optional(arguments: dict[str, Any]) -> None:
    """M2, M3, M15, DEC4, DEC5, U8, U12: each by itself; the rest has its documented default."""
    executor = StreamingSQLExecutor(**arguments)
    status = executor.status()
    assert status["version"] == penstock.__version__
    assert status["state_backend"] == ("memory" if arguments.get("state_backend") == "memory" else "rocksdb")
    assert status["state_backend_asked"] == arguments.get("state_backend")
    assert (status["timer_backend"], status["checkpoint_interval_seconds"], status["max_parallelism"]) == (
        "rocksdb",
        60,
        16,
    )
    assert {"topic", "impulse"} <= set(status["connectors"])
    assert "json" in status["formats"]
    assert status["jobs"] == {}
    assert status["state_path"] is None, "nothing is opened before it is needed"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"state_backend": "banana"}, "state_backend 'banana' is not known"),
        ({"state_backend": 3}, "state_backend 3 is not known"),
        ({"timer_backend": "tonbo"}, "timer_backend 'tonbo' is not known"),
        (
            {"checkpoint_interval_seconds": -3},
            "checkpoint_interval_seconds must be a number of seconds above zero, not -3",
        ),
        ({"checkpoint_interval_seconds": 0}, "above zero, not 0"),
        ({"checkpoint_interval_seconds": float("nan")}, "above zero, not nan"),
        ({"checkpoint_interval_seconds": "60"}, "above zero, not '60'"),
        ({"checkpoint_interval_seconds": True}, "above zero, not True"),
        ({"max_parallelism": 0}, "max_parallelism must be a positive whole number, not 0"),
        ({"max_parallelism": -3}, "not -3"),
        ({"max_parallelism": 2.5}, "not 2.5"),
        ({"max_parallelism": "many"}, "not 'many'"),
    ],
    ids=str,
)
def test_wrong_values_are_refused(arguments: dict[str, Any], told: str, tmp_path: Path) -> None:
    """M10, H9: a ValueError that names the parameter, before anything is made."""
    with pytest.raises(ValueError, match="INVALID_ARGUMENT") as refused:
        StreamingSQLExecutor(**{"state_path": tmp_path / "state", **arguments})
    assert told in str(refused.value)
    assert isinstance(refused.value, PenstockError)
    assert not (tmp_path / "state").exists()


TABLE = "CREATE TABLE {name} (v INT) WITH (connector = 'topic', topic = '{name}'{option})"


@pytest.mark.parametrize(
    ("executor", "ddl", "wanted"),
    [
        (None, None, ("16", "setting")),
        (12, None, ("12", "setting")),
        (None, "8", ("8", "statement")),
        (16, "8", ("8", "statement")),
        (4, "8", ("8", "statement")),
    ],
)
def test_precedence(executor: int | None, ddl: str | None, wanted: tuple[str, str]) -> None:
    """M11, C8: what the table says goes before the executor, and that before the default."""
    option = "" if ddl is None else f", 'max-parallelism' = '{ddl}'"
    with StreamingSQLExecutor(max_parallelism=executor) as found:
        found.execute_ddl(TABLE.format(name="t", option=option))
        found.execute_ddl(TABLE.format(name="other", option=""))
        assert options(found, "t")["max_parallelism"] == wanted
        assert options(found, "other")["max_parallelism"][0] == str(executor or 16), "A8: the others keep theirs"


@pytest.mark.parametrize(
    ("partitions", "executor", "ddl", "sizes"),
    [
        (16, 16, 8, [2] * 8),  # the numbers of the guide: 16 partitions, 8 readers, 2 each
        (16, 16, None, [1] * 16),
        (4, 16, None, [1] * 4),
        (10, 4, None, [3, 3, 2, 2]),
    ],
)
def test_readers(partitions: int, executor: int, ddl: int | None, sizes: list[int]) -> None:
    """A8, M9, I12, I13, I14, U7: as many readers as partitions or as allowed, balanced, no partition in two of them."""
    option = f", partitions = {partitions}" + ("" if ddl is None else f", 'max-parallelism' = '{ddl}'")
    with StreamingSQLExecutor(max_parallelism=executor) as found:
        found.execute_ddl(TABLE.format(name="t", option=option))
        definition = found.database._engine.session.catalog.get(Name("t"))
        assert isinstance(definition, SourceDefinition)
        assert found.state_path is not None
        request = ScanRequest("t", definition, ("v",), found.state_path, 1, "job")
        waiting = ranges_between(Offset(1, {}), Offset(1, dict.fromkeys(range(partitions), 1000)))
        tasks = spread(waiting, reading_of(request).max_tasks)
    assert sorted((len(task) for task in tasks), reverse=True) == sizes
    assert sorted(one.partition for task in tasks for one in task) == list(range(partitions))


def test_a_directory_that_nobody_named_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M14: at close, and also where it is forgotten; a named one stays."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    executor = StreamingSQLExecutor()
    assert list(tmp_path.iterdir()) == []
    executor.execute_ddl("CREATE STREAM s (v INT)")
    assert list(tmp_path.iterdir()) == [executor.state_path]
    executor.shutdown()
    executor.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PenstockError) as refused:
        executor.execute_ddl("CREATE STREAM s (v INT)")
    assert refused.value.condition == "DATABASE_CLOSED"

    forgotten = StreamingSQLExecutor()
    forgotten.execute_ddl("CREATE STREAM s (v INT)")
    del forgotten
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_two_words_for_broadcast(monkeypatch: pytest.MonkeyPatch) -> None:
    """DEC6, L1, L2: both keywords mean the same, and a contradiction is an error."""
    seen: list[tuple[str, object, bool]] = []

    def register(_: penstock.Database, name: str, data: object, broadcast: bool = True) -> None:
        seen.append((name, data, broadcast))

    monkeypatch.setattr(penstock.Database, "register_dimension", register)
    executor = StreamingSQLExecutor()
    calls: list[Callable[[], None]] = [
        lambda: executor.register_dimension_table("d", [1]),
        lambda: executor.register_dimension_table("d", [1], broadcast=True),
        lambda: executor.register_dimension_table("d", [1], False),
        lambda: executor.register_dimension_table("d", [1], is_raft_replicated=False),
        lambda: executor.register_dimension_table("d", [1], is_raft_replicated=True, broadcast=True),
    ]
    for call in calls:
        call()
    assert [broadcast for _, _, broadcast in seen] == [True, True, False, False, True]
    assert {(name, str(data)) for name, data, _ in seen} == {("d", "[1]")}
    with pytest.raises(ValueError, match="broadcast is True and is_raft_replicated is False"):
        executor.register_dimension_table("d", [1], broadcast=True, is_raft_replicated=False)


def test_operators_say_what_they_cost() -> None:
    """P3, SC12, N2: descriptors with their flags; the output columns are the aliases in their order."""
    with StreamingSQLExecutor() as executor:
        executor.execute_ddl(DDL)
        executor.execute_ddl(
            "CREATE TABLE securities (instrumentId STRING, NAME STRING, SECTOR STRING) WITH (connector = 'file', path = 's.csv')"
        )
        plan = executor.explain(QUERY)
    operators = {found["name"]: found for found in plan["operators"]}
    assert operators["Aggregate"]["is_stateful"]
    assert operators["DimensionJoin"]["is_broadcast"]
    assert not operators["DimensionJoin"]["requires_shuffle"]
    assert [column["name"] for column in plan["columns"]] == [
        "symbol", "security_name", "sector", "window_start", "avg_price", "total_volume", "trade_count",
    ]  # fmt: skip


def test_arrow_under_the_name_of_the_guide() -> None:
    """M7: `cyarrow` is pyarrow."""
    import pyarrow as pa

    from penstock import cyarrow as ca

    assert ca.Table is pa.Table
    assert ca.Table.from_pydict({"a": [1]}) == pa.table({"a": [1]})
    with pytest.raises(AttributeError):
        ca.no_such_name  # noqa: B018


def test_the_bridge_refuses_what_never_ends() -> None:
    """M8, O5: batch SQL over a stream is a clear error, under both names."""
    assert penstock.create_sabot_sql_bridge is penstock.create_penstock_sql_bridge
    with penstock.create_penstock_sql_bridge() as bridge:
        bridge.database.execute("CREATE STREAM s (v INT)")
        with pytest.raises(PenstockError) as refused:
            bridge.execute_sql("SELECT v FROM s")
        assert refused.value.condition == "UNBOUNDED_QUERY"
        table = bridge.execute_sql("SELECT name FROM penstock.columns WHERE relation = 's'")
        assert table.to_pydict() == {"name": ["v"]}
