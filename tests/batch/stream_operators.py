"""Windows, and other operators that only a stream has or that differ there, as views over streams."""

from __future__ import annotations

STREAMS = """
CREATE STREAM orders (id BIGINT, who STRING, cents BIGINT, ts TIMESTAMP, at AS PROCTIME(), WATERMARK FOR ts AS ts);
CREATE STREAM payments (id BIGINT, cents BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE STREAM accounts (who STRING, owner STRING, PRIMARY KEY (who) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
"""
_HOUR = "INTERVAL '1' HOUR"
_MINUTE = "INTERVAL '1' MINUTE"
_PAID = "FROM orders o {} JOIN payments p ON o.id = p.id"
_WITHIN = f"{_PAID} AND p.ts BETWEEN o.ts AND o.ts + {_HOUR}"

# The operator, its SQL, and the condition with which it is refused; None where it runs.
WINDOWED: dict[str, tuple[str, str | None]] = {
    "tumbling window": (f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, TUMBLE(ts, {_HOUR})", None),
    "tumbling window, each change": (
        f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, TUMBLE(ts, {_HOUR}) EMIT CHANGES", None,
    ),
    "hopping window": (
        f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, HOP(ts, {_MINUTE}, {_HOUR})", None,
    ),
    "hopping window, each change": (
        f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, HOP(ts, {_MINUTE}, {_HOUR}) EMIT CHANGES", None,
    ),
    "session": (f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, SESSION(ts, {_MINUTE})", None),
    "session, each change": (
        f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, SESSION(ts, {_MINUTE}) EMIT CHANGES", None,
    ),
    "rows of sessions": (
        f"SELECT id, window_start FROM SESSION(TABLE orders PARTITION BY who, DESCRIPTOR(ts), {_MINUTE})", None,
    ),
    "sessions, grouped by other keys": (
        (f"SELECT cents, window_start, COUNT(*) AS n FROM SESSION(TABLE orders PARTITION BY who, DESCRIPTOR(ts), {_MINUTE}) "
        "GROUP BY cents, window_start, window_end"), None,
    ),
    "grouping sets over sessions": (
        (f"SELECT who, window_start, COUNT(*) AS n FROM SESSION(TABLE orders PARTITION BY who, DESCRIPTOR(ts), {_MINUTE}) "
        "GROUP BY ROLLUP (who), window_start, window_end"), None,
    ),
    "cumulating window": (
        (f"SELECT window_end, COUNT(*) AS n FROM CUMULATE(TABLE orders, DESCRIPTOR(ts), {_MINUTE}, {_HOUR}) "
        "GROUP BY window_start, window_end"), None,
    ),
    "cumulating window, each change": (
        (f"SELECT window_end, COUNT(*) AS n FROM CUMULATE(TABLE orders, DESCRIPTOR(ts), {_MINUTE}, {_HOUR}) "
        "GROUP BY window_start, window_end EMIT CHANGES"), None,
    ),
    "window of processing time": (
        f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, TUMBLE(at, {_MINUTE})", None,
    ),
    "distinct count in a window of processing time": (
        f"SELECT window_start, COUNT(DISTINCT who) AS n FROM orders GROUP BY TUMBLE(at, {_MINUTE})", None,
    ),
    "percentile in a session, each change": (
        ("SELECT who, window_start, PERCENTILE(cents, 0.9) AS p FROM orders "
        f"GROUP BY who, SESSION(ts, {_MINUTE}) EMIT CHANGES"), None,
    ),
    "cumulating window of processing time": (
        (f"SELECT window_end, COUNT(*) AS n FROM CUMULATE(TABLE orders, DESCRIPTOR(at), {_MINUTE}, {_HOUR}) "
        "GROUP BY window_start, window_end"), None,
    ),
    "session of processing time": (
        f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, SESSION(at, {_MINUTE})", None,
    ),
    "window of processing time, each change": (
        f"SELECT who, window_start, COUNT(*) AS n FROM orders GROUP BY who, HOP(at, {_MINUTE}, {_HOUR}) EMIT CHANGES", None,
    ),
    "distinct count in a window": (
        f"SELECT window_start, COUNT(DISTINCT who) AS n FROM orders GROUP BY TUMBLE(ts, {_HOUR})", None,
    ),
    "distinct count in a window, each change": (
        f"SELECT window_start, COUNT(DISTINCT who) AS n FROM orders GROUP BY TUMBLE(ts, {_HOUR}) EMIT CHANGES", None,
    ),
    "ranks within a window": (
        ("SELECT window_start, id, RANK() OVER (PARTITION BY window_start, window_end ORDER BY cents DESC) AS place "
        f"FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), {_HOUR})"), None,
    ),
    "ranks within a window, each change": (
        ("SELECT window_start, id, RANK() OVER (PARTITION BY window_start, window_end ORDER BY cents DESC) AS place "
        f"FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), {_HOUR}) EMIT CHANGES"), None,
    ),
    "OVER within a window": (
        ("SELECT window_start, id, SUM(cents) OVER (PARTITION BY window_start, window_end ORDER BY ts, id) AS total "
        f"FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), {_HOUR})"), None,
    ),
    "grouping sets in a window": (
        f"SELECT window_start, who, COUNT(*) AS n FROM orders GROUP BY TUMBLE(ts, {_HOUR}), ROLLUP (who)", None,
    ),
    "grouping sets in a window, each change": (
        f"SELECT window_start, who, COUNT(*) AS n FROM orders GROUP BY TUMBLE(ts, {_HOUR}), ROLLUP (who) EMIT CHANGES", None,
    ),
    "distinct count": ("SELECT who, COUNT(DISTINCT cents) AS n FROM orders GROUP BY who", None),
    "grouping sets": ("SELECT who, COUNT(*) AS n FROM orders GROUP BY ROLLUP (who)", None),
    "top n of a key": (
        ("SELECT who, id, cents FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY cents DESC, id) AS place "
        "FROM orders) WHERE place <= 3"), None,
    ),
    "the first row of a key to arrive": ("SELECT DISTINCT ON (who) who, id FROM orders", None),
    "join of streams within a time": (f"SELECT o.id, p.cents {_WITHIN.format('')}", None),
    "left join of streams within a time": (f"SELECT o.id, p.cents {_WITHIN.format('LEFT')}", None),
    "join of streams": (f"SELECT o.id, p.cents {_PAID.format('')}", None),
    "left join of streams": (f"SELECT o.id, p.cents {_PAID.format('LEFT')}", None),
    "join of streams by inequality": ("SELECT o.id, p.cents FROM orders o JOIN payments p ON o.cents < p.cents", None),
    "cross join of streams": ("SELECT o.id, p.cents FROM orders o CROSS JOIN payments p", "UNBOUNDED_CROSS_JOIN"),
    "lateral limit over streams": (
        ("SELECT o.id, t.cents FROM orders o, LATERAL (SELECT p.cents FROM payments p WHERE p.id = o.id "
        "ORDER BY p.cents DESC, p.ts LIMIT 2) t"), None,
    ),
    "limit without an order": ("SELECT id FROM orders LIMIT 3", None),
    "full join of streams": (f"SELECT o.id, p.cents {_PAID.format('FULL')}", None),
    "ASOF join of streams": ("SELECT o.id, p.cents FROM orders o ASOF JOIN payments p ON o.id = p.id AND p.ts <= o.ts", None),
    "ASOF left join of streams": (
        "SELECT o.id, p.cents FROM orders o ASOF LEFT JOIN payments p ON o.id = p.id AND p.ts <= o.ts", None,
    ),
    "rows that replace each other": ("SELECT who, owner FROM accounts", None),
    "aggregate of rows that replace each other": ("SELECT owner, COUNT(*) AS n FROM accounts GROUP BY owner", None),
    "join with rows that replace each other": (
        "SELECT o.id, a.owner FROM orders o LEFT JOIN accounts a ON o.who = a.who", None,
    ),
}  # fmt: skip
