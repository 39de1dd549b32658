"""SHOW, DESCRIBE, EXPLAIN and the system tables that the catalog fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import PenstockError
from penstock.interfaces.catalog_answers import (
    catalog_answer,
    columns_table,
    options_table,
    plan_table,
    relations_table,
    text_answer,
)
from penstock.plan.script import StatementReport, analyze_script

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.session import Session

CANARY = "canary-4711"
SETUP = f"""
CREATE STREAM trades (
  symbol STRING NOT NULL, price DECIMAL(12, 4), ts TIMESTAMP, loud AS UPPER(symbol),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (connector = 'topic', partitions = 4);
CREATE STREAM bare (a INT, ts TIMESTAMP);
CREATE STREAM named (a INT, ts TIMESTAMP) WITH (connector = 'topic', event_time_field = 'ts');
CREATE STREAM guarded (a INT) WITH (
  connector = 'kafka', topic = 'g', format = 'json', properties.sasl.password = '{CANARY}'
);
CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id)) WITH (connector = 'topic');
CREATE SECRET kept AS '{CANARY}';
CREATE SECRET elsewhere AS '${{env:TOKEN}}';
SET idle_timeout = '5 s';
CREATE MATERIALIZED VIEW totals WITH (late = 'drop') AS SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;
CREATE VIEW loud AS SELECT loud, ts FROM trades;
CREATE SINK nowhere WITH (connector = 'blackhole') AS SELECT symbol FROM trades;
"""


def report(statement: str) -> StatementReport:
    found = analyze_script(SETUP + statement)
    assert [item.error for item in found] == [None] * len(found)
    return found[-1]


def session() -> Session:
    found = report("SHOW STREAMS").session
    assert found is not None
    return found


def answer(statement: str) -> pa.Table:
    found = catalog_answer(report(statement))
    assert found is not None
    return found


def rows(statement: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer(statement).to_pylist()
    return found


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("STREAMS", ["trades", "bare", "named", "guarded"]),
        ("TABLES", ["people"]),
        ("SOURCES", []),
        ("VIEWS", ["loud"]),
        ("MATERIALIZED VIEWS", ["totals"]),
        ("SINKS", ["nowhere"]),
        ("FUNCTIONS", []),
        ("SECRETS", ["kept", "elsewhere"]),
    ],
)
def test_show_lists_the_objects_of_a_kind(kind: str, names: list[str]) -> None:
    found = answer(f"SHOW {kind}")
    assert found.column_names[0] == "name"
    assert found.column("name").to_pylist() == names


def test_show_tells_how_far_the_watermark_stays_behind() -> None:
    told = {row["name"]: row["event_time"] for row in rows("SHOW STREAMS")}
    assert told["trades"] == "ts, 5 seconds behind"
    assert told["named"] == "ts, 5 seconds behind (default)"
    assert told["bare"] is None


def test_show_settings_tells_what_was_set() -> None:
    told = {row["name"]: (row["value"], row["source"]) for row in rows("SHOW SETTINGS")}
    assert told["idle_timeout"] == ("5 seconds", "set")
    assert told["late"] == ("keep", "default")


def test_describe_has_a_row_for_each_column() -> None:
    described = {row["name"]: row for row in rows("DESCRIBE trades")}
    assert list(described) == ["symbol", "price", "ts", "loud"]
    assert (described["symbol"]["type"], described["symbol"]["nullable"]) == ("STRING", "no")
    assert described["ts"]["event_time"] == "5 seconds behind"
    assert described["loud"]["from"] == "computed UPPER(symbol)"
    assert [row["key"] for row in rows("DESCRIBE people")] == ["yes", None]
    assert [row["key"] for row in rows("DESCRIBE totals")] == ["yes", None]


def test_describe_shows_the_default_delay_where_no_time_is_declared() -> None:
    """A3."""
    (_, ts) = rows("DESCRIBE bare")
    assert ts["event_time"] == "5 seconds behind (default), where a window is over it"
    changed = analyze_script(SETUP + "SET default_watermark_delay = '2 s'; DESCRIBE bare")[-1]
    found = catalog_answer(changed)
    assert found is not None
    assert found.column("event_time")[1].as_py().startswith("2 seconds behind")


def test_describe_extended_shows_options_masked() -> None:
    found = rows("DESCRIBE EXTENDED guarded")
    assert {row["section"] for row in found} == {"column", "property", "option"}
    assert CANARY not in str(found)
    assert any(row["name"] == "topic" and (row["value"], row["note"]) == ("g", "statement") for row in found)


def test_describe_knows_system_tables() -> None:
    assert rows("DESCRIBE penstock.jobs")[0]["name"] == "name"


def test_show_create_makes_the_object_again_and_shows_no_secret() -> None:
    text = rows("SHOW CREATE STREAM trades")[0]["sql"]
    assert text.startswith("CREATE STREAM trades (")
    assert text_answer(report("SHOW CREATE trades").statement, answer("SHOW CREATE trades")) == text  # type: ignore[arg-type]
    assert [item.error for item in analyze_script(text)] == [None]
    for name in ("guarded", "SECRET kept"):
        assert CANARY not in str(rows(f"SHOW CREATE {name}"))


def test_show_create_of_another_kind_is_refused() -> None:
    with pytest.raises(PenstockError) as raised:
        answer("SHOW CREATE VIEW trades")
    assert raised.value.condition == "WRONG_OBJECT_KIND"


def test_explain_is_lines_for_people_and_one_text_for_programs() -> None:
    plan = rows("EXPLAIN SELECT symbol FROM trades")
    assert plan[0]["plan"] == "Result"
    assert len(plan) > 5
    (whole,) = rows("EXPLAIN (FORMAT JSON) SELECT symbol FROM trades")
    assert whole["plan"].startswith("{\n")
    assert rows("SHOW REWRITE SELECT symbol FROM trades")[0]["plan"] == "-- canonical"


def test_what_only_the_engine_knows_is_not_answered_here() -> None:
    assert catalog_answer(report("SHOW JOBS")) is None
    assert catalog_answer(report("SELECT 1")) is None


def test_a_table_that_is_a_text_is_told_from_one_to_be_read() -> None:
    explained = report("EXPLAIN WATERMARK FOR totals")
    assert explained.statement is not None
    assert text_answer(explained.statement, plan_table("a\nb")) == "a\nb"
    shown = report("SHOW STREAMS")
    assert shown.statement is not None
    assert text_answer(shown.statement, answer("SHOW STREAMS")) is None


def test_the_columns_table() -> None:
    """H: penstock.columns is relation, position, name, type, nullable, event_time."""
    found = columns_table(session())
    assert found.column_names == ["relation", "position", "name", "type", "nullable", "event_time"]
    first, _, ts, *_ = found.to_pylist()
    assert first == {
        "relation": "trades",
        "position": 1,
        "name": "symbol",
        "type": "STRING",
        "nullable": False,
        "event_time": False,
    }
    assert ts["event_time"] is True


def test_the_options_table() -> None:
    """H: penstock.options is relation, name, value with secrets masked, and where the value is from."""
    found = options_table(session())
    assert found.column_names == ["relation", "name", "value", "source"]
    told = {(row["relation"], row["name"]): (row["value"], row["source"]) for row in found.to_pylist()}
    assert told["trades", "partitions"] == ("4", "statement")
    assert told["bare", "connector"] == ("topic", "default")
    assert told["trades", "idle_timeout"][1] == "setting"
    assert told["totals", "late"] == ("drop", "statement")
    assert CANARY not in str(found.to_pylist())


def test_a_prompt_lists_every_relation() -> None:
    kinds = {row["name"]: row["kind"] for row in relations_table(session()).to_pylist()}
    assert (kinds["trades"], kinds["totals"], kinds["nowhere"]) == ("stream", "materialized view", "sink")
