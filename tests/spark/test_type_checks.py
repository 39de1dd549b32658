"""What the planner refuses for its types, Spark's analyzer refuses: nothing that runs is refused before it runs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from penstock.catalog.argument_types import checked_functions
from penstock.catalog.functions import find_function
from penstock.errors import PenstockError
from penstock.plan import calls, expressions, join_conditions, select
from penstock.plan.script import analyze_script
from penstock.plan.spark_text import spark_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

COLUMNS = {
    "b": "BOOLEAN", "t": "TINYINT", "i": "INT", "l": "BIGINT", "u": "BIGINT UNSIGNED", "f": "FLOAT", "d": "DOUBLE",
    "m": "DECIMAL(10, 2)", "s": "STRING", "y": "BINARY", "dt": "DATE", "ts": "TIMESTAMP", "ai": "ARRAY<INT>",
    "ast": "ARRAY<STRING>", "mp": "MAP<STRING, INT>", "st": "STRUCT<a INT, b STRING>",
}  # fmt: skip
TABLE = (
    f"CREATE TABLE x ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())}) "
    "WITH (connector = 'file', path = 'x.json');"
)
LITERALS = ("TRUE", "5", "5000000000", "5e0", "5.5", "'5'", "'a'", "DATE '2026-01-01'", "TIMESTAMP '2026-01-01 00:00:00'",
            "INTERVAL '1' DAY", "INTERVAL '1' MONTH", "NULL", "ARRAY[1, 2]")  # fmt: skip
MADE = ("ts - ts", "dt - dt", "ts + INTERVAL '1' HOUR", "i + 1", "s || 'a'", "i > 5", "CAST(i AS STRING)", "d * 2",
        "CAST(s AS DATE)", "COUNT(*)", "MAX(ts)", "SUM(m)", "COALESCE(i, 1)", "st.a", "ai[1]", "mp['k']", "i / 2", "-d")  # fmt: skip
LEAVES = (*COLUMNS, *LITERALS, *MADE)
OPERATORS = (
    *(f"({{}}) {sign} ({{}})" for sign in ("+", "-", "*", "/", "%", "=", "<>", "<", ">=", "IS DISTINCT FROM", "AND", "OR")),
    "({}) BETWEEN ({}) AND ({})", "({}) IN ({}, {})", "({}) LIKE ({})", "-({})", "NOT ({})", "CASE WHEN {} THEN 1 END",
    "CASE {} WHEN {} THEN 1 END", "COUNT(*) FILTER (WHERE {})", "SUM({}) FILTER (WHERE i > 1)",
)  # fmt: skip
OTHERS = ("coalesce({}, {})", "nullif({}, {})", "greatest({}, {})", "concat({}, {})", "CAST({} AS STRING)", "to_date({})",
          "IF({}, 1, 2)", "date_add({}, {})", "datediff({}, {})", "array({}, {})", "EXTRACT(HOUR FROM {})")  # fmt: skip


class Judge:
    """Asks the planner and Spark about one expression."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spark = spark
        self._patch = monkeypatch
        self.refused = 0
        nulls = ", ".join(f"CAST(NULL AS {_spark_type(kind)}) AS {name}" for name, kind in COLUMNS.items())
        spark.sql(f"SELECT {nulls}").createOrReplaceTempView("x")

    def check(self, query: str) -> None:
        """Fails where the planner refuses a query for its types or its arguments and Spark does not."""
        error = analyze_script(TABLE + query)[-1].error
        if error is None or error.condition not in ("TYPE_MISMATCH", "INVALID_ARGUMENT"):
            return
        assert error.span is not None, query
        assert error.hint or error.condition == "INVALID_ARGUMENT", query
        with self._patch.context() as patch:
            for module, name in (
                (expressions, "check_types"),
                (expressions, "check_condition"),
                (select, "check_condition"),
                (join_conditions, "check_condition"),
                (calls, "check_arguments"),
                (calls, "check_call"),
                (calls, "check_schema"),
            ):
                patch.setattr(module, name, lambda *_: None)
            report = analyze_script(TABLE + query)[-1]
        if report.plan is None:  # refused for something else, too
            return
        self.refused += 1
        assert not self.accepts(spark_sql(report.plan.spark)), f"{query}: {error.message}"

    def accepts(self, text: str) -> bool:
        """Whether Spark takes a query."""
        from pyspark.errors import AnalysisException, ParseException

        try:
            self._spark.sql(text)
        except ParseException:
            raise
        except AnalysisException:
            return False
        return True


def _spark_type(kind: str) -> str:
    return {"BIGINT UNSIGNED": "DECIMAL(20, 0)", "STRUCT<a INT, b STRING>": "STRUCT<a: INT, b: STRING>"}.get(kind, kind)


@pytest.fixture
def judge(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Judge:
    return Judge(spark, monkeypatch)


def test_pairs_of_types_that_are_refused_are_refused_by_spark(judge: Judge) -> None:
    pairs = list(itertools.product((*COLUMNS, *LITERALS, "ts - ts"), repeat=2))
    for sign in ("+", "-", "*", "/", "%", "=", "<"):
        for left, right in random.Random(sign).sample(pairs, 70):  # noqa: S311
            judge.check(f"SELECT ({left}) {sign} ({right}) AS v FROM x")
    assert judge.refused > 140


def test_computing_is_let_through_only_for_kinds_of_types_that_spark_computes_with(judge: Judge) -> None:
    """The other way round: where Spark refuses every pair of two kinds, so does the planner."""
    kinds = (("t", "i"), ("d", "m"), ("s",), ("dt",), ("ts",), ("b",), ("INTERVAL '1' DAY", "INTERVAL '1' MONTH"))
    fits = 0
    for sign in ("+", "-", "*", "/", "%"):
        for left, right in itertools.product(kinds, repeat=2):
            queries = [f"SELECT ({one}) {sign} ({two}) AS v FROM x" for one, two in itertools.product(left, right)]
            plans = [plan for query in queries if (plan := analyze_script(TABLE + query)[-1].plan) is not None]
            assert not plans or any(judge.accepts(spark_sql(plan.spark)) for plan in plans), queries
            fits += bool(plans)
    assert fits > 40


def test_arguments_that_are_refused_are_refused_by_spark(judge: Judge) -> None:
    """Whatever stands beside them."""
    chance = random.Random(1)  # noqa: S311
    for name, place in checked_functions():
        info = find_function(name)
        assert info is not None
        most = info.max_args if info.max_args is not None else info.min_args + 1
        for given in chance.sample((*COLUMNS, "ts - ts"), 4):
            count = max(place + 1, chance.randint(info.min_args, most))
            arguments = [chance.choice(("s", "i", "'a'", "5", given)) for _ in range(count)]
            arguments[place] = given
            judge.check(f"SELECT {name}({', '.join(arguments)}) AS v FROM x")
    assert judge.refused > 150


def test_calls_that_are_refused_are_refused_by_spark(judge: Judge) -> None:
    """Of fractions, of an order that is missing or too much, beside values of any type."""
    calls_of = (
        *(f"{name}({{}}) WITHIN GROUP (ORDER BY {{}})" for name in ("PERCENTILE_CONT", "PERCENTILE_DISC", "MODE", "SUM")),
        "PERCENTILE_CONT({}) WITHIN GROUP (ORDER BY {}, i)", "MODE() WITHIN GROUP (ORDER BY i, {})", "MODE()",
        "PERCENTILE_CONT({})", "PERCENTILE_DISC({})", "PERCENTILE({1}, {0})", "APPROX_PERCENTILE({1}, {0})",
    )  # fmt: skip
    given = ("1.5", "-0.5", "2", "(-1)", "ARRAY[0.5, 3]", "ARRAY[0.5]", "d", "0.5", "1", "'0.5'", "NULL")
    for call in calls_of:
        for fraction in given:
            for value in ("d", "i", "s"):
                judge.check(f"SELECT {call.format(fraction, value)} AS v FROM x")
    assert judge.refused > 150


def test_schemas_that_are_refused_are_refused_by_spark(judge: Judge) -> None:
    good = (
        "a INT", "`a b` INT NOT NULL COMMENT ''x'', b: STRING", "STRUCT<>", "INT", "date DATE", "ä STRING", "from INT",
        "struct<a:int,b:array<map<string,decimal(10,2)>>>", "a INTERVAL DAY TO SECOND, b TIMESTAMP_NTZ", "m MAP<INT, INT>",
        "STRING COLLATE UTF8_LCASE", "time TIME(3)", '{"type":"struct","fields":[]}', "a VARIANT, c CHAR(5), n NUMERIC",
    )  # fmt: skip
    bad = (
        "nope nope nope", "a nope", "a INT,", "", " ", "a INT b STRING", "ARRAY<INT", "MAP<STRING>", "{bad", "a;b", "a.b INT",
        "STRUCT<a>", "a", "INT INT INT", "a INT UNSIGNED", "a INT, b", "DECIMAL(", ", a INT",
    )  # fmt: skip
    for name in ("FROM_JSON", "FROM_CSV"):
        for schema in (*good, *bad):
            judge.check(f"SELECT {name}(s, '{schema}') AS v FROM x")
    assert judge.refused == 2 * len(bad)


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_random_expressions_that_are_refused_are_refused_by_spark(judge: Judge, count: int) -> None:
    chance = random.Random(count)  # noqa: S311
    for _ in range(count):
        judge.check(next(_queries(chance)))
    assert judge.refused > count // 5


def _queries(chance: random.Random) -> Iterator[str]:
    while True:
        made = _expression(chance, chance.randint(1, 3))
        other = _expression(chance, 1)
        form = chance.choice(("SELECT {} AS v FROM x", "SELECT i FROM x WHERE {}", "SELECT {} AS v, {} AS w FROM x",
                              "SELECT i FROM x JOIN (SELECT 1 AS one) AS q ON {}"))  # fmt: skip
        yield form.format(made, other)


def _expression(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(LEAVES)
    functions = [f"{name}({', '.join(['{}'] * max(place + 1, _arity(name)))})" for name, place in checked_functions()]
    form = chance.choice(
        (chance.choice(OPERATORS), chance.choice(OPERATORS), chance.choice(functions), chance.choice(OTHERS))
    )
    return form.format(*(_expression(chance, depth - 1) for _ in range(form.count("{}"))))


def _arity(name: str) -> int:
    info = find_function(name)
    assert info is not None
    return info.min_args


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s + 1 AS v FROM x",
        "SELECT SUM(s) AS v FROM x",
        "SELECT UPPER(5 = 5) AS v FROM x",
        "SELECT i FROM x WHERE ts > '2026-01-01'",
        "SELECT i FROM x WHERE b = 'true' AND i = '5'",
        "SELECT dt + 1 AS v FROM x",
        "SELECT AVG(ts - ts) AS v FROM x",
    ],
)
def test_what_spark_casts_by_itself_is_let_through(spark: SparkSession, judge: Judge, query: str) -> None:
    del judge  # made for its view
    report = analyze_script(TABLE + query)[-1]
    if report.error is not None:
        raise PenstockError(report.error.condition, report.error.message)
    assert report.plan is not None
    spark.sql(spark_sql(report.plan.spark))
