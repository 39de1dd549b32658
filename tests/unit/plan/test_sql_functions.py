"""Functions in SQL: their body stands in the place of each call (U1)."""

from __future__ import annotations

import pytest

from penstock.catalog.model import FunctionDefinition, ObjectKey
from penstock.plan.explain import explain_text
from penstock.plan.job_plan import plan_job
from penstock.plan.script import analyze_script
from penstock.sql.format import format_statement
from penstock.sql.script import parse_statement
from penstock.types import DOUBLE, INT
from tests.unit.plan.analysis import last, planned, refused, spark

NET = "CREATE FUNCTION net(gross DOUBLE, rate DOUBLE) RETURNS DOUBLE RETURN gross / (1 + rate);"


def test_the_body_stands_in_the_place_of_the_call() -> None:
    text = spark(NET + "SELECT net(price, 0.2) AS n FROM trades")
    assert "net(" not in text.lower()
    assert "(`trades`.`price`) / (1 + (CAST(0.2 AS DOUBLE)))" in text
    plan = planned(NET + "SELECT net(price, 0.2) AS n FROM trades")
    assert plan.columns[0].type == DOUBLE
    assert plan.functions == ()
    assert plan.in_place == ("net",)
    assert plan_job(plan).in_place == ("net",)


@pytest.mark.parametrize(
    "made",
    [
        "CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1",
        "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE sql DETERMINISTIC CONTAINS SQL RETURN x + 1",
        "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE SQL AS $$ SELECT x + 1 $$",
        "CREATE FUNCTION f(x INT) RETURNS INT AS 'SELECT x + 1 AS y;' LANGUAGE SQL IMMUTABLE",
        "CREATE FUNCTION f(x INT) RETURNS INT AS $body$ x + 1 $body$ LANGUAGE sql",
        "CREATE FUNCTION f(x INT) RETURN x + 1",
    ],
)
def test_spellings_of_one_function(made: str) -> None:
    assert spark(f"{made}; SELECT f(volume) AS y FROM trades") == (
        "SELECT ((`trades`.`volume`) + 1) AS `y` FROM `trades` AS `trades`"
    )
    statement = parse_statement(made)
    assert parse_statement(format_statement(statement, lambda _: False)) == statement


def test_parameters_by_their_places() -> None:
    made = "CREATE FUNCTION f(INT, INT) RETURNS INT LANGUAGE SQL AS 'SELECT $2 - $1';"
    assert "((1) - (`trades`.`volume`))" in spark(made + "SELECT f(volume, 1) AS y FROM trades")
    statement = parse_statement(made)
    assert parse_statement(format_statement(statement, lambda _: False)) == statement


def test_arguments_and_results_have_the_types_that_are_declared() -> None:
    made = "CREATE FUNCTION f(x BIGINT) RETURNS INT RETURN x * 2;"
    assert spark(made + "SELECT f(volume) AS y FROM trades").startswith(
        "SELECT CAST((CAST(`trades`.`volume` AS BIGINT)) * 2 AS INT)"
    )
    assert planned(made + "SELECT f(volume) AS y FROM trades").columns[0].type == INT
    error = last(made + "SELECT f(symbol) AS y FROM trades").error
    assert error is not None
    assert (error.condition, error.message) == ("TYPE_MISMATCH", "argument 1 of function f is BIGINT, not STRING")


@pytest.mark.parametrize(
    "call", ["net(gross => price, rate => 0.2)", "net(rate => 0.2, GROSS => price)", "net(price, rate => 0.2)"]
)
def test_arguments_are_given_by_name(call: str) -> None:
    assert spark(NET + f"SELECT {call} AS n FROM trades") == spark(NET + "SELECT net(price, 0.2) AS n FROM trades")
    grouped = f"SELECT {call} AS n, COUNT(*) AS c FROM trades GROUP BY {call}"
    assert planned(NET + f"CREATE MATERIALIZED VIEW v AS {grouped}").columns[0].type == DOUBLE


def test_arguments_of_functions_in_python_are_given_by_name() -> None:
    made = "CREATE FUNCTION py(x INT, y INT) RETURNS INT LANGUAGE python AS 'm.py';"
    assert "py(1, `trades`.`volume`)" in spark(made + "SELECT py(y => volume, x => 1) AS r FROM trades")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("net(gross => price)", "function net is called without rate"),
        ("net(price, gross => 1)", "argument gross of function net is given twice"),
        ("net(rate => 1, rate => 2)", "argument rate of function net is given twice"),
        ("net(gross => price, tax => 1)", "function net has no parameter tax"),
        (
            "net(gross => price, 1)",
            "an argument of function net without a name stands behind one with a name",
        ),
        ("net(price, 1, 2, rate => 3)", "argument rate of function net is given twice"),
        ("nameless(x => volume)", "the parameters of function nameless have no names"),
        ("net(gross => symbol, rate => 1)", "argument 1 of function net is DOUBLE, not STRING"),
        ("UPPER(x => symbol)", "argument x is given by name, which only functions made with CREATE FUNCTION take"),
    ],
)
def test_named_arguments_that_do_not_fit(call: str, told: str) -> None:
    made = NET + "CREATE FUNCTION nameless(INT) RETURNS INT LANGUAGE SQL AS 'SELECT $1 + 1';"
    error = last(f"{made} SELECT {call} AS n FROM trades").error
    assert error is not None
    assert error.message == told
    assert error.span is not None


def test_functions_call_functions() -> None:
    made = "CREATE FUNCTION twice(x INT) RETURNS INT RETURN x + x; CREATE FUNCTION more(x INT) RETURNS INT RETURN twice(x) + 1;"
    report = last(made + "SELECT more(volume) AS y FROM trades")
    assert report.plan is not None
    assert report.plan.in_place == ("more", "twice")
    assert "(((`trades`.`volume`)) + ((`trades`.`volume`)))" in spark(made + "SELECT more(volume) AS y FROM trades")
    assert report.session is not None
    more = report.session.catalog[ObjectKey("function", "more")]
    assert isinstance(more, FunctionDefinition)
    assert more.depends_on == (ObjectKey("function", "twice"),)
    assert refused(made + "DROP FUNCTION twice") == "DEPENDENT_OBJECTS"
    assert refused(made + "CREATE OR REPLACE FUNCTION twice(x INT) RETURNS INT RETURN more(x)") == "DEPENDENCY_CYCLE"


def test_functions_in_python_are_called_by_functions_in_sql() -> None:
    made = (
        "CREATE FUNCTION py(x INT) RETURNS INT LANGUAGE python AS 'm.py';"
        "CREATE FUNCTION f(x INT) RETURNS INT RETURN py(x) + 1;"
    )
    plan = planned(made + "SELECT f(volume) AS y FROM trades")
    assert (plan.functions, plan.in_place) == (("py",), ("f",))


def test_aggregates_group_and_filter_by_functions() -> None:
    text = spark(
        NET + "CREATE MATERIALIZED VIEW v AS SELECT net(price, 0.2) AS n, SUM(net(price, 0.1)) AS s FROM trades "
        "WHERE net(price, 0.5) > 1 GROUP BY net(price, 0.2) HAVING MAX(net(price, 0.3)) > 0"
    )
    assert "GROUP BY ((`trades`.`price`) / (1 + (CAST(0.2 AS DOUBLE))))" in text
    over = planned(NET + "CREATE MATERIALIZED VIEW v AS SELECT net(SUM(price), 0.2) AS n FROM trades GROUP BY symbol")
    assert over.in_place == ("net",)


def test_a_view_that_calls_a_function_is_built_on_it() -> None:
    view = NET + "CREATE VIEW v AS SELECT net(price, 0.2) AS n FROM trades;"
    assert refused(view + "DROP FUNCTION net") == "DEPENDENT_OBJECTS"
    assert planned(view + "SELECT n FROM v").in_place == ("net",)


def test_computed_columns_call_functions() -> None:
    made = "CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1; CREATE STREAM s (a INT, b AS f(a));"
    assert planned(made + "SELECT b FROM s").columns[0].type == INT
    assert refused(made + "DROP FUNCTION f") == "DEPENDENT_OBJECTS"


def test_explain_shows_the_expression() -> None:
    report = last(NET + "EXPLAIN SELECT symbol FROM trades WHERE net(price, 0.2) > 1")
    text = explain_text(report)
    assert "in Python" not in text
    assert "functions   in their places: net" in text


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN f(x)", "INVALID_DEFINITION"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN y", "UNKNOWN_COLUMN"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN SUM(x)", "MISPLACED_AGGREGATE"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN ROW_NUMBER() OVER (ORDER BY x)", "MISPLACED_AGGREGATE"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN (SELECT MAX(volume) FROM trades)", "CLAUSE_NOT_YET"),
        ("CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE SQL AS 'SELECT volume FROM trades'", "CLAUSE_NOT_YET"),
        ("CREATE FUNCTION f(x ARRAY<INT>) RETURNS INT RETURN EXPLODE(x)", "CLAUSE_NOT_YET"),
        ("CREATE FUNCTION f(x INT) RETURNS TIMESTAMP RETURN NOW()", "CLAUSE_NOT_YET"),
        ("CREATE FUNCTION f(x INT) RETURNS DOUBLE RETURN RAND() * x", "CLAUSE_NOT_YET"),
        ("CREATE FUNCTION f(x INT) RETURNS ARRAY<INT> RETURN x", "TYPE_MISMATCH"),
        ("CREATE FUNCTION f(x INT) STRICT RETURNS INT RETURN x", "CLAUSE_NOT_YET"),
        ("CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE python RETURN x", "UNSUPPORTED_CLAUSE"),
        ("CREATE FUNCTION f(x INT) RETURNS INT WITH (takes = 'arrow') RETURN x", "UNSUPPORTED_CLAUSE"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN x; SELECT f() FROM trades", "INVALID_ARGUMENT"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN x; SELECT f(1, 2) FROM trades", "INVALID_ARGUMENT"),
        ("CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE RETURN x * x; SELECT f(RAND()) FROM trades", "INVALID_ARGUMENT"),
        ("SELECT $1 FROM trades", "SYNTAX_ERROR"),
    ],
)
def test_what_a_function_cannot_be(sql: str, condition: str) -> None:
    assert refused(sql) == condition


def test_an_argument_that_is_read_once_may_differ_from_call_to_call() -> None:
    assert last("CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE RETURN x * 2; SELECT f(RAND()) AS r FROM trades").ok


def test_functions_that_double_are_refused_before_they_cost_time() -> None:
    made = "CREATE FUNCTION f0(x INT) RETURNS INT RETURN x + x;" + "".join(
        f"CREATE FUNCTION f{n}(x INT) RETURNS INT RETURN f{n - 1}(f{n - 1}(x));" for n in range(1, 6)
    )
    conditions = [report.error.condition for report in analyze_script(made) if report.error is not None]
    assert conditions[0] == "STATEMENT_TOO_DEEP"


@pytest.mark.parametrize(
    ("body", "column"),
    [("$$ SELECT x + y $$", 68), ("'SELECT x + y'", 66), ("'SELECT ''a'' || y'", 54)],
)
def test_what_is_wrong_with_a_body_is_pointed_at(body: str, column: int) -> None:
    error = analyze_script(f"CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE SQL AS {body}")[-1].error
    assert error is not None
    assert error.span is not None
    assert error.span.column == column
