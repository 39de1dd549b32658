"""Hints: what one reading of a stream says of itself, how long state is kept, and what is not needed (C11, L8)."""

from __future__ import annotations

from penstock.catalog.model import SourceDefinition
from penstock.options import with_options_of_reading
from penstock.plan.job_plan import plan_job
from penstock.sql.redact import Source
from penstock.sql.statements import Name
from tests.unit.plan.analysis import last, planned

EVENTS = """CREATE STREAM events (id INT, ts TIMESTAMP) WITH (connector = 'kafka', topic = 'e', brokers = 'b:9092',
    format = 'json', scan.startup.mode = 'timestamp', scan.startup.timestamp-millis = 1000, group_id = 'all');
"""


def reading(hint: str) -> dict[str, object]:
    """The options with which a job reads the stream, those that say where it begins."""
    report = last(f"{EVENTS} CREATE MATERIALIZED VIEW v AS SELECT id FROM events /*+ OPTIONS({hint}) */ AS e")
    assert report.error is None, report.error
    assert report.plan is not None
    assert report.session is not None
    (scan,) = plan_job(report.plan).scans
    definition = report.session.catalog.find(Name("events"))
    assert isinstance(definition, SourceDefinition)
    values = with_options_of_reading(definition.options, scan.reading).values
    assert definition.options.values["start"] == "timestamp"  # others read it as it says
    shown = ("start", "start_timestamp", "start_offsets", "group_id", "topic")
    return {key: values[key] for key in shown if key in values}


def test_where_a_reading_begins_is_what_its_hint_says() -> None:
    rest = {"group_id": "all", "topic": ("e",)}
    assert reading("'scan.startup.mode' = 'earliest-offset'") == {"start": "earliest", **rest}
    assert reading("'scan.startup.specific-offsets' = 'partition:0,offset:42'") == {
        "start": "offsets",
        "start_offsets": ((0, 42),),
        **rest,
    }


def test_what_a_hint_does_not_say_stays() -> None:
    found = reading("'properties.group.id' = 'mine'")
    assert found["start"] == "timestamp"
    assert found["group_id"] == "mine"
    assert "start_timestamp" in found


def test_a_hint_inside_of_a_view_counts_where_the_view_is_read() -> None:
    plan = planned(
        EVENTS + "CREATE VIEW few AS SELECT id FROM events /*+ OPTIONS('start' = 'earliest') */ WHERE id < 9;"
        "SELECT id + 1 AS n FROM few"
    )
    (scan,) = plan_job(plan).scans
    assert [(option.key, option.value.reveal()) for option in scan.reading] == [("start", "earliest")]


def test_readings_with_hints_of_their_own_are_not_shared() -> None:
    """One INSERT of a statement set begins elsewhere: it reads the stream by itself."""
    sinks = "".join(f"CREATE SINK {name} (id INT) WITH (connector = 'blackhole');" for name in ("one", "two"))
    text = "EXECUTE STATEMENT SET BEGIN INSERT INTO one SELECT id FROM events {}; INSERT INTO two SELECT id FROM events; END"
    shared, apart = (last(EVENTS + sinks + text.format(hint)) for hint in ("", "/*+ OPTIONS('start' = 'latest') */"))
    assert shared.analysis is not None
    assert apart.analysis is not None
    assert "insert_one_two" in shared.analysis.session.jobs
    assert apart.analysis.session.jobs == {"insert_one", "insert_two"}


def test_hints_that_are_not_needed_are_told() -> None:
    report = last("SELECT /*+ SHUFFLE_HASH(t), BROADCAST(n) */ t.price FROM trades t JOIN names n ON n.id = t.symbol")
    assert [text.split(" changes")[0] for text in report.notices if "hint" in text] == [
        "the hint SHUFFLE_HASH",
        "the hint BROADCAST",
    ]


def test_hints_are_shown_and_other_comments_are_masked() -> None:
    source: Source = last("SELECT /*+ BROADCAST(n) */ price /* hunter2 */ FROM trades").source
    assert "/*+ BROADCAST(n) */" in source.masked
    assert "hunter2" not in source.masked
