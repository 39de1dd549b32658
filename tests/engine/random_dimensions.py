"""Typed queries over a stream and a dimension that changes, each with its meaning in DuckDB.

In DuckDB every row carries the number of the version that was in force when it was appended (`ver`), and the table `dim`
has the rows of all versions with theirs: what the engine does batch by batch is one join there. A pair of two streams is
made when the later of its rows comes, and sees the version of that moment.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from penstock.frozen import frozen
from tests.engine.random_queries import KEYS, SECOND, Query, interval, numbers, predicates

DIMENSION_COLUMNS: Final = "ver INTEGER, k VARCHAR, g INTEGER, w BIGINT, name VARCHAR"
_KEYS: Final = ("k", "g", "k, g")

DimensionRow = tuple[str | None, int | None, int | None, str | None]  # k, g, w, name


@frozen
class Versions:
    """The rows of each version of the dimension, and before which append it comes into force; the first is there at
    once. `asked`: rows are asked for by key where that can be, however few they are."""

    rows: tuple[tuple[DimensionRow, ...], ...]
    starts: tuple[int, ...]
    asked: bool

    def at(self, append: int) -> int:
        """The version that an append sees."""
        return sum(start <= append for start in self.starts) - 1


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, values, st.none())


@st.composite
def versions(draw: st.DrawFn, appends: int) -> Versions:
    """Two to four versions: with keys that repeat and are NULL, or none of them twice, or without rows."""
    starts = (0, *sorted(draw(st.sets(st.integers(1, max(1, appends - 1)), min_size=1, max_size=3))))
    row = st.tuples(
        _maybe(st.sampled_from(KEYS)),
        _maybe(st.integers(-2, 2)),
        _maybe(st.integers(-9, 9)),
        _maybe(st.sampled_from(["x", "y", "zz"])),
    )
    asked = draw(st.booleans())
    rows = st.lists(row, max_size=7, unique_by=lambda found: found[0]) if asked else st.lists(row, max_size=7)
    return Versions(tuple(tuple(draw(rows)) for _ in starts), starts, asked)


def _equal(keys: str) -> str:
    return " AND ".join(f"a.{key} = d.{key}" for key in keys.split(", "))


@st.composite
def enriched(draw: st.DrawFn) -> Query:
    """A join of any kind that keeps the rows of the stream, perhaps with more in its condition."""
    kind = draw(st.sampled_from(["INNER", "LEFT", "LEFT", "SEMI", "ANTI"]))
    more = draw(st.sampled_from(["", "", " AND d.w > 0", " AND a.v < d.w"]))
    on = f"{_equal(draw(st.sampled_from(_KEYS)))}{more}"
    where = f" WHERE {draw(predicates(0)).replace('k ', 'a.k ').replace('v ', 'a.v ')}" if kind == "LEFT" else ""
    where = "" if "g " in where or "x " in where else where  # both sides have a g
    shown = "a.id AS i" if kind in ("SEMI", "ANTI") else "a.id AS i, d.w AS w, COALESCE(d.name, a.k) AS name"
    word = f"LEFT {kind}" if kind in ("SEMI", "ANTI") else kind
    return Query(
        f"SELECT {shown} FROM s AS a {word} JOIN dim AS d ON {on}{where}",
        f"SELECT {shown} FROM given AS a {kind} JOIN dim AS d ON a.ver = d.ver AND {on}{where}",
    )


@st.composite
def by_one_key(draw: st.DrawFn) -> Query:
    """A join by one key, with a function of the user's over what it finds: rows can be asked for instead of joined."""
    kind, plus = draw(st.sampled_from(["INNER", "LEFT"])), draw(numbers)
    return Query(
        f"SELECT a.id AS i, plus_{plus + 20}(d.w) AS w, d.name AS name FROM s AS a {kind} JOIN dim AS d ON a.k = d.k",
        f"SELECT a.id, d.w + {plus}, d.name FROM given AS a {kind} JOIN dim AS d ON a.ver = d.ver AND a.k = d.k",
        before=f"""CREATE FUNCTION plus_{plus + 20}(w BIGINT) RETURNS BIGINT WITH (takes = 'arrow') AS $$
def plus_{plus + 20}(w):
    import pyarrow.compute as pc
    return pc.add(w, {plus})
$$""",
    )


@st.composite
def tested(draw: st.DrawFn) -> Query:
    """A subquery over the dimension: membership, with what NULL means there, existence, or a value."""
    low, word = draw(numbers), draw(st.sampled_from(["", "NOT "]))
    bound = f"d.w > {low}"
    kind = draw(st.integers(0, 4))
    if kind == 0:
        ours = theirs = f"a.k {word}IN (SELECT d.k FROM dim AS d WHERE {{}}{bound})"
    elif kind == 1:
        ours = theirs = f"{word}EXISTS (SELECT 1 FROM dim AS d WHERE {{}}d.k = a.k AND {bound})"
    elif kind == 2:
        ours = theirs = "a.v > (SELECT MAX(d.w) FROM dim AS d WHERE {}d.w IS NOT NULL)"
    elif kind == 3:
        ours = theirs = f"a.g {word}IN (SELECT d.g FROM dim AS d WHERE {{}}d.g IS NOT NULL) AND a.v >= {low}"
    else:
        ours = theirs = "a.v > (SELECT MIN(d.w) FROM dim AS d WHERE {}d.k = a.k)"
    return Query(
        f"SELECT a.id AS i, a.k AS k FROM s AS a WHERE {ours.format('')}",
        f"SELECT a.id, a.k FROM given AS a WHERE {theirs.format('d.ver = a.ver AND ')}",
    )


@st.composite
def summarized(draw: st.DrawFn) -> Query:
    """A join with a query over the dimension: aggregated, distinct, or the first row of each key."""
    kind = draw(st.sampled_from(["INNER", "LEFT"]))
    what = draw(st.integers(0, 2))
    if what == 0:
        shown = "c.n AS n, c.total AS total"
        ours = "SELECT k, COUNT(*) AS n, SUM(w) AS total FROM dim GROUP BY k"
        theirs = "SELECT ver, k, count(*) AS n, sum(w)::BIGINT AS total FROM dim GROUP BY ver, k"
    elif what == 1:
        shown, ours, theirs = "c.k AS c", "SELECT DISTINCT k FROM dim", "SELECT DISTINCT ver, k FROM dim"
    else:
        shown = "c.w AS w"
        ours = "SELECT k, w FROM dim QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY w DESC NULLS LAST) = 1"
        theirs = (
            "SELECT ver, k, w FROM dim QUALIFY row_number() OVER (PARTITION BY ver, k ORDER BY w DESC NULLS LAST) = 1"
        )
    return Query(
        f"SELECT a.id AS i, {shown} FROM s AS a {kind} JOIN ({ours}) AS c ON a.k = c.k",
        f"SELECT a.id, {shown} FROM given AS a {kind} JOIN ({theirs}) AS c ON a.ver = c.ver AND a.k = c.k",
    )


@st.composite
def windowed(draw: st.DrawFn) -> Query:
    """Windows over joined rows: each row is counted with the version that it saw."""
    kind, keys = draw(st.sampled_from(["INNER", "LEFT"])), draw(st.sampled_from(_KEYS))
    size = draw(st.sampled_from([2, 10]))
    window, micros = f"a.ts, {interval(size)}", size * SECOND
    return Query(
        f"SELECT TUMBLE_START({window}) AS s, TUMBLE_END({window}) AS e, a.k AS k, d.name AS name, COUNT(*) AS n, "
        f"SUM(d.w) AS total FROM s AS a {kind} JOIN dim AS d ON {_equal(keys)} GROUP BY a.k, d.name, TUMBLE({window})",
        f"SELECT a.ts // {micros} * {micros} AS ws, ws + {micros}, a.k, d.name, count(*), sum(d.w)::BIGINT "
        f"FROM given AS a {kind} JOIN dim AS d ON a.ver = d.ver AND {_equal(keys)} GROUP BY a.k, d.name, ws",
        closes=True,
        end=1,
    )


@st.composite
def running(draw: st.DrawFn) -> Query:
    """A running aggregate over joined rows."""
    kind, keys = draw(st.sampled_from(["INNER", "LEFT"])), draw(st.sampled_from(_KEYS))
    return Query(
        f"SELECT d.name AS name, COUNT(*) AS n, MAX(a.v) AS most, SUM(d.w) AS total FROM s AS a {kind} JOIN dim AS d "
        f"ON {_equal(keys)} GROUP BY d.name EMIT CHANGES",
        f"SELECT d.name, count(*), max(a.v), sum(d.w)::BIGINT FROM given AS a {kind} JOIN dim AS d "
        f"ON a.ver = d.ver AND {_equal(keys)} GROUP BY d.name",
        key=("name",),
    )


@st.composite
def paired(draw: st.DrawFn) -> Query:
    """Two streams within a bound, and the dimension beside the pair."""
    kind, high = draw(st.sampled_from(["INNER", "LEFT"])), draw(st.sampled_from([0, 4, 20]))
    side = draw(st.sampled_from(["a", "b"]))
    on = f"{side}.g = d.g"
    return Query(
        f"SELECT a.id AS i, b.id AS j, d.w AS w FROM s AS a JOIN r AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + "
        f"{interval(high)} {kind} JOIN dim AS d ON {on}",
        f"SELECT a.id, b.id, d.w FROM given AS a JOIN others AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND "
        f"a.ts + {high * SECOND} {kind} JOIN dim AS d ON d.ver = greatest(a.ver, b.ver) AND {on}",
        closes=True,
        at_once=True,
    )


SHAPES: Final = (enriched, by_one_key, tested, tested, summarized, windowed, running, paired)


@st.composite
def lookups(draw: st.DrawFn) -> tuple[Query, ...]:
    """One query of each shape, two of those with subqueries."""
    return tuple(draw(shape()) for shape in SHAPES)
