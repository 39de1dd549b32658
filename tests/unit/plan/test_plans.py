"""What the planner knows of a query: event time, windows, keys, change mode, state (D, E17, E19, G, P2, P3)."""

from __future__ import annotations

import json

import pytest

from penstock.plan.explain import explain_json, explain_text
from penstock.plan.nodes import Aggregate, Join
from penstock.plan.relation import Mode
from penstock.plan.rewrite import rewrite_text
from tests.unit.plan.analysis import labels, last, planned, refused, spark


def test_event_time_is_carried_hidden_through_a_subquery() -> None:
    """E17: a window over a subquery that does not select the time, and no hidden column in the result."""
    sql = """SELECT tumble(INTERVAL '1' MINUTE) AS w, COUNT(*) AS n
        FROM (SELECT symbol FROM trades WHERE price > 1) GROUP BY w"""
    plan = planned(sql)
    assert [field.name for field in plan.columns] == ["w", "n"]
    assert "`ts` AS `__event_time`" in spark(sql)
    assert "window(`__subquery`.`__event_time`, '1 minute')" in spark(sql)


def test_event_time_is_carried_through_a_join_with_a_dimension() -> None:
    """E17, L21"""
    sql = """SELECT TUMBLE_START(e.ts, INTERVAL '1' MINUTE) AS m, e.name, COUNT(*) AS n
        FROM (SELECT t.ts, d.name FROM trades t LEFT JOIN names d ON t.symbol = d.id) e
        GROUP BY TUMBLE(e.ts, INTERVAL '1' MINUTE), e.name"""
    assert labels(planned(sql)) == ["Result", "Project", "Aggregate", "Project", "DimensionJoin", "Scan", "Scan"]


def test_a_stream_without_event_time_takes_the_column_of_the_window() -> None:
    """A3, E19: the default delay, shown."""
    report = last(
        "SELECT TUMBLE_START(seen, INTERVAL '1' HOUR), COUNT(*) FROM plain GROUP BY TUMBLE(seen, INTERVAL '1' HOUR)"
    )
    assert report.plan is not None
    scan = report.plan.scans()[0]
    assert scan.event_time is not None
    assert (scan.event_time.column, scan.event_time.delay_us, scan.event_time.declared) == (
        "seen",
        5_000_000,
        "default",
    )
    assert "delay 5 seconds (default_watermark_delay)" in explain_text(report)


def test_the_default_delay_is_a_setting() -> None:
    plan = planned(
        "SET default_watermark_delay = INTERVAL '1' MINUTE;"
        "SELECT COUNT(*) FROM plain GROUP BY TUMBLE(seen, INTERVAL '1' HOUR)"
    )
    event_time = plan.scans()[0].event_time
    assert event_time is not None
    assert event_time.delay_us == 60_000_000


def test_two_times_of_one_undeclared_stream_are_refused() -> None:
    sql = """SELECT a.n FROM (SELECT COUNT(*) AS n FROM plain GROUP BY TUMBLE(seen, INTERVAL '1' HOUR)) a,
        (SELECT COUNT(*) AS m FROM plain GROUP BY TUMBLE(other, INTERVAL '1' HOUR)) b WHERE a.n = b.m"""
    assert refused(sql) == "MISSING_EVENT_TIME"


def test_window_over_window_stands_on_the_hidden_window() -> None:
    """G13: Flink's cascade through window_time."""
    sql = """SELECT window_start, window_end, SUM(n) AS n
        FROM TABLE(TUMBLE(TABLE minutes, DESCRIPTOR(rowtime), INTERVAL '1' HOUR))
        GROUP BY window_start, window_end"""
    view = """CREATE VIEW minutes AS SELECT window_start AS s, window_end AS e, window_time AS rowtime, COUNT(*) AS n
        FROM TABLE(TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
        GROUP BY window_start, window_end, window_time;"""
    assert "window(`minutes`.`__window`, '1 hour')" in spark(view + sql)
    assert planned(view + sql).mode is Mode.APPEND


def test_the_start_of_a_window_is_no_event_time() -> None:
    sql = """SELECT COUNT(*) FROM (
        SELECT window_start AS s, COUNT(*) AS n FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
        GROUP BY window_start, window_end) i GROUP BY TUMBLE(i.s, INTERVAL '1' HOUR)"""
    error = last(sql).error
    assert error is not None
    assert error.condition == "MISSING_EVENT_TIME"
    assert "window_time" in str(error.hint)


def test_helpers_must_match_the_window_and_the_error_names_both() -> None:
    """D18"""
    error = last(
        "SELECT TUMBLE_START(ts, INTERVAL '2' MINUTE) FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    ).error
    assert error is not None
    assert error.condition == "WINDOW_MISMATCH"
    assert "TUMBLE(ts, 2 minutes)" in error.message
    assert "TUMBLE(ts, 1 minute)" in error.message


def test_two_windows_in_one_group_by() -> None:
    """D27"""
    sql = "SELECT COUNT(*) FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), TUMBLE(ts, INTERVAL '2' MINUTE)"
    assert refused(sql) == "MULTIPLE_WINDOWS"


def test_hop_is_slide_then_size_and_sparks_is_size_then_slide() -> None:
    """D4, 0.2 trap 4"""
    ours = "SELECT COUNT(*) AS n FROM trades GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR)"
    sparks = "SELECT COUNT(*) AS n FROM trades GROUP BY window(ts, '1 hour', '5 minutes')"
    assert spark(ours) == spark(sparks)
    assert "window(`trades`.`ts`, '1 hour', '5 minutes')" in spark(ours)


def test_tumble_is_a_plain_function_too() -> None:
    """D14, D15, D16, D20: floor to the size also before 1970, NULL for NULL, no window operator."""
    sql = "SELECT TUMBLE_START(ts, INTERVAL '2' SECOND) AS s FROM trades"
    assert "timestamp_micros(unix_micros(`trades`.`ts`) - pmod(unix_micros(`trades`.`ts`), 2000000))" in spark(sql)
    assert refused("SELECT HOP_START(ts, INTERVAL '1' SECOND, INTERVAL '2' SECOND) FROM trades") == "INVALID_WINDOW"


@pytest.mark.parametrize(
    ("sql", "mode", "key"),
    [
        ("SELECT symbol FROM trades", Mode.APPEND, None),
        ("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol", Mode.UPSERT, ("symbol",)),
        ("SELECT COUNT(*) AS n FROM trades", Mode.UPSERT, ()),
        ("SELECT COUNT(*) AS n FROM trades GROUP BY symbol", Mode.RETRACT, None),
        ("SELECT UPPER(symbol) AS s, COUNT(*) AS n FROM trades GROUP BY UPPER(symbol)", Mode.UPSERT, ("s",)),
        ("SELECT COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)", Mode.APPEND, None),
        (
            """SELECT symbol AS s, window_start AS w, COUNT(*) AS n FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)
            GROUP BY symbol, window_start, window_end EMIT CHANGES""",
            Mode.UPSERT,
            ("s", "w"),
        ),
        (
            "SELECT n, symbol FROM (SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol) WHERE n > 1",
            Mode.UPSERT,
            ("symbol",),
        ),
        ("SELECT n FROM (SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol)", Mode.RETRACT, None),
        ("SELECT name FROM names ORDER BY name LIMIT 3", Mode.APPEND, None),
    ],
)
def test_change_mode_and_key(sql: str, mode: Mode, key: tuple[str, ...] | None) -> None:
    """G3, G5, DEC15"""
    plan = planned(sql)
    assert (plan.mode, plan.root.key) == (mode, key)


def test_risingwave_windows_emit_every_change_and_close_on_demand() -> None:
    """DEC15"""
    sql = "SELECT window_start, COUNT(*) AS n FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) GROUP BY window_start"
    assert planned(sql).mode is Mode.APPEND
    assert planned("SET dialect = 'risingwave';" + sql).mode is Mode.UPSERT
    assert planned("SET dialect = 'risingwave';" + sql + " EMIT ON WINDOW CLOSE").mode is Mode.APPEND


def test_integers_divide_to_integers_where_the_dialect_does() -> None:
    sql = "SELECT volume / 2 AS half FROM trades"
    assert "`trades`.`volume` / 2" in spark(sql)
    assert "`trades`.`volume` DIV 2" in spark("SET dialect = 'flink';" + sql)


def test_dimension_joins_broadcast_and_do_not_shuffle() -> None:
    """L7, L8, L9, P3"""
    plan = planned("SELECT t.symbol, d.name FROM trades t LEFT JOIN names d ON t.symbol = d.id")
    join = next(node for node in plan.nodes() if isinstance(node, Join))
    assert (join.broadcast, join.shuffles, join.stateful) == (True, False, False)
    nullable = {field.name: field.nullable for field in plan.columns}
    assert nullable["name"]


def test_interval_join_from_where() -> None:
    """G11: Flink's comma join with the bound in WHERE."""
    plan = planned(
        "SELECT t.symbol FROM trades t, quotes q WHERE t.symbol = q.symbol "
        "AND t.ts BETWEEN q.at - INTERVAL '4' HOUR AND q.at"
    )
    join = next(node for node in plan.nodes() if isinstance(node, Join))
    assert join.label == "IntervalJoin"
    assert join.time_bound == "t.ts from q.at - 4 hours to q.at"


def test_an_unbounded_join_is_warned_about() -> None:
    report = last("SELECT t.symbol FROM trades t JOIN quotes q ON t.symbol = q.symbol")
    assert any("for ever" in notice for notice in report.notices)


def test_window_join_compares_whole_windows() -> None:
    """G12"""
    sql = """SELECT l.symbol FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) l
        FULL JOIN TUMBLE(quotes, at, INTERVAL '1' MINUTE) r
        ON l.symbol = r.symbol AND l.window_start = r.window_start AND l.window_end = r.window_end"""
    text = spark(sql)
    assert "FULL JOIN" in text
    assert "ON `l`.`__window` = `r`.`__window` AND `l`.`symbol` = `r`.`symbol`" in text


def test_windows_of_a_join_must_be_the_same() -> None:
    sql = """SELECT l.symbol FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) l
        JOIN TUMBLE(quotes, at, INTERVAL '2' MINUTE) r
        ON l.symbol = r.symbol AND l.window_start = r.window_start"""
    assert refused(sql) == "WINDOW_MISMATCH"


def test_sessions_are_grouped_by_their_keys() -> None:
    sessions = "SESSION(TABLE trades PARTITION BY symbol, DESCRIPTOR(ts), INTERVAL '5' MINUTE)"
    sql = "SELECT {keys} COUNT(*) AS n FROM " + sessions + " GROUP BY {keys} window_start, window_end"
    assert planned(sql.format(keys="symbol,")).mode is Mode.APPEND
    assert "SessionRows" not in labels(planned(sql.format(keys="symbol,")))
    assert "SessionRows" in labels(planned(sql.format(keys="")))


def test_state_and_what_bounds_it() -> None:
    keyed = planned("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol")
    windowed = planned("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE)")
    for plan, bounded in ((keyed, False), (windowed, True)):
        node = next(node for node in plan.nodes() if isinstance(node, Aggregate))
        assert node.state is not None
        assert (node.state.bound is not None) is bounded
    report = last(
        "CREATE MATERIALIZED VIEW v WITH (state_ttl = '1 day') AS SELECT symbol, COUNT(*) FROM trades GROUP BY symbol"
    )
    assert not any("for ever" in notice for notice in report.notices)


def test_explain_json_flags_every_operator() -> None:
    """P2, P3, SC18"""
    report = last(
        """SELECT t.symbol, d.name, TUMBLE_START(t.ts, INTERVAL '1' MINUTE) AS m, COUNT(*) AS n
        FROM trades t LEFT JOIN names d ON t.symbol = d.id
        GROUP BY t.symbol, d.name, TUMBLE(t.ts, INTERVAL '1' MINUTE)"""
    )
    found = json.loads(json.dumps(explain_json(report)))["plans"][0]
    flags = {op["name"]: (op["is_stateful"], op["is_broadcast"], op["requires_shuffle"]) for op in found["operators"]}
    assert flags["Aggregate"] == (True, False, True)
    assert flags["DimensionJoin"] == (False, True, False)
    assert flags["Scan"] == (False, False, False)
    assert found["summary"] == {
        "sources": 1,
        "windows": 1,
        "stateful": 1,
        "dimensions": 1,
        "operators": 6,
        "outputs": 1,
    }


def test_explain_is_a_tree_to_read() -> None:
    text = explain_text(last("SELECT symbol, COUNT(*) AS n FROM trades WHERE price > 1 GROUP BY symbol"))
    assert text.splitlines()[:5] == [
        "Result",
        "└─ Project  symbol, COUNT(*) AS n",
        "   └─ Aggregate  group by symbol, aggregates COUNT(*), emit changes  [stateful, shuffle]",
        "      └─ Filter  price > 1",
        "         └─ Scan  trades, kind stream, connector topic, event time ts, delay 5 seconds",
    ]
    assert "changes     upsert: a later row replaces the earlier one with the same key; key (symbol)" in text
    assert "nothing bounds it" in text


def test_rewrite_shows_canonical_text_and_spark_sql() -> None:
    text = rewrite_text(
        last("SHOW REWRITE SELECT count(*) AS n FROM trades GROUP BY tumble(ts, interval '60 seconds')")
    )
    assert "TUMBLE(ts, INTERVAL '1' MINUTE)" in text
    assert "window(`trades`.`ts`, '1 minute')" in text
    assert "EMIT FINAL" in text


def test_a_kafka_source_says_where_it_starts() -> None:
    """The start position that was taken is said."""
    text = rewrite_text(
        last("SHOW REWRITE CREATE TABLE k (a INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json')")
    )
    assert "latest" in text


def test_columns_read_are_known() -> None:
    """P4: only what the query needs."""
    plan = planned("SELECT t.symbol FROM trades t JOIN names d ON t.symbol = d.id WHERE price > 1")
    assert dict(plan.reads) == {"trades": ("symbol", "price", "ts"), "names": ("id",)}
    assert dict(planned("SELECT * FROM names").reads) == {"names": ("id", "name")}


def test_views_are_put_in_place_and_materialized_views_are_read() -> None:
    view = "CREATE VIEW v AS SELECT symbol, price FROM trades WHERE price > 1;"
    assert labels(planned(view + "SELECT symbol FROM v")) == ["Result", "Project", "Project", "Filter", "Scan"]
    stored = "CREATE MATERIALIZED VIEW m AS SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;"
    assert planned(stored + "SELECT n FROM m ORDER BY n").bounded
    above = planned(stored + "CREATE MATERIALIZED VIEW w AS SELECT symbol FROM m WHERE n > 3")
    assert labels(above) == ["MaterializedView", "Finish", "Project", "Filter", "Scan"]
    assert (above.bounded, above.kept) == (False, True)
    sink = planned(stored + "CREATE SINK w WITH (connector = 'console') AS SELECT symbol FROM m")
    assert (sink.bounded, sink.kept, sink.mode.value, sink.root.key) == (False, True, "upsert", ("symbol",))


def test_a_statement_set_is_as_loose_as_its_loosest_insert() -> None:
    sinks = """CREATE TABLE a (symbol STRING) WITH (connector = 'blackhole');
        CREATE TABLE b (symbol STRING, n BIGINT) WITH (connector = 'blackhole');"""
    report = last(
        sinks
        + """EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT symbol FROM trades;
        INSERT INTO b SELECT symbol, COUNT(*) FROM trades GROUP BY symbol; END"""
    )
    assert report.error is None
    assert report.mode == "upsert"
    assert report.analysis is not None
    assert len(report.analysis.plans) == 2


def test_lenient_accepts_names_the_script_does_not_define() -> None:
    sql = "SELECT a, TUMBLE_START(t, INTERVAL '1' MINUTE) AS m FROM nowhere GROUP BY a, TUMBLE(t, INTERVAL '1' MINUTE)"
    assert last(sql).error is not None
    report = last(sql, lenient=True)
    assert report.error is None
    assert report.mode == "append"


def test_a_dropped_view_has_no_job() -> None:
    view = "CREATE MATERIALIZED VIEW v AS SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;"
    assert last(view + "PAUSE JOB v").error is None
    assert refused(view + "DROP STREAM trades CASCADE; PAUSE JOB v") == "UNKNOWN_JOB"


def test_alter_checks_the_options_again() -> None:
    assert last("ALTER STREAM trades SET (retention = '2 days')").error is None
    assert refused("ALTER STREAM trades SET (retentoin = '2 days')") == "UNKNOWN_OPTION"


def test_alter_knows_an_option_by_every_spelling_and_points_into_its_own_text() -> None:
    made = "CREATE TABLE k (a INT) WITH (connector = 'kafka', topic = 't', bootstrap_servers = 'a:1', format = 'json');"
    assert last(made + "ALTER TABLE k SET ('properties.bootstrap.servers' = 'b:2')").error is None
    report = last(made + "ALTER TABLE k RESET ('topic')")
    assert report.error is not None
    assert (report.error.condition, report.error.span) == ("MISSING_OPTION", report.statement.name.span)  # type: ignore[union-attr]


def test_a_row_may_be_in_so_many_windows_and_no_more() -> None:
    """D19"""
    sql = "SELECT COUNT(*) AS n FROM trades GROUP BY HOP(ts, INTERVAL '{}' SECOND, INTERVAL '1' HOUR)"
    planned(sql.format(1))
    assert refused(sql.format("0.999")) == "INVALID_WINDOW"


def test_b10_a_window_is_a_struct_with_two_fields_of_two_names() -> None:
    minute = "TUMBLE(ts, INTERVAL '1' MINUTE)"
    for field, part in (("window_start", "start"), ("start", "start"), ("window_end", "end"), ("END", "end")):
        found = spark(f"SELECT {minute}.{field} AS s, COUNT(*) AS n FROM trades GROUP BY {minute}")
        assert f"window(`trades`.`ts`, '1 minute').`{part}` AS `s`" in found
    assert refused(f"SELECT {minute}.middle AS s, COUNT(*) AS n FROM trades GROUP BY {minute}") == "UNKNOWN_COLUMN"


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("CREATE MATERIALIZED VIEW v AS SELECT k FROM e", "id, k"),
        ("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM e", "id"),
        ("CREATE MATERIALIZED VIEW v AS SELECT twice FROM e", "id, x"),
        (
            (
                "CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM e "
                "GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE)"
            ),
            "id, k, ts",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT a.k, b.x FROM e a JOIN e b ON a.k = b.k AND a.ts = b.ts",
            "id, k, x, ts",
        ),
    ],
)
def test_explain_tells_the_columns_that_the_scan_reads(query: str, read: str) -> None:
    """Those of the query, what computed ones are made of, and those that are checked for NULLs; not the event time
    where no window asks for it."""
    made = """CREATE STREAM e (id BIGINT NOT NULL, k STRING, x INT, twice AS x * 2, y INT, ts TIMESTAMP,
        WATERMARK FOR ts);"""
    report = last(f"{made} {query}")
    assert f"\nreads       e ({read})\n" in explain_text(report)
    assert explain_json(report)["plans"][0]["reads"] == {"e": read.split(", ")}


def test_explain_tells_what_a_query_that_ends_reads() -> None:
    made = "CREATE TABLE t (id INT NOT NULL, a INT, b INT, c AS b + 1) WITH (connector = 'file', path = 't.json');"
    assert "\nreads       t (id, b)\n" in explain_text(last(f"{made} SELECT c FROM t"))
    assert "\nreads       t (id, a, b)\n" in explain_text(last(f"{made} SELECT COUNT(*) AS n FROM t"))


def test_alter_says_what_it_has_done() -> None:
    changed = last("ALTER STREAM trades SET (retention = '2 days')")
    assert changed.notices == ("stream trades was altered",)
    again = last("ALTER STREAM trades SET (retention = '2 days'); ALTER STREAM trades SET (retention = '2 days')")
    assert again.notices == ("stream trades has these options already",)
    assert last("CREATE OR REPLACE STREAM trades (symbol STRING)").notices == ("stream trades was replaced",)


def test_a_path_in_the_place_of_a_name_is_told_how_to_become_a_table() -> None:
    error = last('SELECT * FROM "/etc/passwd"').error
    assert error is not None
    assert error.condition == "UNKNOWN_RELATION"
    assert "CREATE TABLE t (…) WITH (connector = 'file', path = '…')" in (error.hint or "")
