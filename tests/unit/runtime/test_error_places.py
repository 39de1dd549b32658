"""Where the error of a value points in the text of its statement."""

from __future__ import annotations

import pytest

from penstock.errors import RuntimeFailure
from penstock.plan.script import StatementReport, analyze_script
from penstock.runtime.error_places import place
from penstock.runtime.failures import as_failure
from penstock.stores.files.faults import not_found
from penstock.stores.files.file_set import FileSet

SETUP = "CREATE STREAM s (k STRING, v BIGINT, w BIGINT, ts TIMESTAMP); CREATE VIEW below AS SELECT v * 2 AS x FROM s;"
MALFORMED = '[CAST_INVALID_INPUT] The value \'a\' of the type "STRING" cannot be cast to "BIGINT". SQLSTATE: 22018'
OVERFLOW = (
    '[CAST_OVERFLOW] The value 5L of the type "BIGINT" cannot be cast to "INT" due to an overflow. SQLSTATE: 22003'
)


def marked(line: str, part: str) -> str:
    """Spark's way to mark a part of a line."""
    return f"\n== SQL (line 2, position 3) ==\n{line}\n{' ' * line.index(part)}{'^' * len(part)}\n"


def reported(sql: str) -> StatementReport:
    report = analyze_script(f"{SETUP} {sql}")[-1]
    assert report.error is None, report.error
    return report


def pointed(sql: str, said: str) -> str:
    """What the error that Spark raised for a statement points at."""
    report = reported(sql)
    failure = as_failure("job m", RuntimeError(said))
    place(failure, report)
    assert failure.span is not None
    return f"{SETUP} {sql}"[failure.span.start : failure.span.end]


@pytest.mark.parametrize(
    ("query", "line", "part", "written"),
    [
        ("SELECT k + 1 AS x FROM s", "  CAST(`s`.`k` AS BIGINT) + 1 AS `x`", "CAST(`s`.`k` AS BIGINT)", "k"),
        ("SELECT v, abs(V\n + 1) AS x FROM s", "abs(`v` + 1) AS `x`", "`v` + 1", "V\n + 1"),
        ("SELECT v FROM s WHERE CAST(k AS BIGINT) > 5", "CAST(`k` AS BIGINT) > 5", "CAST(`k` AS BIGINT)", "CAST(k AS BIGINT)"),
        ("SELECT SUM(v * w) AS x FROM s", "SUM(`s`.`v` * `s`.`w`)", "`s`.`v` * `s`.`w`", "v * w"),
        ("SELECT 2 * (v + w) AS x FROM s", "2 * (`s`.`v` + `s`.`w`)", "2 * (`s`.`v` + `s`.`w`)", "2 * (v + w)"),
        ("SELECT (v + w) * 2 AS x FROM s", "(`s`.`v` + `s`.`w`) * 2", "(`s`.`v` + `s`.`w`) * 2", "(v + w) * 2"),
        ("SELECT -v * w AS x FROM s", "-`s`.`v` * `s`.`w`", "-`s`.`v` * `s`.`w`", "-v * w"),
        ("SELECT v + -w AS x FROM s", "`s`.`v` + -`s`.`w`", "-`s`.`w`", "-w"),
        ("SELECT v * w AS x, v * w AS y FROM s", "`s`.`v` * `s`.`w`", "`s`.`v` * `s`.`w`", "v * w"),
    ],
)  # fmt: skip
def test_the_expression_that_spark_marks_is_found(query: str, line: str, part: str, written: str) -> None:
    said = MALFORMED + marked(line, part)
    assert pointed(f"CREATE MATERIALIZED VIEW m AS {query}", said) == written
    assert pointed(f"CREATE SINK m WITH (connector = 'console') AS {query}", said) == written


def test_a_cast_that_spark_does_not_mark_is_found_by_its_types() -> None:
    query = "SELECT k, CAST(v AS INT) AS x, CAST(v AS SMALLINT) AS y FROM s"
    assert pointed(f"CREATE MATERIALIZED VIEW m AS {query}", OVERFLOW) == "CAST(v AS INT)"
    two = "SELECT CAST(v AS INT) AS x, CAST(w AS INT) AS y FROM s"
    assert pointed(f"CREATE MATERIALIZED VIEW m AS {two}", OVERFLOW) == two


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ("SELECT k, 1 / v AS x FROM s", "1 / v"),
        ("SELECT k, SUM(v) / (SUM(w) - 1) AS x FROM s GROUP BY k", "SUM(v) / (SUM(w) - 1)"),
        ("SELECT v % w AS x FROM s", "v % w"),
        ("SELECT 1 / v AS x, 1 / w AS y FROM s", "SELECT 1 / v AS x, 1 / w AS y FROM s"),
        ("SELECT 1 / v AS x FROM s WHERE MOD(v, w) = 1", "SELECT 1 / v AS x FROM s WHERE MOD(v, w) = 1"),
        ("SELECT 1 / x AS y FROM halves", "SELECT 1 / x AS y FROM halves"),
    ],
)
def test_the_only_division_is_what_divides_by_zero(query: str, written: str) -> None:
    """The view store tells that much alone."""
    setup = f"{SETUP} CREATE VIEW halves AS SELECT v / w AS x FROM s;"
    sql = f"{setup} CREATE MATERIALIZED VIEW m AS {query}"
    report = analyze_script(sql)[-1]
    failure = RuntimeFailure("DATA_ERROR", "job m: division by zero")
    place(failure, report)
    assert failure.span is not None
    assert sql[failure.span.start : failure.span.end] == written


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT v FROM s", MALFORMED),
        ("SELECT v FROM s", MALFORMED + marked("`v` * 3", "`v` * 3")),
        ("SELECT x + 1 AS y FROM below", MALFORMED + marked("`s`.`v` * 2 AS `x`", "`s`.`v` * 2")),
    ],
)
def test_nothing_larger_than_the_query_is_pointed_at(query: str, said: str) -> None:
    """Also where the expression stands in a view below, which another statement has made."""
    assert pointed(f"CREATE MATERIALIZED VIEW m AS {query}", said) == query


def test_types_that_only_spark_can_tell_point_there_too() -> None:
    class Context:
        def fragment(self) -> str:
            return "`s`.`v` +\n  `s`.`w`"

    class AnalysisError(Exception):
        def getQueryContext(self) -> list[Context]:  # noqa: N802  (its name in Spark)
            return [Context()]

    said = AnalysisError(
        '[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] Cannot resolve "(v + w)" due to data type mismatch: the left and right '
        'operands of the binary operator have incompatible types ("A" and "B"). SQLSTATE: 42K09; line 5 pos 2;\n\'Project'
    )
    failure = as_failure("job m", said)
    assert failure.condition == "TYPE_MISMATCH"
    assert failure.message.startswith('job m: "(v + w)": the left and right operands')
    sql = "CREATE MATERIALIZED VIEW m AS SELECT v + w AS x FROM s"
    place(failure, reported(sql))
    assert failure.span is not None
    assert f"{SETUP} {sql}"[failure.span.start : failure.span.end] == "v + w"


def test_a_place_that_is_known_stays() -> None:
    report = reported("CREATE MATERIALIZED VIEW m AS SELECT v FROM s")
    known = RuntimeFailure("DATA_ERROR", "x", span=report.span)
    place(known, report)
    assert known.span == report.span


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ("SELECT * FROM gone AS g", "gone"),
        ("SELECT k FROM s JOIN Gone ON a = v", "Gone"),
        ("SELECT * FROM over_gone", "SELECT * FROM over_gone"),
    ],
)
def test_a_file_that_is_not_there_is_told_where_its_table_is_read(query: str, written: str) -> None:
    setup = (
        f"{SETUP} CREATE TABLE gone (a BIGINT) WITH (connector = 'file', path = '/nowhere/x.csv', format = 'csv'); "
        "CREATE VIEW over_gone AS SELECT a FROM gone; "
    )
    report = analyze_script(setup + query)[-1]
    error = not_found(FileSet(relation="gone", path="/nowhere/x.csv"))
    place(error, report)
    assert error.span is not None
    assert (setup + query)[error.span.start : error.span.end] == written


def test_a_sink_of_directories_by_a_column_that_is_not_there() -> None:
    sql = "CREATE SINK m WITH (connector = 'file', path = '/tmp/m', format = 'csv', partition_by = 'k, zz') AS SELECT k FROM s"
    error = analyze_script(f"{SETUP} {sql}")[-1].error
    assert error is not None
    assert (error.condition, "zz" in error.message) == ("UNKNOWN_COLUMN", True)
    assert error.span is not None
    assert f"{SETUP} {sql}"[error.span.start : error.span.end] == "'k, zz'"
