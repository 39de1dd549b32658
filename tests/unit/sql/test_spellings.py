"""Spellings of other systems that people bring along: read where they mean what ours mean, else refused by name (A1)."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.errors import PenstockError
from penstock.sql import statements as s
from penstock.sql.durations import NotADuration, duration_us
from penstock.sql.format import format_statement
from penstock.sql.script import parse_script, parse_statement
from penstock.types import BINARY, STRING, Field, SqlType

MINUTE = 60_000_000
HOUR = 60 * MINUTE


def selected(text: str) -> exp.Expr:
    statement = parse_statement(f"SELECT {text} FROM s")
    assert isinstance(statement, s.Select)
    item: exp.Expr = statement.query.tree.selects[0]
    return item


def comes_back(statement: s.Statement) -> bool:
    return parse_statement(format_statement(statement, lambda _: False)) == statement


def refused(text: str) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        parse_statement(text)
    return caught.value


# calls


def test_unnest_is_an_ordinary_call_in_an_expression() -> None:
    statement = parse_statement("SELECT unnest(tags) AS tag FROM s")
    assert isinstance(statement, s.Select)
    call = statement.query.tree.selects[0].this
    assert type(call) is exp.Anonymous
    assert (call.this, call.expressions[0].name) == ("unnest", "tags")
    assert "UNNEST(tags) AS tag" in format_statement(statement)
    assert comes_back(statement)


@pytest.mark.parametrize(
    "source", ["UNNEST(a) AS t(x)", '"unnest"(a)', "TABLE(unnest(a))", "s, LATERAL TABLE(unnest(a))"]
)
def test_unnest_as_a_relation_comes_back(source: str) -> None:
    assert comes_back(parse_statement(f"SELECT * FROM {source}"))


def test_hexadecimal_strings_stay_what_they_are() -> None:
    assert selected("X'AB'") == exp.HexString(this="AB")


@pytest.mark.parametrize(
    "argument", ["x -> 1", "x -> 'a'", "(x) -> 1", "x -> x", "(x, y) -> 1", "x -> 1.5", "x -> NULL"]
)
def test_a_lambda_with_a_constant_body_comes_back(argument: str) -> None:
    statement = parse_statement(f"SELECT transform(tags, {argument}) FROM s")
    assert comes_back(statement)


def test_what_may_be_a_lambda_or_a_path_is_left_as_a_path() -> None:
    assert isinstance(selected("transform(tags, x -> 1)").expressions[1], exp.JSONExtract)
    assert isinstance(selected("transform(tags, x -> x + 1)").expressions[1], exp.Lambda)


def test_group_by_all_is_told_from_a_column() -> None:
    statement = parse_statement("SELECT a, COUNT(*) FROM s GROUP BY ALL HAVING COUNT(*) > 1")
    assert isinstance(statement, s.Select)
    assert statement.query.tree.args["group"] == exp.Group(all=True)
    assert statement.query.tree.args["having"] is not None
    assert comes_back(statement)
    column = parse_statement('SELECT 1 FROM s GROUP BY "all", t.all')
    assert isinstance(column, s.Select)
    assert [node.name for node in column.query.tree.args["group"].expressions] == ["all", "all"]


# constant durations (D17)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("INTERVAL '1' HOUR + INTERVAL '30' MINUTE", 90 * MINUTE),
        ("INTERVAL '1' HOUR - INTERVAL '30' MINUTE", 30 * MINUTE),
        ("(INTERVAL '1' HOUR)", HOUR),
        ("'5 minutes'::INTERVAL", 5 * MINUTE),
        ("CAST('5 minutes' AS INTERVAL)", 5 * MINUTE),
        ("2 * INTERVAL '5' MINUTE", 10 * MINUTE),
        ("INTERVAL '5' MINUTE * 1.5", 450_000_000),
        ("INTERVAL '1' HOUR / 2", 30 * MINUTE),
        ("-(2 * INTERVAL '5' MINUTE)", -10 * MINUTE),
        ("INTERVAL '5' MINUTE * (-2)", -10 * MINUTE),
        ("2 * (INTERVAL '1' HOUR + '1 minute'::INTERVAL)", 2 * (HOUR + MINUTE)),
    ],
)
def test_arithmetic_of_constant_intervals(text: str, micros: int) -> None:
    assert duration_us(selected(text)) == micros


@pytest.mark.parametrize(
    "text",
    [
        "INTERVAL '1' HOUR + ts",
        "n * INTERVAL '1' HOUR",
        "INTERVAL '1' HOUR / 0",
        "2 / INTERVAL '1' HOUR",
        "INTERVAL '1' MONTH + INTERVAL '1' DAY",
        "INTERVAL '1' MICROSECOND / 2",
        "INTERVAL '10000000' DAY * 99999999",
        "INTERVAL '1' HOUR * INTERVAL '1' HOUR",
        "CAST(a AS INTERVAL)",
        "1 + 2",
    ],
)
def test_what_is_no_constant_interval(text: str) -> None:
    node = selected(text)
    with pytest.raises(NotADuration):
        duration_us(node)


@pytest.mark.parametrize(
    ("expression", "delay"),
    [
        ("ts - INTERVAL '1' HOUR - INTERVAL '1' MINUTE", HOUR + MINUTE),
        ("(ts - INTERVAL '1' HOUR) - INTERVAL '1' MINUTE", HOUR + MINUTE),
        ("ts - (INTERVAL '1' HOUR + INTERVAL '1' MINUTE)", HOUR + MINUTE),
        ("ts - 2 * INTERVAL '1' HOUR", 2 * HOUR),
        ("ts - '5 minutes'::INTERVAL", 5 * MINUTE),
    ],
)
def test_the_delay_of_a_watermark_may_be_computed(expression: str, delay: int) -> None:
    statement = parse_statement(f"CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS {expression})")
    assert isinstance(statement, s.CreateRelation)
    assert statement.watermark is not None
    assert statement.watermark.delay_us == delay


@pytest.mark.parametrize(
    ("call", "same"),
    [
        ("TUMBLE(ts, INTERVAL '1' HOUR + INTERVAL '30' MINUTE)", "TUMBLE(ts, INTERVAL '90' MINUTE)"),
        ("TUMBLE(ts, '5 minutes'::INTERVAL)", "TUMBLE(ts, INTERVAL '5' MINUTE)"),
        ("TUMBLE(ts, CAST('5 minutes' AS INTERVAL))", "TUMBLE(ts, INTERVAL '5' MINUTE)"),
        ("TUMBLE(2 * INTERVAL '5' MINUTE)", "TUMBLE(INTERVAL '10' MINUTE)"),
        ("TUMBLE('5 minutes'::INTERVAL)", "TUMBLE(INTERVAL '5' MINUTE)"),
        (
            "TUMBLE(ts - INTERVAL '1' HOUR, INTERVAL '5' MINUTE)",
            "TUMBLE(ts - INTERVAL '60' MINUTE, INTERVAL '5' MINUTE)",
        ),
    ],
)
def test_windows_of_computed_constants(call: str, same: str) -> None:
    assert parse_statement(f"SELECT 1 FROM s GROUP BY {call}") == parse_statement(f"SELECT 1 FROM s GROUP BY {same}")


# statement sets


def outline(script: str) -> list[tuple[str, bool]]:
    return [(parsed.kind, parsed.error is None) for parsed in parse_script(script)]


def test_a_broken_statement_set_loses_no_other_statement() -> None:
    script = "EXECUTE STATEMENT SET BEGIN END; SELECT 1; EXECUTE STATEMENT SET BEGIN SELECT 1; END; SELECT 2;"
    assert outline(script) == [("STATEMENT SET", False), ("SELECT", True), ("STATEMENT SET", False), ("SELECT", True)]


def test_a_set_without_end_stops_before_the_next_set() -> None:
    script = (
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; SELECT 1;"
        " EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END; SELECT 2"
    )
    assert outline(script) == [("STATEMENT SET", False), ("SELECT", True), ("STATEMENT SET", True), ("SELECT", True)]


@pytest.mark.parametrize(
    "inserts",
    [
        "INSERT INTO a SELECT CASE WHEN x THEN 1 END; INSERT INTO b SELECT 2; END",
        "INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM s; END /* done */",
        "INSERT INTO a SELECT 1; INSERT INTO b SELECT CASE WHEN x THEN 1 END END",
        "INSERT INTO a SELECT w.end FROM w; INSERT INTO b SELECT 2 END -- done",
        "INSERT INTO a SELECT ' END', E'\\' END', \"END\" FROM s; END",
    ],
)
def test_the_end_of_a_set_is_told_from_other_ends(inserts: str) -> None:
    script = f"EXECUTE STATEMENT SET BEGIN {inserts}\n; SELECT 1"
    assert outline(script) == [("STATEMENT SET", True), ("SELECT", True)]


@pytest.mark.parametrize("head", ["", "EXECUTE "])
@pytest.mark.parametrize("form", ["", "PLAN FOR ", "PHYSICAL ", "(FORMAT JSON) "])
def test_explain_takes_a_statement_set(head: str, form: str) -> None:
    text = f"EXPLAIN {form}{head}STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END"
    statement = parse_statement(text)
    assert isinstance(statement, s.Explain)
    assert isinstance(statement.statement, s.StatementSet)
    assert [insert.target.text for insert in statement.statement.inserts] == ["a", "b"]
    assert comes_back(statement)


def test_a_statement_set_needs_execute_when_it_stands_alone() -> None:
    assert refused("STATEMENT SET BEGIN INSERT INTO a SELECT 1 END").condition == "SYNTAX_ERROR"


def test_execute_insert_is_insert() -> None:
    assert parse_statement("EXECUTE INSERT INTO t SELECT 1") == parse_statement("INSERT INTO t SELECT 1")
    assert outline("EXECUTE INSERT INTO t SELECT 1") == [("INSERT", True)]


# definitions


def test_include_header_without_a_key_is_all_headers() -> None:
    statement = parse_statement(
        "CREATE SOURCE s (a INT) INCLUDE header AS h INCLUDE HEADER 'k' AS k WITH (connector = 'x')"
    )
    assert isinstance(statement, s.CreateRelation)
    headers, one = statement.columns[1:]
    pair = SqlType("STRUCT", fields=(Field("key", STRING), Field("value", BINARY)))
    assert (headers.name.text, headers.metadata, headers.header) == ("h", "headers", None)
    assert headers.type == SqlType("ARRAY", elements=(pair,))
    assert (one.name.text, one.metadata, one.header) == ("k", None, "k")
    assert comes_back(statement)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v COMMENT 'it''s' AS SELECT 1",
        "CREATE MATERIALIZED VIEW v COMMENT 'it''s' AS SELECT 1",
        "CREATE MATERIALIZED VIEW v WITH (late = 'drop') COMMENT 'it''s' AS SELECT 1",
    ],
)
def test_the_comment_of_a_view_is_kept(text: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, s.CreateView | s.CreateMaterializedView)
    assert statement.comment == "it's"
    assert "COMMENT 'it''s'" in format_statement(statement)
    assert comes_back(statement)


@pytest.mark.parametrize(
    ("text", "condition", "column", "words"),
    [
        ("CREATE MATERIALIZED TABLE m (PRIMARY KEY (id) NOT ENFORCED) AS SELECT 1", "CLAUSE_NOT_YET", 30, "the query"),
        ("CREATE MATERIALIZED TABLE m (CONSTRAINT k PRIMARY KEY (id)) AS SELECT 1", "CLAUSE_NOT_YET", 30, "the query"),
        ("CREATE VIEW v (a COMMENT 'x') AS SELECT 1", "CLAUSE_NOT_YET", 18, "names alone"),
        ("EXPLAIN ESTIMATED_COST, CHANGELOG_MODE SELECT 1", "CLAUSE_NOT_YET", 9, "EXPLAIN alone"),
        ("EXPLAIN CHANGELOG_MODE INSERT INTO t SELECT 1", "CLAUSE_NOT_YET", 9, "EXPLAIN alone"),
        ("COMPILE PLAN 'p' FOR INSERT INTO t SELECT 1", "STATEMENT_NOT_YET", 1, "INSERT"),
        ("EXECUTE PLAN 'p'", "STATEMENT_NOT_YET", 1, "INSERT"),
        ("SHOW TABLES LIKE 'a%'", "CLAUSE_NOT_YET", 13, "SHOW TABLES alone"),
        ("SHOW MATERIALIZED VIEWS LIKE 'a%'", "CLAUSE_NOT_YET", 25, "SHOW MATERIALIZED VIEWS alone"),
        ("SELECT JSON_EXISTS(x, '$.a' TRUE ON ERROR) FROM s", "CLAUSE_NOT_YET", 29, "leave the clause out"),
        ("SET TIME ZONE 'UTC'", "STATEMENT_NOT_YET", 5, "UTC"),
        ("CREATE TABLE x WITH ('connector' = 'kafka') AS SELECT 1", "STATEMENT_NOT_YET", 45, "CREATE SINK"),
        ("CREATE TABLE x WITH (connector = 'kafka') AS SELECT 1", "STATEMENT_NOT_YET", 43, "CREATE SINK"),
        ("CREATE TABLE x WITH (partitions = 3) AS SELECT 1", "DIALECT_NOT_YET", 38, "MATERIALIZED VIEW"),
        ("CREATE CONNECTION IF NOT EXISTS c TO MYSQL (HOST 'b')", "DIALECT_NOT_YET", 38, "KAFKA"),
        ("ALTER CONNECTION c SET (a = 1)", "STATEMENT_NOT_YET", 7, "drop it"),
        (
            "CREATE STREAM s (r ROW<ts TIMESTAMP>, WATERMARK FOR r.ts AS r.ts)",
            "INVALID_WATERMARK",
            53,
            "computed column",
        ),
        ("CREATE STREAM s (a TIME(3))", "UNKNOWN_TYPE", 20, "STRING, or TIMESTAMP"),
        ("CREATE STREAM s (a INTERVAL)", "UNKNOWN_TYPE", 20, "number"),
        ("CREATE SINK k (a ARRAY<STRUCT<b INTERVAL>>) WITH (connector = 'x')", "UNKNOWN_TYPE", 18, "number"),
    ],
)
def test_what_is_not_there_is_refused_by_name(text: str, condition: str, column: int, words: str) -> None:
    error = refused(text)
    assert error.condition == condition
    assert error.span is not None
    assert error.span.column == column
    assert words in (error.hint or "")


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("CREATE TABLE x WITH ('topic' = 't') AS SELECT 1", "Flink"),
        ("CREATE TABLE x WITH (VALUE_FORMAT = 'JSON') AS SELECT 1", "ksqlDB"),
        ("CREATE CONNECTION c TO AWS (REGION 'b')", "Materialize"),
    ],
)
def test_the_system_a_spelling_belongs_to(text: str, system: str) -> None:
    assert f"of {system} " in refused(text).message


def test_the_bitwise_not_is_still_there() -> None:
    assert isinstance(selected("~a"), exp.BitwiseNot)
    assert isinstance(selected("a * ~b").expression, exp.BitwiseNot)
    assert refused("SELECT !~a FROM s").condition == "SYNTAX_ERROR"


@pytest.mark.parametrize("word", ["END", "EXECUTE", "EXECUTE something"])
def test_no_hint_suggests_the_word_that_was_found(word: str) -> None:
    error = refused(word)
    assert error.condition == "SYNTAX_ERROR"
    assert "did you mean" not in (error.hint or "")
    assert "EXECUTE STATEMENT SET BEGIN" in (error.hint or "")


@pytest.mark.parametrize(
    ("call", "order"),
    [
        ("CUMULATE(ts, INTERVAL '5' MINUTE)", "CUMULATE takes the step first"),
        ("CUMULATE(ts, INTERVAL '5' MINUTE, INTERVAL '7' MINUTE)", "CUMULATE takes the step first"),
        ("HOP(ts, INTERVAL '5' MINUTE)", "HOP takes the slide first"),
    ],
)
def test_a_window_hint_speaks_of_its_own_kind(call: str, order: str) -> None:
    hint = refused(f"SELECT 1 FROM s GROUP BY {call}").hint or ""
    assert hint.endswith(f"{order}, then the size")
    assert hint.count("HOP") == order.count("HOP")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("name ~ 'x'", "name RLIKE 'x'"),
        ("name !~ 'x'", "NOT name RLIKE 'x'"),
        ("name ~* 'x'", "name RLIKE '(?i)x'"),
        ("name !~* 'a' || b", "NOT name RLIKE '(?i)' || ('a' || b)"),
        ("name ~ 'x' AND n = 1", "name RLIKE 'x' AND n = 1"),
        ("~n + 1", "~n + 1"),
    ],
)
def test_operators_that_match_a_pattern(written: str, meant: str) -> None:
    assert selected(written) == selected(meant)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("TABLE t", "SELECT * FROM t"),
        ("TABLE t ORDER BY a LIMIT 3", "SELECT * FROM t ORDER BY a LIMIT 3"),
        ("SELECT a FROM s WHERE a IN (TABLE t)", "SELECT a FROM s WHERE a IN (SELECT * FROM t)"),
        ("SELECT * FROM t UNION TABLE u", "SELECT * FROM t UNION SELECT * FROM u"),
        ("SELECT * FROM t CROSS APPLY UNNEST(xs) AS u(x)", "SELECT * FROM t CROSS JOIN LATERAL UNNEST(xs) AS u(x)"),
        ("SELECT * FROM t OUTER APPLY f(x) AS u", "SELECT * FROM t LEFT JOIN LATERAL f(x) AS u ON TRUE"),
    ],
)
def test_other_words_for_relations(written: str, meant: str) -> None:
    assert parse_statement(written) == parse_statement(meant)
