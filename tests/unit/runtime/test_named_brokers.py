"""What Spark says of brokers and topics, with the addresses and names that it leaves out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock.plan.script import analyze_script
from penstock.runtime.failures import as_failure
from penstock.runtime.job_statements import make_insert_spec
from penstock.runtime.run import Run
from penstock.sql.statements import Insert

RELATIONS = """
    CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = 't', bootstrap_servers = 'in:9092');
    CREATE SINK out (n BIGINT) WITH (connector = 'kafka', topic = 'o', bootstrap_servers = 'out-1:9092,out-2:9092');
    CREATE SINK nowhere (n BIGINT) WITH (connector = 'blackhole');
"""
ERRORS = "org.apache.kafka.common.errors"


def told(statement: str, said: str) -> str:
    *_, report = analyze_script(RELATIONS + statement)
    assert isinstance(report.statement, Insert)
    assert report.plan is not None
    assert report.analysis is not None
    spec = make_insert_spec(report.statement, report.plan, report.analysis.session)
    run: Any = SimpleNamespace(
        spec=spec,
        _scans=[SimpleNamespace(definition=source) for source in spec.sources],
        callback=SimpleNamespace(closing=SimpleNamespace(is_set=lambda: False)),
        _raised=lambda: RuntimeError(f"[STREAM_FAILED] x\nCaused by: {ERRORS}.{said}\n at x"),
    )
    run._addressed = lambda found: Run._addressed(run, found)
    failure = Run.failure.fget(run)  # type: ignore[attr-defined]
    assert failure.condition == as_failure("j", run._raised()).condition
    return str(failure.message)


def test_each_error_names_the_brokers_it_is_about() -> None:
    insert = "INSERT INTO out SELECT n FROM s"
    read = told(insert, "TimeoutException: Timed out waiting for a node assignment. Call: describeTopics")
    assert "no broker of Kafka answers at in:9092 (" in read
    written = told(insert, "TimeoutException: Expiring 3 record(s) for o-0:120000 ms has passed since batch creation")
    assert "no broker of Kafka answers at out-1:9092,out-2:9092 (" in written
    large = told(insert, "RecordTooLargeException: The message is 1100088 bytes when serialized")
    assert "a record is too large for topic o (" in large


def test_a_sink_without_brokers_names_none() -> None:
    written = told("INSERT INTO nowhere SELECT n FROM s", "TimeoutException: Topic o not present in metadata")
    assert "no broker of Kafka answers (" in written
