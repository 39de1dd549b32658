"""Rules of definitions that look at columns, options and clauses together, and the two words STREAM and TABLE."""

from __future__ import annotations

import pytest

from penstock.catalog.model import SourceDefinition
from penstock.errors import PenstockError
from penstock.sql.statements import Name, ObjectKind
from tests.unit.catalog.defining import catalog_of, define, refused, sink_of, source_of

FILES = "path = '/data', format = 'parquet'"


def test_v10_an_option_of_a_generated_column_needs_the_column() -> None:
    error, at = refused("CREATE TABLE t (amount INT) WITH (connector = 'datagen', 'fields.amuont.kind' = 'sequence')")
    assert (error.condition, error.hint) == ("UNKNOWN_COLUMN", "did you mean amount?")
    assert "fields.amuont.kind" in at


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ("Amount INT", "fields.AMOUNT.kind"),
        ("amount INT", "fields.amount.max-past"),
        ("person STRUCT<name STRING>", "fields.person.name.length"),
        ('"a.b" STRING', "fields.a.b.length"),
    ],
)
def test_v10_options_of_columns_that_are_there(columns: str, key: str) -> None:
    written = "'random'" if key.endswith("kind") else "5"
    found = source_of(f"CREATE TABLE t ({columns}) WITH (connector = 'datagen', '{key}' = {written})")
    assert len(found.columns) == 1


@pytest.mark.parametrize("options", ["connector = 'kafka', topic = 't'", "connector = 'topic'"])
def test_only_files_and_delta_have_partitions(options: str) -> None:
    error, at = refused(f"CREATE TABLE t (a INT, day DATE) PARTITIONED BY (day) WITH ({options})")
    assert (error.condition, at) == ("INVALID_DEFINITION", "day")
    assert "'file' and 'delta'" in str(error.hint)


@pytest.mark.parametrize("options", [f"connector = 'file', {FILES}", "connector = 'delta', path = '/data'"])
def test_files_and_delta_have_partitions(options: str) -> None:
    found = sink_of(f"CREATE TABLE t (a INT, day DATE) PARTITIONED BY (day) WITH ({options}, type = 'sink')")
    assert found.partitioned_by == ("day",)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE STREAM t (a INT, __offset BIGINT)",
        "CREATE STREAM t (a INT, __offset AS a + 1)",
        "CREATE SINK t (__offset BIGINT) WITH (connector = 'console')",
    ],
)
def test_names_of_hidden_columns_are_refused(sql: str) -> None:
    error, at = refused(sql)
    assert (error.condition, at) == ("INVALID_DEFINITION", "__offset")
    assert error.hint is not None


def test_one_underscore_is_an_ordinary_name() -> None:
    assert source_of("CREATE STREAM t (_a INT, a__ INT)").columns[0].name == "_a"


@pytest.mark.parametrize(("first", "second"), [("STREAM", "TABLE"), ("TABLE", "STREAM")])
@pytest.mark.parametrize("options", ["connector = 'topic'", "connector = 'blackhole'"])
def test_a10_stream_and_table_are_one_word(first: ObjectKind, second: ObjectKind, options: str) -> None:
    made = catalog_of(f"CREATE {first} t (a INT) WITH ({options})")
    again, notices = made.put(define(f"CREATE {second} t (a INT) WITH ({options})"))
    assert again is made
    assert notices[0].endswith("t exists already with the same definition")
    for word in (first, second):
        assert len(made.drop(Name("t"), word)[0]) == 0
    with pytest.raises(PenstockError, match="OBJECT_EXISTS"):
        made.put(define(f"CREATE {second} t (a BIGINT) WITH ({options})"))


def test_a10_a_table_may_replace_a_stream() -> None:
    made = catalog_of("CREATE STREAM t (a INT)")
    changed, _ = made.put(define("CREATE TABLE t (a INT, b INT) WITH (connector = 'topic')"), or_replace=True)
    found = changed.get(Name("t"))
    assert isinstance(found, SourceDefinition)
    assert (found.kind, len(found.columns)) == ("table", 2)


def test_a7_the_key_of_a_sink_without_columns_keeps_its_case() -> None:
    found = sink_of(
        "CREATE SINK k AS SELECT 1 AS \"userId\" WITH (connector = 'kafka', topic = 't', type = 'upsert', "
        "primary_key = 'userId, Nope')"
    )
    assert (found.columns, found.primary_key) == ((), ("userId", "Nope"))


def test_an_empty_with_clause_is_not_a_missing_one() -> None:
    error, at = refused("CREATE TABLE t (a INT) WITH ()")
    assert (error.condition, at) == ("MISSING_OPTION", "WITH ()")
    assert "an empty WITH clause" in error.message
    error, at = refused("CREATE TABLE t (a INT)")
    assert (error.condition, at) == ("MISSING_OPTION", "t")
    assert "no WITH clause" in error.message
