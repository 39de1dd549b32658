"""Queries: the trees the planner is given."""

from __future__ import annotations

from typing import cast

import pytest
from sqlglot import exp

from penstock.errors import PenstockError
from penstock.sql.format import format_statement
from penstock.sql.nodes import SystemTime
from penstock.sql.script import parse_script, parse_statement
from penstock.sql.statements import Emit, Select


def select(text: str) -> Select:
    statement = parse_statement(text)
    assert isinstance(statement, Select)
    return statement


def tree(text: str) -> exp.Select:
    return cast(exp.Select, select(text).query.tree)


def item(text: str) -> exp.Expr:
    found: exp.Expr = tree(f"SELECT {text} FROM t").selects[0]
    return found


def refusal(text: str) -> PenstockError:
    [parsed] = parse_script(text)
    assert parsed.error is not None, text
    return parsed.error


@pytest.mark.parametrize(
    "call",
    [
        "COUNT(*)",
        "sum(a)",
        "COALESCE(a, b)",
        "SUBSTRING(a, 1, 2)",
        "TRIM(a)",
        "POSITION(a, b)",
        "FLOOR(x)",
        "CEIL(x)",
        "TO_TIMESTAMP_LTZ(a, 3)",
        "NOW()",
        "PROCTIME()",
        "date_trunc('hour', ts)",
        "left(a, 2)",
        "filter(xs, x -> x > 1)",
        "MAP('a', 1)",
        "IFNULL(a, b)",
        "concat(a, b)",
        "window_time(w)",
        "first(a)",
        "EXISTS(xs, x -> x > 1)",
        "trunc(a)",
    ],
)
def test_ordinary_calls_keep_their_name(call: str) -> None:
    """The function registry alone decides what a name means."""
    found = item(call)
    assert isinstance(found, exp.Anonymous)
    assert found.this == call.split("(", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CAST(a AS INT)", exp.Cast),
        ("a::INT", exp.Cast),
        ("TRY_CAST(a AS INT)", exp.TryCast),
        ("TIMESTAMP '2020-01-01 00:00:00'", exp.Cast),
        ("EXTRACT(HOUR FROM ts)", exp.Extract),
        ("TRIM(BOTH 'x' FROM a)", exp.Trim),
        ("SUBSTRING(a FROM 2 FOR 3)", exp.Substring),
        ("POSITION('a' IN b)", exp.StrPosition),
        ("OVERLAY(a PLACING b FROM 1)", exp.Overlay),
        ("CASE WHEN a THEN 1 END", exp.Case),
        ("IF(a, 1, 2)", exp.If),
        ("INTERVAL '1' DAY", exp.Interval),
        ("CURRENT_DATE", exp.CurrentDate),
        ("CURRENT_TIMESTAMP", exp.CurrentTimestamp),
        ("CURRENT_TIMESTAMP()", exp.CurrentTimestamp),
        ("LOCALTIMESTAMP", exp.Localtimestamp),
        ("ARRAY[1, 2]", exp.Array),
        ("MAP['a', 1]", exp.VarMap),
        ("ROW(1, 2)", exp.Struct),
        ("STRUCT(1 AS a)", exp.Struct),
        ("a -> 'b'", exp.JSONExtract),
        ("a ->> 'b'", exp.JSONExtractScalar),
        ("a #> 'b'", exp.JSONBExtract),
        ("a[1]", exp.Bracket),
        ("map['a']", exp.Bracket),
        ("ts AT TIME ZONE 'UTC'", exp.AtTimeZone),
        ("a || b", exp.DPipe),
        ("a <=> b", exp.NullSafeEQ),
        ("a IS DISTINCT FROM b", exp.NullSafeNEQ),
        ("a SIMILAR TO 'x'", exp.SimilarTo),
        ("a RLIKE 'x'", exp.RegexpLike),
        ("SUM(a) OVER (PARTITION BY b)", exp.Window),
        ("SUM(a) FILTER (WHERE b > 1)", exp.Filter),
        ("LISTAGG(a) WITHIN GROUP (ORDER BY a)", exp.WithinGroup),
        ("FLOOR(ts TO HOUR)", exp.Anonymous),
        ("EXISTS (SELECT 1)", exp.Exists),
        ("X'1f'", exp.HexString),
    ],
)
def test_what_has_a_node_of_its_own(text: str, kind: type[exp.Expr]) -> None:
    assert type(item(text)) is kind


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT CAST(a AS VARCHAR) FROM t", "SELECT a::STRING FROM t"),
        ("SELECT CAST(a AS TIMESTAMP(3)) FROM t", "SELECT a::TIMESTAMPTZ FROM t"),
        ("SELECT FLOOR(ts TO HOUR) FROM t", "SELECT DATE_TRUNC('HOUR', ts) FROM t"),
        ("SELECT * FROM a INNER JOIN b ON a.x = b.x", "SELECT * FROM a JOIN b ON a.x = b.x"),
        ("SELECT * FROM a LEFT OUTER JOIN b USING (x)", "SELECT * FROM a LEFT JOIN b USING (x)"),
        ("SELECT * FROM a LEFT ASOF JOIN b ON a.x = b.x", "SELECT * FROM a ASOF LEFT JOIN b ON a.x = b.x"),
        ("SELECT * FROM a LEFT SEMI JOIN b ON a.x = b.x", "SELECT * FROM a SEMI JOIN b ON a.x = b.x"),
        ("SELECT a FROM t FETCH FIRST 5 ROWS ONLY", "SELECT a FROM t LIMIT 5"),
        ("SELECT a FROM t LIMIT ALL", "SELECT a FROM t"),
        ("SELECT a FROM t MINUS SELECT minus FROM u minus", "SELECT a FROM t EXCEPT SELECT minus FROM u AS minus"),
        ("SELECT a FROM t MINUS ALL SELECT b FROM u", "SELECT a FROM t EXCEPT ALL SELECT b FROM u"),
        ("SELECT ALL a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY a"),
        ("SELECT a != b, a == b FROM t", "SELECT a <> b, a = b FROM t"),
        ("((SELECT 1))", "SELECT 1"),
        ("SELECT LAG(x IGNORE NULLS) OVER w FROM t", "SELECT LAG(x) IGNORE NULLS OVER w FROM t"),
        (
            "SELECT SUM(x) OVER (ORDER BY ts ROWS 2 PRECEDING) FROM t",
            "SELECT SUM(x) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t",
        ),
        ("SELECT JSON_VALUE(a, '$.b' RETURNING INT) FROM t", "SELECT CAST(JSON_VALUE(a, '$.b') AS INT) FROM t"),
        ("SELECT a b FROM t u", "SELECT a AS b FROM t AS u"),
        ("SELECT NOT a IN (1) FROM t", "SELECT a NOT IN (1) FROM t"),
        (
            "SELECT * FROM o JOIN LATERAL TABLE(SNAPSHOT(input => TABLE d)) AS d ON o.x = d.x",
            "SELECT * FROM o JOIN d FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.x = d.x",
        ),
    ],
)
def test_spellings_of_one_query(first: str, second: str) -> None:
    assert select(first) == select(second)


@pytest.mark.parametrize("word", ["UNION", "UNION ALL", "UNION DISTINCT", "EXCEPT", "INTERSECT"])
@pytest.mark.parametrize(
    "source", ["(SELECT a FROM t) AS x", "(SELECT a FROM t)", "s, (SELECT a FROM t) AS x", "(t JOIN u USING (a))"]
)
def test_a_set_operation_behind_a_subquery(word: str, source: str) -> None:
    """L7: it belongs to the SELECT around the subquery, not to the subquery."""
    found = tree(f"SELECT a FROM {source} {word} SELECT b FROM v")
    assert isinstance(found, exp.SetOperation)
    assert isinstance(found.this, exp.Select)
    assert isinstance(found.expression, exp.Select)
    assert found.this == tree(f"SELECT a FROM {source}")
    assert tree(f"SELECT a FROM {source} WHERE true {word} SELECT b FROM v").expression == found.expression


@pytest.mark.parametrize("word", ["UNION ALL", "EXCEPT", "INTERSECT"])
def test_a_set_operation_in_brackets_is_the_subquery(word: str) -> None:
    """L7"""
    for text in (
        f"((SELECT a FROM t) {word} (SELECT b FROM u)) AS x",
        f"(SELECT a FROM t {word} SELECT b FROM u) AS x",
    ):
        found = tree(f"SELECT a FROM {text}")
        assert isinstance(found, exp.Select)
        assert isinstance(found.args["from_"].this.this, exp.SetOperation)


def test_joins() -> None:
    """G11, L7: sides and methods; a comma is a join with nothing."""
    found = tree("SELECT * FROM a LEFT JOIN b ON a.x = b.x CROSS JOIN c NATURAL JOIN d ASOF JOIN e MATCH_CONDITION(a.t >= e.t) "
                 "ON a.x = e.x, f").args["joins"]  # fmt: skip
    shapes = [(join.method, join.side, join.kind) for join in found]
    assert shapes == [("", "LEFT", ""), ("", "", "CROSS"), ("NATURAL", "", ""), ("ASOF", "", ""), ("", "", "")]
    assert isinstance(found[3].args["match_condition"], exp.GTE)
    assert not found[4].args.get("on")


def test_system_time_before_or_behind_the_alias() -> None:
    before = tree("SELECT * FROM a JOIN b FOR SYSTEM_TIME AS OF a.ts AS c ON TRUE").args["joins"][0].this
    behind = tree("SELECT * FROM a JOIN b AS c FOR SYSTEM_TIME AS OF a.ts ON TRUE").args["joins"][0].this
    assert before == behind
    assert isinstance(before.args["system_time"], SystemTime)
    assert before.alias == "c"


@pytest.mark.parametrize(
    ("text", "emit"),
    [
        ("SELECT a FROM t", None),
        ("SELECT a FROM t EMIT CHANGES", Emit.CHANGES),
        ("SELECT a FROM t emit final", Emit.FINAL),
        ("SELECT a FROM t EMIT ON WINDOW CLOSE", Emit.FINAL),
        ("SELECT a FROM t EMIT CHANGES LIMIT 5", Emit.CHANGES),
        ("SELECT a FROM t LIMIT 5 EMIT CHANGES", Emit.CHANGES),
        ("SELECT a FROM t UNION ALL SELECT b FROM u EMIT CHANGES", Emit.CHANGES),
    ],
)
def test_emit_stands_at_the_end(text: str, emit: Emit | None) -> None:
    """DEC15, G5"""
    assert select(text).query.emit is emit


def test_limit_may_follow_emit() -> None:
    assert select("SELECT a FROM t EMIT CHANGES LIMIT 5") == select("SELECT a FROM t LIMIT 5 EMIT CHANGES")
    assert select("SELECT a FROM t LIMIT 5 EMIT CHANGES").query.tree.args.get("limit") is not None


def test_emit_inside_brackets_is_refused() -> None:
    error = refusal("SELECT * FROM (SELECT a FROM t EMIT CHANGES) x")
    assert error.message == "expected ), found EMIT"
    assert error.hint == "EMIT stands at the end of the statement, outside of all brackets"


def test_json_paths_and_lambdas_are_told_apart() -> None:
    assert isinstance(item("f(payload -> 'a')").expressions[0], exp.JSONExtract)
    assert isinstance(item("f(payload -> 0)").expressions[0], exp.JSONExtract)
    assert isinstance(item("f((payload) -> 'a')").expressions[0], exp.JSONExtract)
    assert isinstance(item("f(xs, x -> x + 1)").expressions[1], exp.Lambda)
    assert isinstance(item("f(xs, x -> 'p' || x)").expressions[1], exp.Lambda)
    assert isinstance(item("f(xs, (x, y) -> 1)").expressions[1], exp.Lambda)


def test_named_arguments_and_units() -> None:
    call = item("f(a => 1, limit => 2)")
    assert [type(argument) for argument in call.expressions] == [exp.Kwarg, exp.Kwarg]
    assert item("TIMESTAMPDIFF(seconds, a, b)").expressions[0] == exp.Var(this="SECOND")
    assert isinstance(item("TIMESTAMPDIFF(a, b)").expressions[0], exp.Column)


def test_grouping_sets_are_items_of_the_group() -> None:
    group = tree("SELECT a FROM t GROUP BY a, GROUPING SETS ((a), ()), ROLLUP (b, c), CUBE (d)").args["group"]
    assert [type(found) for found in group.expressions] == [exp.Column, exp.GroupingSets, exp.Rollup, exp.Cube]


def test_everything_of_a_query_at_once() -> None:
    """A11: CTE, subquery, CASE, UNION ALL, nested calls, a string that holds a bracket."""
    found = tree(
        "WITH x AS (SELECT * FROM t WHERE a = 'TUMBLE(('), y AS (SELECT UPPER(TRIM(CONCAT(a, 'b'))) AS c FROM x) "
        "SELECT CASE WHEN c > (SELECT MAX(d) FROM u) THEN 1 ELSE 2 END FROM y UNION ALL SELECT 3"
    )
    assert isinstance(found, exp.Union)
    assert [cte.alias for cte in found.args["with_"].expressions] == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("SELECT", "expected an expression, found the end of the statement", 7),
        ("SELECT FROM t", "expected an expression, found FROM", 8),
        ("SELECT a, FROM t", "expected an expression, found FROM", 11),
        ("SELECT a FROM", "expected a table name, found the end of the statement", 14),
        ("SELECT a FROM t,", "expected a table name, found the end of the statement", 17),
        ("SELECT a FROM t WHERE", "expected an expression, found the end of the statement", 22),
        ("SELECT a FROM t WHERE AND b", "expected an expression, found AND", 23),
        ("SELECT a FROM t WHERE a > AND b", "expected an expression, found AND", 27),
        ("SELECT a FROM t GROUP BY", "expected an expression, found the end of the statement", 25),
        ("SELECT a FROM t JOIN u", "expected ON or USING, found the end of the statement", 23),
        ("SELECT a FROM t LEFT u ON TRUE", "unexpected LEFT", 17),
        ("SELECT a FROM t LIMIT", "expected a number, found the end of the statement", 22),
        ("SELECT CASE WHEN a 1 END", "expected THEN, found 1", 20),
        ("SELECT CASE a END", "expected WHEN, found END", 15),
        ("SELECT a BETWEEN 1 OR 2", "expected AND, found OR", 20),
        ("SELECT a IN 1", "expected (, found 1", 13),
        ("SELECT a IN ()", "expected an expression, found )", 14),
        ("SELECT a IS 5", "expected NULL, TRUE, FALSE or DISTINCT FROM, found the end of the statement", 14),
        ("SELECT CAST(a INT)", "expected AS, found INT", 15),
        ("SELECT f(a b)", "expected ), found b", 12),
        ("SELECT f(a,)", "expected an expression, found )", 12),
        ("SELECT 1 2", "unexpected 2", 10),
        ("SELECT 'a' 'b'", "unexpected a string", 12),
        ("SELECT a AS 1", "expected a name, found 1", 13),
        ("SELECT a AS 'x'", "expected a name, found a string", 13),
        ("SELECT ? FROM t", "expected an expression, found ?", 8),
        ("SELECT :x FROM t", "expected an expression, found :", 8),
        ("SELECT a FROM t LIMIT 3 UNION SELECT 1", "unexpected UNION", 25),
        ("SELECT 1 UNION", "expected SELECT, found the end of the statement", 15),
        ("WITH a AS (SELECT 1)", "expected SELECT, found the end of the statement", 21),
        ("WITH a (SELECT 1) SELECT 2", "expected a name, found SELECT", 9),
        ("WITH a AS (INSERT INTO t SELECT 1) SELECT 2", "expected SELECT, found INSERT", 12),
        ("SELECT {a} FROM t", "expected an expression, found {", 8),
        ("SELECT COUNT(DISTINCT) FROM t", "expected an expression, found )", 22),
        ("SELECT SUM(a) FILTER (b > 1) FROM t", "expected WHERE, found b", 23),
        ("SELECT SUM(a) OVER (ROWS 5) FROM t", "expected PRECEDING or FOLLOWING, found )", 27),
        ("SELECT a ->> b FROM t", "expected a key in quotes or a number, found b", 14),
        ("SELECT a. FROM t", "expected an expression, found FROM", 11),
        ("SELECT a FROM t. AS u", "expected a table name, found AS", 18),
        ("SELECT 1 UNION ALL FROM t", "expected SELECT, found FROM", 20),
    ],
)
def test_syntax_errors_say_what_was_expected(text: str, message: str, place: int) -> None:
    """A10: sqlglot lets some of these pass; we do not."""
    error = refusal(text)
    assert (error.condition, error.message) == ("SYNTAX_ERROR", message)
    assert error.span is not None
    assert error.span.column == place


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SELECT * FROM t PIVOT (SUM(a) FOR b IN (ANY))", "CLAUSE_NOT_YET"),
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT)", "UNSUPPORTED_CLAUSE"),
        ("SELECT a FROM t SORT BY a", "CLAUSE_NOT_YET"),
        ("SELECT a FROM t CLUSTER BY a", "CLAUSE_NOT_YET"),
        ("SELECT a FROM t CONNECT BY a", "CLAUSE_NOT_YET"),
        ("SELECT TRANSFORM(a) USING 'cat' FROM t", "UNSUPPORTED_CLAUSE"),
        ("SELECT CEIL(ts TO HOUR) FROM t", "CLAUSE_NOT_YET"),
        ("SELECT CAST(a AS MONEYBAG) FROM t", "UNKNOWN_TYPE"),
        ("SELECT a FROM FLOW.x.y.z", "SYNTAX_ERROR"),
    ],
)
def test_clauses_that_are_not_there(text: str, condition: str) -> None:
    assert refusal(text).condition == condition


def test_alias_words_that_begin_clauses() -> None:
    """A word is an alias unless it really begins a clause."""
    assert tree("SELECT a emit FROM t format").selects[0].alias == "emit"
    assert tree("SELECT a offset FROM t").selects[0].alias == "offset"
    assert tree("SELECT a FROM t OFFSET 5").args["offset"] is not None
    assert tree("SELECT a window FROM t AS window").args["from_"].this.alias == "window"
    assert tree("SELECT SUM(a) OVER w FROM t WINDOW w AS (PARTITION BY b)").args["windows"]


@pytest.mark.parametrize("text", ["SELECT 1 .a AS b", "SELECT -1 .a", "SELECT 1 .*", "SELECT 1. .a", "SELECT 1 . f(2)"])
def test_a_number_has_no_fields(text: str) -> None:
    [parsed] = parse_script(text)
    assert parsed.error is not None
    assert parsed.error.condition == "SYNTAX_ERROR"
    assert parsed.error.span is not None
    assert parsed.error.span.start == text.rindex(".")


@pytest.mark.parametrize("text", ["SELECT (1).a AS b", "SELECT (-1).a", "SELECT (1).*"])
def test_a_field_of_what_stands_in_brackets_reads_back(text: str) -> None:
    canonical = format_statement(parse_statement(text))
    assert format_statement(parse_statement(canonical)) == canonical


def test_an_empty_pattern_is_a_syntax_error() -> None:
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES x AS p PATTERN () DEFINE B AS B.price > 1) AS m"
    [parsed] = parse_script(text)
    assert parsed.error is not None
    assert parsed.error.condition == "SYNTAX_ERROR"
    assert parsed.error.span is not None
    assert parsed.error.span.start == text.index("()") + 1


def test_match_recognize_without_definitions_can_be_printed() -> None:
    canonical = format_statement(parse_statement("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) AS m"))
    assert format_statement(parse_statement(canonical)) == canonical


@pytest.mark.parametrize("text", ["SELECT * FROM '/etc/passwd'", "SELECT * FROM t JOIN 'data/*.json' ON TRUE"])
def test_a_path_in_the_place_of_a_table_is_told_how_to_become_one(text: str) -> None:
    error = refusal(text)
    assert (error.condition, error.message) == ("SYNTAX_ERROR", "expected a table name, found a string")
    assert error.hint is not None
    assert "CREATE TABLE t (…) WITH (connector = 'file', path = '…')" in error.hint
    assert refusal("SELECT * FROM 5").hint is None
