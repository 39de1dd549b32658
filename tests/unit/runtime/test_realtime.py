"""Which queries may run in Spark's real-time mode, and what is said of the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.catalog.model import SinkDefinition
from penstock.errors import NotYetError, OptionError
from penstock.plan.script import analyze_script
from penstock.runtime.job_statements import make_insert_spec, make_sink_spec
from penstock.runtime.realtime import batch_length, check_slots, explain_realtime
from penstock.sql.statements import CreateMaterializedView, CreateSink, Insert

RELATIONS = """
    CREATE STREAM s (k STRING, n INT, names ARRAY<STRING>, ts TIMESTAMP, WATERMARK FOR ts)
      WITH (connector = 'kafka', topic = 't');
    CREATE STREAM other (n INT) WITH (connector = 'kafka', topic = 'u');
    CREATE STREAM fails (n INT) WITH (connector = 'kafka', topic = 't', bad_data = 'fail');
    CREATE STREAM ends (n INT) WITH (connector = 'kafka', topic = 't', 'end' = 'latest');
    CREATE STREAM registered (n INT) WITH (
      connector = 'kafka', topic = 't', format = 'avro-confluent', 'schema_registry.url' = 'http://127.0.0.1:1');
    CREATE STREAM limited (n INT) WITH (connector = 'kafka', topic = 't', max_rows_per_batch = 5);
    CREATE STREAM inside (n INT) WITH (connector = 'topic');
    CREATE SINK out (n BIGINT) WITH (connector = 'kafka', topic = 'o');
    CREATE SINK once (n BIGINT) WITH (connector = 'kafka', topic = 'o', delivery = 'exactly_once');
    CREATE SINK dated (n BIGINT, at TIMESTAMP METADATA FROM 'timestamp') WITH (connector = 'kafka', topic = 'o');
    CREATE SINK narrow (n BIGINT) WITH (connector = 'kafka', topic = 'o', 'sink.parallelism' = 1);
    CREATE SINK nowhere (n BIGINT) WITH (connector = 'blackhole');
    CREATE SINK fast (n BIGINT) WITH (connector = 'kafka', topic = 'o', mode = 'realtime');
    CREATE SINK asked WITH (connector = 'kafka', topic = 'o', mode = 'realtime') AS SELECT n FROM s;
"""
WINDOW = "COUNT(*) FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND) GROUP BY window_start"


def told(statement: str) -> str | None:
    """What EXPLAIN says of it; the statement itself is refused for the same reason, or not at all."""
    *_, report = analyze_script(RELATIONS + statement)
    assert report.analysis is not None, report.error
    assert report.plan is not None
    made = report.statement
    line = explain_realtime(made, report.plan, report.analysis.session)
    if isinstance(made, Insert) and line is not None and line.startswith("no: "):
        with pytest.raises(NotYetError) as raised:
            make_insert_spec(made, report.plan, report.analysis.session)
        assert raised.value.message == f"job insert_{made.target} cannot run in real-time mode: {line[4:]}"
    elif isinstance(made, Insert):
        spec = make_insert_spec(made, report.plan, report.analysis.session)
        assert (spec.options.mode == "realtime") == (line is not None)
        assert batch_length(spec).total_seconds() == 300
    elif isinstance(made, CreateSink):
        definition = report.analysis.definition
        assert isinstance(definition, SinkDefinition)
        if line is not None and line.startswith("no: "):
            with pytest.raises(NotYetError, match="cannot run in real-time mode"):
                make_sink_spec(definition, report.plan, report.analysis.session)
        else:
            spec = make_sink_spec(definition, report.plan, report.analysis.session)
            assert (spec.options.mode == "realtime") == (line is not None)
    else:
        assert isinstance(made, CreateMaterializedView)
    return line


@pytest.mark.parametrize(
    ("into", "select", "line"),
    [
        ("out", "n FROM s WHERE n > 1", "yes: each row is written at once, at least once"),
        ("out", "n FROM s CROSS JOIN UNNEST(names) AS t (name)", "yes: "),
        ("out", WINDOW, "no: it keeps state between rows"),
        ("out", "s.n FROM s JOIN other ON s.n = other.n", "no: it reads 2 streams, not one"),
        ("out", "n FROM s UNION ALL SELECT n FROM other", "no: it reads 2 streams, not one"),
        ("out", "n FROM fails", "no: fails has bad_data = 'fail'"),
        ("out", "n FROM ends", "no: ends comes to an end"),
        ("out", "n FROM registered", "no: schemas of registered may come while it runs"),
        ("out", "n FROM inside", "no: inside is over connector 'topic', and Spark reads from Kafka only"),
        ("out", "n FROM limited", "no: max_rows_per_batch limits a batch"),
        ("narrow", "n FROM s", "no: sink narrow has sink.parallelism"),
        ("once", "n FROM s", "no: sink once is exactly once"),
        ("dated", "n, ts FROM s", "no: records of sink dated have a timestamp of their own"),
        ("nowhere", "n FROM s", "no: sink nowhere is over connector 'blackhole', and Spark writes to Kafka only"),
    ],
)
def test_inserts(into: str, select: str, line: str) -> None:
    found = told(f"INSERT INTO {into} WITH (mode = 'realtime') SELECT {select}")
    assert found is not None
    assert found.startswith(line), found


def test_a_view_and_who_does_not_ask() -> None:
    assert told("CREATE MATERIALIZED VIEW v WITH (mode = 'realtime') AS SELECT n FROM s") == (
        "no: its rows go to a view, and Spark writes to topics of Kafka only"
    )
    assert told("CREATE MATERIALIZED VIEW v AS SELECT n FROM s") is None
    assert told("INSERT INTO out SELECT n FROM s") is None


def test_a_sink_that_asks_for_it_asks_for_its_inserts() -> None:
    yes = "yes: each row is written at once, at least once; offsets are kept every 300 seconds"
    assert told("INSERT INTO fast SELECT n FROM s") == yes
    assert told(f"INSERT INTO fast SELECT {WINDOW}") == (
        "no: it keeps state between rows: windows, joins, DISTINCT and aggregates need batches"
    )
    assert told("INSERT INTO fast WITH (mode = 'microbatch') SELECT n FROM s") is None
    assert told("INSERT INTO asked SELECT n FROM s") is None  # what stands there is for its own job


def test_a_sink_with_its_query() -> None:
    made = "CREATE SINK k WITH (connector = 'kafka', topic = 'o', {}) AS SELECT {}"
    assert told(made.format("mode = 'realtime'", "n FROM s")) == (
        "yes: each row is written at once, at least once; offsets are kept every 300 seconds"
    )
    found = told(made.format("mode = 'realtime', delivery = 'exactly_once'", "n FROM s"))
    assert found is not None
    assert found.startswith("no: sink k is exactly once")
    assert told(made.format("mode = 'realtime'", WINDOW)) == (
        "no: it keeps state between rows: windows, joins, DISTINCT and aggregates need batches"
    )
    assert told(made.format("mode = 'realtime', max_rows_per_batch = 5", "n FROM s")) == (
        "no: max_rows_per_batch limits a batch, and rows are written without waiting for one"
    )
    assert told(made.format("partitions = 1", "n FROM s")) is None


def test_more_partitions_than_readers_are_refused() -> None:
    *_, report = analyze_script(
        "CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', max_parallelism = 2);"
        "CREATE SINK k WITH (connector = 'kafka', topic = 'o', mode = 'realtime') AS SELECT n FROM s"
    )
    assert report.analysis is not None, report.error
    assert report.plan is not None
    definition = report.analysis.definition
    assert isinstance(definition, SinkDefinition)
    spec = make_sink_spec(definition, report.plan, report.analysis.session)
    (source,) = spec.sources

    def scans(partitions: int) -> Any:
        return [SimpleNamespace(definition=source, partitions=partitions)]

    check_slots(spec, scans(2), 8)
    with pytest.raises(OptionError, match="each of 3 partitions of s, and max_parallelism is 2"):
        check_slots(spec, scans(3), 8)


def test_options_of_the_job_among_those_of_the_sink() -> None:
    """They were read and checked, and the job did not get them."""
    *_, report = analyze_script(
        RELATIONS + "CREATE SINK k WITH (connector = 'kafka', topic = 'o', parallelism = 3, late = 'drop', "
        "max_rows_per_batch = 7, state_backend = 'memory') AS SELECT n FROM s"
    )
    assert report.analysis is not None, report.error
    definition = report.analysis.definition
    assert isinstance(definition, SinkDefinition)
    assert report.plan is not None
    options = make_sink_spec(definition, report.plan, report.analysis.session).options
    assert (options.parallelism, options.late, options.max_rows_per_batch) == (3, "drop", 7)
    assert (options.state_backend, options.mode) == ("memory", "microbatch")
