"""Passwords inside addresses are hidden and taken out; what only looks like a reference is refused."""

from __future__ import annotations

import pytest

from penstock.catalog.define import define_source
from penstock.errors import OptionError
from penstock.options import resolve_setting
from penstock.plan.script import analyze_script
from penstock.secrets import MASK, Secret
from penstock.sql.script import parse_statement
from penstock.sql.statements import CreateRelation, OptionValue
from tests.unit.options.written import refusal, resolve

CANARY = "canary-51f0"
ADDRESSES = [
    ("connector = 'file', format = 'json'", "path", f"s3a://AKIA:{CANARY}@bucket/x"),
    ("connector = 'delta'", "path", f"s3a://AKIA:{CANARY}@bucket/x"),
    ("connector = 'delta'", "path", f"s3a://{CANARY}@bucket/x"),
    ("connector = 'file'", "path", f"abfss://c.example/x?sv=1&sig={CANARY}"),
    ("connector = 'kafka', topic = 't'", "bootstrap_servers", f"SASL://u:{CANARY}@b:9092"),
    ("connector = 'kafka', topic = 't'", "bootstrap_servers", f"a:9092,u:{CANARY}@b:9092"),
    ("connector = 'kafka'", "topic", f"u:{CANARY}@t,other"),
    ("connector = 'kafka', topic = 't', format = 'avro'", "schema_registry.url", f"https://u:{CANARY}@r/"),
    ("connector = 'kafka', topic = 't', format = 'avro'", "schema_location", f"https://r/?token={CANARY}"),
    ("connector = 'kafka', topic = 't'", "kafka.client.id", f"https://r/?token={CANARY}"),
]


@pytest.mark.parametrize(("others", "key", "address"), ADDRESSES)
def test_an_address_with_a_password_is_hidden_and_stored_by_reference(others: str, key: str, address: str) -> None:
    text = f"CREATE STREAM s (a INT) WITH ({others}, {key} = '{address}')"
    (report,) = analyze_script(text)
    assert report.error is None
    assert CANARY not in f"{report!r}{report.canonical}{report.source.masked}"
    statement = parse_statement(text)
    assert isinstance(statement, CreateRelation)
    definition = define_source(statement)
    assert CANARY not in f"{definition!r}{definition.text}{definition.options.shown()}"
    assert f'{key} = SECRET "s.{key}"' in definition.text
    assert [(item.name, item.value) for item in definition.secrets] == [(f"s.{key}", Secret(address))]


def test_a_plain_address_is_shown() -> None:
    found = resolve({"connector": "file", "path": "s3a://bucket/dt=1/part-?.json"})
    assert found.shown()["path"] == "s3a://bucket/dt=1/part-?.json"
    found = resolve({"connector": "kafka", "topic": "t", "bootstrap_servers": "a:9092,b:9092"})
    assert found.shown()["bootstrap_servers"] == "a:9092,b:9092"
    assert found.secret_keys == frozenset()


def test_the_name_of_a_job_is_no_address() -> None:
    found = resolve({"connector": "kafka", "topic": "t", "job_name": "etl:orders@home"}, role="sink")
    assert found.values["job_name"] == "etl:orders@home"


def test_a_setting_with_a_password_is_hidden_also_where_an_option_takes_it() -> None:
    script = f"""SET kafka.bootstrap_servers = 'u:{CANARY}@b:9092';
        CREATE STREAM s (a INT) WITH (connector = 'kafka', topic = 't')"""
    reports = analyze_script(script)
    assert [report.error for report in reports] == [None, None]
    assert CANARY not in "".join(f"{report!r}{report.canonical}{report.source.masked}" for report in reports)
    key, typed = resolve_setting("bootstrap_servers", OptionValue("text", Secret(f"u:{CANARY}@b:9092")))
    assert typed == Secret(f"u:{CANARY}@b:9092")
    found = resolve({"connector": "kafka", "topic": "t"}, settings={key: typed})
    assert found.shown()["bootstrap_servers"] == MASK


def test_a_setting_of_the_wrong_kind_does_not_quote_a_password() -> None:
    with pytest.raises(OptionError) as error:
        resolve_setting("parallelism", OptionValue("text", Secret(f"x://u:{CANARY}@h")))
    assert CANARY not in str(error.value)


@pytest.mark.parametrize("key", ["connector", "format", "type", "event_time_field", "parallelism"])
def test_an_address_in_the_wrong_place_is_not_quoted(key: str) -> None:
    text = f"CREATE STREAM s (a INT) WITH (connector = 'topic', {key} = 'postgres://u:{CANARY}@h/d')"
    if key == "connector":
        text = f"CREATE STREAM s (a INT) WITH (connector = 'postgres://u:{CANARY}@h/d')"
    (report,) = analyze_script(text)
    assert report.error is not None
    assert CANARY not in f"{report!r}{report.error}{report.error.detail}{report.source.masked}"


def test_a_plain_unknown_connector_is_quoted() -> None:
    assert refusal({"connector": "kafkaesque"}).message == "unknown connector 'kafkaesque'"
    assert refusal({"connector": f"postgres:{CANARY}"}).message == "unknown connector"


@pytest.mark.parametrize(
    "written",
    [
        "${ENV:PW}",
        "${env:}",
        "${env: PW}",
        "{{}}",
        "{{ a b }}",
        "${pw}",
        "${file:/run/${env:X}}",
        "x${env:PW",
        "${file: }",
    ],
)
@pytest.mark.parametrize("key", ["properties.sasl.password", "group_id", "max_parallelism"])
def test_what_only_looks_like_a_reference_is_refused(written: str, key: str) -> None:
    error = refusal({"connector": "kafka", "topic": "t", key: f"{CANARY}{written}"})
    assert (error.condition, error.span and error.span.column) == ("INVALID_OPTION", 50)
    assert key in error.message
    assert "${env:NAME}" in str(error.hint)
    assert CANARY not in f"{error}{error.detail}"


def test_a_setting_refuses_a_malformed_reference() -> None:
    with pytest.raises(OptionError, match="INVALID_SETTING"):
        resolve_setting("kafka.bootstrap_servers", OptionValue("text", Secret("${BROKERS}")))


@pytest.mark.parametrize("written", ["$5 {a}", '{"a": {"b": 1}}', "$${env:X}{", "a}}"])
def test_other_dollars_and_braces_are_ordinary(written: str) -> None:
    assert resolve({"connector": "kafka", "topic": "t", "group_id": written}).given >= {"group_id"}
