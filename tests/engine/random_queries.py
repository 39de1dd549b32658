"""Typed queries made by hypothesis, each with its meaning as a batch query of DuckDB.

The two texts of a query are written side by side from the same choices, never one from the other. In DuckDB the rows are
the table `given`, with times as microseconds; so windows are arithmetic there, and share nothing with the windows of the
engine. Numbers are small and halves are exact, so that sums do not depend on the order of rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hypothesis import strategies as st

from penstock.frozen import frozen

SECOND: Final = 1_000_000
STATES: Final = st.sampled_from(["", "WITH (state = 'spark')"])
KEYS: Final = ("a", "b", "ß", "日本", "", "a'b")

COLUMNS: Final = "id BIGINT, k STRING, g INT, v BIGINT, x DOUBLE, ts TIMESTAMP"
DUCKDB_COLUMNS: Final = "id BIGINT, k VARCHAR, g INTEGER, v BIGINT, x DOUBLE, ts BIGINT"


@frozen
class Query:
    """A query of the engine and its meaning in DuckDB.

    `closes`: it has windows, so rows without a usable time take no part. `end` is the place of the column with a window's
    end; rows of a query without one come at some time, or `at_once`. `key` are the columns that tell the rows of an
    updating view apart.
    """

    sql: str
    batch: str
    closes: bool = False
    end: int | None = None
    key: tuple[str, ...] | None = None
    before: str = ""  # statements that come first
    at_once: bool = False
    options: str = ""  # of the view


@frozen
class Both:
    """One expression in both languages, where they differ."""

    ours: str
    theirs: str


def same(text: str) -> Both:
    return Both(text, text)


def text_literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


numbers = st.integers(-20, 20)
columns_of_numbers = st.sampled_from(["v", "g"])


@st.composite
def predicates(draw: st.DrawFn, depth: int = 1) -> str:
    """A condition, true, false or unknown."""
    kind = draw(st.integers(0, 6 if depth else 4))
    if kind == 0:
        return f"{draw(columns_of_numbers)} {draw(st.sampled_from(['>', '<=', '<>', '=']))} {draw(numbers)}"
    if kind == 1:
        return f"{draw(st.sampled_from(['k', 'v', 'x']))} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == 2:
        chosen = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))
        return f"k {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(map(text_literal, chosen))})"
    if kind == 3:
        low = draw(numbers)
        return f"v BETWEEN {low} AND {low + draw(st.integers(0, 25))}"
    if kind == 4:
        return f"x * 2 >= {draw(numbers)}"
    left, right = draw(predicates(depth - 1)), draw(predicates(depth - 1))
    if kind == 5:
        return f"({left} {draw(st.sampled_from(['AND', 'OR']))} {right})"
    return f"NOT ({left})"


@st.composite
def integers(draw: st.DrawFn) -> str:
    """An expression of type BIGINT."""
    kind = draw(st.integers(0, 5))
    column = draw(columns_of_numbers)
    if kind == 0:
        return column
    if kind == 1:
        return f"{column} {draw(st.sampled_from(['+', '-', '*']))} {draw(numbers)}"
    if kind == 2:
        return f"CASE WHEN {draw(predicates(0))} THEN v ELSE {draw(numbers)} END"
    if kind == 3:
        return f"COALESCE({column}, {draw(numbers)})"
    if kind == 4:
        return "v + g"
    return f"NULLIF({column}, {draw(numbers)})"


@st.composite
def texts(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return "k"
    if kind == 1:
        return f"COALESCE(k, {text_literal(draw(st.sampled_from(KEYS)))})"
    if kind == 2:
        return "k || '-' || k"
    return f"CASE WHEN {draw(predicates(0))} THEN k WHEN v > 0 THEN 'more' END"


@st.composite
def aggregates(draw: st.DrawFn, *, distinct: bool) -> Both:
    """One aggregate, perhaps with a FILTER."""
    kind = draw(st.integers(0, 7 if distinct else 6))
    chosen = f" FILTER (WHERE {draw(predicates(0))})" if draw(st.booleans()) else ""
    if kind == 0:
        return same(f"COUNT(*){chosen}")
    if kind == 1:
        return same(f"COUNT({draw(st.sampled_from(['k', 'v', 'x']))}){chosen}")
    if kind == 2:
        term = draw(integers())
        return Both(f"SUM({term}){chosen}", f"(SUM({term}){chosen})::BIGINT")
    if kind == 3:
        return same(f"SUM(x){chosen}")
    if kind == 4:
        return same(
            f"{draw(st.sampled_from(['MIN', 'MAX']))}({draw(st.one_of(integers(), st.just('x'), st.just('k')))}){chosen}"
        )
    if kind == 5:
        term = draw(integers())
        return Both(f"AVG({term}){chosen}", f"(SUM({term}){chosen})::DOUBLE / COUNT({term}){chosen}")
    if kind == 6:
        return Both(f"AVG(x){chosen}", f"(SUM(x){chosen}) / COUNT(x){chosen}")
    return same(f"COUNT(DISTINCT {draw(st.sampled_from(['k', 'v', 'g']))}){chosen}")


@frozen
class Grouping:
    """The parts of an aggregate query that do not depend on its window."""

    keys: tuple[str, ...]  # expressions
    measures: tuple[Both, ...]
    where: str
    having: str

    def ours(self) -> str:
        return ", ".join(f"{measure.ours} AS m{place}" for place, measure in enumerate(self.measures))

    def theirs(self) -> str:
        return ", ".join(measure.theirs for measure in self.measures)

    def shown_keys(self) -> str:
        return "".join(f"{key} AS k{place}, " for place, key in enumerate(self.keys))

    def grouped(self) -> str:
        return "".join(f"{key}, " for key in self.keys)


@st.composite
def groupings(draw: st.DrawFn, *, windowed: bool, distinct: bool | None = None) -> Grouping:
    keys = tuple(
        draw(
            st.lists(
                st.sampled_from(["k", "g", "COALESCE(k, 'none')"]),
                min_size=0 if windowed else 1,
                max_size=2,
                unique=True,
            )
        )
    )
    measures = tuple(
        draw(st.lists(aggregates(distinct=windowed if distinct is None else distinct), min_size=1, max_size=4))
    )
    where = f" WHERE {draw(predicates())}" if draw(st.booleans()) else ""
    having = draw(st.sampled_from(["", " HAVING COUNT(*) > 1", " HAVING MAX(v) > 0", " HAVING SUM(v) IS NOT NULL"]))
    return Grouping(keys, measures, where, having)


@st.composite
def projections(draw: st.DrawFn) -> Query:
    """A filter and expressions."""
    items = ["id", draw(integers()), draw(texts()), draw(st.sampled_from(["x", "x / 2", "-x", "x * g"]))]
    shown = ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))
    where = draw(predicates(2))
    return Query(f"SELECT {shown} FROM s WHERE {where}", f"SELECT {shown} FROM given WHERE {where}")


@st.composite
def running(draw: st.DrawFn) -> Query:
    """A keyed aggregate without a window."""
    parts = draw(groupings(windowed=False, distinct=True))
    keys = ", ".join(parts.keys)
    tail = f"{parts.where} GROUP BY {keys}{parts.having}"
    return Query(
        f"SELECT {parts.shown_keys()}{parts.ours()} FROM s{tail} EMIT CHANGES",
        f"SELECT {keys}, {parts.theirs()} FROM given{tail}",
        key=tuple(f"k{place}" for place in range(len(parts.keys))),
        options=draw(STATES),
    )


def interval(seconds: int) -> str:
    """An interval literal."""
    return f"INTERVAL '{seconds}' SECOND"


@st.composite
def tumbling(draw: st.DrawFn) -> Query:
    parts = draw(groupings(windowed=True))
    size = draw(st.sampled_from([1, 3, 10, 60]))
    window = f"ts, {interval(size)}"
    return Query(
        f"SELECT TUMBLE_START({window}) AS s, TUMBLE_END({window}) AS e, {parts.shown_keys()}{parts.ours()} "
        f"FROM s{parts.where} GROUP BY {parts.grouped()}TUMBLE({window}){parts.having}",
        f"SELECT ts // {size * SECOND} * {size * SECOND} AS ws, ws + {size * SECOND}, {parts.grouped()}{parts.theirs()} "
        f"FROM given{parts.where} GROUP BY {parts.grouped()}ws{parts.having}",
        closes=True,
        end=1,
    )


def hopped(slide: int, size: int) -> str:
    """The rows, each once for each of its windows."""
    steps = -(-size // slide)
    return (
        f"(SELECT given.*, (ts // {slide * SECOND} - back) * {slide * SECOND} AS ws, ws + {size * SECOND} AS we "
        f"FROM given, range({steps}) AS steps(back) WHERE ws + {size * SECOND} > ts) AS hopped"
    )


@st.composite
def hopping(draw: st.DrawFn) -> Query:
    parts = draw(groupings(windowed=True))
    slide, size = draw(st.sampled_from([(2, 6), (4, 6), (3, 3), (5, 60)]))
    window = f"ts, {interval(slide)}, {interval(size)}"
    return Query(
        f"SELECT HOP_START({window}) AS s, HOP_END({window}) AS e, {parts.shown_keys()}{parts.ours()} "
        f"FROM s{parts.where} GROUP BY {parts.grouped()}HOP({window}){parts.having}",
        f"SELECT ws, we, {parts.grouped()}{parts.theirs()} FROM {hopped(slide, size)}{parts.where} "
        f"GROUP BY {parts.grouped()}ws, we{parts.having}",
        closes=True,
        end=1,
    )


@st.composite
def sessions(draw: st.DrawFn, *, distinct: bool = True) -> Query:
    parts = draw(groupings(windowed=True, distinct=distinct))
    gap = draw(st.sampled_from([1, 2, 7]))
    window = f"ts, {interval(gap)}"
    by = f"PARTITION BY {', '.join(parts.keys)} " if parts.keys else ""
    marked = f"SELECT *, COALESCE(ts - lag(ts) OVER ({by}ORDER BY ts) > {gap * SECOND}, true) AS begins FROM given{parts.where}"
    numbered = f"SELECT *, sum(begins::INT) OVER ({by}ORDER BY ts ROWS UNBOUNDED PRECEDING) AS session FROM ({marked})"
    return Query(
        f"SELECT SESSION_START({window}) AS s, SESSION_END({window}) AS e, {parts.shown_keys()}{parts.ours()} "
        f"FROM s{parts.where} GROUP BY {parts.grouped()}SESSION({window}){parts.having}",
        f"SELECT min(ts), max(ts) + {gap * SECOND}, {parts.grouped()}{parts.theirs()} FROM ({numbered}) "
        f"GROUP BY {parts.grouped()}session{parts.having}",
        closes=True,
        end=1,
    )


@st.composite
def changing(draw: st.DrawFn) -> Query:
    """A window that shows each change, kept by the view store or by Spark: all that has come is in it at once."""
    closing = draw(st.one_of(tumbling(), hopping()))
    return replace(closing, sql=f"{closing.sql} EMIT CHANGES", end=None, at_once=True, key=(), options=draw(STATES))


@st.composite
def growing(draw: st.DrawFn) -> Query:
    """Sessions that show each change."""
    closing = draw(sessions(distinct=False))
    return replace(closing, sql=f"{closing.sql} EMIT CHANGES", end=None, at_once=True, key=())


@st.composite
def unions(draw: st.DrawFn) -> Query:
    """Two readings of the stream in one window."""
    left, right, size = draw(predicates()), draw(predicates()), draw(st.sampled_from([2, 10]))
    term = draw(integers())
    window = f"t, {interval(size)}"
    branches = "SELECT k, {term} AS n, ts AS t FROM {source} WHERE {left} UNION ALL SELECT k, v, ts FROM {source} WHERE {right}"
    ours, theirs = (branches.format(term=term, source=source, left=left, right=right) for source in ("s", "given"))
    return Query(
        f"SELECT TUMBLE_START({window}) AS s, TUMBLE_END({window}) AS e, k, COUNT(*) AS n, SUM(n) AS total "
        f"FROM ({ours}) AS u GROUP BY k, TUMBLE({window})",
        f"SELECT t // {size * SECOND} * {size * SECOND} AS ws, ws + {size * SECOND}, k, count(*), sum(n)::BIGINT "
        f"FROM ({theirs}) AS u GROUP BY k, ws",
        closes=True,
        end=1,
    )


@st.composite
def inlined(draw: st.DrawFn) -> Query:
    """A view that has no job of its own, under a window or a plain filter."""
    where, term, size = draw(predicates()), draw(integers()), draw(st.sampled_from([2, 10]))
    window = f"moment, {interval(size)}"
    before = f"CREATE VIEW picked AS SELECT {term} AS n, k AS name, ts AS moment FROM s WHERE {where}"
    table = f"(SELECT {term} AS n, k AS name, ts AS moment FROM given WHERE {where}) AS picked"
    if draw(st.booleans()):
        return Query(
            "SELECT name, n FROM picked WHERE n > 0", f"SELECT name, n FROM {table} WHERE n > 0", before=before
        )
    return Query(
        f"SELECT TUMBLE_START({window}) AS s, TUMBLE_END({window}) AS e, name, MIN(n) AS low, COUNT(DISTINCT n) AS d "
        f"FROM picked GROUP BY name, TUMBLE({window})",
        f"SELECT moment // {size * SECOND} * {size * SECOND} AS ws, ws + {size * SECOND}, name, min(n), count(DISTINCT n) "
        f"FROM {table} GROUP BY name, ws",
        closes=True,
        end=1,
        before=before,
    )


@st.composite
def cascades(draw: st.DrawFn) -> Query:
    """A window over a window. The time of a closed window is its last microsecond."""
    small = draw(st.sampled_from([1, 2, 5]))
    large = small * draw(st.sampled_from([2, 3, 6]))
    where = draw(predicates())
    inner = f"ts, {interval(small)}"
    outer = f"rt, {interval(large)}"
    return Query(
        f"SELECT TUMBLE_START({outer}) AS s, TUMBLE_END({outer}) AS e, COUNT(*) AS parts, SUM(n) AS n, MAX(total) AS best "
        f"FROM (SELECT k, TUMBLE_ROWTIME({inner}) AS rt, COUNT(*) AS n, SUM(v) AS total FROM s WHERE {where} "
        f"GROUP BY k, TUMBLE({inner})) AS i GROUP BY TUMBLE({outer})",
        f"SELECT iw // {large * SECOND} * {large * SECOND} AS ws, ws + {large * SECOND}, count(*), sum(n)::BIGINT, max(total)::BIGINT "
        f"FROM (SELECT k, ts // {small * SECOND} * {small * SECOND} AS iw, count(*) AS n, sum(v) AS total FROM given WHERE {where} "
        f"GROUP BY k, iw) AS i GROUP BY ws",
        closes=True,
        end=1,
    )


@st.composite
def functions(draw: st.DrawFn) -> Query:
    """Functions of the user, over arrays and over values, and an aggregate, in rows or in a window."""
    plus, where, size = draw(numbers), draw(predicates()), draw(st.sampled_from([2, 10]))
    before = f"""
        CREATE FUNCTION shifted(v BIGINT) RETURNS BIGINT WITH (takes = 'arrow') AS $$
        def shifted(v):
            import pyarrow.compute as pc
            return pc.add(v, {plus})
        $$;
        CREATE FUNCTION named(k STRING, v BIGINT) RETURNS STRING AS $$
        def named(k, v):
            return None if v is None else f"{{k}}:{{v}}"
        $$;
        CREATE AGGREGATE spread(v BIGINT) RETURNS BIGINT AS $$
        def spread(v):
            known = [value for value in v if value is not None]
            return max(known) - min(known) if known else None
        $$"""
    theirs = "CASE WHEN v IS NOT NULL THEN COALESCE(k, 'None') || ':' || v END"
    if draw(st.booleans()):
        return Query(
            f"SELECT id, shifted(v) AS a, named(k, v) AS b FROM s WHERE {where} AND shifted(v) > 0",
            f"SELECT id, v + {plus}, {theirs} FROM given WHERE {where} AND v + {plus} > 0",
            before=before,
        )
    window = f"ts, {interval(size)}"
    return Query(
        f"SELECT TUMBLE_START({window}) AS s, TUMBLE_END({window}) AS e, named(k, v) AS name, spread(g) AS sp, "
        f"spread(shifted(id)) FILTER (WHERE {where}) AS f, shifted(COUNT(*)) AS n FROM s "
        f"GROUP BY named(k, v), TUMBLE({window})",
        f"SELECT ts // {size * SECOND} * {size * SECOND} AS ws, ws + {size * SECOND}, {theirs} AS name, "
        f"max(g) - min(g), max(id) FILTER (WHERE {where}) - min(id) FILTER (WHERE {where}), count(*) + {plus} "
        f"FROM given GROUP BY name, ws",
        closes=True,
        end=1,
        before=before,
    )


SHAPES: Final = (
    projections, running, tumbling, hopping, sessions, changing, growing, unions, inlined, cascades, functions,
)  # fmt: skip


@st.composite
def queries(draw: st.DrawFn) -> tuple[Query, ...]:
    """One query of each shape."""
    return tuple(draw(shape()) for shape in SHAPES)
