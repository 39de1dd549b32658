"""Windows as SQL writes them, on the running engine (contract D)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import at, check_change_log, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

HOUR = 3600
T = 2 * HOUR  # a whole hour, so also the beginning of every shorter window

EVENTS = """
CREATE STREAM events (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second')
"""


def test_tumble_hop_and_arroyo_spellings(db: penstock.Database) -> None:
    """D1 to D6, D9, D10, D12 to D14, D17, D20, D26: every spelling, on one stream with rows at the edges."""
    db.execute(EVENTS)
    db.execute("""
        CREATE MATERIALIZED VIEW tumbling AS
        SELECT k, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, TUMBLE_END(ts, INTERVAL '60 sec') AS e,
               COUNT(*) AS n, SUM(v) AS total
        FROM events GROUP BY k, TUMBLE(ts, INTERVAL '1 minute');
        CREATE MATERIALIZED VIEW hopping AS
        SELECT HOP_START(ts, INTERVAL '5 min', INTERVAL '1 hour') AS s, HOP_END(ts, INTERVAL '5 min', INTERVAL '1 HOUR') AS e,
               COUNT(*) AS n
        FROM events GROUP BY HOP(ts, INTERVAL '5 min', INTERVAL '1 hour');
        CREATE MATERIALIZED VIEW by_alias AS
        select tumble(interval '1 minute') as window, count(*) as n from events group by window;
        CREATE MATERIALIZED VIEW by_ordinal AS
        SELECT tumble(interval '1 minute') AS window, window.start AS s, window.end AS e, count(*) AS n FROM events GROUP BY 1;
        CREATE MATERIALIZED VIEW arroyo_hop AS
        SELECT hop(interval '1 minute', interval '1 hour') AS window, count(*) AS n FROM events WHERE k = 'b' GROUP BY window;
        CREATE MATERIALIZED VIEW scalar AS
        SELECT v, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, TUMBLE_END(ts, INTERVAL '1' MINUTE) AS e FROM events;
    """)
    rows = [("a", 1, T), ("a", 2, T + 59.999), ("a", 3, T + 60), ("b", 4, T + 61.5)]
    db.append("events", [{"k": k, "v": v, "ts": ms(second)} for k, v, second in rows])
    db.settle()
    # The watermark is at T + 60.5: only what ended before it is there (D26).
    assert read(db, "tumbling") == [("a", at(T), at(T + 60), 2, 3)]
    assert read(db, "by_alias") == [({"start": at(T), "end": at(T + 60)}, 2)]
    assert read(db, "hopping") == []
    assert read(db, "scalar") == [
        (1, at(T), at(T + 60)), (2, at(T), at(T + 60)), (3, at(T + 60), at(T + 120)), (4, at(T + 60), at(T + 120)),
    ]  # fmt: skip

    db.advance_watermark("events", ms(T + 2 * HOUR))
    assert read(db, "tumbling") == [
        ("a", at(T), at(T + 60), 2, 3), ("a", at(T + 60), at(T + 120), 1, 3), ("b", at(T + 60), at(T + 120), 1, 4),
    ]  # fmt: skip
    starts = [T - step * 300 for step in range(12)]
    assert read(db, "hopping") == [(at(start), at(start + HOUR), 4) for start in sorted(starts)]
    windows = [(at(T), at(T + 60), 2), (at(T + 60), at(T + 120), 2)]
    assert read(db, "by_alias") == [({"start": start, "end": end}, n) for start, end, n in windows]
    assert read(db, "by_ordinal") == [({"start": start, "end": end}, start, end, n) for start, end, n in windows]
    found = read(db, "arroyo_hop")
    assert len(found) == 60
    assert {row[0]["start"] for row in found} == {at(T + 60 - step * 60) for step in range(60)}
    assert {row[0]["end"] - row[0]["start"] for row in found} == {at(HOUR) - at(0)}
    for view in ("tumbling", "hopping", "by_alias", "by_ordinal", "arroyo_hop", "scalar"):
        check_change_log(db, view)


def test_sessions(db: penstock.Database) -> None:
    """D7, D8, D11, D21, D22, D26: worked sessions, a row that bridges two in a later batch, the gap as long as allowed."""
    db.execute("""
        CREATE STREAM visits (k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' HOUR);
        CREATE MATERIALIZED VIEW flink AS
        SELECT k, SESSION_START(ts, INTERVAL '5' MINUTE) AS s, SESSION_END(ts, INTERVAL '5' MINUTE) AS e, COUNT(*) AS n
        FROM visits GROUP BY k, SESSION(ts, INTERVAL '5' MINUTE);
        CREATE MATERIALIZED VIEW arroyo AS
        SELECT k, session(interval '5 minutes') AS window, COUNT(*) AS n FROM visits GROUP BY k, window;
    """)
    seconds = {"worked": [0, 240, 600], "bridged": [0, 500], "equal": [0, 300], "apart": [0, 301]}
    db.append("visits", [{"k": k, "ts": ms(second)} for k, found in seconds.items() for second in found])
    db.settle()
    db.append("visits", [{"k": "bridged", "ts": ms(250)}])
    db.settle()
    assert read(db, "flink") == []
    db.advance_watermark("visits", ms(899.999))
    early = [
        ("apart", at(0), at(300), 1), ("apart", at(301), at(601), 1), ("bridged", at(0), at(800), 3),
        ("equal", at(0), at(600), 2), ("worked", at(0), at(540), 2),
    ]  # fmt: skip
    assert read(db, "flink") == early
    db.advance_watermark("visits", ms(900))
    every = sorted([*early, ("worked", at(600), at(900), 1)])
    assert read(db, "flink") == every
    assert read(db, "arroyo") == [(k, {"start": start, "end": end}, n) for k, start, end, n in every]
    check_change_log(db, "flink")


def test_hop_edges(db: penstock.Database) -> None:
    """D19: a size that is no multiple of the slide, a slide as long as the size; windows that begin before 1970."""
    db.execute(EVENTS)
    db.execute("""
        CREATE MATERIALIZED VIEW uneven AS
        SELECT HOP_START(ts, INTERVAL '4' SECOND, INTERVAL '6' SECOND) AS s, COUNT(*) AS n, SUM(v) AS total
        FROM events GROUP BY HOP(ts, INTERVAL '4' SECOND, INTERVAL '6' SECOND);
        CREATE MATERIALIZED VIEW same AS
        SELECT HOP_START(ts, INTERVAL '4' SECOND, INTERVAL '4' SECOND) AS s, COUNT(*) AS n
        FROM events GROUP BY HOP(ts, INTERVAL '4' SECOND, INTERVAL '4' SECOND);
    """)
    db.append("events", [{"v": v, "ts": ms(v)} for v in (0, 1, 2, 5, 7, 8)])
    db.drain("uneven")
    db.drain("same")
    # [-4, 2): 0 and 1; [0, 6): 0, 1, 2, 5; [4, 10): 5, 7, 8; [8, 14): 8
    assert read(db, "uneven") == [(at(-4), 2, 1), (at(0), 4, 8), (at(4), 3, 20), (at(8), 1, 8)]
    assert read(db, "same") == [(at(0), 3), (at(4), 2), (at(8), 1)]


REFUSED = {
    "WINDOW_MISMATCH": "SELECT TUMBLE_START(ts, INTERVAL '2' MINUTE), COUNT(*) FROM events GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
    "MULTIPLE_WINDOWS": "SELECT COUNT(*) AS n FROM events GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), TUMBLE(ts, INTERVAL '2' MINUTE)",
    "INVALID_WINDOW": "SELECT COUNT(*) AS n FROM events GROUP BY HOP(ts, INTERVAL '1' HOUR, INTERVAL '5' MINUTE)",
}


def test_refused_windows_leave_nothing(db: penstock.Database) -> None:
    """D18, D19, D27, G5: what makes no sense is refused by name, and no view, job or file is left."""
    db.execute(EVENTS)
    for condition, query in REFUSED.items():
        with pytest.raises(PenstockError) as raised:
            db.execute(f"CREATE MATERIALIZED VIEW refused AS {query}")
        assert raised.value.condition == condition
    assert db.jobs() == []
    assert db.sql("SELECT COUNT(*) FROM penstock.columns WHERE relation = 'refused'").rows() == [(0,)]
    assert not (db.path / "jobs" / "refused").exists()


def test_windows_are_operators_of_spark(db: penstock.Database) -> None:
    """D24, D25: no Python function computes a window, and sessions have Spark's own operator."""
    db.execute(EVENTS)

    def plan(window: str) -> str:
        found = db.execute(f"EXPLAIN PHYSICAL SELECT k, COUNT(*) AS n FROM events GROUP BY k, {window}")
        assert found is not None
        return "\n".join(row[0] for row in found.rows())

    tumble, session = plan("TUMBLE(ts, INTERVAL '1' MINUTE)"), plan("SESSION(ts, INTERVAL '1' MINUTE)")
    for text in (tumble, session):
        assert "EvalPython" not in text
        assert "StateStoreSave" in text
    assert "HashAggregate" in tumble
    assert "session_window" in session
    assert plan("TUMBLE(ts, INTERVAL '1' MINUTE)").count("\n") == tumble.count("\n")


def test_windows_over_windows(db: penstock.Database) -> None:
    """Minutes into hours: the upper window closes when no row of the lower one can come any more."""
    db.execute(EVENTS)
    db.execute("""
        CREATE MATERIALIZED VIEW hours AS
        SELECT TUMBLE_START(rt, INTERVAL '1' HOUR) AS s, COUNT(*) AS minutes, SUM(n) AS n, MAX(n) AS busiest
        FROM (SELECT TUMBLE_ROWTIME(ts, INTERVAL '1' MINUTE) AS rt, COUNT(*) AS n
              FROM events GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)) AS m
        GROUP BY TUMBLE(rt, INTERVAL '1' HOUR);
    """)
    db.append("events", [{"v": 0, "ts": ms(second)} for second in (T, T + 1, T + 60, T + HOUR - 0.001, T + HOUR)])
    db.settle()
    assert read(db, "hours") == []
    db.advance_watermark("events", ms(T + HOUR))
    assert read(db, "hours") == [(at(T), 3, 4, 2)]
    db.drain("hours")
    assert read(db, "hours") == [(at(T), 3, 4, 2), (at(T + HOUR), 1, 1, 1)]


def test_window_over_hidden_event_time(opened: Callable[..., penstock.Database]) -> None:
    """E17, A11: the event time goes along under filters, projections and CREATE VIEW, and no result shows it."""
    db = opened()
    db.execute(EVENTS)
    db.execute("""
        CREATE VIEW positive AS SELECT k AS name, v * 2 AS twice, ts AS moment FROM events WHERE v > 0;
        CREATE MATERIALIZED VIEW named AS
        SELECT name, SUM(twice) AS total FROM positive GROUP BY name, TUMBLE(moment, INTERVAL '10' SECOND);
        CREATE MATERIALIZED VIEW implied AS
        SELECT name, count(*) AS n FROM (SELECT k AS name FROM events WHERE v > 0) AS p GROUP BY name, tumble(interval '10 seconds');
    """)
    db.append("events", [{"k": "a", "v": v, "ts": ms(v + 3)} for v in (-1, 1, 2, 3, 9, 30)])
    db.settle()
    assert read(db, "named") == [("a", 12), ("a", 18)]
    assert read(db, "implied") == [("a", 1), ("a", 3)]
    assert db.sql("SELECT * FROM named").columns == ["name", "total"]
