"""Relations over topics as ksqlDB and Feldera write them: positions, and what of them may be shown."""

from __future__ import annotations

import pytest

from penstock.errors import Span
from penstock.plan.script import analyze_script
from penstock.sql.dialects.json_places import read_json
from penstock.sql.script import parse_script
from penstock.sql.statements import CreateMaterializedView, CreateRelation, CreateSink, CreateView, Option, Statement

LATEST = '"transport": {"name": "kafka_input", "config": {"topic": "t", "auto.offset.reset": "latest"}}'
KAFKA = '"transport": {"name": "kafka_input", "config": {"topic": "t"}}'


def parsed(text: str) -> Statement:
    found = parse_script(text)[0]
    assert found.statement is not None, found.error
    return found.statement


def given(statement: Statement) -> dict[str, str]:
    assert isinstance(statement, CreateRelation | CreateSink)
    return {option.key: option.value.reveal() for option in statement.options}


def feldera(connector: str) -> dict[str, str]:
    return given(parsed(f"CREATE TABLE t (a INT) WITH ('connectors' = '[{connector}]')"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("VALUE_FORMAT = 'JSON_SR'", {"format": "json", "json.confluent_schema_registry": "true"}),
        ("VALUE_FORMAT = 'avro'", {"format": "avro-confluent"}),
        ("VALUE_FORMAT = 'PROTOBUF'", {"format": "protobuf", "protobuf.confluent_schema_registry": "true"}),
        ("VALUE_FORMAT = 'PROTOBUF_NOSR'", {"format": "protobuf"}),
        ("VALUE_FORMAT = 'DELIMITED', VALUE_DELIMITER = 'SPACE'", {"format": "csv", "csv.delimiter": " "}),
        ("VALUE_FORMAT = 'DELIMITED', VALUE_DELIMITER = ';'", {"format": "csv", "csv.delimiter": ";"}),
        ("VALUE_FORMAT = 'KAFKA'", {"format": "raw"}),
        ("FORMAT = 'JSON'", {"format": "json"}),
        ("KEY_FORMAT = 'JSON', VALUE_FORMAT = 'JSON'", {"format": "json"}),  # of a key without columns nothing is read
        ("VALUE_FORMAT = 'JSON', start = 'earliest'", {"format": "json", "start": "earliest"}),
    ],
)
def test_formats_of_ksqldb(written: str, expected: dict[str, str]) -> None:
    found = given(parsed(f"CREATE STREAM s (a STRING) WITH (KAFKA_TOPIC = 't', {written})"))
    assert found == {"connector": "kafka", "topic": "t", "event_time_field": "ROWTIME", **expected}


@pytest.mark.parametrize(
    ("columns", "written", "expected"),
    [
        ("k STRING KEY", "", "raw"),
        ("k BIGINT KEY", "KEY_FORMAT = 'JSON', ", "raw"),  # a number is the same text in both
        ("k STRING KEY, l INT KEY", "KEY_FORMAT = 'JSON', ", "json"),
        ("k STRING KEY, l INT KEY", "KEY_FORMAT = 'AVRO', ", "avro-confluent"),
        ("k STRING KEY", "KEY_FORMAT = 'PROTOBUF', ", "protobuf"),
    ],
)
def test_keys_of_ksqldb(columns: str, written: str, expected: str) -> None:
    text = f"CREATE STREAM s ({columns}, v INT) WITH (KAFKA_TOPIC = 't', {written}VALUE_FORMAT = 'JSON')"
    found = given(parsed(text))
    assert found["key.format"] == expected
    assert found["key.fields"] == ",".join(part.split()[0] for part in columns.split(", "))
    assert found["value.fields_include"] == "EXCEPT_KEY"


def test_a_key_that_is_said_not_to_be_there() -> None:
    text = "CREATE STREAM s (k STRING KEY) WITH (KAFKA_TOPIC = 't', KEY_FORMAT = 'NONE', VALUE_FORMAT = 'JSON')"
    error = parse_script(text)[0].error
    assert error is not None
    assert (error.condition, error.span and error.span.column) == ("CONFLICTING_OPTIONS", 70)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CREATE STREAM s AS SELECT 1 AS a", CreateView),
        ("CREATE TABLE s AS SELECT 1 AS a", CreateMaterializedView),
        ("CREATE STREAM s WITH (KAFKA_TOPIC = 't') AS SELECT 1 AS a", CreateSink),
        ("CREATE TABLE s WITH (kafka_topic = 't') AS SELECT 1 AS a", CreateSink),
    ],
)
def test_what_a_query_of_ksqldb_is(text: str, kind: type[Statement]) -> None:
    assert isinstance(parsed(text), kind)


def test_a_text_with_a_key_beside_it() -> None:
    """The raw format is about the value alone where the key has columns of its own."""
    script = """
        CREATE CONNECTION c TO KAFKA (BROKER 'b:9092', SECURITY PROTOCOL = 'PLAINTEXT');
        CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') KEY FORMAT TEXT VALUE FORMAT TEXT ENVELOPE UPSERT;
        CREATE STREAM r (k STRING KEY, v STRING) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'KAFKA');
        CREATE STREAM q (k STRING KEY, v STRING, w STRING) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'KAFKA');
    """
    *good, bad = analyze_script(script)
    assert [report.error for report in good] == [None, None, None]
    assert bad.error is not None
    assert bad.error.condition == "INVALID_DEFINITION"


def test_pseudo_columns_are_not_part_of_a_star() -> None:
    """In a view they are columns like any other; and a ROWTIME that nobody took from ksqlDB is one, too."""
    script = """
        CREATE STREAM s (a STRING) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON');
        SELECT * FROM s;
        SELECT *, ROWTIME FROM s;
        SELECT * FROM (SELECT a, ROWTIME FROM s) AS q;
        SELECT x.* FROM s AS x;
        CREATE STREAM r (a STRING, ROWTIME TIMESTAMP METADATA FROM 'timestamp' VIRTUAL) WITH (connector = 'kafka', topic = 't');
        SELECT * FROM r;
    """
    plans = [report.plan for report in analyze_script(script) if report.kind == "SELECT"]
    names = [[field.name for field in plan.columns] for plan in plans if plan is not None]
    assert names == [["a"], ["a", "ROWTIME"], ["a", "ROWTIME"], ["a"], ["a", "ROWTIME"]]


def test_the_grace_of_a_join_is_said_to_change_nothing() -> None:
    script = """
        CREATE STREAM a (k STRING KEY) WITH (KAFKA_TOPIC = 'a', VALUE_FORMAT = 'JSON');
        CREATE STREAM b (k STRING KEY) WITH (KAFKA_TOPIC = 'b', VALUE_FORMAT = 'JSON');
        SELECT a.k FROM a JOIN b WITHIN (1 HOUR, 2 HOURS) GRACE PERIOD 5 MINUTES ON a.k = b.k;
    """
    last = analyze_script(script)[-1]
    assert last.error is None
    assert any("GRACE PERIOD" in notice for notice in last.notices)


@pytest.mark.parametrize(
    ("connector", "expected"),
    [
        (f'{{{KAFKA}, "format": {{"name": "csv"}}}}', {"start": "earliest", "format": "csv"}),
        (
            f'{{{LATEST}, "format": {{"name": "raw", "config": {{"mode": "blob"}}}}}}',
            {"start": "latest", "format": "raw"},
        ),
        (
            f'{{{KAFKA}, "format": {{"name": "avro", "config": {{"skip_schema_id": true, "schema": "int"}}}}}}',
            {"start": "earliest", "format": "avro", "avro.schema": "int"},
        ),
        (
            f'{{{KAFKA}, "format": {{"name": "json", "config": {{"update_format": "debezium"}}}}}}',
            {"start": "earliest", "format": "debezium-json"},
        ),
    ],
)
def test_connectors_of_feldera(connector: str, expected: dict[str, str]) -> None:
    assert feldera(connector) == {"connector": "kafka", "topic": "t", **expected}


@pytest.mark.parametrize(
    "connector",
    [
        "[]",
        "3",
        '{"transport": 3, "format": {"name": "csv"}}',
        f'{{{KAFKA}, {KAFKA}, "format": {{"name": "csv"}}}}',
        '{"transport": {"name": "kafka_input", "config": {"topic": {}}}, "format": {"name": "csv"}}',
        '{"transport": {"name": "kafka_input", "config": {"topic": null}}, "format": {"name": "csv"}}',
        '{"transport": {"name": "kafka_input"}, "format": {"name": "csv"}}',
        f"{{{KAFKA}}}",
        f'{{{KAFKA}, "format": {{"name": "parquet"}}}}',
        f'{{{KAFKA}, "format": {{"name": "json", "config": {{"array": true, "update_format": "raw"}}}}}}',
        f'{{{KAFKA}, "format": {{"name": "avro"}}}}',
        f'{{{KAFKA}, "format": {{"name": "raw"}}}}',
        f'{{{KAFKA}, "format": {{"name": "csv"}}, "paused": true}}',
    ],
)
def test_what_of_feldera_is_refused(connector: str) -> None:
    error = parse_script(f"CREATE TABLE t (a INT) WITH ('connectors' = '[{connector}]')")[0].error
    assert error is not None
    assert error.condition in {"DIALECT_NOT_YET", "INVALID_OPTION", "MISSING_OPTION"}
    assert error.hint
    assert error.span is not None


def test_a_password_of_feldera_is_not_shown() -> None:
    """Of the JSON only the values of public options are; also where a quote in it hides where they stand."""
    for name in ("topic", "it''s"):
        text = (
            'CREATE TABLE t (a INT) WITH (\'connectors\' = \'[{"transport": {"name": "kafka_input", "config": '
            f'{{"topic": "{name}", "sasl.password": "hunter2", "unknown.thing": "hunter3"}}}}, "format": {{"name": "csv"}}}}]\')'
        )
        report = analyze_script(text)[0]
        assert report.error is not None
        assert report.error.condition == "UNKNOWN_OPTION"
        shown = f"{report.source.masked} {report.error} {report.canonical}"
        assert "hunter" not in shown
        assert ("topic" in report.source.masked.split("config")[-1]) == (name == "topic")


def test_a_password_behind_an_option_of_ksqldb_is_not_shown() -> None:
    """What follows from a clause has the place of a key or a name, and never that of another value."""
    text = """
        CREATE TABLE s (k STRING PRIMARY KEY, v INT) WITH (
            KAFKA_TOPIC = 'user:hunter2@host', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON', sasl.password = 'hunter3',
            kafka.sasl.password = 'hunter4', TIMESTAMP = 'v'
        )
    """
    report = analyze_script(text)[0]
    assert report.error is not None
    assert "hunter" not in f"{report.source.masked} {report.error}"


def test_a_secret_is_no_format_of_ksqldb() -> None:
    report = analyze_script("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = SECRET json)")[0]
    assert report.error is not None
    assert report.error.condition == "INVALID_OPTION"


def test_places_in_json() -> None:
    source = """x = '{"a": 1,\n "b": ["c"]}'"""
    span = Span(1, 5, len(source) - 4, 4)
    found = read_json(source[5:-1], span, source).members
    assert (found["a"].key_span.column, found["a"].node.span.column) == (7, 12)
    b = found["b"]
    assert (b.key_span.line, b.key_span.column) == (2, 2)
    assert isinstance(b.node.value, list)
    inner = b.node.value[0].span
    assert source[inner.start : inner.end] == '"c"'
    assert (inner.line, inner.column) == (2, 8)


def test_options_point_at_their_own_words() -> None:
    text = "CREATE TABLE t (a INT) WITH (KAFKA_TOPIC = 't', FORMAT = 'JSON')"
    statement = parsed(text)
    assert isinstance(statement, CreateRelation)
    topic: Option = next(option for option in statement.options if option.key == "topic")
    assert text[topic.key_span.start : topic.key_span.end] == "KAFKA_TOPIC"
    assert text[topic.value_span.start : topic.value_span.end] == "'t'"
