"""A topic that is read in another form than it is written in: told, refused, or read as what the changes make (SC40)."""

from __future__ import annotations

import pytest

from penstock.plan.script import analyze_script

ORDERS = "CREATE STREAM o (k BIGINT, v BIGINT) WITH (connector = 'topic');"
KAFKA = "connector = 'kafka', bootstrap_servers = 'h:1', topic = 't', format = 'json'"
COUNTS = "AS SELECT k, COUNT(*) AS n FROM o GROUP BY k"


def _notices(script: str) -> str:
    report = analyze_script(ORDERS + script)[-1]
    assert report.error is None, report.error
    return " ".join(report.notices)


@pytest.mark.parametrize(
    ("written", "read", "told"),
    [
        ("connector = 'topic', topic = 't', changes = 'upsert'", "connector = 'topic', topic = 't'", "a PRIMARY KEY"),
        ("connector = 'topic', changes = 'retract'", "connector = 'topic', topic = 'out'", "changes = 'retract'"),
        (f"{KAFKA}, changes = 'retract'", KAFKA, "changes = 'retract'"),
        (f"{KAFKA.replace('json', 'debezium-json')}", KAFKA, "format = 'debezium-json'"),
    ],
)
def test_changes_that_are_read_as_rows_are_told(written: str, read: str, told: str) -> None:
    sink = f"CREATE SINK out WITH ({written}) {COUNTS};"
    source = f"CREATE STREAM back (k BIGINT, n BIGINT) WITH ({read});"
    for script in (sink + source, source + sink):
        found = _notices(script)
        assert '"back" reads as rows what sink "out" writes as changes' in found
        assert told in found


@pytest.mark.parametrize(
    "source",
    [
        "CREATE STREAM back (k BIGINT, n BIGINT) WITH (connector = 'topic', topic = 'other');",
        "CREATE STREAM back (k BIGINT, n BIGINT) WITH (connector = 'topic', topic = 't', changes = 'retract');",
        "CREATE STREAM back (k BIGINT, n BIGINT, _op STRING) WITH (connector = 'topic', topic = 't', format = 'json');",
        "CREATE STREAM back (k BIGINT, h MAP<STRING, BINARY> METADATA FROM 'headers') WITH (connector = 'topic', topic = 't');",
        f"CREATE STREAM back (k BIGINT, n BIGINT) WITH ({KAFKA});",
    ],
)
def test_others_are_not(source: str) -> None:
    sink = f"CREATE SINK out WITH (connector = 'topic', topic = 't', changes = 'retract') {COUNTS};"
    assert "reads as rows" not in _notices(sink + source)


@pytest.mark.parametrize("format_name", ["csv", "raw", "avro"])
def test_rows_that_nothing_takes_back_are_refused(format_name: str) -> None:
    columns = "(k STRING)"
    source = f"CREATE STREAM back {columns} WITH ({KAFKA.replace('json', format_name)}, changes = 'retract');"
    error = analyze_script(source)[-1].error
    assert error is not None
    assert error.condition == "INVALID_DEFINITION"
    assert f"nothing in {format_name} says which" in error.message
    assert error.hint is not None
    assert "debezium-json" in error.hint
