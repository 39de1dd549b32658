"""Windows: every spelling becomes one node."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.errors import PenstockError
from penstock.sql.durations import HOUR, MINUTE, SECOND
from penstock.sql.nodes import WindowCall, WindowPart, WindowTable
from penstock.sql.script import parse_script, parse_statement
from penstock.sql.statements import Select


def query(text: str) -> exp.Query:
    statement = parse_statement(text)
    assert isinstance(statement, Select)
    return statement.query.tree


def grouped(call: str) -> WindowCall:
    group = query(f"SELECT COUNT(*) FROM t GROUP BY k, {call}").args["group"]
    window = group.expressions[1]
    assert isinstance(window, WindowCall)
    return window


def table(source: str) -> WindowTable:
    found = query(f"SELECT * FROM {source}").args["from_"].this
    assert isinstance(found, WindowTable)
    return found


def durations(window: WindowCall) -> dict[str, int]:
    return {name: window.micros(name) for name in ("size", "slide", "gap", "step", "offset") if window.args.get(name)}


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        ("TUMBLE(ts, INTERVAL '1 hour')", "TUMBLE", {"size": HOUR}),
        ("tumble(ts, INTERVAL '1' HOUR, INTERVAL '5' MINUTE)", "TUMBLE", {"size": HOUR, "offset": 5 * MINUTE}),
        ("HOP(ts, INTERVAL '5 min', INTERVAL '1 hour')", "HOP", {"slide": 5 * MINUTE, "size": HOUR}),
        ("SESSION(ts, INTERVAL '5' MINUTE)", "SESSION", {"gap": 5 * MINUTE}),
        ("CUMULATE(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)", "CUMULATE", {"step": MINUTE, "size": HOUR}),
        ("window(ts, '10 minutes')", "TUMBLE", {"size": 10 * MINUTE}),
        ("window(ts, '10 minutes', '10 minutes')", "TUMBLE", {"size": 10 * MINUTE}),
        ("window(ts, '1 hour', '5 minutes')", "HOP", {"slide": 5 * MINUTE, "size": HOUR}),
        ("window(ts, '1 hour', '5 minutes', '1 minute')", "HOP", {"slide": 5 * MINUTE, "size": HOUR, "offset": MINUTE}),
        ("session_window(ts, '5 minutes')", "SESSION", {"gap": 5 * MINUTE}),
    ],
)
def test_grouping_windows(call: str, kind: str, expected: dict[str, int]) -> None:
    """D1, D4, D7, D8: HOP is (slide, size), Spark's own spelling (size, slide)."""
    window = grouped(call)
    assert window.kind == kind
    assert durations(window) == expected
    assert window.args["time"] == exp.column("ts")


def test_qualified_time_column() -> None:
    """D23"""
    assert grouped("TUMBLE(t.ts, INTERVAL '1' MINUTE)").args["time"] == exp.column("ts", table="t")


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        ("tumble(interval '1 second')", "TUMBLE", {"size": SECOND}),
        ("hop(interval '1 minute', interval '1 hour')", "HOP", {"slide": MINUTE, "size": HOUR}),
        ("session(interval '5 minute')", "SESSION", {"gap": 5 * MINUTE}),
    ],
)
def test_windows_over_the_event_time_of_the_input(call: str, kind: str, expected: dict[str, int]) -> None:
    """D9, D10, D11: no time column is named."""
    tree = query(f"SELECT {call} AS window, window.start, window.end, COUNT(*) FROM t GROUP BY window")
    window = tree.selects[0].this
    assert isinstance(window, WindowCall)
    assert (window.kind, durations(window), window.args.get("time")) == (kind, expected, None)
    assert [item.name for item in tree.selects[1:3]] == ["start", "end"]


@pytest.mark.parametrize("kind", ["TUMBLE", "HOP", "SESSION", "CUMULATE"])
@pytest.mark.parametrize("part", ["START", "END", "ROWTIME", "PROCTIME"])
def test_helpers_hold_the_window_they_name(kind: str, part: str) -> None:
    """D2, D3, D5, D6, D8: the helper's window equals the one of GROUP BY."""
    arguments = "ts, INTERVAL '5' MINUTE" + (", INTERVAL '1' HOUR" if kind in {"HOP", "CUMULATE"} else "")
    tree = query(f"SELECT {kind}_{part}({arguments}) FROM t GROUP BY {kind}({arguments})")
    helper = tree.selects[0]
    assert isinstance(helper, WindowPart)
    assert helper.part == part.lower()
    assert helper.this == tree.args["group"].expressions[0]


SAME_TABLE = [
    "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES))",
    "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)",
    "table(tumble(table t, descriptor(ts), interval '600' second))",
    "TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' MINUTES))",
    "TABLE(TUMBLE(SIZE => INTERVAL '10' MINUTES, TIMECOL => DESCRIPTOR(ts), DATA => TABLE t))",
    "TUMBLE(t, ts, INTERVAL '10 MINUTES')",
]


@pytest.mark.parametrize("source", SAME_TABLE)
def test_table_functions_are_one_relation(source: str) -> None:
    assert table(source) == table(SAME_TABLE[0])


def test_table_functions_of_all_kinds() -> None:
    hop = table(
        "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES, INTERVAL '1' MINUTE)) AS h"
    )
    assert durations(hop.args["window"]) == {"slide": 5 * MINUTE, "size": 10 * MINUTE, "offset": MINUTE}
    assert hop.args["alias"].name == "h"
    assert hop.args["window"] == table("HOP(t, ts, INTERVAL '5 m', INTERVAL '10 m', INTERVAL '1 m')").args["window"]
    session = table("SESSION(TABLE t PARTITION BY a, b, DESCRIPTOR(ts), INTERVAL '5' MINUTE) s")
    assert session.args["window"].args["keys"] == [exp.column("a"), exp.column("b")]
    assert session.args["window"] == table("SESSION(DATA => TABLE t PARTITION BY (a, b), TIMECOL => DESCRIPTOR(ts), "
                                           "GAP => INTERVAL '5' MINUTE)").args["window"]  # fmt: skip
    cumulate = table("TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES))")
    assert durations(cumulate.args["window"]) == {"step": 2 * MINUTE, "size": 10 * MINUTE}
    over_query = table("TUMBLE((SELECT * FROM t WHERE a > 1), DESCRIPTOR(ts), INTERVAL '1' MINUTE)")
    assert isinstance(over_query.this, exp.Subquery)


def test_a_window_table_takes_part_in_joins() -> None:
    tree = query("SELECT * FROM TUMBLE(t, ts, INTERVAL '1' MINUTE) AS a JOIN TUMBLE(u, ts, INTERVAL '1' MINUTE) AS b "
                 "ON a.window_start = b.window_start")  # fmt: skip
    assert isinstance(tree.args["joins"][0].this, WindowTable)


def test_names_of_windows_are_no_windows() -> None:
    """A11: a string or a column that is called like a window stays what it is."""
    tree = query("SELECT 'TUMBLE(ts, 1)', tumble, \"hop\", session, t.window FROM tumble AS session")
    assert not list(tree.find_all(WindowCall))
    assert tree.args["from_"].this.name == "tumble"


@pytest.mark.parametrize(
    ("call", "words", "place"),
    [
        ("TUMBLE(ts, INTERVAL '0' SECOND)", "longer than nothing", 12),
        ("TUMBLE(ts, INTERVAL '-1' SECOND)", "longer than nothing", 12),
        ("TUMBLE(ts, INTERVAL '1' MONTH)", "months and years", 12),
        ("TUMBLE(ts, size)", "not a constant interval", 12),
        ("TUMBLE(ts, INTERVAL '1' HOUR * n)", "not a constant interval", 12),
        ("TUMBLE(ts)", "TUMBLE takes a size", 1),
        ("TUMBLE()", "TUMBLE takes a size", 1),
        ("HOP(ts, INTERVAL '1' HOUR)", "HOP takes a slide and a size", 1),
        ("SESSION(ts, INTERVAL '1' HOUR, INTERVAL '1' HOUR)", "SESSION takes a gap", 1),
        ("CUMULATE(ts, INTERVAL '7' MINUTE, INTERVAL '1' HOUR)", "no multiple of its step", 35),
        ("window(ts, 'soon')", "cannot be read", 12),
        ("window('5 minutes')", "WINDOW takes", 1),
        ("TUMBLE_START(ts, INTERVAL '0' HOUR)", "longer than nothing", 18),
    ],
)
def test_windows_that_cannot_be(call: str, words: str, place: int) -> None:
    """D19: refused at the argument, or at the call when it is incomplete."""
    error = _error(f"SELECT {call} FROM t")
    assert error.condition == "INVALID_WINDOW"
    assert words in error.message
    assert error.span is not None
    assert error.span.column == 7 + place


@pytest.mark.parametrize(
    ("source", "condition"),
    [
        ("TUMBLE(TABLE t, 5, INTERVAL '1' MINUTE)", "INVALID_WINDOW"),
        ("TUMBLE(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' MINUTE)", "INVALID_WINDOW"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts))", "INVALID_WINDOW"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), SPAN => INTERVAL '1' MINUTE)", "SYNTAX_ERROR"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts, b), INTERVAL '1' MINUTE)", "SYNTAX_ERROR"),
        ("SESSION(TABLE t, DESCRIPTOR(ts), DESCRIPTOR(k), INTERVAL '1' MINUTE)", "DIALECT_NOT_YET"),
    ],
)
def test_window_tables_that_cannot_be(source: str, condition: str) -> None:
    assert _error(f"SELECT * FROM {source}").condition == condition


def _error(text: str) -> PenstockError:
    [parsed] = parse_script(text)
    assert parsed.error is not None, text
    return parsed.error
