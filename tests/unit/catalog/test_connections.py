"""CREATE CONNECTION: what relations take from one, and how the two hang together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.catalog.changes import PutObject
from penstock.catalog.model import ConnectionDefinition, ObjectKey, SourceDefinition
from penstock.errors import PenstockError
from penstock.plan.script import StatementReport, analyze_script
from penstock.plan.session import Session
from penstock.sql.statements import Name
from penstock.stores.catalog_store import CatalogStore
from penstock.stores.load_catalog import load_session

CONNECTION = """
CREATE SECRET p AS '${env:PASSWORD}';
CREATE CONNECTION k WITH (type = 'kafka', bootstrap_servers = 'a:9092', kafka.sasl.password = SECRET p);
"""
SOURCE = "CREATE SOURCE s (id INT) WITH (connector = 'kafka', connection = k, topic = 't', format = 'json');"


def run(script: str) -> tuple[list[StatementReport], Session]:
    reports = analyze_script(script)
    analysis = reports[-1].analysis
    assert analysis is not None, reports[-1].error
    return reports, analysis.session


def source(session: Session) -> SourceDefinition:
    found = session.catalog.find(Name("s"))
    assert isinstance(found, SourceDefinition)
    return found


def refused(script: str) -> PenstockError:
    error = analyze_script(script)[-1].error
    assert error is not None
    return error


def test_a_relation_takes_the_options_of_its_connection() -> None:
    _, session = run(CONNECTION + SOURCE)
    options = source(session).options
    assert options.values["bootstrap_servers"] == "a:9092"
    assert str(options.passthrough["sasl.password"]) == "SECRET p"
    assert source(session).depends_on == (ObjectKey("relation", "k"),)


def test_its_own_options_come_first() -> None:
    own = SOURCE.replace("topic", "properties.bootstrap.servers = 'b:9092', topic")
    _, session = run(CONNECTION + own)
    assert source(session).options.values["bootstrap_servers"] == "b:9092"


def test_the_text_of_a_relation_names_the_connection_and_nothing_of_it() -> None:
    _, session = run(CONNECTION + SOURCE)
    text = source(session).text
    assert "connection = 'k'" in text
    assert "bootstrap" not in text
    assert "SECRET" not in text


def test_the_same_connection_again_changes_nothing() -> None:
    reports, _ = run(CONNECTION + SOURCE + CONNECTION.strip().splitlines()[1])
    assert any("same definition" in notice for notice in reports[-1].notices)


def test_a_connection_is_no_relation() -> None:
    _, session = run(CONNECTION)
    assert session.catalog.find(Name("k")) is None
    assert all(item.name.text != "k" for item in session.catalog.relations())
    error = refused(CONNECTION + "SELECT * FROM k;")
    assert error.condition == "UNKNOWN_RELATION"
    assert "did you mean" not in (error.hint or "")


def test_a_connection_has_a_name_among_relations() -> None:
    assert refused(CONNECTION + "CREATE VIEW k AS SELECT 1 AS a;").condition == "OBJECT_EXISTS"


@pytest.mark.parametrize(
    ("script", "condition"),
    [
        ("DROP CONNECTION k;", "DEPENDENT_OBJECTS"),
        ("DROP SECRET p;", "DEPENDENT_OBJECTS"),
        ("DROP SOURCE k;", "WRONG_OBJECT_KIND"),
        ("DROP CONNECTION s;", "WRONG_OBJECT_KIND"),
        ("CREATE OR REPLACE CONNECTION k WITH (type = 'kafka', bootstrap_servers = 'c:9092');", "DEPENDENT_OBJECTS"),
        ("CREATE CONNECTION k WITH (type = 'kafka', bootstrap_servers = 'c:9092');", "OBJECT_EXISTS"),
        ("CREATE CONNECTION c WITH (type = 'kafka');", "MISSING_OPTION"),
        ("CREATE CONNECTION c WITH (type = 'iceberg', a = 'b');", "CLAUSE_NOT_YET"),
        ("CREATE CONNECTION c WITH (type = 'kafka', bootstrap_servers = 'c:9092', topic = 't');", "UNKNOWN_OPTION"),
        (
            "CREATE CONNECTION c WITH (type = 'kafka', brokers = 'c:9092', kafka.sasl.password = SECRET q);",
            "UNKNOWN_SECRET",
        ),
    ],
)
def test_what_cannot_be(script: str, condition: str) -> None:
    assert refused(CONNECTION + SOURCE + script).condition == condition


def test_a_password_in_a_connection_is_refused_and_not_shown() -> None:
    for text in (
        "CREATE CONNECTION k TO KAFKA (BROKER 'a:9092', SASL PASSWORD = 'hunter2')",
        "CREATE CONNECTION k TO KAFKA (BROKER 'a:9092', SASL PASSWORT = 'hunter2')",
        "CREATE CONNECTION k WITH (type = 'kafka', brokers = 'a:9092', properties.sasl.password = 'hunter2')",
    ):
        report = analyze_script(text)[0]
        assert report.error is not None
        assert "hunter2" not in f"{report.source.masked} {report.error} {report.canonical}"


def test_dropping_with_cascade_takes_what_is_built_on_it() -> None:
    _, session = run(CONNECTION + SOURCE + "DROP CONNECTION k CASCADE;")
    assert len(session.catalog) == 1


def test_a_connection_is_kept(tmp_path: Path) -> None:
    _, session = run(CONNECTION + SOURCE)
    with CatalogStore.open(tmp_path) as store:
        store.apply([PutObject(item, {}) for item in session.catalog.ordered()])
        loaded = load_session(store)
    assert isinstance(loaded.catalog[ObjectKey("relation", "k")], ConnectionDefinition)
    assert source(loaded) == replace(source(session))
