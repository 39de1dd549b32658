"""The kinds of value: what each accepts, and that what it writes reads the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.options.keys import nearest, normalise
from penstock.options.values import (
    Boolean,
    Choice,
    Duration,
    Integer,
    Kind,
    Moment,
    Names,
    Offsets,
    Real,
    Size,
    Text,
    Url,
)
from tests.unit.options.written import interval, value

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("kind", "written", "typed"),
    [
        (Duration(), interval(5 * SECOND), timedelta(seconds=5)),
        (Duration(), "5 s", timedelta(seconds=5)),
        (Duration(), "1min", timedelta(minutes=1)),
        (Duration(), "1 hour 30 minutes", timedelta(minutes=90)),
        (Duration(), "PT5M", timedelta(minutes=5)),
        (Duration(), "2D", timedelta(days=2)),
        (Duration(unit="ms"), "1500", timedelta(seconds=1.5)),
        (Duration(unit="ns"), 5000, timedelta(microseconds=5)),
        (Duration(zero=True), "0", timedelta(0)),
        (Size(), "64 MB", 64 * 1024**2),
        (Size(), "1GiB", 1024**3),
        (Size(), 512, 512),
        (Boolean(), "TRUE", True),
        (Boolean(), False, False),
        (Integer(), "-5", -5),
        (Real(minimum=0, above=True), "2.5", 2.5),
        (Real(), "1e3", 1000.0),
        (Names(), "a; b,c", ("a", "b", "c")),
        (Moment(), "2021-01-01T00:00:00Z", datetime(2021, 1, 1, tzinfo=UTC)),
        (Moment(), "2021-01-01 01:00:00+01:00", datetime(2021, 1, 1, tzinfo=UTC)),
        (Moment(), 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (Url(), "https://h/x", "https://h/x"),
        (Text(), 5, "5"),
        (Choice(("at_least_once",)), "At-Least-Once", "at_least_once"),
    ],
)
def test_values_that_are_read(kind: Kind, written: object, typed: object) -> None:
    assert kind.read(value(written)) == typed


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (Duration(), "5"),
        (Duration(), 5),
        (Duration(), "0 s"),
        (Duration(), "-5 s"),
        (Duration(), "1 month"),
        (Duration(), "9" * 17 + " days"),
        (Duration(), "soon"),
        (Duration(), True),
        (Size(), "0"),
        (Size(), "5 bananas"),
        (Boolean(), "yes"),
        (Boolean(), 1),
        (Integer(), "9" * 30),
        (Integer(minimum=1, maximum=9), "10"),
        (Real(), "nan"),
        (Real(), "inf"),
        (Real(), "1e999"),
        (Real(minimum=0, above=True), "0"),
        (Names(), "a,,b"),
        (Names(), "a,a"),
        (Moment(), "tomorrow"),
        (Moment(), "999999999999999"),
        (Offsets(), "partition:0,offset:1;partition:0,offset:2"),
        (Url(), "ftp://h"),
        (Url(), "https:///"),
        (Text(), ""),
        (Text(), interval(1)),
        (Choice(("a", "b")), "c"),
    ],
)
def test_values_that_are_refused_without_being_quoted(kind: Kind, written: object) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        kind.read(value(written))
    quoted = value(written).reveal()
    assert len(quoted) < 4 or quoted not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        (Duration(zero=True), st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650))),
        (Integer(), st.integers(-(10**17), 10**17)),
        (Real(), st.floats(-1e12, 1e12, allow_nan=False)),
        (Size(), st.integers(1, 10**14)),
        (Boolean(), st.booleans()),
        (Names(), st.lists(st.from_regex(r"\A[a-z_]{1,5}\Z"), min_size=1, unique=True).map(tuple)),
        (
            Offsets(),
            st.dictionaries(st.integers(0, 99), st.integers(0, 10**12), min_size=1).map(
                lambda d: tuple(sorted(d.items()))
            ),
        ),
        (
            Moment(),
            st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(  # noqa: DTZ001 -- given a zone below
                lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
            ),
        ),
    ],
)
def test_what_is_written_reads_the_same(kind: Kind, typed: st.SearchStrategy[object]) -> None:
    @given(typed)
    def law(example: object) -> None:
        assert kind.read(kind.write(example)) == example

    law()


@given(st.text(alphabet="abcXYZ0189._-", min_size=1, max_size=20), st.data())
def test_dec9_spellings_of_a_key_are_one(key: str, data: st.DataObject) -> None:
    other = "".join(
        data.draw(st.sampled_from("._-"))
        if letter in "._-"
        else data.draw(st.sampled_from([letter.lower(), letter.upper()]))
        for letter in key
    )
    assert normalise(other) == normalise(key) == normalise(normalise(key))


@given(st.text(alphabet="abc._-", min_size=1), st.text(alphabet="abc._-", min_size=1))
def test_dec9_keys_with_different_words_stay_different(one: str, other: str) -> None:
    def words(key: str) -> list[str]:
        return key.replace(".", "-").replace("_", "-").split("-")

    assert (normalise(one) == normalise(other)) == (words(one) == words(other))


def test_nearest() -> None:
    assert nearest("erliest", ["earliest", "latest"]) == ("earliest",)
    assert nearest("zzz", ["earliest"]) == ()
