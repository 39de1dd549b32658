"""All other statements, and those that are refused by name."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.errors import NotYetError, PenstockError, UnsupportedError
from penstock.plan.script import analyze_script
from penstock.secrets import Secret
from penstock.sql import statements as s
from penstock.sql.dialects.defaults import DEFAULTS
from penstock.sql.format import format_statement
from penstock.sql.script import parse_script, parse_statement
from penstock.sql.statements import Emit, Name, OptionValue
from penstock.types import BIGINT, INT, STRING, SqlType


def text_value(text: str) -> OptionValue:
    return OptionValue("text", Secret(text))


def query(text: str) -> s.Query:
    statement = parse_statement(text)
    assert isinstance(statement, s.Select)
    return statement.query


ONE = "SELECT 1"


def cases() -> list[tuple[str, s.Statement]]:
    one = query(ONE)
    j, v, t = Name("j"), Name("v"), Name("t")
    insert = s.Insert(target=Name("a"), query=one)
    return [
        ("CREATE VIEW v AS SELECT 1", s.CreateView(name=v, query=one)),
        (
            "CREATE OR REPLACE TEMPORARY VIEW IF NOT EXISTS v (x, y) AS SELECT 1",
            s.CreateView(
                name=v, query=one, columns=(Name("x"), Name("y")), or_replace=True, temporary=True, if_not_exists=True
            ),
        ),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", s.CreateMaterializedView(name=v, query=one)),
        (
            "CREATE MATERIALIZED VIEW v WITH (late = 'drop') AS SELECT 1",
            s.CreateMaterializedView(name=v, query=one, options=(s.Option("late", text_value("drop")),)),
        ),
        (
            "CREATE MATERIALIZED TABLE v FRESHNESS = INTERVAL '1' MINUTE AS SELECT 1",
            s.CreateMaterializedView(
                name=v, query=one, options=(s.Option("freshness", OptionValue("interval", Secret("60000000"))),)
            ),
        ),
        (
            "CREATE SINK k WITH (connector = 'console') AS SELECT 1",
            s.CreateSink(name=Name("k"), options=(s.Option("connector", text_value("console")),), query=one),
        ),
        ("CREATE SINK k INTO t AS SELECT 1", s.CreateSink(name=Name("k"), options=(), query=one, into=t)),
        (
            "CREATE SINK k INTO t FROM v",
            s.CreateSink(name=Name("k"), options=(), query=query("SELECT * FROM v"), into=t),
        ),
        (
            "CREATE FUNCTION f(a INT, STRING) RETURNS BIGINT LANGUAGE PYTHON AS 'm.f'",
            s.CreateFunction(
                name=Name("f"),
                parameters=(s.Parameter(name="a", type=INT), s.Parameter(name=None, type=STRING)),
                returns=BIGINT,
                language="python",
                body="m.f",
            ),
        ),
        (
            "CREATE TEMPORARY SYSTEM FUNCTION f AS 'm.f' LANGUAGE PYTHON",
            s.CreateFunction(
                name=Name("f"), parameters=(), returns=None, language="python", body="m.f", temporary=True
            ),
        ),
        (
            "CREATE AGGREGATE f(x DOUBLE PRECISION) RETURNS DOUBLE LANGUAGE python AS $$ a ; 'b' $$",
            s.CreateFunction(
                name=Name("f"),
                parameters=(s.Parameter(name="x", type=SqlType("DOUBLE")),),
                returns=SqlType("DOUBLE"),
                language="python",
                body=" a ; 'b' ",
                aggregate=True,
            ),
        ),
        ("CREATE SECRET p AS 'x'", s.CreateSecret(name=Name("p"), value=Secret("x"))),
        ("CREATE SECRET p WITH (backend = 'meta') AS 'x'", s.CreateSecret(name=Name("p"), value=Secret("x"))),
        ("DROP STREAM t", s.Drop(kind="STREAM", name=t)),
        (
            "DROP MATERIALIZED VIEW IF EXISTS v CASCADE",
            s.Drop(kind="MATERIALIZED VIEW", name=v, if_exists=True, cascade=True),
        ),
        ("DROP VIEW v RESTRICT", s.Drop(kind="VIEW", name=v)),
        (
            "ALTER TABLE t SET ('a' = 'b')",
            s.Alter(kind="TABLE", name=t, action="set", options=(s.Option("a", text_value("b")),)),
        ),
        ("ALTER SINK t RESET (a, 'b-c')", s.Alter(kind="SINK", name=t, action="reset", keys=("a", "b-c"))),
        (
            "ALTER VIEW IF EXISTS v RENAME TO t",
            s.Alter(kind="VIEW", name=v, action="rename", new_name=t, if_exists=True),
        ),
        ("ALTER MATERIALIZED TABLE v SUSPEND", s.ControlJob(action="PAUSE", name=v)),
        ("ALTER MATERIALIZED VIEW v RESUME", s.ControlJob(action="RESUME", name=v)),
        ("INSERT INTO a SELECT 1", insert),
        ("INSERT INTO a (SELECT 1)", insert),
        (
            "INSERT INTO a (x) WITH (job_name = 'n') SELECT 1",
            s.Insert(
                target=Name("a"), query=one, columns=(Name("x"),), options=(s.Option("job_name", text_value("n")),)
            ),
        ),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END", s.StatementSet(inserts=(insert,))),
        (
            "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; INSERT INTO a SELECT 1; END",
            s.StatementSet(inserts=(insert, insert)),
        ),
        (ONE, s.Select(query=one)),
        ("SUBSCRIBE TO v", s.Subscribe(target=v)),
        ("SUBSCRIBE v SINCE 7", s.Subscribe(target=v, since=7)),
        (
            "SUBSCRIBE v ENVELOPE UPSERT (KEY (a, b)) SINCE 7",
            s.Subscribe(
                target=v,
                options=(s.Option("changes", text_value("upsert")), s.Option("key", text_value("a, b"))),
                since=7,
            ),
        ),
        (
            "SUBSCRIBE v WITH (SNAPSHOT false, PROGRESS = false)",
            s.Subscribe(target=v, options=(s.Option("SNAPSHOT", s.OptionValue("boolean", Secret("false"))),)),
        ),
        (
            "SUBSCRIBE v WITH (SNAPSHOT) ENVELOPE DEBEZIUM",
            s.Subscribe(
                target=v,
                options=(
                    s.Option("SNAPSHOT", s.OptionValue("boolean", Secret("true"))),
                    s.Option("changes", text_value("debezium")),
                ),
            ),
        ),
        (
            "SUBSCRIBE v WITH (changes = 'debezium')",
            s.Subscribe(target=v, options=(s.Option("changes", text_value("debezium")),)),
        ),
        ("EXPLAIN SELECT 1", s.Explain(statement=s.Select(query=one))),
        ("EXPLAIN PLAN FOR SELECT 1", s.Explain(statement=s.Select(query=one))),
        ("EXPLAIN PHYSICAL SELECT 1", s.Explain(statement=s.Select(query=one), physical=True)),
        ("EXPLAIN (FORMAT JSON) INSERT INTO a SELECT 1", s.Explain(statement=insert, json=True)),
        ("EXPLAIN (SELECT 1)", s.Explain(statement=s.Select(query=one))),
        ("EXPLAIN WATERMARK FOR v", s.ExplainWatermark(name=v)),
        ("SHOW REWRITE SELECT 1", s.ShowRewrite(statement=s.Select(query=one))),
        ("SHOW STREAMS", s.Show(kind="STREAMS")),
        ("SHOW MATERIALIZED VIEWS", s.Show(kind="MATERIALIZED VIEWS")),
        ("SHOW JOBS", s.Show(kind="JOBS")),
        ("SHOW ALL", s.Show(kind="SETTINGS")),
        ("SHOW CREATE TABLE t", s.ShowCreate(name=t, kind="TABLE")),
        ("SHOW CREATE t", s.ShowCreate(name=t)),
        ("SHOW CREATE MATERIALIZED VIEW v", s.ShowCreate(name=v, kind="MATERIALIZED VIEW")),
        ("SHOW COLUMNS FROM t", s.Describe(name=t)),
        ("DESCRIBE t", s.Describe(name=t)),
        ("DESC EXTENDED t", s.Describe(name=t, extended=True)),
        ("DESCRIBE TABLE t", s.Describe(name=t)),
        ("DESCRIBE penstock.jobs", s.Describe(name=Name("penstock.jobs"))),
        ("PAUSE JOB j", s.ControlJob(action="PAUSE", name=j)),
        ("RESUME j", s.ControlJob(action="RESUME", name=j)),
        ("RESTART JOB j", s.ControlJob(action="RESTART", name=j)),
        ("DROP JOB j", s.ControlJob(action="DROP", name=j)),
        ("DROP JOB IF EXISTS 'j'", s.ControlJob(action="DROP", name=j, if_exists=True)),
        ("STOP JOB 'j' WITH DRAIN", s.ControlJob(action="STOP", name=j, drain=True)),
        (
            "ADVANCE WATERMARK FOR t TO TIMESTAMP '1970-01-01 00:00:01.5'",
            s.AdvanceWatermark(stream=t, timestamp_us=1_500_000),
        ),
        ("RETRY DEAD LETTERS", s.RetryDeadLetters()),
        ("RETRY DEAD LETTERS FOR j", s.RetryDeadLetters(job=j)),
        ("ADVANCE WATERMARK FOR t TO '1970-01-01T02:00:00+02:00'", s.AdvanceWatermark(stream=t, timestamp_us=0)),
        ("SET dialect = 'flink'", s.SetSetting(key="dialect", value=text_value("flink"))),
        ("SET dialect = flink", s.SetSetting(key="dialect", value=text_value("flink"))),
        ("SET 'a.b' TO 5", s.SetSetting(key="a.b", value=OptionValue("number", Secret("5")))),
        ("SET a.b = DEFAULT", s.ResetSetting(key="a.b")),
        ("SET", s.Show(kind="SETTINGS")),
        ("RESET a.b", s.ResetSetting(key="a.b")),
        ("RESET", s.ResetSetting(key=None)),
        ("RESET ALL", s.ResetSetting(key=None)),
    ]


@pytest.mark.parametrize(("text", "expected"), cases(), ids=[text for text, _ in cases()])
def test_statements(text: str, expected: s.Statement) -> None:
    """A5, A7, A12, A17: a frozen value, equal however it is spelt."""
    assert parse_statement(text) == expected
    assert parse_statement(text.swapcase().replace("FLINK", "flink").replace("M.F", "m.f")) is not None
    assert parse_statement(text).span.length == len(text)


def test_insert_values_is_a_query_of_values() -> None:
    statement = parse_statement("INSERT INTO k VALUES (1, 'a'), (2, 'b')")
    assert isinstance(statement, s.Insert)
    assert isinstance(statement.query.tree, exp.Values)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CREATE OR REPLACE TEMPORARY STREAM", "CREATE STREAM"),
        ("create materialized /* c */ view", "CREATE MATERIALIZED VIEW"),
        ("CREATE MATERIALIZED TABLE x", "CREATE MATERIALIZED VIEW"),
        ("DROP SINK", "DROP SINK"),
        ("ALTER JOB j", "ALTER JOB"),
        ("INSERT", "INSERT"),
        ("WITH x", "SELECT"),
        ("(SELECT 1", "SELECT"),
        ("VALUES", "SELECT"),
        ("DESC", "DESCRIBE"),
        ("EXPLAIN", "EXPLAIN"),
        ("SHOW REWRITE", "SHOW REWRITE"),
        ("PAUSE", "PAUSE JOB"),
        ("DELETE FROM t", "DELETE"),
        ("FOO", "UNKNOWN"),
        ("'a'", "UNKNOWN"),
        ("CREATE", "UNKNOWN"),
    ],
)
def test_the_kind_of_a_failed_statement(text: str, kind: str) -> None:
    [parsed] = parse_script(text)
    assert parsed.error is not None
    assert parsed.kind == kind


def test_dropping_a_job_without_a_name_is_a_name_that_is_missing() -> None:
    for text in ("DROP JOB", "drop job;", "DROP JOB IF EXISTS;"):
        error = refusal(text)
        assert error.condition == "SYNTAX_ERROR"
        assert error.message == "expected the name of a job, found the end of the statement"
    [parsed] = parse_script('DROP JOB "job"')
    assert parsed.statement == s.ControlJob(action="DROP", name=s.Name("job", quoted=True))


@pytest.mark.parametrize("action", ["PAUSE", "RESUME", "RESTART", "STOP"])
def test_a_job_without_a_name_is_a_name_that_is_missing(action: str) -> None:
    for text in (action, f"{action} JOB", f"{action} job;"):
        error = refusal(text)
        assert error.condition == "SYNTAX_ERROR"
        assert error.message == "expected the name of a job, found the end of the statement"
        assert error.hint is not None
        assert "SHOW JOBS" in error.hint
    quoted = s.Name("job", quoted=True)
    for text in (f'{action} "job"', f'{action} JOB "job"'):
        [parsed] = parse_script(text)
        assert parsed.statement == s.ControlJob(action=action, name=quoted)  # type: ignore[arg-type]


def test_a_job_without_a_name_is_not_drained() -> None:
    assert refusal("STOP JOB WITH DRAIN").message == "expected the name of a job, found WITH"
    [parsed] = parse_script('STOP "job" WITH DRAIN')
    assert parsed.statement == s.ControlJob(action="STOP", name=s.Name("job", quoted=True), drain=True)


def refusal(text: str) -> PenstockError:
    [parsed] = parse_script(text)
    assert parsed.error is not None, text
    return parsed.error


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM t",
        "UPDATE t SET a = 1",
        "MERGE INTO t USING u ON TRUE",
        "TRUNCATE TABLE t",
        "GRANT SELECT ON t TO u",
        "REVOKE ALL ON t FROM u",
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "BEGIN TRANSACTION",
        "CALL f()",
        "USE db",
        "VACUUM",
        "ADD JAR 'x'",
    ],
)
def test_statements_that_never_will_be(text: str) -> None:
    error = refusal(text)
    assert isinstance(error, UnsupportedError)
    assert (error.condition, error.support) == ("UNSUPPORTED_STATEMENT", "never")
    assert error.hint
    assert error.span is not None
    assert error.span.start == 0


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("PLAN ALTER MATERIALIZED VIEW v AS SELECT 1", "STATEMENT_NOT_YET"),
        ("ALTER JOB j SET (parallelism = 4)", "STATEMENT_NOT_YET"),
        ("STOP JOB j WITH SAVEPOINT", "STATEMENT_NOT_YET"),
        ("STOP JOB 'id' WITH SAVEPOINT", "STATEMENT_NOT_YET"),
        ("RESTART JOB j FROM SAVEPOINT 's'", "STATEMENT_NOT_YET"),
        ("CREATE SUBSCRIPTION s FROM v", "STATEMENT_NOT_YET"),
        ("DECLARE c SUBSCRIPTION CURSOR FOR s", "STATEMENT_NOT_YET"),
        ("FETCH NEXT FROM c", "STATEMENT_NOT_YET"),
        ("CREATE INDEX i ON t (a)", "STATEMENT_NOT_YET"),
        ("CANCEL JOBS 1, 2", "STATEMENT_NOT_YET"),
        ("CREATE DATABASE d", "STATEMENT_NOT_YET"),
        ("CREATE SCHEMA d", "STATEMENT_NOT_YET"),
        ("CREATE CATALOG d", "STATEMENT_NOT_YET"),
        ("DROP DATABASE d", "STATEMENT_NOT_YET"),
        ("SHOW DATABASES", "STATEMENT_NOT_YET"),
        ("COPY t FROM 'f'", "STATEMENT_NOT_YET"),
        ("ALTER TABLE t ADD COLUMN a INT", "CLAUSE_NOT_YET"),
        ("ALTER TABLE t RENAME a TO b", "CLAUSE_NOT_YET"),
        ("CREATE TABLE t LIKE u", "CLAUSE_NOT_YET"),
        ("CREATE TABLE t (a INT) ON CONFLICT DO NOTHING", "CLAUSE_NOT_YET"),
        ("CREATE TABLE t (a INT) FROM src TABLE 'x'", "CLAUSE_NOT_YET"),
        ("CREATE TABLE a.b.t (a INT)", "CLAUSE_NOT_YET"),
        ("INSERT INTO a.t SELECT 1", "CLAUSE_NOT_YET"),
        ("EXPLAIN ANALYZE SELECT 1", "CLAUSE_NOT_YET"),
        ("CREATE TABLE t (a INT) WITH (p = SECRET x AS FILE)", "CLAUSE_NOT_YET"),
        ("CREATE MATERIALIZED TABLE v REFRESH_MODE = FULL AS SELECT 1", "CLAUSE_NOT_YET"),
        ("CREATE FUNCTION f AS 'x' USING JAR 'y'", "CLAUSE_NOT_YET"),
    ],
)
def test_statements_and_clauses_that_are_planned(text: str, condition: str) -> None:
    error = refusal(text)
    assert isinstance(error, NotYetError)
    assert (error.condition, error.support) == (condition, "not_yet")
    assert error.hint


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("CREATE STREAM s (a INT KEY) WITH (x = 'y')", "ksqlDB"),
        ("CREATE STREAM s (a INT) WITH (VALUE_FORMAT = 'JSON')", "ksqlDB"),
        ("CREATE SOURCE STREAM s (a INT)", "ksqlDB"),
        ("CREATE TABLE t WITH (a = 1) AS SELECT 1", "ksqlDB"),
        ("PRINT 'topic'", "ksqlDB"),
        ("TERMINATE q", "ksqlDB"),
        ("SHOW QUERIES", "ksqlDB"),
        ("CREATE CONNECTION k TO KAFKA (BROKER 'b', SSH TUNNEL t)", "Materialize"),
        ("CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC 't') FORMAT JSON EXPOSE PROGRESS AS p", "Materialize"),
        ("CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC 't') FORMAT REGEX 'x'", "Materialize"),
        ("CREATE SOURCE s FROM LOAD GENERATOR AUCTION", "Materialize"),
        ("CREATE SINK s FROM v ENVELOPE UPSERT", "Materialize"),
        (
            "CREATE SINK s FROM v INTO KAFKA CONNECTION k (TOPIC 't', PARTITION BY = a) KEY (a) FORMAT JSON",
            "Materialize",
        ),
        ("SUBSCRIBE v WITH (PROGRESS)", "SUBSCRIBE … WITH (PROGRESS) of Materialize"),
        (
            "SUBSCRIBE (SELECT 1) ENVELOPE UPSERT (KEY (a)) WITH (SNAPSHOT, PROGRESS true)",
            "SUBSCRIBE … WITH (PROGRESS) of Materialize",
        ),
        ("SUBSCRIBE v WITH (SNAPSHOT = false) AS OF 12", "SUBSCRIBE … AS OF of Materialize"),
        ("SUBSCRIBE v UP TO 12", "SUBSCRIBE … UP TO of Materialize"),
        ("SUBSCRIBE v ENVELOPE UPSERT (KEY (a)) WITHIN TIMESTAMP ORDER BY a", "SUBSCRIBE … WITHIN of Materialize"),
        ("CREATE TABLE t (a INT) WITH ('connectors' = '[]')", "Feldera"),
        ("CREATE MATERIALIZED VIEW v WITH ('emit_final' = 'd') AS SELECT 1", "Feldera"),
        ("LATENESS v.c INTERVAL 1 HOUR", "Feldera"),
        ("CREATE OR REFRESH STREAMING TABLE v AS SELECT 1", "Spark"),
        ("CREATE STREAMING TABLE v AS SELECT 1", "Spark"),
        ("SELECT * FROM STREAM t", "Spark"),
        ("SELECT * FROM STREAM(t)", "Spark"),
        ("SELECT * FROM t WATERMARK ts DELAY OF INTERVAL 2 SECONDS", "Spark"),
        ("CREATE FLOW f AS AUTO CDC INTO t", "Spark"),
        ("AUTO CDC INTO t FROM u", "Spark"),
    ],
)
def test_spellings_of_dialects_that_come_later(text: str, dialect: str) -> None:
    error = refusal(text)
    assert error.condition == "DIALECT_NOT_YET"
    assert dialect in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELEC a FROM t", "expected a statement, found SELEC"),
        ("hunter2", "expected a statement, found a word"),
        (
            "CREATE",
            "expected STREAM, TABLE, SOURCE, SINK, VIEW, MATERIALIZED VIEW, FUNCTION, SECRET or CONNECTION, found the end of the statement",
        ),
        (
            "DROP",
            "expected STREAM, TABLE, SOURCE, SINK, VIEW, MATERIALIZED VIEW, FUNCTION, SECRET or CONNECTION, found the end of the statement",
        ),
        ("DROP STREAM a, b", "expected one name, found ,"),
        ("CREATE VIEW v", "expected AS, found the end of the statement"),
        ("CREATE VIEW v WITH (a = 1) AS SELECT 1", "expected AS, found WITH"),
        ("CREATE SECRET s AS x", "expected the value, in single quotes, found a word"),
        ("SET a", "expected =, found the end of the statement"),
        ("ADVANCE WATERMARK FOR s TO 5", "expected TIMESTAMP '…', found 5"),
        ("SUBSCRIBE TO v SINCE x", "expected a whole number, found x"),
        ("SUBSCRIBE v ENVELOPE NONE", "expected UPSERT or DEBEZIUM, found NONE"),
        ("SUBSCRIBE v ENVELOPE UPSERT (a)", "expected KEY, found a"),
        ("EXPLAIN", "expected a statement, found the end of the statement"),
        ("EXPLAIN EXPLAIN SELECT 1", "expected a statement that runs, found EXPLAIN"),
        ("SHOW REWRITE", "expected a statement, found the end of the statement"),
        ("SELECT 1 SELECT 2", "unexpected SELECT"),
        ("CREATE STREAM s (a INT) x", "unexpected x"),
    ],
)
def test_what_was_expected_instead(text: str, message: str) -> None:
    """A10"""
    error = refusal(text)
    assert (error.condition, error.message) == ("SYNTAX_ERROR", message)


def test_a_misspelt_first_word_has_a_hint() -> None:
    assert refusal("SELEC a FROM t").hint == "did you mean SELECT?"


def test_a_time_that_is_none() -> None:
    assert refusal("ADVANCE WATERMARK FOR s TO TIMESTAMP 'soon'").condition == "INVALID_ARGUMENT"


def test_defaults_of_the_dialects() -> None:
    """DEC15: Flink and Arroyo wait for the window, RisingWave tells every change."""
    found = {name: (each.windows, each.others) for name, each in DEFAULTS.items()}
    assert found == {
        "penstock": (Emit.FINAL, Emit.CHANGES),
        "flink": (Emit.FINAL, Emit.CHANGES),
        "arroyo": (Emit.FINAL, Emit.CHANGES),
        "risingwave": (Emit.CHANGES, Emit.CHANGES),
    }


def test_one_statement_is_one() -> None:
    with pytest.raises(PenstockError, match="expected one statement"):
        parse_statement("SELECT 1; SELECT 2")
    with pytest.raises(PenstockError, match="holds no statement"):
        parse_statement(" -- nothing\n")


def test_dead_letters_are_chosen_by_a_condition() -> None:
    text = "RETRY DEAD LETTERS FOR j WHERE reason = 'malformed' AND \"offset\" > 5"
    statement = parse_statement(text)
    assert isinstance(statement, s.RetryDeadLetters)
    assert statement.chosen is not None
    assert format_statement(statement) == text
    *_, report = analyze_script("RETRY DEAD LETTERS WHERE nothing = 1")
    assert report.error is not None
    assert (report.error.condition, report.error.span.column if report.error.span else 0) == ("UNKNOWN_COLUMN", 26)
