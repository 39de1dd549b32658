"""Typed queries over two streams, and of the windows that come after the first kinds, each with its meaning in DuckDB.

As in random_queries, the two texts are written side by side. In DuckDB the rows of the second stream are the table
`others`. Keys have NULLs, which equal nothing in a join and are one group in a GROUP BY.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from penstock.frozen import frozen
from tests.engine.random_queries import SECOND, Query, aggregates, groupings, interval, numbers, predicates

_KINDS: Final = ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
_KEYS: Final = ("k", "g", "k, g")


@frozen
class Joined:
    """A join in both languages: FROM clauses that begin with the same two aliases."""

    ours: str
    theirs: str
    kind: str

    @property
    def one_sided(self) -> bool:
        return self.kind in ("SEMI", "ANTI")


def _equal(keys: str, left: str, right: str) -> str:
    return " AND ".join(f"{left}.{key} = {right}.{key}" for key in keys.split(", "))


def _moved(time: str, seconds: int) -> str:
    return f"{time} {'-' if seconds < 0 else '+'} {interval(abs(seconds))}" if seconds else time


def _word(kind: str) -> str:
    return f"LEFT {kind}" if kind in ("SEMI", "ANTI") else kind


@st.composite
def interval_joins(draw: st.DrawFn, kinds: tuple[str, ...] = _KINDS) -> Joined:
    """`s` as a and `r` as b, bounded in time; now and then with more in the condition."""
    kind = draw(st.sampled_from(kinds))
    low, high = draw(st.sampled_from([(0, 0), (0, 4), (-3, 0), (-2, 7), (1, 5), (-6, -2), (-60, 1)]))
    keys = draw(st.sampled_from(_KEYS))
    more = draw(st.sampled_from(["", "", " AND b.v > 0", " AND a.v < b.v", " AND a.g = 1"]))
    on = f"{_equal(keys, 'a', 'b')}{more}"
    bound = f"b.ts BETWEEN {_moved('a.ts', low)} AND {_moved('a.ts', high)}"
    their_bound = f"b.ts BETWEEN a.ts + {low * SECOND} AND a.ts + {high * SECOND}"
    return Joined(
        f"FROM s AS a {_word(kind)} JOIN r AS b ON {on} AND {bound}",
        f"FROM given AS a {kind} JOIN others AS b ON {on} AND {their_bound}",
        kind,
    )


def _pair(joined: Joined) -> str:
    return (
        "a.id AS i, a.k AS k, a.ts AS t" if joined.one_sided else "a.id AS i, b.id AS j, a.k AS k, b.g AS g, b.ts AS t"
    )


@st.composite
def bounded(draw: st.DrawFn) -> Query:
    """An interval join of any kind. An inner one shows a pair as soon as both are there."""
    joined = draw(interval_joins())
    where = draw(st.sampled_from(["", "", " WHERE a.v IS NOT NULL"])) if joined.kind != "RIGHT" else ""
    return Query(
        f"SELECT {_pair(joined)} {joined.ours}{where}",
        f"SELECT {_pair(joined)} {joined.theirs}{where}",
        closes=True,
        at_once=joined.kind == "INNER",
    )


@st.composite
def chained(draw: st.DrawFn) -> Query:
    """Three relations; the third is the first stream again, beside either of the other two."""
    joined = draw(interval_joins(("INNER", "LEFT")))
    # what a left join has not found has no time to go by
    beside = draw(st.sampled_from(["a", "b"])) if joined.kind == "INNER" else "a"
    high = draw(st.sampled_from([0, 3, 9]))
    kind = draw(st.sampled_from(["INNER", "LEFT"]))
    text = "SELECT a.id AS i, b.id AS j, c.id AS l, a.ts AS t, b.ts AS u, c.ts AS w {} " + kind + " JOIN {} AS c ON "
    return Query(
        text.format(joined.ours, "s")
        + f"c.k = {beside}.k AND c.ts BETWEEN {beside}.ts AND {beside}.ts + {interval(high)}",
        text.format(joined.theirs, "given")
        + f"c.k = {beside}.k AND c.ts BETWEEN {beside}.ts AND {beside}.ts + {high * SECOND}",
        closes=True,
    )


@st.composite
def over_joins(draw: st.DrawFn) -> Query:
    """A window over a join, in the same SELECT or in one around it."""
    joined = draw(interval_joins(("INNER", "LEFT")))
    time = draw(st.sampled_from(["a", "b"])) if joined.kind == "INNER" else "a"
    size = draw(st.sampled_from([2, 10])) * SECOND
    measures = "COUNT(*) AS n, COUNT(b.id) AS m, {} AS total, MAX(b.ts) AS newest"
    ours, theirs = measures.format("SUM(b.v)"), measures.format("SUM(b.v)::BIGINT")
    window = f"{time}.ts, {interval(size // SECOND)}"
    sql = f"SELECT a.k AS k, TUMBLE_START({window}) AS s, {ours} {joined.ours} GROUP BY a.k, TUMBLE({window})"
    if draw(st.booleans()):
        other = "b" if time == "a" else "a"
        around = f"t, {interval(size // SECOND)}"
        inner = f"SELECT a.k AS k, b.id AS id, b.v AS v, {time}.ts AS t, {other}.ts AS o, b.ts AS bt {joined.ours}"
        sql = (
            f"SELECT k, TUMBLE_START({around}) AS s, COUNT(*) AS n, COUNT(id) AS m, SUM(v) AS total, MAX(bt) AS newest "
            f"FROM ({inner}) AS j GROUP BY k, TUMBLE({around})"
        )
    return Query(
        sql,
        f"SELECT a.k, {time}.ts // {size} * {size} AS ws, {theirs} {joined.theirs} GROUP BY a.k, ws",
        closes=True,
    )


@st.composite
def window_joins(draw: st.DrawFn) -> Query:
    """Windows joined with equal windows: of rows, or of aggregates."""
    kind, size = draw(st.sampled_from(_KINDS)), draw(st.sampled_from([2, 10]))
    micros = size * SECOND
    sides = []
    grouped = draw(st.booleans())
    for stream in ("s", "r"):
        table = f"TUMBLE(TABLE {stream}, DESCRIPTOR(ts), {interval(size)})"
        if grouped:
            table = (
                f"(SELECT k, window_start, window_end, MAX(id) AS id FROM {table} GROUP BY k, window_start, window_end)"
            )
        sides.append(table)
    theirs = []
    for table in ("given", "others"):
        rows = f"(SELECT *, ts // {micros} * {micros} AS ws FROM {table})"
        theirs.append(f"(SELECT k, ws, max(id) AS id FROM {rows} GROUP BY k, ws)" if grouped else rows)
    on = "l.k = q.k AND l.window_start = q.window_start AND l.window_end = q.window_end"
    if kind in ("SEMI", "ANTI"):
        word = "" if kind == "SEMI" else "NOT "
        sql = f"SELECT l.id AS i, l.window_start AS t FROM {sides[0]} AS l WHERE {word}EXISTS (SELECT 1 FROM {sides[1]} AS q WHERE {on})"
        batch = f"SELECT l.id, l.ws FROM {theirs[0]} AS l {kind} JOIN {theirs[1]} AS q ON l.k = q.k AND l.ws = q.ws"
    else:
        sql = f"SELECT l.id AS i, q.id AS j, COALESCE(l.window_start, q.window_start) AS t FROM {sides[0]} AS l {kind} JOIN {sides[1]} AS q ON {on}"
        batch = f"SELECT l.id, q.id, coalesce(l.ws, q.ws) FROM {theirs[0]} AS l {kind} JOIN {theirs[1]} AS q ON l.k = q.k AND l.ws = q.ws"
    return Query(sql, batch, closes=True)


@st.composite
def summed_joins(draw: st.DrawFn) -> Query:
    """A running aggregate over a join."""
    joined = draw(interval_joins(("INNER", "LEFT", "FULL")))
    return Query(
        f"SELECT a.g AS g, COUNT(*) AS n, SUM(b.v) AS total {joined.ours} GROUP BY a.g EMIT CHANGES",
        f"SELECT a.g, count(*), sum(b.v)::BIGINT {joined.theirs} GROUP BY a.g",
        closes=True,
        key=("g",),
    )


@st.composite
def distinct(draw: st.DrawFn) -> Query:
    """Each row once, the first time it comes."""
    where = f" WHERE {draw(predicates())}" if draw(st.booleans()) else ""
    if draw(st.booleans()):
        columns = draw(st.sampled_from(["k", "k, g", "g"]))
        return Query(
            f"SELECT DISTINCT ts, {columns} FROM s{where}",
            f"SELECT DISTINCT ts, {columns} FROM given{where}",
            closes=True,
            at_once=True,
        )
    size = draw(st.sampled_from([2, 10]))
    micros = size * SECOND
    return Query(
        f"SELECT DISTINCT window_start, window_end, k FROM TUMBLE(TABLE s, DESCRIPTOR(ts), {interval(size)}){where}",
        f"SELECT DISTINCT ts // {micros} * {micros} AS ws, ws + {micros}, k FROM given{where}",
        closes=True,
        at_once=True,
    )


@st.composite
def cumulating(draw: st.DrawFn) -> Query:
    parts = draw(groupings(windowed=True))
    step, size = draw(st.sampled_from([(1, 3), (5, 15), (2, 2), (10, 60)]))
    window = f"CUMULATE(TABLE s, DESCRIPTOR(ts), {interval(step)}, {interval(size)})"
    steps = (
        f"(SELECT given.*, ts // {size * SECOND} * {size * SECOND} AS ws, ws + (step + 1) * {step * SECOND} AS we "
        f"FROM given, range({size // step}) AS steps(step) WHERE we > ts) AS stepped"
    )
    return Query(
        f"SELECT window_start, window_end, {parts.shown_keys()}{parts.ours()} FROM {window}{parts.where} "
        f"GROUP BY {parts.grouped()}window_start, window_end{parts.having}",
        f"SELECT ws, we, {parts.grouped()}{parts.theirs()} FROM {steps}{parts.where} "
        f"GROUP BY {parts.grouped()}ws, we{parts.having}",
        closes=True,
        end=1,
    )


@st.composite
def grouping_sets(draw: st.DrawFn) -> Query:
    sets = draw(st.sampled_from([("k", "g", ""), ("k, g", "k"), ("k, g", "k", ""), ("k, g", "k", "g", "")]))
    word = {("k, g", "k", ""): "ROLLUP (k, g)", ("k, g", "k", "g", ""): "CUBE (k, g)"}.get(sets)
    listed = (
        word if word is not None and draw(st.booleans()) else f"GROUPING SETS ({', '.join(f'({one})' for one in sets)})"
    )
    measure = draw(aggregates(distinct=True))
    size = draw(st.sampled_from([3, 10]))
    window, micros = f"ts, {interval(size)}", size * SECOND
    theirs = ", ".join(f"(ws, {one})" if one else "(ws)" for one in sets)
    return Query(
        f"SELECT TUMBLE_START({window}) AS s, TUMBLE_END({window}) AS e, k, g, GROUPING(k) AS whole, {measure.ours} AS m "
        f"FROM s GROUP BY TUMBLE({window}), {listed}",
        f"SELECT ws, ws + {micros}, k, g, grouping(k), {measure.theirs} "
        f"FROM (SELECT *, ts // {micros} * {micros} AS ws FROM given) GROUP BY GROUPING SETS ({theirs})",
        closes=True,
        end=1,
    )


@st.composite
def first_rows(draw: st.DrawFn) -> Query:
    """The first rows of each window: of rows, or of groups."""
    size, limit = draw(st.sampled_from([3, 10])), draw(st.integers(1, 3))
    micros = size * SECOND
    by = draw(st.sampled_from(["", ", k", ", g"]))
    order = f"v {draw(st.sampled_from(['ASC', 'DESC']))} NULLS {draw(st.sampled_from(['FIRST', 'LAST']))}, id"
    ours = f"SELECT window_start, window_end, id, k, g, v FROM TUMBLE(TABLE s, DESCRIPTOR(ts), {interval(size)})"
    theirs = f"SELECT ts // {micros} * {micros} AS ws, id, k, g, v FROM given"
    if draw(st.booleans()):
        ours = (
            f"SELECT window_start, window_end, MAX(id) AS id, k, MIN(g) AS g, SUM(v) AS v "
            f"FROM TUMBLE(TABLE s, DESCRIPTOR(ts), {interval(size)}) GROUP BY window_start, window_end, k"
        )
        theirs = f"SELECT ts // {micros} * {micros} AS ws, max(id) AS id, k, min(g) AS g, sum(v)::BIGINT AS v FROM given GROUP BY ws, k"
    return Query(
        f"SELECT window_start, window_end, id, v, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end{by} "
        f"ORDER BY {order}) AS place FROM ({ours}) AS w) AS ranked WHERE place <= {limit}",
        f"SELECT ws, ws + {micros}, id, v, place FROM (SELECT *, row_number() OVER (PARTITION BY ws{by} ORDER BY {order}) AS place "
        f"FROM ({theirs})) WHERE place <= {limit}",
        closes=True,
        end=1,
    )


@st.composite
def shifted(draw: st.DrawFn) -> Query:
    """Windows that begin off the hour, with their first and last times (G17)."""
    size, offset = draw(st.sampled_from([(10, 3), (60, 17)]))
    micros, shift, low = size * SECOND, offset * SECOND, draw(numbers)
    return Query(
        f"SELECT window_start, window_end, MIN(ts) AS first, MAX(ts) AS last, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), "
        f"{interval(size)}, {interval(offset)}) WHERE v > {low} GROUP BY window_start, window_end",
        f"SELECT ts - (((ts - {shift}) % {micros}) + {micros}) % {micros} AS ws, ws + {micros}, min(ts), max(ts), count(*) "
        f"FROM given WHERE v > {low} GROUP BY ws",
        closes=True,
        end=1,
    )


@st.composite
def best_rows(draw: st.DrawFn) -> Query:
    """Windows joined with their own largest or smallest value: rows or groups, by a key or by none, and now and then with
    another filter on one side, so that it is no longer their own."""
    size, slide = draw(st.sampled_from([(3, 3), (10, 10), (10, 2), (6, 4)]))
    micros, step = size * SECOND, slide * SECOND
    window = f"TUMBLE(TABLE s, DESCRIPTOR(ts), {interval(size)})"
    if slide != size:
        window = f"HOP(TABLE s, DESCRIPTOR(ts), {interval(slide)}, {interval(size)})"
    where = f" WHERE {draw(predicates())}" if draw(st.booleans()) else ""
    ours = f"SELECT id, k, g, v, x, window_start, window_end FROM {window}{where}"
    rows = (
        f"(SELECT given.*, ts // {step} * {step} - back * {step} AS ws, ws + {micros} AS we "
        f"FROM given, range({-(-size // slide)}) AS hops(back) WHERE we > ts) AS hopped"
    )
    theirs = f"SELECT id, k, g, v, x, ws, we FROM {rows}{where}"
    values = ["v", "x", "k", "g"]
    if draw(st.booleans()):
        groups = "MAX(id) AS id, k, g, COUNT(*) AS v, {} AS x"
        ours = f"SELECT {groups.format('SUM(v)')}, window_start, window_end FROM {window}{where} GROUP BY k, g, window_start, window_end"
        theirs = f"SELECT {groups.format('SUM(v)::BIGINT')}, ws, we FROM {rows}{where} GROUP BY k, g, ws, we"
        values = ["v", "x"]
    value, (word, reaches) = draw(st.sampled_from(values)), draw(st.sampled_from([("MAX", ">="), ("MIN", "<=")]))
    by, meets = draw(st.sampled_from([("", ""), ("", ""), (", g", " AND l.g = m.g"), (", g", "")]))
    other = draw(st.sampled_from(["", "", "", " WHERE v > 1", " WHERE k IS NOT NULL"]))
    more = draw(st.sampled_from(["", "", " WHERE l.g = 1", " WHERE l.v > 1 AND l.g <> 1", " WHERE l.v > 1"]))
    compared = f"l.{value} {draw(st.sampled_from(['=', reaches]))} m.best{meets}"
    return Query(
        f"SELECT l.window_start, l.window_end, l.id, l.k, l.v, m.best FROM ({ours}) AS l JOIN (SELECT window_start, window_end{by}, "
        f"{word}({value}) AS best FROM ({ours}) AS o{other} GROUP BY window_start, window_end{by}) AS m "
        f"ON l.window_start = m.window_start AND l.window_end = m.window_end AND {compared}{more}",
        f"SELECT l.ws, l.we, l.id, l.k, l.v, m.best FROM ({theirs}) AS l JOIN (SELECT ws, we{by}, {word}({value}) AS best "
        f"FROM ({theirs}) AS o{other} GROUP BY ws, we{by}) AS m ON l.ws = m.ws AND l.we = m.we AND {compared}{more}",
        closes=True,
        end=1,
    )


JOINED: Final = (bounded, chained, over_joins, window_joins, summed_joins)


@st.composite
def first_of_keys(draw: st.DrawFn) -> Query:
    """The first row of each key, for ever or within the watermark, spelled in two ways; and a window over them."""
    where = f" WHERE {draw(predicates())}" if draw(st.booleans()) else ""
    kind, keys = draw(st.integers(0, 3)), draw(st.sampled_from(["k", "k, g"]))
    if kind == 0:
        return Query(f"SELECT DISTINCT ON ({keys}) {keys} FROM s{where}", f"SELECT DISTINCT {keys} FROM given{where}")
    bounded = f"SELECT DISTINCT {keys}, ts FROM given{where}"
    if kind == 1:
        size = draw(st.sampled_from([2, 10]))
        window, micros = f"ts, {interval(size)}", size * SECOND
        return Query(
            f"SELECT TUMBLE_START({window}) AS s, TUMBLE_END({window}) AS e, {keys}, COUNT(*) AS n FROM "
            f"(SELECT DISTINCT ON ({keys}, ts) {keys}, ts FROM s{where}) AS f GROUP BY {keys}, TUMBLE({window})",
            f"SELECT ts // {micros} * {micros} AS ws, ws + {micros}, {keys}, count(*) FROM ({bounded}) GROUP BY {keys}, ws",
            closes=True,
            end=1,
        )
    rank = f"ROW_NUMBER() OVER (PARTITION BY {keys}, ts ORDER BY {draw(st.sampled_from(['PROCTIME()', 'ts']))})"
    sql = f"SELECT {keys}, ts FROM (SELECT {keys}, ts, {rank} AS rn FROM s{where}) AS f WHERE rn = 1"
    if kind == 2:
        sql = f"SELECT {keys}, ts FROM s{where} QUALIFY {rank} = 1"
    return Query(sql, bounded, closes=True, at_once=True)


WINDOWED: Final = (distinct, first_of_keys, cumulating, grouping_sets, first_rows, shifted, best_rows)


@st.composite
def joins(draw: st.DrawFn) -> tuple[Query, ...]:
    """Two interval joins, and one of each other shape."""
    return tuple(draw(shape()) for shape in (bounded, *JOINED))


@st.composite
def windows(draw: st.DrawFn) -> tuple[Query, ...]:
    return tuple(draw(shape()) for shape in WINDOWED)
