"""SC21: eleven queries of three systems and plain SQL, and texts that are none: each runs, or is refused to the point."""

from __future__ import annotations

import pytest

from penstock.plan.script import analyze_script

SETUP = """
CREATE STREAM sales (buyer STRING, cents BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' SECOND);
CREATE STREAM ticks (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts);
CREATE STREAM quotes (symbol STRING, bid DOUBLE, ts TIMESTAMP, WATERMARK FOR ts);
CREATE TABLE buyers (id STRING, name STRING) WITH (connector = 'file', path = 'buyers.csv', format = 'csv');
"""
ACCEPTED = {
    "flink, time": "SELECT * FROM sales WHERE at > CURRENT_TIMESTAMP - INTERVAL '1' HOUR",
    "flink, tumble": "SELECT TUMBLE_START(at, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n FROM sales GROUP BY TUMBLE(at, INTERVAL '1' MINUTE)",
    "flink, hop": "SELECT HOP_START(at, INTERVAL '30' SECOND, INTERVAL '1' MINUTE) AS s, SUM(cents) AS c FROM sales GROUP BY HOP(at, INTERVAL '30' SECOND, INTERVAL '1' MINUTE)",
    "plain, group": "SELECT buyer, COUNT(*) AS n, SUM(cents) AS c FROM sales GROUP BY buyer",
    "plain, join": "SELECT s.*, b.name FROM sales s JOIN buyers b ON s.buyer = b.id",
    "words that other systems begin clauses with": "SELECT latest.bid FROM ticks JOIN quotes latest ON ticks.symbol = latest.symbol AND ticks.ts = latest.ts",
}
# The query, the condition, the column of the word that is wrong, and what to do instead.
REFUSED = {
    "questdb, sample by": ("SELECT * FROM ticks SAMPLE BY 1h", "DIALECT_NOT_YET", 21, "TUMBLE(ts"),
    "questdb, sample by behind where": ("SELECT * FROM ticks WHERE price > 1 SAMPLE BY 15m", "DIALECT_NOT_YET", 37, "TUMBLE(ts"),
    "questdb, latest by": ("SELECT * FROM ticks LATEST BY symbol", "DIALECT_NOT_YET", 21, "max_by"),
    "questdb, latest on": ("SELECT * FROM ticks LATEST ON ts PARTITION BY symbol", "DIALECT_NOT_YET", 21, "max_by"),
    "questdb, asof": ("SELECT * FROM ticks ASOF JOIN quotes ON ticks.symbol = quotes.symbol", "INVALID_ARGUMENT", 41, "a.ts >= b.ts"),
    "over, row_number": ("CREATE SINK x WITH (connector = 'topic') AS SELECT *, ROW_NUMBER() OVER (PARTITION BY buyer ORDER BY at) AS n FROM sales", "SINK_CANNOT_UPDATE", None, "changes = 'upsert'"),
    "over, rank": ("CREATE SINK x WITH (connector = 'topic') AS SELECT *, RANK() OVER (PARTITION BY buyer ORDER BY cents DESC) AS n FROM sales", "SINK_CANNOT_UPDATE", None, "changes = 'upsert'"),
    "over, lag": ("CREATE SINK x WITH (connector = 'topic') AS SELECT *, LAG(cents, 1) OVER (PARTITION BY buyer ORDER BY at) AS n FROM sales", "SINK_CANNOT_UPDATE", None, "changes = 'upsert'"),
    "no columns": ("SELECT FROM WHERE", "SYNTAX_ERROR", 8, None),
    "a slip of the pen": ("SELEC * FROM sales", "SYNTAX_ERROR", 1, "SELECT"),
    "nothing behind it": ("SELECT * FROM", "SYNTAX_ERROR", None, None),
    "a bracket too few": ("SELECT COUNT(* FROM sales", "SYNTAX_ERROR", None, None),
    "a name that begins with a digit": ("SELECT 1h FROM sales", "SYNTAX_ERROR", 9, "quote the name"),
}  # fmt: skip


@pytest.mark.parametrize("sql", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(sql: str) -> None:
    report = analyze_script(SETUP + sql)[-1]
    assert report.error is None, report.error
    assert report.plan is not None


@pytest.mark.parametrize(("sql", "condition", "column", "instead"), REFUSED.values(), ids=REFUSED)
def test_refused(sql: str, condition: str, column: int | None, instead: str | None) -> None:
    error = analyze_script(SETUP + sql)[-1].error
    assert error is not None
    assert error.condition == condition
    assert error.span is not None
    assert error.span.line == SETUP.count("\n") + 1
    assert column in (None, error.span.column)
    assert instead is None or instead in (error.hint or "")
