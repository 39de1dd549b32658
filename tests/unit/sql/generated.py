"""Statements made at random: what hypothesis draws, as text."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["a", "b", "ts", "key", "value", "timestamp", "offset", "type", "t1", '"Order"', "`a b`", "größe", "left"]
)
RELATIONS = st.sampled_from(["t", "u", "orders", '"My Table"', "stream_1"])
TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
STRINGS = TEXTS.map(lambda text: "'" + text.replace("'", "''") + "'")
NUMBERS = st.sampled_from(["0", "1", "2.5", "1e3", ".5", "12345678901234567890"])
TYPES = st.sampled_from(
    [
        "INT",
        "BIGINT UNSIGNED",
        "STRING",
        "VARCHAR(10)",
        "DECIMAL",
        "DECIMAL(10, 2)",
        "TIMESTAMP(3)",
        "ROW<a INT, b STRING>",
        "ARRAY<INT>",
        "MAP<STRING, ARRAY<DOUBLE>>",
        "TIMESTAMP WITH TIME ZONE",
        "BYTEA",
        "INT[]",
        "DOUBLE PRECISION",
    ]
)
UNITS = st.sampled_from(["SECOND", "MINUTE", "HOURS", "days", "MILLISECOND", "week"])
INTERVALS = st.one_of(
    st.tuples(st.integers(1, 100), UNITS).map(lambda parts: f"INTERVAL '{parts[0]}' {parts[1]}"),
    st.tuples(st.integers(1, 100), UNITS).map(lambda parts: f"INTERVAL '{parts[0]} {parts[1]}'"),
    st.tuples(st.integers(1, 100), UNITS).map(lambda parts: f"INTERVAL {parts[0]} {parts[1]}"),
)


def _columns() -> st.SearchStrategy[str]:
    return st.one_of(NAMES, st.tuples(RELATIONS, NAMES).map(".".join))


def _bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions with other expressions in them; what stands on both sides of an operator is bracketed by chance."""
    maybe = st.one_of(inner, inner.map(lambda text: f"({text})"))
    pair = st.tuples(maybe, maybe)
    return st.one_of(
        st.tuples(
            maybe, st.sampled_from(["+", "-", "*", "/", "%", "||", "=", "<>", "<", "AND", "OR", "<=>", "DIV"]), maybe
        ).map(" ".join),
        st.tuples(st.sampled_from(["NOT ", "-", "+", "~"]), inner.map(lambda text: f"({text})")).map("".join),
        st.tuples(maybe, st.sampled_from([" IS NULL", " IS NOT NULL", " IS TRUE", "::INT", "[1]"])).map(
            lambda parts: f"(({parts[0]}){parts[1]})"
        ),
        pair.map(lambda parts: f"(({parts[0]}) IN ({parts[1]}, 1))"),
        pair.map(lambda parts: f"(({parts[0]}) NOT BETWEEN ({parts[1]}) AND 5)"),
        pair.map(lambda parts: f"(({parts[0]}) NOT LIKE ({parts[1]}))"),
        pair.map(lambda parts: f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE 0 END"),
        pair.map(lambda parts: f"COALESCE({parts[0]}, {parts[1]})"),
        pair.map(lambda parts: f"SUBSTRING(({parts[0]}) FROM ({parts[1]}))"),
        inner.map(lambda text: f"COUNT(DISTINCT {text}) FILTER (WHERE a > 1)"),
        inner.map(lambda text: f"SUM({text}) OVER (PARTITION BY a ORDER BY b DESC)"),
        st.tuples(inner, TYPES).map(lambda parts: f"CAST({parts[0]} AS {parts[1]})"),
        pair.map(lambda parts: f"ARRAY[{parts[0]}, {parts[1]}]"),
        pair.map(lambda parts: f"STRUCT({parts[0]} AS x, {parts[1]})"),
        inner.map(lambda text: f"transform(xs, x -> x + ({text}))"),
        st.tuples(inner, STRINGS).map(lambda parts: f"({parts[0]}) -> {parts[1]} ->> 'k'"),
    )


EXPRESSIONS = st.recursive(st.one_of(_columns(), STRINGS, NUMBERS, INTERVALS, st.just("NULL")), _bigger, max_leaves=6)

WINDOWS = st.one_of(
    st.tuples(_columns(), INTERVALS).map(lambda parts: f"TUMBLE({', '.join(parts)})"),
    st.tuples(_columns(), INTERVALS, INTERVALS).map(lambda parts: f"HOP({', '.join(parts)})"),
    st.tuples(_columns(), INTERVALS).map(lambda parts: f"SESSION({', '.join(parts)})"),
    INTERVALS.map(lambda size: f"tumble({size})"),
)

SOURCES = st.one_of(
    RELATIONS,
    st.tuples(RELATIONS, NAMES).map(lambda parts: f"{parts[0]} AS {parts[1]}"),
    st.tuples(RELATIONS, INTERVALS).map(lambda parts: f"TABLE(TUMBLE(TABLE {parts[0]}, DESCRIPTOR(ts), {parts[1]})) w"),
    st.tuples(RELATIONS, INTERVALS).map(
        lambda parts: f"SESSION(TABLE {parts[0]} PARTITION BY a, b, DESCRIPTOR(ts), {parts[1]})"
    ),
    st.tuples(RELATIONS, RELATIONS).map(lambda parts: f"{parts[0]} AS l LEFT OUTER JOIN {parts[1]} AS r ON l.a = r.a"),
    st.tuples(RELATIONS, RELATIONS).map(
        lambda parts: f"{parts[0]} JOIN {parts[1]} FOR SYSTEM_TIME AS OF PROCTIME() AS d USING (a)"
    ),
    RELATIONS.map(lambda name: f"{name} CROSS JOIN UNNEST(xs) AS x(y)"),
    RELATIONS.map(lambda name: f"(SELECT * FROM {name}) AS s"),
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A SELECT with some of its clauses."""
    items = draw(st.lists(EXPRESSIONS, min_size=1, max_size=3))
    parts = [f"SELECT {draw(st.sampled_from(['', 'DISTINCT ']))}{', '.join(items)} AS z FROM {draw(SOURCES)}"]
    if draw(st.booleans()):
        parts.append(f"WHERE {draw(EXPRESSIONS)}")
    if draw(st.booleans()):
        parts.append(f"GROUP BY {draw(WINDOWS)}, a HAVING COUNT(*) > 1")
    if draw(st.booleans()):
        parts.append(f"UNION ALL SELECT {draw(EXPRESSIONS)}")
    if draw(st.booleans()):
        parts.append("ORDER BY a DESC, b NULLS LAST")
    if draw(st.booleans()):
        parts.append("LIMIT 3")
    return " ".join(parts)


OPTIONS = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from(["topic", "properties.bootstrap.server", "'max-parallelism'"]),
            STRINGS.filter(lambda s: s != "''"),
        ),
        st.one_of(STRINGS, NUMBERS, INTERVALS, st.sampled_from(["true", "FALSE", "SECRET pw", "-1"])),
    ).map(" = ".join),
    max_size=4,
).map(lambda options: f"WITH ({', '.join(options)})")

COLUMNS = st.tuples(
    NAMES,
    st.one_of(
        st.tuples(TYPES, st.sampled_from(["", " NOT NULL", " METADATA FROM 'k' VIRTUAL", " HEADER('h')"])).map("".join),
        EXPRESSIONS.map(lambda text: f"AS ({text})"),
        st.tuples(TYPES, EXPRESSIONS).map(lambda parts: f"{parts[0]} GENERATED ALWAYS AS ({parts[1]})"),
        st.tuples(TYPES, STRINGS).map(lambda parts: f"{parts[0]} COMMENT {parts[1]}"),
    ),
).map(" ".join)


@st.composite
def definitions(draw: st.DrawFn) -> str:
    """A CREATE STREAM, VIEW, MATERIALIZED VIEW or SINK."""
    name = draw(RELATIONS)
    kind = draw(st.sampled_from(["STREAM", "TABLE", "VIEW", "MATERIALIZED VIEW", "SINK"]))
    if kind in {"STREAM", "TABLE"}:
        items = draw(st.lists(COLUMNS, min_size=1, max_size=4))
        if draw(st.booleans()):
            items.insert(draw(st.integers(0, len(items))), f"WATERMARK FOR ts AS ts - {draw(INTERVALS)}")
        return f"CREATE {kind} {name} ({', '.join(items)}) {draw(OPTIONS)}"
    emit = draw(st.sampled_from(["", " EMIT CHANGES", " EMIT ON WINDOW CLOSE"]))
    options = "" if kind == "VIEW" else draw(OPTIONS)
    return f"CREATE {kind} {name} {options} AS {draw(queries())}{emit}"


STATEMENTS = st.one_of(queries(), definitions(), queries().map(lambda query: f"INSERT INTO k (a, b) {query}"))
