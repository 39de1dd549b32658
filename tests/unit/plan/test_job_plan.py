"""From plans to jobs: kinds, scans, keys, merge plans, spread, fingerprints, refusals, EXPLAIN (G1, G3, G18)."""

from __future__ import annotations

import json

import pytest

from penstock.errors import NotYetError
from penstock.plan.explain import plan_json, plan_text
from penstock.plan.fingerprint import describe_difference
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.merge_plan import MergePlan
from penstock.types import BIGINT, DOUBLE, STRING, SqlType
from tests.unit.plan.analysis import last, planned

SECOND = 1_000_000
TUMBLE = "TUMBLE(ts, INTERVAL '10' SECOND)"
MORE = """
CREATE STREAM orders (id BIGINT, customer STRING, amount DECIMAL(10, 2), tags ARRAY<STRING>, ts TIMESTAMP,
    WATERMARK FOR ts AS ts);
CREATE TABLE ended (k STRING, v INT, ts TIMESTAMP, seen TIMESTAMP, WATERMARK FOR ts AS ts)
    WITH (connector = 'datagen', number_of_rows = 10);
CREATE MATERIALIZED VIEW counts AS SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;
"""


BOUND = "t.symbol = q.symbol AND q.at BETWEEN t.ts - INTERVAL '2' SECOND AND t.ts + INTERVAL '1' MINUTE"
LEFT = f"FROM trades AS t LEFT JOIN quotes AS q ON {BOUND}"
FOREVER = "SELECT t.ts, t.symbol, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol"
WINDOWED = "SELECT window_start, window_end, symbol, COUNT(*) AS n FROM TUMBLE(TABLE {0}, DESCRIPTOR({1}), INTERVAL '10' SECOND)"
SIDES = [
    f"({WINDOWED.format(*side)} GROUP BY window_start, window_end, symbol)"
    for side in (("trades", "ts"), ("quotes", "at"))
]
WINDOW_JOIN = f"FROM {SIDES[0]} AS l JOIN {SIDES[1]} AS r ON l.symbol = r.symbol AND l.window_end = r.window_end"


def job(sql: str, state: str | None = None) -> JobPlan:
    return plan_job(planned(MORE + sql), state=state)


def merge(sql: str) -> MergePlan:
    found = job(sql)
    assert found.kind == "merge", found.how
    assert found.merge is not None
    return found.merge


def flat(text: str | None) -> str:
    assert text is not None
    return " ".join(text.split())


# scans


def test_every_reading_has_a_view_of_its_own() -> None:
    """Two readings of one stream are two scans; the text names their views and keeps the aliases."""
    found = job("SELECT symbol FROM trades WHERE price > 1 UNION ALL SELECT t.symbol FROM trades AS t;")
    assert [(scan.id, scan.view, scan.relation) for scan in found.scans] == [
        ("trades", "__scan_0", "trades"),
        ("trades#2", "__scan_1", "trades"),
    ]
    assert "FROM `__scan_0` AS `trades`" in flat(found.core)
    assert "FROM `__scan_1` AS `t`" in flat(found.core)
    assert "FROM `trades`" not in flat(found.core)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT symbol FROM trades WHERE price > 1", ("symbol", "price")),
        ("SELECT price, symbol FROM trades", ("symbol", "price")),
        ("SELECT * FROM trades", ("symbol", "price", "volume", "ts")),
        ("SELECT COUNT(*) AS n FROM trades", ()),
        (f"SELECT COUNT(*) AS n FROM trades GROUP BY {TUMBLE}", ("ts",)),
        ("SELECT SUM(x) AS s FROM (SELECT price AS x, volume AS y FROM trades) AS t", ("price",)),
        (("SELECT window_start, COUNT(*) AS n FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' HOUR) "
         "GROUP BY window_start, window_end"), ("ts",)),
        ("SELECT symbol FROM (SELECT symbol, price FROM trades UNION ALL SELECT symbol, bid FROM quotes) AS u",
         ("symbol",)),
    ],
)  # fmt: skip
def test_only_needed_columns_are_read(sql: str, columns: tuple[str, ...]) -> None:
    """A scan is asked for the columns that reach the result, in declared order, and for nothing else."""
    assert job(f"{sql};").scans[0].columns == columns


def test_pruning_keeps_what_makes_rows() -> None:
    """A HOP in the FROM clause gives a row for each window, also where nobody looks at the window."""
    hop = "HOP(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
    assert "window(`trades`.`ts`, '10 seconds', '5 seconds')" in flat(job(f"SELECT symbol FROM {hop};").core)


def test_event_time_is_given_where_a_window_stands() -> None:
    """Only a scan with a window over it has an event time; a branch without one does not hold windows back."""
    found = job(
        f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, {TUMBLE} "
        "UNION ALL SELECT symbol, CAST(bid AS BIGINT) FROM quotes;"
    )
    assert [scan.event_time and scan.event_time.column for scan in found.scans] == ["ts", None]
    assert found.uses_event_time
    assert not job("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;").uses_event_time


def test_an_assumed_event_time_is_given_too() -> None:
    """A window over a stream that declares no event time makes its column one (A3)."""
    scan = job("SELECT k, COUNT(*) AS n FROM plain GROUP BY k, TUMBLE(seen, INTERVAL '1' MINUTE);").scans[0]
    assert scan.event_time is not None
    assert (scan.event_time.column, scan.event_time.delay_us) == ("seen", 5 * SECOND)


# kinds


@pytest.mark.parametrize(
    ("sql", "kind", "key"),
    [
        ("SELECT symbol FROM trades", "append", ()),
        (f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, {TUMBLE}", "append", ()),
        ("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol", "merge", ("symbol",)),
        ("SELECT COUNT(*) AS n FROM trades", "merge", ()),
        ("SELECT symbol AS s, volume, SUM(price) AS p FROM trades GROUP BY volume, symbol", "merge", ("volume", "s")),
        ("SELECT SUM(price) AS p FROM trades GROUP BY symbol", "merge", ("__k0",)),
        ("SELECT symbol, SUM(price) AS p FROM trades GROUP BY symbol, volume", "merge", ("symbol", "__k1")),
        ("SELECT symbol, STDDEV(price) AS p FROM trades GROUP BY symbol", "update", ("symbol",)),
        ("SELECT STDDEV(price) AS p FROM trades GROUP BY symbol", "update", ("__k0",)),
        ("SELECT customer, AVG(amount) AS m FROM orders GROUP BY customer", "update", ("customer",)),
        ("SELECT upper(symbol) AS u, COUNT(*) AS n FROM trades GROUP BY upper(symbol)", "merge", ("u",)),
        ("SELECT upper(symbol) AS u, COUNT(*) AS n FROM trades GROUP BY symbol", "update", ("__k0",)),
        ("SELECT symbol, SQRT(AVG(price)) AS m FROM trades GROUP BY symbol", "update", ("symbol",)),
        (
            "SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol HAVING symbol IN (SELECT id FROM names)",
            "finish",
            ("symbol",),
        ),
        ("SELECT symbol FROM trades GROUP BY symbol", "merge", ("symbol",)),
        ("SELECT k, COUNT(*) AS n FROM ended GROUP BY k", "merge", ("k",)),
        ("SELECT k, COUNT(DISTINCT v) AS n FROM ended GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND)", "append", ()),
    ],
)
def test_kinds(sql: str, kind: str, key: tuple[str, ...]) -> None:
    """Rows are added, merged by the store, or replaced from Spark's state; the key is hidden where nobody sees it."""
    found = job(f"{sql};")
    assert (found.kind, found.key) == (kind, key), found.how
    assert (found.batch is not None, found.merge is not None) == ((kind == "merge",) * 2)


def test_state_in_spark_can_be_asked_for() -> None:
    """state = 'spark' keeps in Spark what the store could merge; the text has every group, and `__keep` for HAVING."""
    found = job("SELECT SUM(price) AS p FROM trades GROUP BY symbol HAVING COUNT(*) > 2;", state="spark")
    assert found.kind == "update"
    assert flat(found.core) == (
        "SELECT sum(`trades`.`price`) AS `p`, `trades`.`symbol` AS `__k0`, count(*) > 2 AS `__keep` "
        "FROM `__scan_0` AS `trades` GROUP BY `trades`.`symbol`"
    )


def test_sets_of_values_in_spark() -> None:
    """COUNT, SUM and AVG over DISTINCT values of a key, each with its FILTER, are those of sets that Spark keeps."""
    found = planned(
        MORE + "CREATE MATERIALIZED VIEW v WITH (state = 'spark') AS SELECT symbol, COUNT(DISTINCT volume) AS n, "
        "COUNT(DISTINCT volume) FILTER (WHERE price > 1) AS m, SUM(DISTINCT volume) AS s FROM trades GROUP BY symbol "
        "HAVING COUNT(DISTINCT volume) > 1;"
    )
    made = plan_job(found)
    assert (made.kind, made.key, found.mode.value, found.root.key) == ("update", ("symbol",), "upsert", ("symbol",))
    core = flat(made.core)
    assert "CAST(size(collect_set(`trades`.`volume`)) AS BIGINT) AS `n`" in core
    assert "CAST(size(collect_set(`trades`.`volume`) FILTER(WHERE `trades`.`price` > 1)) AS BIGINT) AS `m`" in core
    assert core.count("collect_set(`trades`.`volume`)") == 4
    assert "CAST(size(collect_set(`trades`.`volume`)) AS BIGINT) > 1 AS `__keep`" in core
    assert "DISTINCT" not in core


def test_distinct_rows_in_spark() -> None:
    """SELECT DISTINCT is a group for each row that differs; with the event time in it Spark forgets rows as before."""
    view = MORE + "CREATE MATERIALIZED VIEW v WITH (state = 'spark') AS SELECT DISTINCT {} FROM trades;"
    found = planned(view.format("symbol, volume"))
    made = plan_job(found)
    assert (made.kind, made.key) == ("update", ("symbol", "volume"))
    assert (found.mode.value, found.root.key) == ("upsert", ("symbol", "volume"))
    assert any("grows for ever" in warning for warning in found.warnings)
    assert flat(made.core).endswith("GROUP BY `__rows`.`symbol`, `__rows`.`volume`")
    assert plan_job(planned(view.format("symbol, ts"))).kind == "append"


def test_sets_of_maps_are_refused() -> None:
    """Of maps Spark says of none that they are equal: the error names what to count instead."""
    script = "CREATE STREAM m (k STRING, tags MAP<STRING, INT>, deep ARRAY<MAP<STRING, INT>>); "
    for value in ("tags", "deep"):
        view = f"CREATE MATERIALIZED VIEW v WITH (state = 'spark') AS SELECT COUNT(DISTINCT {value}) AS n FROM m;"
        error = last(script + view).error
        assert error is not None
        assert (error.condition, error.support) == ("UPDATING_DISTINCT", "not_yet")
        assert "TO_JSON" in (error.hint or "")
        texts = planned(script + view.replace(f"DISTINCT {value}", f"DISTINCT TO_JSON({value})"))
        assert plan_job(texts).kind == "update"


def test_one_row_is_there_from_the_first_input_on() -> None:
    """Spark alone gives a row for no input: neither the batch nor the update text lets it through."""
    assert flat(job("SELECT SUM(price) AS p FROM trades;").batch).endswith("HAVING count(*) > 0")
    assert "count(*) > 0 AS `__keep`" in flat(job("SELECT STDDEV(price) AS p FROM trades;").core)


def test_bounded_input_keeps_distinct_as_streams_do() -> None:
    """Spark refuses DISTINCT on streams, and a job reads a bounded table as one."""
    text = job("SELECT k, COUNT(DISTINCT v) AS n FROM ended GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND);").core
    assert "collect_set" in text
    assert "DISTINCT" not in text


# merge plans


def test_merge_plan() -> None:
    """Spark computes keys and arguments, filters included; the batch aggregates them; the store finishes."""
    found = job(
        "SELECT symbol, COUNT(*) AS n, SUM(volume) FILTER (WHERE price > 1) AS v, AVG(price) AS m, MAX(price) AS top "
        "FROM trades WHERE volume > 0 GROUP BY symbol HAVING COUNT(*) > 2;"
    )
    assert flat(found.core) == (
        "SELECT `trades`.`symbol` AS `__k0`, 1 AS `__a0`, if(`trades`.`price` > 1, `trades`.`volume`, NULL) AS `__a1`, "
        "`trades`.`price` AS `__a2` FROM `__scan_0` AS `trades` WHERE `trades`.`volume` > 0"
    )
    assert flat(found.batch) == (
        "SELECT `__k0`, count(`__a0`) AS `__p0`, sum(`__a1`) AS `__p1`, sum(`__a2`) AS `__p2`, count(`__a2`) AS `__p3`, "
        "max(`__a2`) AS `__p4` FROM `__batch` GROUP BY `__k0`"
    )
    merge = found.merge
    assert merge is not None
    assert [(key.name, key.type) for key in merge.keys] == [("__k0", STRING)]
    assert [(part.name, part.type, part.how) for part in merge.partials] == [
        ("__p0", BIGINT, "count"),
        ("__p1", BIGINT, "sum"),
        ("__p2", DOUBLE, "sum"),
        ("__p3", BIGINT, "count"),
        ("__p4", DOUBLE, "max"),
    ]
    assert [(column.name, column.type, column.expression) for column in merge.columns] == [
        ("symbol", STRING, '"__k0"'),
        ("n", BIGINT, '"__p0"'),
        ("v", BIGINT, '"__p1"'),
        ("m", DOUBLE, '("__p2" / "__p3")'),
        ("top", DOUBLE, '"__p4"'),
    ]
    assert merge.keep == '("__p0" > CAST(2 AS BIGINT))'


def test_sums_have_the_type_of_the_plan() -> None:
    """Decimals grow by ten digits, whole numbers are BIGINT."""
    found = merge("SELECT SUM(amount) AS a, SUM(id) AS i FROM orders;")
    assert [part.type for part in found.partials] == [SqlType("DECIMAL", (20, 2)), BIGINT]


def test_a_type_that_the_store_finds_is_that_of_the_view() -> None:
    sql = "CREATE STREAM dm (k STRING, p DECIMAL(10, 2)); CREATE MATERIALIZED VIEW v AS "
    merge = plan_job(planned(f"{sql} SELECT k, MAX(p) * MAX(p) AS y FROM dm GROUP BY k")).merge
    assert merge is not None
    assert merge.columns[1].type == SqlType("DECIMAL", (21, 4))


def test_queries_around_the_aggregate_are_folded_in() -> None:
    """Filters and projections above a running aggregate are computed from its row, however deep they stand."""
    found = merge(
        "SELECT who, total * 2 AS twice FROM (SELECT customer AS who, SUM(id) AS total FROM orders GROUP BY customer "
        "HAVING COUNT(*) > 1) AS t WHERE total > 100;"
    )
    assert [column.expression for column in found.columns] == ['"__k0"', 'CAST(("__p0" * CAST(2 AS BIGINT)) AS BIGINT)']
    assert found.keep == '(("__p1" > CAST(1 AS BIGINT)) AND ("__p0" > CAST(100 AS BIGINT)))'


def test_equal_aggregates_are_kept_once() -> None:
    found = merge("SELECT symbol, COUNT(*) AS a, COUNT(*) + 1 AS b, AVG(price) AS c, SUM(price) AS d FROM trades "
                  "GROUP BY symbol;")  # fmt: skip
    assert [part.how for part in found.partials] == ["count", "sum", "count"]


def test_unknown_types_are_filled_in_from_spark() -> None:
    """A sum whose type only Spark finds is still merged; `with_types` tells the store."""
    found = merge("SELECT SUM(amount * 2) AS a FROM orders;")
    assert found.partials[0].type is None
    decimal = SqlType("DECIMAL", (22, 2))
    typed = found.with_types({"__p0": decimal})
    assert (typed.partials[0].type, typed.columns[0].type) == (decimal, decimal)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT STDDEV(price) AS x FROM trades", "STDDEV(price) does not merge"),
        ("SELECT MIN(tags) AS x FROM orders", "MIN(tags) does not merge"),
        ("SELECT AVG(amount) AS x FROM orders", "AVG(amount) does not merge"),
        ("SELECT MAX(amount * 2) AS x FROM orders", "MAX(amount * 2) does not merge"),
        ("SELECT COUNT(symbol, price) AS x FROM trades", "COUNT(symbol, price) does not merge"),
        ("SELECT SUM(amount * 2) > 5 AS x FROM orders", "x is computed in a way that only Spark knows"),
        ("SELECT COUNT(*) AS x FROM trades HAVING SQRT(SUM(price)) > 1", "HAVING is computed in a way"),
    ],
)
def test_what_does_not_merge_is_kept_by_spark(sql: str, why: str) -> None:
    found = job(f"{sql};")
    assert found.kind == "update"
    assert why in found.how


# event time


@pytest.mark.parametrize(
    ("sql", "seconds"),
    [
        ("SELECT symbol FROM trades", 0),
        (f"SELECT COUNT(*) AS n FROM trades GROUP BY {TUMBLE}", 10),
        ("SELECT COUNT(*) AS n FROM trades GROUP BY HOP(ts, INTERVAL '5' SECOND, INTERVAL '1' MINUTE)", 60),
        ("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol, SESSION(ts, INTERVAL '30' SECOND)", 30),
        (("SELECT COUNT(*) AS n FROM (SELECT TUMBLE_ROWTIME(ts, INTERVAL '10' SECOND) AS rt, symbol, COUNT(*) AS n "
         f"FROM trades GROUP BY symbol, {TUMBLE}) AS t GROUP BY TUMBLE(rt, INTERVAL '1' MINUTE)"), 70),
        (("SELECT window_start, MAX(n) AS top FROM (SELECT window_start, window_end, symbol, COUNT(*) AS n FROM "
         "TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, symbol) AS t "
         "GROUP BY window_start, window_end"), 10),
        ((f"SELECT COUNT(*) AS n FROM trades GROUP BY {TUMBLE} UNION ALL "
         "SELECT COUNT(*) FROM quotes GROUP BY TUMBLE(at, INTERVAL '45' SECOND)"), 45),
        (("SELECT window_end, COUNT(*) AS n FROM CUMULATE(TABLE trades, DESCRIPTOR(ts), INTERVAL '5' SECOND, "
         "INTERVAL '20' SECOND) GROUP BY window_start, window_end"), 20),
        (FOREVER, 0),
        (f"SELECT t.symbol {LEFT}", 60.002),
        (f"SELECT COUNT(*) AS n {LEFT} GROUP BY {TUMBLE.replace('ts', 't.ts')}", 70.002),
        ((f"SELECT t.symbol {LEFT} LEFT JOIN trades AS u ON u.symbol = t.symbol AND u.ts BETWEEN t.ts AND t.ts + "
         "INTERVAL '5' SECOND"), 65.004),
        (f"SELECT l.symbol {WINDOW_JOIN}", 10),
        (("SELECT l.symbol FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND) AS l JOIN TUMBLE(TABLE quotes, "
         "DESCRIPTOR(at), INTERVAL '10' SECOND) AS r ON l.symbol = r.symbol AND l.window_start = r.window_start"), 10),
        (("SELECT l.window_start, COUNT(*) AS n FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND) AS l JOIN "
         "TUMBLE(TABLE quotes, DESCRIPTOR(at), INTERVAL '10' SECOND) AS r ON l.symbol = r.symbol AND l.window_start = "
         "r.window_start GROUP BY l.window_start, l.window_end"), 10),
        ("SELECT DISTINCT symbol, window_start FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND)", 10),
        (("SELECT window_start, symbol, r FROM (SELECT window_start, symbol, price, ROW_NUMBER() OVER (PARTITION BY "
         "window_start, window_end ORDER BY price DESC) AS r FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), "
         "INTERVAL '1' MINUTE)) AS t WHERE r <= 3"), 60),
    ],
)  # fmt: skip
def test_spread(sql: str, seconds: float) -> None:
    """The sum of what operators wait for along the longest path; a window that is used again ends with itself (G11)."""
    found = job(f"{sql};")
    assert found.spread_us == round(seconds * SECOND)
    assert found.uses_event_time == (seconds > 0)


# refusals


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.symbol, STDDEV(t.price) AS x {} GROUP BY t.symbol",
        (
            "SELECT symbol, MAX_BY(n, w) AS x FROM (SELECT symbol, COUNT(*) AS n, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS w "
            "FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE)) GROUP BY symbol"
        ),
        "SELECT symbol, STRING_AGG(symbol, ',') AS x FROM (SELECT DISTINCT symbol, ts FROM trades) GROUP BY symbol",
    ],
)
def test_what_does_not_merge_over_rows_that_come_late_is_answered_of_its_rows(sql: str) -> None:
    """G9: above outer joins, windows that close and DISTINCT, which Spark's update mode cannot read."""
    assert job(sql.format(LEFT)).kind == "finish"


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT n.id FROM names AS n JOIN names AS m ON m.id = n.id", "bounded tables"),
        ("SELECT a.k FROM ended AS a JOIN ended AS b ON a.k = b.k", "bounded tables"),
        ("SELECT k FROM ended ORDER BY k", "ORDER BY"),
        ("SELECT DISTINCT k, ts FROM ended", "SELECT DISTINCT"),
        ("SELECT k, ROW_NUMBER() OVER (ORDER BY v) AS r FROM ended", "OVER"),
        (("SELECT symbol, REGR_SLOPE(price, price) AS n FROM trades GROUP BY symbol HAVING symbol IN (SELECT id FROM names)"),
         "subquery in the SELECT list or HAVING"),
        ("SELECT k FROM ended UNION SELECT id FROM names", "UNION"),
        ("SELECT COUNT(DISTINCT v) AS n FROM ended", "distinct aggregates"),
        ("SELECT COUNT(*) AS n FROM ended GROUP BY TUMBLE(seen, INTERVAL '1' SECOND)", "not the event time"),
        ("SELECT MAX(n) AS n FROM (SELECT k, COUNT(*) AS n FROM ended GROUP BY k) AS t", "running aggregate"),
        (f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY GROUPING SETS (({TUMBLE}, symbol), (symbol))", "set without"),
        (f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY ROLLUP ({TUMBLE}, symbol)", "set without the window"),
        (("SELECT symbol, volume, COUNT(*) AS n FROM trades GROUP BY SESSION(ts, INTERVAL '1' MINUTE), "
         "CUBE (symbol, volume)"), "session windows"),
        (f"SELECT COUNT(*) AS n FROM ({FOREVER}) AS j GROUP BY SESSION(ts, INTERVAL '1' MINUTE) EMIT FINAL",
         "without a time bound"),
    ],
)  # fmt: skip
def test_refused(sql: str, word: str) -> None:
    """What a job does not run yet is refused by name, with a hint."""
    with pytest.raises(NotYetError) as raised:
        job(f"{sql};")
    assert raised.value.condition == "QUERY_NOT_YET"
    assert word in raised.value.message
    assert raised.value.hint


def test_views_feed_views_sinks_and_windows() -> None:
    """Without Spark where the view store can follow; windows are of the streams below."""
    flat = "CREATE MATERIALIZED VIEW flat AS SELECT symbol, ts FROM trades;"
    assert job(f"{flat} CREATE MATERIALIZED VIEW x AS SELECT symbol FROM flat;").of_views
    sink = job(f"{flat} CREATE SINK x WITH (connector = 'console') AS SELECT symbol FROM flat WHERE symbol > 'a';")
    assert (sink.of_views, sink.kind, sink.views) == (True, "append", ("flat",))
    counted = job(f"{flat} CREATE SINK x WITH (connector = 'console') AS SELECT COUNT(*) AS n FROM flat;")
    assert (counted.of_views, counted.kind) == (True, "finish")
    windows = job(f"{flat} CREATE MATERIALIZED VIEW x AS SELECT COUNT(*) AS n FROM flat GROUP BY {TUMBLE};")
    assert (windows.kind, [scan.relation for scan in windows.scans]) == ("panes", ["trades"])
    beside = job(
        f"{flat} CREATE MATERIALIZED VIEW x AS SELECT t.price FROM trades AS t JOIN flat AS f ON t.symbol = f.symbol;"
    )
    assert (beside.kind, beside.of_views, beside.views) == ("finish", False, ("flat",))
    assert [scan.relation for scan in beside.scans] == ["trades"]


# fingerprints

BASE = f"SELECT symbol, SUM(price) AS s FROM trades WHERE volume > 1 GROUP BY symbol, {TUMBLE};"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT symbol AS k, sum( price ) AS total FROM trades WHERE (volume>1) GROUP BY symbol, {TUMBLE};",
        f"SELECT SUM(price) * 2 AS s, symbol FROM trades WHERE volume > 1 GROUP BY symbol, {TUMBLE} HAVING SUM(price) > 1;",
        (
            f"SELECT s.symbol, SUM(s.p) AS x FROM (SELECT symbol, price AS p, ts FROM trades WHERE volume > 1) AS s "
            f"GROUP BY symbol, {TUMBLE};"
        ),
    ],
)
def test_same_state(sql: str) -> None:
    """Names, formatting, HAVING and what is computed from the aggregates are not state."""
    if "(volume>1)" in sql:
        sql = sql.replace("(volume>1)", "volume>1")
    assert job(sql).fingerprint == job(BASE).fingerprint


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (BASE.replace("SUM", "MAX"), "the aggregates were sum(`trades`.`price`) and are now max(`trades`.`price`)"),
        (BASE.replace("SUM(price)", "SUM(volume)"), "the aggregates were"),
        (BASE.replace("'10' SECOND", "'20' SECOND"), "the keys were"),
        (BASE.replace("symbol, TUMBLE", "lower(symbol), TUMBLE").replace("SELECT symbol", "SELECT lower(symbol) AS s2"),
         "the keys were"),
        (BASE.replace("volume > 1", "volume > 2"), "the rows that are aggregated were"),
        (BASE.replace("trades", "(SELECT * FROM trades UNION ALL SELECT * FROM trades) AS t"), "it read trades and now"),
        ("SELECT symbol FROM trades;", "the event time of"),
    ],
)  # fmt: skip
def test_other_state(sql: str, words: str) -> None:
    """Changed aggregates, arguments, keys, windows, filters and scans are another state, and the difference is told."""
    one, two = job(BASE), job(sql)
    assert one.fingerprint != two.fingerprint
    assert describe_difference(one.state, two.state).startswith(words)


def test_other_keeper_is_other_state() -> None:
    sql = "SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;"
    one, two = job(sql), job(sql, state="spark")
    assert one.fingerprint != two.fingerprint
    assert "kept by the view store and is now by Spark" in describe_difference(one.state, two.state)


def test_names_below_an_aggregate_are_followed() -> None:
    """The same name over another column is another state."""
    one = job("SELECT SUM(x) AS s FROM (SELECT price AS x FROM trades) AS t;")
    two = job("SELECT SUM(x) AS s FROM (SELECT volume AS x FROM trades) AS t;")
    assert one.fingerprint != two.fingerprint


def test_stateless_jobs_keep_only_their_scans() -> None:
    one, two = job("SELECT symbol FROM trades;"), job("SELECT price * 2 AS p FROM trades WHERE volume > 1;")
    assert one.fingerprint == two.fingerprint
    assert json.loads(one.state) == {"scans": {"trades": None}}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"SELECT t.symbol {LEFT};", "the joins were"),
        (f"SELECT t.symbol, t.price {LEFT};".replace("LEFT", "INNER"), "the joins were"),
        (f"SELECT t.symbol, t.price {LEFT};".replace("'2' SECOND", "'3' SECOND"), "the joins were"),
        (f"SELECT t.symbol, t.price {LEFT};".replace("FROM trades", "FROM (SELECT symbol, ts, price * 2 AS price FROM trades)"),
         "the joins were"),
    ],
)  # fmt: skip
def test_other_joins_are_other_state(sql: str, words: str) -> None:
    """Kind, bounds and kept columns of a join are its state; the order of its output is not."""
    one = job(f"SELECT t.symbol, t.price {LEFT};")
    assert one.fingerprint == job(f"SELECT t.price AS p, t.symbol {LEFT};").fingerprint
    assert describe_difference(one.state, job(sql).state).startswith(words)


def test_grouping_sets_are_state() -> None:
    """One set more or less is another state, also where the keys are the same."""
    one = job(f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY {TUMBLE}, symbol;")
    two = job(f"SELECT symbol, COUNT(*) AS n FROM trades GROUP BY {TUMBLE}, ROLLUP (symbol);")
    assert one.fingerprint != two.fingerprint


def test_distinct_is_a_step() -> None:
    """Duplicates are dropped from a view, which lets the first row through at once; nested ones one after the other."""
    found = job("SELECT DISTINCT symbol, ts FROM (SELECT DISTINCT symbol, ts, volume FROM trades) AS t;")
    assert [step.view for step in found.steps] == ["__distinct_0", "__distinct_1"]
    assert flat(found.steps[0].sql).endswith("FROM `__scan_0` AS `trades`")
    assert "FROM `__distinct_0` AS `__distinct_0`" in flat(found.steps[1].sql)
    assert flat(found.core) == (
        "SELECT `__distinct_1`.`symbol`, `__distinct_1`.`ts` FROM `__distinct_1` AS `__distinct_1`"
    )
    assert [each.kind for each in found.kept] == ["distinct", "distinct"]


# marks


def test_one_mark_reaches_an_operator() -> None:
    """Spark fails where two event times meet: the one that is not gone by is a copy without a mark (E17)."""
    bare = "timestamp_micros(unix_micros(`q`.`at`)) AS `__plain_at`"
    assert "__plain" not in job(f"SELECT t.ts, q.at {LEFT};").core
    over = flat(job(f"SELECT COUNT(*) AS n, MAX(q.at) AS last {LEFT} GROUP BY {TUMBLE.replace('ts', 't.ts')};").core)
    assert bare in over
    assert "max(`q`.`__plain_at`)" in over
    assert "`q`.`at` <= `t`.`ts` +" in over or "BETWEEN `t`.`ts` -" in over
    chain = f"SELECT t.ts, q.at {LEFT} JOIN trades AS u ON u.symbol = t.symbol AND u.ts BETWEEN t.ts AND t.ts + INTERVAL '5' SECOND;"
    assert bare in flat(job(chain).core)
    nested = f"SELECT COUNT(*) AS n, MIN(ts) AS first FROM (SELECT t.ts, q.at {LEFT.replace('LEFT', 'INNER')}) AS j GROUP BY TUMBLE(at, INTERVAL '1' SECOND);"
    assert "timestamp_micros(unix_micros(`t`.`ts`)) AS `__plain_ts`" in flat(job(nested).core)


def test_a_join_for_ever_drops_nothing() -> None:
    """Rows behind the watermark still match where every row is kept, also beside a window of another stream."""
    beside = f"{FOREVER} UNION ALL SELECT MAX(ts), symbol, COUNT(*) FROM trades GROUP BY symbol, {TUMBLE}"
    found = job(f"{beside};")
    assert found.uses_event_time
    assert [scan.event_time is not None for scan in found.scans] == [False, False, True]


def test_null_equals_nothing_in_a_full_join() -> None:
    """Spark finds rows by the bytes of their keys; in the other joins it leaves rows without one out by itself."""
    assert "AND NOT ( `t`.`symbol` ) IS NULL" in flat(job(f"SELECT t.symbol {LEFT.replace('LEFT', 'FULL')};").core)
    assert "IS NULL" not in flat(job(f"SELECT t.symbol {LEFT};").core)


def test_an_anti_join_looks_at_what_is_never_null() -> None:
    text = flat(job(f"SELECT t.symbol {LEFT.replace('LEFT', 'LEFT ANTI')};").core)
    assert "LEFT JOIN `__scan_1` AS `q`" in text
    assert "WHERE `q`.`at` IS NULL" in text


def test_sessions_get_a_key_that_nobody_sees() -> None:
    """Spark runs no sessions without another key, and folds a constant away."""
    found = job("SELECT COUNT(*) AS n FROM trades GROUP BY SESSION(ts, INTERVAL '1' MINUTE);")
    assert "session_window(`trades`.`ts`, '1 minute'), pmod(unix_micros(`trades`.`ts`), 1)" in flat(found.core)
    assert [each.keyed for each in found.kept] == [False]


def test_operators_are_numbered_as_spark_does() -> None:
    """From the result down, a join before its sides, the left one first."""
    kinds = [(each.kind, each.lowest) for each in job(f"SELECT l.symbol {WINDOW_JOIN};").kept]
    assert kinds == [("join", False), ("aggregate", True), ("aggregate", True)]
    over = job(f"SELECT COUNT(*) AS n, SUM(q.bid) AS b {LEFT} GROUP BY {TUMBLE.replace('ts', 't.ts')};").kept
    assert [(each.kind, each.functions) for each in over] == [("aggregate", ("count", "sum")), ("join", ())]
    assert [each.kind for each in job("SELECT symbol, STDDEV(price) AS x FROM trades GROUP BY symbol;").kept] == [
        "aggregate"
    ]
    assert job("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;").kept == ()


def test_a_running_aggregate_over_a_join_is_merged() -> None:
    """Spark joins, the view store keeps the totals; the watermark lets go of the joined rows."""
    found = job(f"SELECT t.symbol, COUNT(*) AS n {LEFT} GROUP BY t.symbol;")
    assert (found.kind, found.uses_event_time, found.spread_us) == ("merge", True, 60_002_000)


# EXPLAIN


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELECT symbol FROM trades", "engine      Spark; nothing is kept between batches"),
        (f"SELECT COUNT(*) AS n FROM trades GROUP BY {TUMBLE}", "engine      Spark aggregates each batch by window of"),
        (f"SELECT STDDEV(price) AS n FROM trades GROUP BY {TUMBLE}",
         "engine      Spark; windows close there: STDDEV(price) does not merge"),
        ("SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol",
         "engine      Spark aggregates each batch, the view store merges by symbol"),
        ("SELECT symbol, STDDEV(price) AS n FROM trades GROUP BY symbol",
         "engine      Spark keeps the state (update mode): STDDEV(price) does not merge"),
        ("SELECT symbol FROM trades LIMIT 3",
         "note        LIMIT without ORDER BY keeps the first rows in the order of their columns"),
        ("SELECT a.symbol, rand() AS luck FROM trades AS a JOIN trades AS b ON a.symbol = b.symbol LIMIT 3", "engine      not run yet: LIMIT in a job is not there yet"),
        ("SELECT symbol FROM trades ORDER BY symbol",
         "note        rows that are stored have no order: ORDER BY is left out, order them when you read them"),
        (FOREVER,
         " and answers the query: what new rows make with those that are there is added, and nothing is answered anew"),
        (f"SELECT bid, COUNT(*) AS n FROM ({FOREVER}) GROUP BY bid", "engine      Spark aggregates each batch, the view store merges by bid"),
        (f"SELECT t.symbol {LEFT}",
         "engine      Spark; joined rows are kept there until the watermark has passed their bound"),
        ("SELECT DISTINCT symbol, ts FROM trades",
         "engine      Spark; duplicates are forgotten there when the watermark passes them"),
    ],
)  # fmt: skip
def test_explained(sql: str, line: str) -> None:
    """EXPLAIN says which engine does what (P2)."""
    plan = planned(f"CREATE MATERIALIZED VIEW x AS {sql};")
    assert line in plan_text(plan)
    assert plan_json(plan)["job"] is not None


def test_a_bounded_query_is_no_job() -> None:
    plan = planned("SELECT id FROM names;")
    assert "engine" not in plan_text(plan)
    assert plan_json(plan)["job"] is None


@pytest.mark.parametrize("query", ["SELECT 1 AS x", "VALUES (1)", "SELECT COUNT(*) AS n FROM (VALUES (1)) AS t(x)"])
def test_a_view_of_rows_that_are_written_out_is_answered_by_the_store(query: str) -> None:
    job = plan_job(planned(f"CREATE MATERIALIZED VIEW v AS {query}"))
    assert (job.of_views, job.views, job.kind) == (True, (), "finish")
    assert "from the rows that are written out" in job.how


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE MATERIALIZED VIEW v AS SELECT NOW() AS x",
        "CREATE MATERIALIZED VIEW v AS SELECT RAND() AS x",
        "CREATE MATERIALIZED VIEW v AS SELECT NULL AS x",
        "CREATE SINK v WITH (connector = 'console') AS VALUES (1)",
    ],
)
def test_other_rows_that_are_written_out_are_refused_by_name(statement: str) -> None:
    with pytest.raises(NotYetError, match="rows that are written out cannot feed a job") as refused:
        plan_job(planned(statement))
    assert "INSERT INTO … VALUES" in str(refused.value.hint)
