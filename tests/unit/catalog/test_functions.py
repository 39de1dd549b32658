"""The function registry: what may be called, what never, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

from penstock.catalog.function_info import FunctionInfo
from penstock.catalog.functions import (
    DENIED,
    NOT_YET,
    OPERATORS,
    find_function,
    known_functions,
    nearest_function,
    return_type,
    spark_call,
)
from penstock.errors import InternalError
from penstock.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    SPARK_NAMES,
    STRING,
    TIMESTAMP,
    SqlType,
)

DATA = Path(__file__).parents[2] / "data"
SPARK_FUNCTIONS = (DATA / "spark_functions_4_2.txt").read_text(encoding="utf-8").split()

MONEY = SqlType("DECIMAL", (10, 2))
FLOAT = SqlType("FLOAT")
INTS = SqlType("ARRAY", elements=(INT,))
STRINGS = SqlType("ARRAY", elements=(STRING,))


def known(name: str) -> FunctionInfo:
    info = find_function(name)
    assert info is not None, name
    return info


def test_every_function_of_spark_is_allowed_or_denied_or_an_operator() -> None:
    undecided = [name for name in SPARK_FUNCTIONS if not (find_function(name) or name in DENIED or name in OPERATORS)]
    assert len(SPARK_FUNCTIONS) == 574
    assert undecided == []


def test_no_name_is_both_allowed_and_refused() -> None:
    refused = {*DENIED, *NOT_YET, *OPERATORS}
    assert refused.isdisjoint(known_functions())
    assert set(DENIED).isdisjoint({*NOT_YET, *OPERATORS})


def test_every_allowed_name_that_is_not_sparks_is_written_with_sparks() -> None:
    """A name that Spark does not have must never reach it."""
    foreign = set(known_functions()) - set(SPARK_FUNCTIONS) - {"proctime"}
    column = exp.column("x")
    assert "split_index" in foreign
    for name in ("strpos", "starts_with", "to_hex", "week", "var"):
        assert name in foreign
        written = spark_call(name, [column.copy() for _ in range(known(name).min_args)])
        assert written.name.lower() in SPARK_FUNCTIONS


@pytest.mark.parametrize(
    "name",
    [
        "reflect", "java_method", "try_reflect", "input_file_name", "input_file_block_start", "current_user", "user",
        "session_user", "version", "current_catalog", "current_database", "raise_error", "assert_true",
        "spark_partition_id", "monotonically_increasing_id", "from_avro", "from_protobuf", "sql_keywords", "collations",
        "python_worker_logs", "read_files", "pg_read_file", "pg_sleep", "ai_query",
    ],
)  # fmt: skip
def test_what_reaches_outside_the_row_is_denied_with_a_reason(name: str) -> None:
    assert find_function(name) is None
    assert len(DENIED[name]) > 15


def test_xml_options_can_name_files_and_are_not_accepted() -> None:
    """Spark's from_xml takes a map of options, and one of them is the path of a schema file."""
    assert known("from_xml").max_args == 2
    assert known("schema_of_xml").max_args == 1


def test_operators_are_no_names_to_call() -> None:
    for name in ("+", "<=>", "||", "and", "not", "case", "cast", "in", "between"):
        assert name in OPERATORS
        assert find_function(name) is None


def test_names_are_found_in_any_case() -> None:
    assert find_function("CoUnT") is find_function("count")
    assert find_function("Split_Index") is find_function("split_index")
    assert find_function("no_such_function") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("upper", "scalar"), ("sum", "aggregate"), ("max_by", "aggregate"), ("listagg", "aggregate"),
        ("row_number", "window"), ("lag", "window"), ("explode", "generator"), ("unnest", "generator"),
        ("window", "special"), ("session_window", "special"), ("proctime", "special"), ("grouping", "special"),
        ("window_time", "scalar"), ("percentile_cont", "aggregate"), ("approx_distinct", "aggregate"),
    ],
)  # fmt: skip
def test_kinds(name: str, kind: str) -> None:
    assert known(name).kind == kind


@pytest.mark.parametrize(
    "name",
    ["uuid", "rand", "randn", "random", "shuffle", "now", "current_timestamp", "current_date", "localtimestamp",
     "gen_random_uuid", "rand_integer", "current_row_timestamp", "randstr", "uniform", "first_value", "collect_list"],
)  # fmt: skip
def test_what_differs_from_time_to_time_is_marked(name: str) -> None:
    assert not known(name).deterministic
    assert not known(name).repeatable(1)


def test_unix_timestamp_reads_the_clock_only_without_arguments() -> None:
    info = known("unix_timestamp")
    assert not info.repeatable(0)
    assert info.repeatable(1)


def test_most_functions_are_deterministic() -> None:
    for name in ("upper", "hash", "sum", "to_timestamp", "date_trunc", "md5", "get_json_object"):
        assert known(name).repeatable(known(name).min_args)


def test_mergeable_aggregates() -> None:
    for name in (
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "count_if",
        "bool_and",
        "bool_or",
        "any_value",
        "max_by",
        "stddev",
    ):
        assert known(name).mergeable
    for name in ("approx_count_distinct", "median", "percentile", "mode", "corr", "upper", "row_number"):
        assert not known(name).mergeable


def test_only_aggregates_merge() -> None:
    assert [name for name in known_functions() if known(name).mergeable and known(name).kind != "aggregate"] == []


def test_higher_order_functions_are_marked() -> None:
    lambdas = {name for name in known_functions() if known(name).higher_order}
    assert {"transform", "filter", "aggregate", "exists", "zip_with", "array_sort"} <= lambdas
    assert "upper" not in lambdas


@pytest.mark.parametrize(
    ("name", "fits", "does_not"),
    [
        ("upper", [1], [0, 2]), ("coalesce", [1, 9], [0]), ("substring", [2, 3], [1, 4]), ("now", [0], [1]),
        ("count", [1, 2], [0]), ("lag", [1, 3], [0, 4]), ("split_index", [3], [2, 4]), ("ntile", [1], [0]),
        ("try_sum", [1], [0, 2]), ("hour", [1], [0, 2]),
    ],
)  # fmt: skip
def test_argument_counts(name: str, fits: list[int], does_not: list[int]) -> None:
    info = known(name)
    assert [info.takes(count) for count in fits] == [True] * len(fits)
    assert [info.takes(count) for count in does_not] == [False] * len(does_not)


@pytest.mark.parametrize(
    ("name", "words"),
    [("upper", "1 argument"), ("now", "no arguments"), ("substring", "2 or 3 arguments"),
     ("coalesce", "at least 1 argument"), ("array", "any number of arguments"), ("mask", "1 to 5 arguments")],
)  # fmt: skip
def test_argument_counts_in_words(name: str, words: str) -> None:
    assert known(name).arguments() == words


def test_which_first_argument_is_a_unit() -> None:
    assert known("timestampdiff").unit_first(3)
    assert known("dateadd").unit_first(3)
    assert not known("dateadd").unit_first(2)
    assert not known("date_trunc").unit_first(2)


def test_nearest_function() -> None:
    assert nearest_function("CUONT") == "count"
    assert nearest_function("split_indx") == "split_index"
    assert nearest_function("to_timestmp") == "to_timestamp"
    assert nearest_function("xyzzy_plugh") is None
    assert nearest_function("reflekt") != "reflect"


def test_a_function_of_spark_keeps_its_name_and_arguments() -> None:
    column = exp.column("x")
    assert spark_call("UPPER", [column]).sql("spark") == "UPPER(x)"
    assert spark_call("COUNT", [exp.Star()]).sql("spark") == "COUNT(*)"
    distinct = exp.Distinct(expressions=[exp.column("x")])
    assert spark_call("count", [distinct]).sql("spark") == "COUNT(DISTINCT x)"


def test_an_unknown_name_never_becomes_a_call() -> None:
    for name in ("reflect", "no_such_function"):
        with pytest.raises(InternalError):
            spark_call(name, [])


@pytest.mark.parametrize("value", ["\\", "it's", "a\nb", "\\d+", '"', "%\\_", "\0", "tab\t", "é😀", "'; DROP"])
def test_constants_reach_spark_escaped(value: str) -> None:
    """One backslash of ours is two in Spark's text; each of these was read back by Spark 4.2 unchanged."""
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\0": "\\0", "\t": "\\t"}
    expected = "".join(escapes.get(sign, sign) for sign in value)
    assert spark_call("upper", [exp.Literal.string(value)]).sql("spark") == f"UPPER('{expected}')"


RETURNS: list[tuple[str, list[SqlType | None], SqlType | None]] = [
    # event times
    ("to_timestamp", [STRING], TIMESTAMP), ("timestamp_millis", [BIGINT], TIMESTAMP),
    ("date_trunc", [STRING, None], TIMESTAMP),
    ("to_timestamp_ltz", [BIGINT, INT], TIMESTAMP), ("now", [], TIMESTAMP), ("window_time", [None], TIMESTAMP),
    ("timestamp", [STRING], TIMESTAMP), ("date_bin", [INTERVAL, TIMESTAMP], TIMESTAMP), ("proctime", [], TIMESTAMP),
    ("timestampadd", [None, INT, TIMESTAMP], TIMESTAMP), ("date_add", [DATE, INT], DATE),
    ("date_sub", [TIMESTAMP, INTERVAL], TIMESTAMP), ("date_add", [None, INT, TIMESTAMP], TIMESTAMP),
    ("to_date", [STRING], DATE), ("time_bucket", [INTERVAL, TIMESTAMP], TIMESTAMP),
    ("trunc", [DATE, STRING], DATE), ("trunc", [DOUBLE], None),
    # keys
    ("upper", [None], STRING), ("concat", [STRING, None], STRING), ("substring", [BINARY, INT], BINARY),
    ("split_index", [STRING, STRING, INT], STRING), ("md5", [None], STRING), ("hash", [None], INT),
    ("xxhash64", [None], BIGINT),
    ("year", [TIMESTAMP], INT), ("date_format", [TIMESTAMP, STRING], STRING), ("json_value", [STRING, STRING], STRING),
    ("concat", [INTS, INTS], INTS), ("concat", [None], None), ("split", [STRING, STRING], STRINGS),
    # counts, sums, averages
    ("count", [None], BIGINT), ("approx_count_distinct", [STRING], BIGINT), ("count_if", [BOOLEAN], BIGINT),
    ("sum", [INT], BIGINT), ("sum", [FLOAT], DOUBLE), ("sum", [MONEY], SqlType("DECIMAL", (20, 2))),
    ("sum", [SqlType("UBIGINT")], SqlType("DECIMAL", (30, 0))), ("sum", [SqlType("UINT")], BIGINT),
    ("sum", [None], None),
    ("sum", [SqlType("DECIMAL", (38, 18))], SqlType("DECIMAL", (38, 18))), ("sum", [INTERVAL], INTERVAL),
    ("avg", [INT], DOUBLE), ("avg", [MONEY], SqlType("DECIMAL", (14, 6))), ("avg", [None], None),
    ("avg", [SqlType("DECIMAL", (38, 18))], SqlType("DECIMAL", (38, 22))), ("stddev", [INT], DOUBLE),
    ("min", [TIMESTAMP], TIMESTAMP), ("max", [STRING], STRING), ("first_value", [MONEY], MONEY),
    ("any_value", [None], None),
    ("max_by", [STRING, TIMESTAMP], STRING), ("max_by", [INT, TIMESTAMP, INT], INTS), ("collect_list", [INT], INTS),
    ("median", [INT], DOUBLE), ("median", [INTERVAL], None), ("percentile_approx", [INT, DOUBLE], INT),
    ("row_number", [], INT), ("lag", [STRING], STRING), ("percent_rank", [], DOUBLE),
    # choices
    ("coalesce", [None, STRING], STRING), ("coalesce", [INT, BIGINT], BIGINT), ("coalesce", [STRING, INT], None),
    ("coalesce", [SqlType("DECIMAL", (38, 18)), INT], SqlType("DECIMAL", (38, 18))), ("coalesce", [MONEY, INT], None),
    ("if", [BOOLEAN, INT, DOUBLE], DOUBLE), ("nvl2", [None, STRING, STRING], STRING), ("nullif", [INT, INT], INT),
    ("greatest", [INT, DOUBLE], DOUBLE), ("greatest", [INT, None], None), ("least", [TIMESTAMP, TIMESTAMP], TIMESTAMP),
    # numbers
    ("abs", [MONEY], MONEY), ("abs", [STRING], DOUBLE), ("round", [DOUBLE, INT], DOUBLE), ("round", [MONEY], None),
    ("floor", [DOUBLE], BIGINT), ("ceil", [MONEY], SqlType("DECIMAL", (9, 0))), ("floor", [DOUBLE, INT], None),
    ("int", [STRING], INT), ("decimal", [STRING], SqlType("DECIMAL", (38, 18))), ("sqrt", [INT], DOUBLE),
    # collections
    ("element_at", [INTS, INT], INT), ("element_at", [SqlType("MAP", elements=(STRING, DOUBLE)), STRING], DOUBLE),
    ("explode", [STRINGS], STRING), ("array", [INT, BIGINT], SqlType("ARRAY", elements=(BIGINT,))),
    ("array", [INT, None], None),
    ("reverse", [STRING], STRING), ("reverse", [INTS], INTS), ("size", [INTS], INT), ("transform", [INTS, None], None),
    ("str_to_map", [STRING], SqlType("MAP", elements=(STRING, STRING))), ("named_struct", [STRING, INT], None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "types", "expected"), RETURNS)
def test_return_types(name: str, types: list[SqlType | None], expected: SqlType | None) -> None:
    """As Spark 4.2 answered for columns of these types; None where the rule leaves it to Spark."""
    assert return_type(known(name), types) == expected


def test_every_rule_of_the_tables_gives_an_answer() -> None:
    """A misspelt rule would make a data type that does not exist."""
    names = {*SPARK_NAMES, "DECIMAL", "ARRAY", "MAP"}
    for name in known_functions():
        info = known(name)
        found = return_type(info, [None] * info.min_args)
        assert found is None or found.name in names, name
