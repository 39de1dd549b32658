"""CREATE SINK, FUNCTION and SECRET, secrets inside options, dimensions, and renaming."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.catalog.define import Surroundings, define_secret
from penstock.catalog.dimensions import define_dimension, read_dimension
from penstock.catalog.model import ColumnDefinition, FunctionDefinition, InlineSecret, ObjectKey, SecretDefinition
from penstock.catalog.snapshot import Catalog
from penstock.catalog.text import canonical_text
from penstock.errors import InternalError, PenstockError
from penstock.options import Deferred
from penstock.secrets import Reference, Secret
from penstock.sql.script import parse_statement
from penstock.sql.statements import CreateSecret, Name
from penstock.types import BIGINT, DECIMAL, STRING, Field, SqlType
from tests.unit.catalog.defining import catalog_of, define, refused, sink_of, source_of

CANARY = "canary-51c0-hunter2"


def kafka_table(name: str, password: str) -> str:
    return (
        f"CREATE TABLE {name} (a INT) WITH (connector = 'kafka', topic = 't', format = 'json', "
        f"properties.ssl.key.password = {password})"
    )


WITH_PASSWORD = kafka_table("t", f"'{CANARY}'")


def test_a_secret_in_an_option_becomes_a_reference() -> None:
    found = source_of(WITH_PASSWORD)
    (inline,) = found.secrets
    assert inline.value == Secret(CANARY)
    assert inline.name.startswith("t.")
    assert f'SECRET "{inline.name}"' in found.text
    assert CANARY not in found.text + repr(found) + str(found.options.shown())
    assert found.depends_on == ()


def test_a_text_masks_a_secret_that_nobody_took_out() -> None:
    text = canonical_text(parse_statement(WITH_PASSWORD))
    assert CANARY not in text
    assert "'********'" in text


def test_a_secret_read_back_from_the_text_makes_the_same_definition() -> None:
    found = source_of(WITH_PASSWORD)
    values = {item.name: item.value for item in found.secrets if item.value is not None}
    again = source_of(found.text, Surroundings(secrets=values))
    assert again == found
    assert source_of(found.text).secrets == (InlineSecret(found.secrets[0].name, None),)


def test_another_password_is_another_definition() -> None:
    made = catalog_of(WITH_PASSWORD)
    assert made.put(define(WITH_PASSWORD))[0] is made
    with pytest.raises(PenstockError) as error:
        made.put(define(WITH_PASSWORD.replace(CANARY, "other")))
    assert error.value.condition == "OBJECT_EXISTS"
    assert CANARY not in str(error.value)


def test_another_relations_secret_cannot_be_used() -> None:
    sql = kafka_table("u", 'SECRET "t.ssl.key.password"')
    error, at = refused(sql)
    assert error.condition == "UNKNOWN_SECRET"
    assert at == 'SECRET "t.ssl.key.password"' or at == '"t.ssl.key.password"'


def test_references_stay_what_they_are() -> None:
    found = source_of(kafka_table("t", "'${env:PASSWORD}'"))
    assert found.secrets == ()
    assert "'${env:PASSWORD}'" in found.text


def test_a_named_secret_is_something_the_relation_needs() -> None:
    sql = kafka_table("t", "SECRET Broker")
    made = catalog_of("CREATE SECRET broker AS 'x'", sql)
    (table,) = made.dependents(ObjectKey("secret", "broker"))
    assert table.name.text == "t"
    with pytest.raises(PenstockError) as error:
        made.drop(Name("BROKER"), "SECRET")
    assert error.value.condition == "DEPENDENT_OBJECTS"
    unknown, at = refused(sql, Surroundings(catalog=catalog_of("CREATE SECRET brokers AS 'x'")))
    assert (unknown.condition, unknown.hint) == ("UNKNOWN_SECRET", "did you mean brokers?")
    assert "Broker" in at
    assert source_of(sql).depends_on == ()


def test_create_secret_keeps_its_value_out_of_the_text() -> None:
    found = define(f"CREATE SECRET p AS '{CANARY}'")
    assert isinstance(found, SecretDefinition)
    assert (found.value, found.reference) == (Secret(CANARY), None)
    assert CANARY not in found.text + repr(found)
    statement = parse_statement(found.text)
    assert isinstance(statement, CreateSecret)
    assert define_secret(statement, stored=Secret(CANARY)) == found


def test_create_secret_by_reference() -> None:
    found = define("CREATE SECRET p AS '${env:PASSWORD}'")
    assert isinstance(found, SecretDefinition)
    assert (found.reference, found.value) == (Reference("env", "PASSWORD"), None)
    assert define(found.text) == found


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("CREATE SECRET p AS ''", "INVALID_DEFINITION"),
        ("CREATE SECRET p AS '********'", "INVALID_DEFINITION"),
        ("CREATE SECRET \"t.password\" AS 'x'", "INVALID_DEFINITION"),
        ("CREATE SECRET p WITH (backend = 'hashicorp_vault') AS 'x'", "CLAUSE_NOT_YET"),
    ],
)
def test_refused_secrets(sql: str, condition: str) -> None:
    assert refused(sql)[0].condition == condition


def test_risingwave_secret() -> None:
    assert define("CREATE SECRET p WITH (backend = 'meta') AS 'x'").kind == "secret"


def test_create_sink_takes_its_columns_from_the_query() -> None:
    found = sink_of("CREATE SINK k WITH (connector = 'blackhole') AS SELECT a FROM s")
    assert (found.created_as, found.columns, found.query is None) == ("sink", (), False)
    assert define(found.text) == found


def test_create_sink_with_the_key_of_an_option() -> None:
    found = sink_of(
        "CREATE SINK k FROM mv WITH (connector = 'kafka', topic = 't', properties.bootstrap.server = 'k:9092', "
        "primary_key = 'id,region') FORMAT UPSERT ENCODE JSON"
    )
    assert found.primary_key == ("id", "region")
    assert found.options.changes == "upsert"
    again = sink_of(found.text)
    assert (again, again.text) == (found, found.text)


def test_create_sink_into_a_table() -> None:
    made = catalog_of("CREATE TABLE t (a INT) WITH (topic = 'x')")
    found = sink_of("CREATE SINK k INTO t AS SELECT a FROM s", Surroundings(catalog=made))
    assert ([column.name for column in found.columns], found.options.role) == (["a"], "sink")
    assert found.depends_on == (ObjectKey("relation", "t"),)
    error, at = refused("CREATE SINK k INTO u AS SELECT a FROM s", Surroundings(catalog=made))
    assert (error.condition, at) == ("UNKNOWN_RELATION", "u")


PYTHON = "CREATE FUNCTION label(x BIGINT) RETURNS STRING LANGUAGE python AS {}"


def test_q2_functions_by_path_and_by_source() -> None:
    by_path = define(PYTHON.format("'shop.text.label'"))
    assert isinstance(by_path, FunctionDefinition)
    assert (by_path.language, by_path.returns, by_path.aggregate) == ("python", STRING, False)
    by_source = define(PYTHON.format("$$\ndef label(x):\n    return str(x)\n$$"))
    by_file = define(
        PYTHON.replace(" AS", " WITH (on_error = 'null', takes = 'arrow') AS").format("'shop/text.py:label'")
    )
    assert isinstance(by_file, FunctionDefinition)
    assert by_file.options == (("on_error", "null"), ("takes", "arrow"))
    registered = define(PYTHON.format("'<registered>'"))
    for found in (by_path, by_source, by_file, registered):
        assert define(found.text) == found


@pytest.mark.parametrize(
    ("sql", "condition", "message"),
    [
        (PYTHON.format("'not a path'"), "INVALID_DEFINITION", "neither a path such as module.function nor Python"),
        (PYTHON.format("$$\ndef other(x):\n    return x\n$$"), "INVALID_DEFINITION", "does not define label"),
        (
            PYTHON.format("$$ def label(x, y): return x $$"),
            "INVALID_DEFINITION",
            "function label is declared with 1 argument, and its def takes 2",
        ),
        (
            PYTHON.replace("x BIGINT", "x BIGINT, y BIGINT").format("$$ def label(x): return x $$"),
            "INVALID_DEFINITION",
            "function label is declared with 2 arguments, and its def takes 1",
        ),
        (PYTHON.replace(" RETURNS STRING", "").format("$$ def label(x): return x $$"), "INVALID_DEFINITION", "returns"),
        (PYTHON.replace("x BIGINT", "x INT, X INT").format("'a.b'"), "INVALID_DEFINITION", "two parameters named X"),
        (PYTHON.replace("label", "Upper").format("'a.b'"), "OBJECT_EXISTS", "function Upper is built in"),
        (PYTHON.replace("label", "java_method").format("'a.b'"), "OBJECT_EXISTS", "function java_method is built in"),
        (PYTHON.replace(" AS", " WITH (speed = 3) AS").format("'a.b'"), "UNKNOWN_OPTION", "function label: speed"),
        (
            PYTHON.replace(" AS", " WITH (on_error = 'skip') AS").format("'a.b'"),
            "INVALID_OPTION",
            "'fail' or 'null', not 'skip'",
        ),
        (
            PYTHON.replace(" AS", " WITH (takes = 'arrow', TAKES = 'pandas') AS").format("'a.b'"),
            "CONFLICTING_OPTIONS",
            "option takes of function label",
        ),
        (PYTHON.replace("python", "java").format("'a.B'"), "UNSUPPORTED_CLAUSE", "written in java"),
    ],
)
def test_refused_functions(sql: str, condition: str, message: str) -> None:
    error, _ = refused(sql)
    assert error.condition == condition
    assert message in error.message


NESTED = SqlType(
    "MAP", elements=(STRING, SqlType("ARRAY", elements=(SqlType("STRUCT", fields=(Field("a b", BIGINT),)),)))
)


def test_a_dimension_comes_back_from_its_text() -> None:
    columns = (
        ColumnDefinition("id", BIGINT, nullable=False),
        ColumnDefinition("price", DECIMAL),
        ColumnDefinition("nested", NESTED),
        ColumnDefinition("unknown", None),
    )
    found = define_dimension(Name("d"), columns, broadcast=False)
    assert read_dimension(Name("d"), found.text) == found


def test_refused_dimensions() -> None:
    with pytest.raises(PenstockError, match="DUPLICATE_COLUMN"):
        define_dimension(Name("d"), (ColumnDefinition("a", BIGINT), ColumnDefinition("A", BIGINT)))
    with pytest.raises(PenstockError, match="INVALID_DEFINITION"):
        define_dimension(Name("d"), ())
    with pytest.raises(InternalError):
        read_dimension(Name("d"), "{}")


def test_rename_changes_the_text_and_the_names_of_its_secrets() -> None:
    made = catalog_of(WITH_PASSWORD)
    before = made.get(Name("t"))
    after, _ = made.rename(Name("t"), "TABLE", Name("New Name", quoted=True))
    found = after.get(Name("New Name", quoted=True))
    values = {item.name: Secret(CANARY) for item in source_of(WITH_PASSWORD).secrets}
    expected = source_of(WITH_PASSWORD.replace("TABLE t ", 'TABLE "New Name" '), Surroundings(secrets=values))
    assert found == expected
    assert found.text == expected.text
    assert "t." not in found.text.replace("New Name.", "")
    assert before.text != found.text
    assert (
        any(isinstance(value, Deferred) for value in expected.options.values.values()) or expected.options.passthrough
    )


def test_rename_of_a_function_and_a_secret() -> None:
    made = catalog_of(PYTHON.format("'a.label'"), "CREATE SECRET p AS 'x'")
    made, _ = made.rename(Name("label"), "FUNCTION", Name("tag"))
    made, _ = made.rename(Name("p"), "SECRET", Name("q"))
    assert made.find_function(Name("TAG")) == replace(define(PYTHON.format("'a.label'")), name=Name("tag"))
    found = made.find_secret(Name("q"))
    assert found is not None
    assert (found.value, "CREATE SECRET q" in found.text) == (Secret("x"), True)


def test_an_empty_catalog_knows_nothing() -> None:
    assert (len(Catalog()), Catalog().relations()) == (0, ())


@pytest.mark.parametrize("taken", ["x", "x, y=1", "*xs", "x, *, deep=False", "x, /"])
def test_as_many_arguments_as_the_def_can_take(taken: str) -> None:
    assert isinstance(define(PYTHON.format(f"$$ def label({taken}): return x $$")), FunctionDefinition)
