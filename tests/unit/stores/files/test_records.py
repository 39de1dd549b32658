"""Bytes into records: whatever is in them, every record is found once."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stores.files.records import count_records, last_end, split_records


def split(data: bytes, quote: str | None = None) -> list[bytes]:
    found = split_records(data, quote, ",").to_pylist()
    assert len(found) == count_records(data, quote, ",")
    return [bytes(one) for one in found]


@pytest.mark.parametrize(
    ("data", "records"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\n\r\nb\r\n", [b"a", b"", b"b"]),
        (b"\n\n", [b"", b""]),
        (b"\r", [b"\r"]),
        ("é\nß".encode(), ["é".encode(), "ß".encode()]),
    ],
)
def test_lines(data: bytes, records: list[bytes]) -> None:
    assert split(data) == records


def test_a_quoted_line_break_is_part_of_its_value() -> None:
    assert split(b'1,"a\nb"\n2,c\n', '"') == [b'1,"a\nb"', b"2,c"]
    assert split(b'"a ""x\n"" b",1\n"",2\n', '"') == [b'"a ""x\n"" b",1', b'"",2']
    assert split(b"1,'a\nb'\n", '"') == [b"1,'a", b"b'"]


def test_a_stray_quote_swallows_nothing() -> None:
    assert split(b'5" disk,1\nb,2\nc,3\n', '"') == [b'5" disk,1', b"b,2", b"c,3"]
    assert split(b'a,"open\nb,2\n', '"') == [b'a,"open', b"b,2"]


def test_what_is_whole() -> None:
    assert last_end(b"a\nb", None, ",") == 2
    assert last_end(b"ab", None, ",") == 0
    assert last_end(b'1,x\n2,"a\nb', '"', ",") == 4
    assert last_end(b'1,"a\nb', '"', ",") == 0


_TEXTS = st.lists(st.lists(st.text(alphabet='ab,"\n\r é', max_size=6), min_size=2, max_size=3), min_size=1, max_size=8)


@given(_TEXTS)
def test_what_a_writer_of_csv_writes_is_split_as_its_reader_splits_it(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    records = split(text.getvalue().encode(), '"')
    assert [next(csv.reader(io.StringIO(one.decode(), newline=""))) for one in records] == rows
    cut = last_end(text.getvalue().encode(), '"', ",")
    assert cut == len(text.getvalue().encode())
