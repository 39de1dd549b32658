"""Relations by their names as values, and OVER behind the aggregate inside what Spark has for another one (A11, G4)."""

from __future__ import annotations

import pytest

from tests.unit.plan.analysis import last, spark

ROW = "STRUCT(`plain`.`k` AS `k`, `plain`.`v` AS `v`, `plain`.`seen` AS `seen`, `plain`.`other` AS `other`)"
NULLS = "map('ignoreNullFields', 'false')"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT plain FROM plain", f"SELECT {ROW} AS `plain` FROM `plain` AS `plain`"),
        ("SELECT TO_JSON(PLAIN) AS j FROM plain", f"SELECT to_json({ROW}, {NULLS}) AS `j` FROM `plain` AS `plain`"),
        (
            "SELECT k, JSON_AGG(plain) AS j FROM plain GROUP BY k",
            f"SELECT `plain`.`k` AS `k`, to_json(collect_list({ROW}), {NULLS}) AS `j` FROM `plain` AS `plain` GROUP BY `plain`.`k`",
        ),
        ("SELECT v FROM plain AS v", "SELECT `v`.`v` AS `v` FROM `plain` AS `v`"),  # a column of the name goes first
        (
            "SELECT plain.k, ROW_TO_JSON(n) AS j FROM plain LEFT JOIN names AS n ON plain.k = n.id",
            (
                "SELECT `plain`.`k` AS `k`, to_json(CASE WHEN `n`.`id` IS NULL AND `n`.`name` IS NULL THEN NULL ELSE "
                f"STRUCT(`n`.`id` AS `id`, `n`.`name` AS `name`) END, {NULLS}) AS `j` FROM `plain` AS `plain` "
                "LEFT JOIN `names` AS `n` ON `plain`.`k` = `n`.`id`"
            ),
        ),
    ],
)
def test_the_name_of_a_relation_is_its_row(query: str, text: str) -> None:
    assert spark(query) == text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("JSON_AGG(id)", "to_json(collect_list(`names`.`id`) OVER (PARTITION BY `names`.`name`))"),
        ("SUM0(1)", "coalesce(sum(1) OVER (PARTITION BY `names`.`name`), 0)"),
        (
            "ARRAY_AGG(id ORDER BY id) FILTER (WHERE id > 'a')",
            (
                "transform(sort_array(collect_list(if(`names`.`id` IS NULL, NULL, named_struct('k0', `names`.`id`, 'v', `names`.`id`))) "
                "FILTER(WHERE `names`.`id` > 'a') OVER (PARTITION BY `names`.`name`)), r -> r.v)"
            ),
        ),
        ("COUNT(*)", "count(*) OVER (PARTITION BY `names`.`name`)"),
    ],
)
def test_over_stands_behind_the_aggregate_of_spark(call: str, text: str) -> None:
    made = spark(f"SELECT {call} OVER (PARTITION BY name) AS x FROM names")
    assert made == f"SELECT {text} AS `x` FROM `names` AS `names`"


@pytest.mark.parametrize(
    ("query", "condition", "place"),
    [
        ("SELECT SUM(*) AS x FROM plain", "INVALID_ARGUMENT", 8),
        ("SELECT k, JSON_AGG(*) AS x FROM plain GROUP BY k", "INVALID_ARGUMENT", 11),
        ("SELECT ROW_TO_JSON(v) AS x FROM plain", "TYPE_MISMATCH", 20),
        ("SELECT k, MAP_AGG(k, STRUCT(MAP(k, v) AS m)) AS x FROM plain GROUP BY k", "TYPE_MISMATCH", 22),
        ("SELECT plain.nothing, names FROM plain", "UNKNOWN_COLUMN", 8),
    ],
)
def test_what_is_no_row(query: str, condition: str, place: int) -> None:
    error = last(query).error
    assert error is not None
    assert error.condition == condition
    assert error.span is not None
    assert error.span.column == place


@pytest.mark.parametrize(
    ("items", "columns"),
    [
        ("id, address->*", "`o`.`id` AS `id`, `o`.`address`.`city` AS `city`, `o`.`address`.`geo` AS `geo`"),
        ("address.*", "`o`.`address`.`city` AS `city`, `o`.`address`.`geo` AS `geo`"),
        ("o.address->geo->*, id", "`o`.`address`.`geo`.`lat` AS `lat`, `o`.`id` AS `id`"),
        ("address->geo->lat AS l", "`o`.`address`.`geo`.`lat` AS `l`"),
    ],
)
def test_all_fields_of_a_struct(items: str, columns: str) -> None:
    stream = "CREATE STREAM o (id INT, address STRUCT<city STRING, geo STRUCT<lat DOUBLE>>,);"  # as RisingWave has it
    assert spark(f"{stream} SELECT {items} FROM o") == f"SELECT {columns} FROM `o` AS `o`"


def test_what_has_no_fields() -> None:
    error = last("SELECT k->* FROM plain").error
    assert error is not None
    assert error.condition == "UNKNOWN_RELATION"
