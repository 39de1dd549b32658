"""Rows as tables, JSON and CSV."""

from __future__ import annotations

import base64
import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from penstock.interfaces.row_text import csv_head, csv_lines, json_lines, json_text
from penstock.interfaces.table_output import RowWriter, render_table

if TYPE_CHECKING:
    import pyarrow as pa


def table(**columns: object) -> pa.Table:
    import pyarrow as pa

    return pa.table(columns)


# tables


def test_numbers_stand_right_texts_left_and_null_is_said() -> None:
    shown = render_table(table(symbol=["ACME", None], n=[1, 20_000], x=[1.5, None], ok=[True, None]))
    assert shown.splitlines() == [
        "symbol |     n |    x | ok",
        "-------+-------+------+-----",
        "ACME   |     1 |  1.5 | true",
        "NULL   | 20000 | NULL | NULL",
    ]


def test_instants_have_milliseconds_and_more_where_one_needs_it() -> None:
    import pyarrow as pa

    def at(*values: int) -> list[str]:
        return render_table(table(at=pa.array(values, pa.timestamp("us", tz="UTC")))).splitlines()[2:]

    assert at(0, 1_500_000) == ["1970-01-01 00:00:00.000", "1970-01-01 00:00:01.500"]
    assert at(0, 1) == ["1970-01-01 00:00:00.000000", "1970-01-01 00:00:00.000001"]


def test_a_long_value_is_cut_unless_asked_for() -> None:
    rows = table(text=["x" * 100])
    assert render_table(rows).splitlines()[2] == "x" * 59 + "…"
    assert render_table(rows, full=True).splitlines()[2] == "x" * 100


def test_a_table_fits_the_terminal_by_narrowing_its_widest_columns() -> None:
    shown = render_table(table(a=["x" * 50], b=["short"]), width=30)
    assert max(map(len, shown.splitlines())) <= 30
    assert "short" in shown


def test_wide_characters_take_two_columns() -> None:
    lines = render_table(table(a=["日本", "ab"], b=["x", "y"])).splitlines()
    assert lines[2:] == ["日本 | x", "ab   | y"]


def test_nothing_in_a_value_reaches_the_terminal() -> None:
    shown = render_table(table(**{"na\x1b[31mme": ["a\x1b]0;title\x07b", "one\ntwo\ttab"]}))
    assert not any(char in shown for char in "\x1b\x07\t")
    assert len(shown.splitlines()) == 4


# JSON


def test_a_row_is_an_object_and_nothing_is_lost() -> None:
    import pyarrow as pa

    rows = table(
        price=pa.array([Decimal("12345678901234567890.123456789012345678")], pa.decimal128(38, 18)),
        big=pa.array([2**63 - 1], pa.int64()),
        at=pa.array([1_500_000], pa.timestamp("us", tz="UTC")),
        day=pa.array([date(2026, 1, 2)], pa.date32()),
        raw=pa.array([b"\x00\xff"], pa.binary()),
        nothing=pa.array([None], pa.string()),
        nested=[{"a": [1, None]}],
    )
    (line,) = json_lines(rows)
    assert '"price": 12345678901234567890.123456789012345678,' in line
    found = json.loads(line)
    assert found["big"] == 2**63 - 1
    assert (found["at"], found["day"]) == ("1970-01-01T00:00:01.500Z", "2026-01-02")
    assert base64.b64decode(found["raw"]) == b"\x00\xff"
    assert (found["nothing"], found["nested"]) == (None, {"a": [1, None]})


def test_what_json_has_no_number_for_is_a_text() -> None:
    assert [json_text(value) for value in (float("nan"), float("inf"), -float("inf"))] == [
        '"NaN"',
        '"Infinity"',
        '"-Infinity"',
    ]
    assert json_text({1: True, datetime(2026, 1, 1, tzinfo=UTC): None}) == '{"1": true, "2026-01-01T00:00:00Z": null}'


@given(st.text())
def test_every_text_survives_json_and_none_acts_on_a_terminal(text: str) -> None:
    (line,) = json_lines(table(t=[text]))
    assert json.loads(line) == {"t": text}
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u202e\u2066" for char in line)


# CSV


@given(
    st.lists(
        st.tuples(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00\r")), st.integers()),
        min_size=1,
    )
)
def test_csv_is_read_back_as_it_was(rows: list[tuple[str, int]]) -> None:
    import pyarrow as pa

    found = pa.table({"te,xt": [text for text, _ in rows], "n": pa.array([n % 2**31 for _, n in rows], pa.int64())})
    text = "\r\n".join([csv_head(found), *csv_lines(found)]) + "\r\n"
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read[0] == ["te,xt", "n"]
    assert read[1:] == [[text, str(n % 2**31)] for text, n in rows]


def test_null_and_empty_are_told_apart_in_csv() -> None:
    assert list(csv_lines(table(a=[None, ""], b=["x", 'say "hi"']))) == [",x", '"","say ""hi"""']


# batches as they come


def written(how: str, *batches: pa.Table) -> str:
    parts: list[str] = []
    writer = RowWriter(parts.append, how)  # type: ignore[arg-type]
    for batch in batches:
        writer.add(batch)
    return "".join(parts)


def test_names_come_once_while_the_columns_are_wide_enough() -> None:
    text = written("table", table(a=["one"]), table(a=["two"]), table(a=["longer"]), table(a=["x"]))
    assert text.splitlines() == ["a", "---", "one", "two", "", "a", "------", "longer", "x"]
    assert written("csv", table(a=["one"]), table(a=["two"])) == "a\r\none\r\ntwo\r\n"
    assert written("json", table(a=[1]), table(a=[2])) == '{"a": 1}\n{"a": 2}\n'


def test_an_empty_answer_has_its_names() -> None:
    empty = table(a=["x"]).slice(0, 0)
    assert written("table", empty) == "a\n-\n"
    assert written("csv", empty) == "a\r\n"
    assert written("json", empty) == ""
