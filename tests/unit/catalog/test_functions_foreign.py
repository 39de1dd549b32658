"""Functions of other systems, written for Spark."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import sqlglot
from sqlglot import exp

from penstock.catalog.foreign_functions import FOREIGN
from penstock.catalog.functions import aggregate_calls, date_part, find_function, spark_call
from penstock.catalog.time_patterns import PatternError, check_spark, family, from_postgres
from penstock.errors import ResolutionError

DATA = Path(__file__).parents[2] / "data" / "foreign_functions.txt"


class Example(NamedTuple):
    """A call, the dialect that is set, and the Spark text it becomes."""

    call: str
    dialect: str | None
    spark: str


def read_examples() -> list[Example]:
    found: list[Example] = []
    for block in DATA.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            call, spark, answer = lines
            assert answer.startswith("    => ")
            dialect = call[1 : call.index("]")] if call.startswith("[") else None
            found.append(Example(call.removeprefix(f"[{dialect}] "), dialect, spark.strip()))
    return found


EXAMPLES = read_examples()


def arguments(call: str) -> tuple[str, list[exp.Expr]]:
    """The name and the argument trees of a call."""
    tree = sqlglot.parse_one(f"SELECT my_{call}").expressions[0]
    assert isinstance(tree, exp.Anonymous)
    return call.partition("(")[0], list(tree.expressions)


def written(call: str, dialect: str | None = None) -> str:
    name, args = arguments(call)
    info = find_function(name)
    assert info is not None, name
    assert info.takes(len(args)), call
    return spark_call(name, args, dialect=dialect).sql("spark")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.call[:60])
def test_examples_become_the_text_that_spark_was_asked(example: Example) -> None:
    assert written(example.call, example.dialect) == example.spark


def test_every_rewrite_has_an_example() -> None:
    clocks = {
        name for name, foreign in FOREIGN.items() if not foreign.info.deterministic and foreign.info.kind == "scalar"
    }
    covered = {example.call.partition("(")[0].lower() for example in EXAMPLES}
    builders = {foreign.build for name, foreign in FOREIGN.items() if name in covered}
    assert [name for name, foreign in FOREIGN.items() if foreign.build not in builders and name not in clocks] == []


def test_arguments_that_are_used_twice_are_separate_trees() -> None:
    tree = spark_call("regexp_match", arguments("regexp_match(x, '(a)(b)')")[1])
    columns = list(tree.find_all(exp.Column))
    assert len(columns) == 3
    assert len({id(column) for column in columns}) == 3
    assert all(column.root() is tree for column in columns)


@pytest.mark.parametrize(
    ("call", "dialect", "problem"),
    [
        ("TO_TIMESTAMP(x, pattern)", None, "the pattern must be a string constant"),
        ("TO_TIMESTAMP(x, 'YYYY-MM-dd HH:mm:ss')", None, "mixes two kinds"),
        ("TO_TIMESTAMP(x, 'YYYY-MM-DD HH:MM:SS')", None, "mixes two kinds"),
        ("TO_TIMESTAMP(x, 'YYYY-IW HH24')", None, "IW"),
        ("TO_DATE(x, 'E yyyy')", None, "E is not supported"),
        ("DATE_FORMAT(ts, 'YYYY-MM-dd')", None, "year of a week"),
        ("DATE_FORMAT(ts, pattern)", None, "must be a string constant"),
        ("TO_CHAR(ts, 'YYYY Month')", None, "MONTH"),
        ("TO_CHAR(ts, 'DD MON YYYY')", None, "MON is offered as Mon only"),
        ("TO_CHAR(x, 'FM999')", None, "FM"),
        ("TO_TIMESTAMP_LTZ(x, 4)", None, "precision"),
        ("TO_TIMESTAMP_LTZ(x, y)", None, "precision"),
        ("DATE_TRUNC('decade', ts)", None, "no such unit"),
        ("DATE_TRUNC(unit, ts)", None, "must be a string constant"),
        ("TRUNC(d, 'hour')", None, "no such unit"),
        ("DATE_PART('century', ts)", None, "no such part"),
        ("DATE_PART(lower(x), ts)", None, "must be a string constant"),
        ("TIMESTAMPDIFF(FORTNIGHT, a, b)", None, "must be a unit"),
        ("TIMESTAMPADD(a + 1, 1, b)", None, "must be a unit"),
        ("REGEXP_REPLACE(x, 'a', 'b')", "risingwave", "first match only"),
        ("REGEXP_REPLACE(x, 'a', 'b', 'i')", None, "first match only"),
        ("REGEXP_REPLACE(x, 'a', 'b', 'gq')", None, "the flags can be"),
        ("REGEXP_MATCH(x, pattern)", None, "must be a string constant"),
        ("REGEXP_MATCH(x, '(')", None, "no regular expression"),
        ("FORMAT('%d', x)", None, "only %s"),
        ("ARRAY_LENGTH(x, 2)", None, "first dimension"),
        ("JSON_VALUE(x, path)", None, "must be a string constant"),
        ("JSON_VALUE(x, '$..a')", None, "the path cannot be used"),
        ("JSON_VALUE(x, 'a')", None, "the path cannot be used"),
        ("EXTRACT_JSON(x, '$.a[*]')", None, "the path cannot be used"),
        ("JSONB_EXTRACT_PATH_TEXT(x, y)", None, "keys must be constants"),
        ("JSONB_EXTRACT_PATH_TEXT(x, 'a''b')", None, "keys must be constants"),
        ("JSONB_BUILD_OBJECT('a')", None, "in pairs"),
        ("ARRAY_AGG(DISTINCT x ORDER BY y)", None, "goes by the value"),
    ],
)
def test_what_has_no_form_in_spark_is_refused(call: str, dialect: str | None, problem: str) -> None:
    name, args = arguments(call)
    with pytest.raises(ResolutionError) as caught:
        spark_call(name, args, dialect=dialect)
    assert caught.value.condition == "INVALID_ARGUMENT"
    assert problem in caught.value.message
    assert caught.value.message.startswith(name.lower())
    assert caught.value.hint


def test_a_refusal_points_at_the_argument() -> None:
    pattern = exp.column("p")
    pattern.meta.update(line=3, col=9, start=40, end=40)
    with pytest.raises(ResolutionError) as caught:
        spark_call("to_char", [exp.column("ts"), pattern])
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.start) == (3, 40)


def test_messages_do_not_repeat_the_users_strings() -> None:
    with pytest.raises(ResolutionError) as caught:
        spark_call("json_value", arguments("json_value(x, 'canary-1234')")[1])
    assert "canary" not in str(caught.value)


def test_extract_uses_the_same_parts_as_date_part() -> None:
    """The planner writes EXTRACT(unit FROM ts) with it."""
    ts = exp.column("ts")
    assert date_part("extract", "EPOCH", ts, None, ts).sql("spark") == "(UNIX_MICROS(TIMESTAMP(ts)) / 1000000)"
    assert date_part("extract", "dow", ts, "risingwave", ts).sql("spark") == "(DATE_PART('DOW', ts) - 1)"
    assert date_part("extract", "Hour", ts, None, ts).sql("spark") == "DATE_PART('HOUR', ts)"


def test_filter_and_over_belong_to_the_aggregate_inside() -> None:
    wrapped = spark_call("sum0", [exp.column("x")])
    assert [found.sql("spark") for found in aggregate_calls(wrapped)] == ["SUM(x)"]
    ordered = spark_call("string_agg", arguments("string_agg(x, ',' ORDER BY y)")[1])
    assert aggregate_calls(ordered) == [ordered]
    collected = spark_call("array_agg", arguments("array_agg(x ORDER BY y)")[1])
    assert [found.name.lower() for found in aggregate_calls(collected)] == ["collect_list"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss", "spark"), ("HH:mm:ss", "spark"), ("mm:ss", "spark"), ("yyyyDDD", "spark"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "spark"), ("HHmmss", "spark"), ("'YYYY' yyyy", "spark"),
        ("YYYY-MM-DD", "postgres"), ("yyyy-mm-dd hh24:mi:ss", "postgres"), ("yyyy-mm-dd", "postgres"),
        ("DD/MM/YYYY", "postgres"),
        ("HH12:MI AM", "postgres"), ("FMMonth", "postgres"), ("999,999.99", "numeric"), ("0000", "numeric"),
        ("FM99", "numeric"),
    ],
)  # fmt: skip
def test_pattern_families(pattern: str, expected: str) -> None:
    assert family(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("YYYY-MM-DD", "yyyy-MM-dd"),
        ("YYYY-MM-DDTHH24:MI:SSZ", "yyyy-MM-dd'T'HH:mm:ss'Z'"),
        ('"at" HH24"h"', "'at 'HH'h'"),
        ("HH24:MI:SS.FF3", "HH:mm:ss.SSS"),
        ("YYYY's'", "yyyy'''s'''"),
        ("HH24:MI TZHTZM", "HH:mm xx"),
        ("[HH24]", "'['HH']'"),
    ],
)
def test_patterns_of_postgres(pattern: str, expected: str) -> None:
    assert from_postgres(pattern, parsing=False) == expected


def test_names_of_months_are_read_in_any_case_and_written_in_one() -> None:
    assert from_postgres("DD MONTH YYYY", parsing=True) == "dd MMMM yyyy"
    with pytest.raises(PatternError):
        from_postgres("DD MONTH YYYY", parsing=False)


def test_quoted_letters_of_a_spark_pattern_are_text() -> None:
    assert check_spark("yyyy'YEAR'", parsing=True) == "yyyy'YEAR'"
    with pytest.raises(PatternError):
        check_spark("YYYY", parsing=True)
    with pytest.raises(PatternError):
        check_spark("EEE", parsing=True)
    assert check_spark("EEE", parsing=False) == "EEE"
