"""Statements whose obvious translation to Spark would mean something else, or nothing."""

from __future__ import annotations

import pytest

from penstock.plan.relation import Mode
from tests.unit.plan.analysis import last, planned, refused, spark

ARRAYS = "CREATE STREAM a (id INT, tags ARRAY<STRING>, items ARRAY<STRUCT<x INT, y INT>>);"
CUMULATE = "CUMULATE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)"


def test_top_n_of_a_cumulating_window_is_that_of_each_step() -> None:
    sql = f"""SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {{by}} ORDER BY n DESC) AS rn FROM (
        SELECT window_start, window_end, symbol, COUNT(*) AS n FROM {CUMULATE}
        GROUP BY window_start, window_end, symbol)) WHERE rn <= 1"""
    text = spark(sql.format(by="window_start, window_end"))
    assert "GROUP BY `__base`.`__window`)" in text
    assert "`__window`.`end` AS `window_end`" in text
    # the steps of a window come one after the other: the best of all of them changes
    assert planned(sql.format(by="window_start")).kept


def test_ordinality_of_an_empty_array_makes_no_rows() -> None:
    """sequence(1, 0) is [1, 0] in Spark."""
    text = spark(ARRAYS + "SELECT id, tag, pos FROM a CROSS JOIN UNNEST(tags) WITH ORDINALITY AS x(tag, pos)")
    assert "transform(`a`.`tags`, (`__x`, `__i`) -> `__i` + 1)" in text
    assert "sequence" not in text


def test_elements_of_structs_come_out_as_columns() -> None:
    assert "inline(`a`.`items`) AS `i`(`x`, `y`)" in spark(ARRAYS + "SELECT i.x FROM a CROSS JOIN UNNEST(items) AS i")


def test_having_about_the_window_stands_outside() -> None:
    """Spark does not find a window call in HAVING."""
    text = spark(
        "SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' HOUR) "
        "HAVING TUMBLE_END(ts, INTERVAL '1' HOUR) > TIMESTAMP '2020-01-01 00:00:00'"
    )
    assert "HAVING" not in text
    assert text.endswith("WHERE `__grouped`.`__having`")


def test_similar_to_is_a_regular_expression_of_the_whole_text() -> None:
    text = spark("SELECT symbol FROM trades WHERE symbol SIMILAR TO 'A%|B'")
    assert r"rlike(`trades`.`symbol`, '^(?:A.*|B)\u0024')" in text


def test_a_column_of_using_stands_once() -> None:
    plan = planned("CREATE STREAM b (symbol STRING, w INT); SELECT * FROM trades JOIN b USING (symbol)")
    assert [field.name for field in plan.columns] == ["symbol", "price", "volume", "ts", "w"]


def test_using_joins_windows_too() -> None:
    sql = """SELECT COUNT(*) AS n FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) l
        JOIN TUMBLE(quotes, at, INTERVAL '1' MINUTE) r USING (window_start, window_end, symbol) GROUP BY l.window_start"""
    assert "ON `l`.`__window` = `r`.`__window` AND `l`.`symbol` = `r`.`symbol`" in spark(sql)


def test_a_view_keeps_its_emission() -> None:
    view = """CREATE VIEW v AS SELECT symbol, COUNT(*) AS n FROM trades
        GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE) EMIT CHANGES;"""
    assert planned(view + "SELECT * FROM v").mode is Mode.RETRACT
    assert planned(view + "SELECT SUM(n) FROM v").kept
    assert refused(view + "CREATE VIEW w AS SELECT SUM(n) AS n FROM v EMIT FINAL") == "UPDATING_AGGREGATE"
    assert planned(view.replace(" EMIT CHANGES", "") + "SELECT * FROM v").mode is Mode.APPEND


def test_insert_goes_by_position() -> None:
    sink = "CREATE TABLE k (a BIGINT, b BIGINT) WITH (connector = 'blackhole');"
    assert last(sink + "INSERT INTO k SELECT COUNT(*), COUNT(price) FROM trades").error is None
    assert refused("CREATE VIEW v AS SELECT COUNT(*), COUNT(price) FROM trades") == "DUPLICATE_COLUMN"


def test_strings_of_values_are_read_as_the_columns_type() -> None:
    assert last("INSERT INTO trades VALUES ('A', 1.5, 2, '2026-01-01 00:00:00')").error is None
    assert refused("INSERT INTO trades SELECT symbol, price, volume, symbol FROM trades") == "TYPE_MISMATCH"


def test_a_number_becomes_a_time_by_what_it_counts() -> None:
    """Spark's cast would take milliseconds for seconds."""
    for query, written in (
        ("VALUES ('A', 1.5, 2, 1700000000000)", "…"),
        ("SELECT symbol, price, 2, volume FROM trades", "volume"),
    ):
        error = last(f"INSERT INTO trades {query}").error
        assert error is not None
        assert error.condition == "TYPE_MISMATCH"
        assert error.hint == f"write TIMESTAMP_MILLIS({written}) where it is milliseconds since 1970"


def test_a_query_that_feeds_itself_is_warned_about() -> None:
    report = last("INSERT INTO trades SELECT * FROM trades")
    assert any("feeds itself" in notice for notice in report.notices)


def test_lambdas_of_constants() -> None:
    assert "transform(`a`.`tags`, `x` -> 1)" in spark(ARRAYS + "SELECT transform(tags, x -> 1) AS ones FROM a")


def test_the_name_of_a_window_is_the_users() -> None:
    sql = "SELECT tumble(INTERVAL '1' MINUTE) AS w, w.start AS s, COUNT(*) AS n FROM trades GROUP BY w"
    assert "window(`trades`.`ts`, '1 minute').`start` AS `s`" in spark(sql)


def test_an_offset_of_more_than_a_window_is_one_of_less() -> None:
    """Flink's documentation shifts a window of 10 minutes by -16."""
    sql = """SELECT window_start, COUNT(*) AS n
        FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' MINUTES, -INTERVAL '16' MINUTES)
        GROUP BY window_start, window_end"""
    assert "window(`trades`.`ts`, '10 minutes', '10 minutes', '4 minutes')" in spark(sql)


def test_rows_of_a_window_that_is_not_grouped_are_not_said_to_wait() -> None:
    report = last("SELECT * FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE)")
    assert not any("emitted once" in notice for notice in report.notices)


def test_a_table_that_ends_gives_no_event_time_to_a_stream() -> None:
    dated = "CREATE TABLE d (id STRING, since TIMESTAMP) WITH (connector = 'file', path = 'd.csv', format = 'csv');"
    error = last(
        dated
        + "SELECT COUNT(*) FROM trades t LEFT JOIN d ON t.symbol = d.id GROUP BY TUMBLE(d.since, INTERVAL '1' DAY)"
    ).error
    assert error is not None
    assert error.condition == "MISSING_EVENT_TIME"
    assert '"since"' in error.message
    assert "stream" in str(error.hint)


def test_a_caret_is_refused_because_it_has_two_meanings() -> None:
    assert refused("SELECT volume ^ 2 FROM trades") == "UNSUPPORTED_CLAUSE"


def test_risingwaves_temporal_filters_take_rows_out_again() -> None:
    sql = "SELECT symbol FROM trades WHERE ts > NOW() - INTERVAL '1 week'"
    found = last(sql)
    assert any("not taken out again" in notice for notice in found.notices)
    assert found.plan is not None
    assert found.plan.mode is Mode.APPEND
    other = last("SET dialect = 'risingwave';" + sql)
    assert not any("not taken out again" in notice for notice in other.notices)
    assert other.plan is not None
    assert other.plan.mode is Mode.RETRACT


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ("DATE_ADD(d, 30)", "date_add(`s`.`d`, 30)"),
        ("DATEDIFF(d, m)", "datediff(`s`.`d`, `s`.`m`)"),
        ("DATEDIFF(DAY, d, m)", "timestampdiff(DAY, `s`.`d`, `s`.`m`)"),
    ],
)
def test_a_column_that_is_called_as_a_unit(call: str, written: str) -> None:
    assert written in spark(f"CREATE STREAM s (d DATE, m DATE); SELECT {call} AS x FROM s")
