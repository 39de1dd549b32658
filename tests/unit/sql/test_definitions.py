"""CREATE STREAM, TABLE, SOURCE: columns, types, watermarks, options."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.errors import PenstockError
from penstock.sql.durations import DAY, HOUR, SECOND
from penstock.sql.script import parse_script, parse_statement
from penstock.sql.statements import Column, CreateRelation, Format, Name, Option
from penstock.types import BIGINT, BINARY, DECIMAL, STRING, TIMESTAMP, Field, SqlType


def relation(text: str) -> CreateRelation:
    statement = parse_statement(text)
    assert isinstance(statement, CreateRelation)
    return statement


def column(text: str) -> Column:
    [found] = relation(f"CREATE TABLE t ({text})").columns
    return found


def refusal(text: str) -> PenstockError:
    [parsed] = parse_script(text)
    assert parsed.error is not None, text
    return parsed.error


def values(options: tuple[Option, ...]) -> dict[str, tuple[str, str]]:
    return {option.key: (option.value.kind, option.value.reveal()) for option in options}


TRADES = """
    CREATE TABLE trades (
        symbol STRING,
        price DOUBLE,
        volume INT,
        ts TIMESTAMP,
        WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH (
        'connector' = 'kafka',
        'topic' = 'trades',
        'max-parallelism' = '16',
        'batch-size' = '10000',
        'format' = 'json'
    )
"""


def test_flink_table_of_the_streaming_guide() -> None:
    """A1, A15, A17: columns in order, the watermark though it is the last item, five options."""
    trades = relation(TRADES)
    assert [(item.name.text, str(item.type)) for item in trades.columns] == [
        ("symbol", "STRING"),
        ("price", "DOUBLE"),
        ("volume", "INT"),
        ("ts", "TIMESTAMP"),
    ]
    assert trades.watermark is not None
    assert (trades.watermark.column.text, trades.watermark.delay_us) == ("ts", 5_000_000)
    assert values(trades.options) == {
        "connector": ("text", "kafka"),
        "topic": ("text", "trades"),
        "max-parallelism": ("text", "16"),
        "batch-size": ("text", "10000"),
        "format": ("text", "json"),
    }


def test_create_stream_is_create_table_but_for_its_kind() -> None:
    """A2"""
    stream, table = (
        relation(f"CREATE {kind} orders (id BIGINT, at TIMESTAMP) WITH (topic = 'o', timestamp_field = 'at')")
        for kind in ("STREAM", "TABLE")
    )
    assert (stream.columns, stream.options, stream.watermark) == (table.columns, table.options, table.watermark)


def test_arroyo_table_with_bare_keys() -> None:
    """A4, B7, B8, B9"""
    source = relation(
        "CREATE TABLE impulse_source (timestamp TIMESTAMP, counter BIGINT UNSIGNED NOT NULL, "
        "subtask_index BIGINT UNSIGNED NOT NULL) WITH (connector = 'kafka', topic = 'impulse', format = 'json', "
        "type = 'source', bootstrap_servers = 'localhost:9092', event_time_field = timestamp)".replace(
            "= timestamp", "= 'timestamp'"
        )
    )
    assert [item.nullable for item in source.columns] == [True, False, False]
    assert source.columns[1].type == SqlType("UBIGINT")
    assert values(source.options)["event_time_field"] == ("text", "timestamp")


@pytest.mark.parametrize("place", range(4))
def test_the_watermark_may_stand_anywhere(place: int) -> None:
    """A15: first, in the middle, last, on one line or on its own."""
    items = ["a INT", "ts TIMESTAMP", "b INT"]
    items.insert(place, "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND")
    for separator in (", ", ",\n    "):
        found = relation(f"CREATE TABLE t ({separator.join(items)})")
        assert found.watermark is not None
        assert found.watermark.delay_us == SECOND
        assert len(found.columns) == 3


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND", 5 * SECOND),
        ("ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds'", 5 * SECOND),
        ("ts TIMESTAMP, WATERMARK FOR ts AS (ts - (INTERVAL '1' DAY))", DAY),
        ("ts TIMESTAMP, WATERMARK FOR `ts` AS `ts` - INTERVAL '250' MILLISECOND", 250_000),
        ("ts TIMESTAMP, watermark for TS as ts", 0),
        ("ts TIMESTAMP, WATERMARK FOR ts", 0),
        ("ts TIMESTAMP LATENESS INTERVAL 1 HOURS", HOUR),
        ("ts TIMESTAMP WATERMARK FOR ts AS ts - INTERVAL '1' HOUR", HOUR),
        ("ts TIMESTAMP WATERMARK AS ts - INTERVAL '1' HOUR", HOUR),
    ],
)
def test_watermarks(text: str, delay: int) -> None:
    """E1: every constant delay; the bare column is delay 0."""
    watermark = relation(f"CREATE TABLE t ({text})").watermark
    assert watermark is not None
    assert (watermark.column.text.lower(), watermark.delay_us) == ("ts", delay)


@pytest.mark.parametrize(
    "expression",
    [
        "ts + INTERVAL '5' SECOND",
        "other - INTERVAL '5' SECOND",
        "ts - delay",
        "ts - 5",
        "f(ts)",
        "INTERVAL '5' SECOND",
        "ts - INTERVAL '1' MONTH",
        "ts - INTERVAL '-5' SECOND",
        "t.ts - INTERVAL '5' SECOND",
        "CURRENT_TIMESTAMP",
    ],
)
def test_other_watermark_expressions_are_refused(expression: str) -> None:
    """E18: column minus a constant, nothing else, and the error points at the clause."""
    error = refusal(f"CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS {expression})")
    assert error.condition == "INVALID_WATERMARK"
    assert error.span is not None
    assert error.span.column == 31


def test_two_watermarks_and_two_keys_are_refused() -> None:
    assert refusal("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts, WATERMARK FOR ts)").condition == "INVALID_WATERMARK"
    assert refusal("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))").condition == "INVALID_DEFINITION"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STRING", STRING),
        ("VARCHAR", STRING),
        ("VARCHAR(10)", STRING),
        ("CHARACTER VARYING(5)", STRING),
        ("CHAR(3)", STRING),
        ("TEXT", STRING),
        ("JSON", STRING),
        ("JSONB", STRING),
        ("BYTES", BINARY),
        ("BYTEA", BINARY),
        ("VARBINARY(10)", BINARY),
        ("BOOL", SqlType("BOOLEAN")),
        ("TINYINT", SqlType("TINYINT")),
        ("INT2", SqlType("SMALLINT")),
        ("INTEGER", SqlType("INT")),
        ("INT4", SqlType("INT")),
        ("INT8", BIGINT),
        ("bigint unsigned", SqlType("UBIGINT")),
        ("INT UNSIGNED", SqlType("UINT")),
        ("REAL", SqlType("FLOAT")),
        ("FLOAT8", SqlType("DOUBLE")),
        ("DOUBLE PRECISION", SqlType("DOUBLE")),
        ("DECIMAL", DECIMAL),
        ("NUMERIC(10)", SqlType("DECIMAL", (10, 0))),
        ("DECIMAL(10, 2)", SqlType("DECIMAL", (10, 2))),
        ("DATE", SqlType("DATE")),
        ("TIMESTAMP", TIMESTAMP),
        ("TIMESTAMP(3)", TIMESTAMP),
        ("TIMESTAMP(3) WITH TIME ZONE", TIMESTAMP),
        ("TIMESTAMP WITHOUT TIME ZONE", TIMESTAMP),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", TIMESTAMP),
        ("TIMESTAMP_LTZ(3)", TIMESTAMP),
        ("TIMESTAMPTZ", TIMESTAMP),
        ("DATETIME", TIMESTAMP),
        ("ARRAY<INT>", SqlType("ARRAY", elements=(SqlType("INT"),))),
        ("INT[]", SqlType("ARRAY", elements=(SqlType("INT"),))),
        ("VARCHAR[][]", SqlType("ARRAY", elements=(SqlType("ARRAY", elements=(STRING,)),))),
        ("MAP<STRING, BIGINT>", SqlType("MAP", elements=(STRING, BIGINT))),
        ("ROW<a INT, b STRING>", SqlType("STRUCT", fields=(Field("a", SqlType("INT")), Field("b", STRING)))),
        ("STRUCT<a INT, b STRING>", SqlType("STRUCT", fields=(Field("a", SqlType("INT")), Field("b", STRING)))),
        ("STRUCT<a: INT, `b c`: STRING>", SqlType("STRUCT", fields=(Field("a", SqlType("INT")), Field("b c", STRING)))),
        ("ROW(a INT NOT NULL)", SqlType("STRUCT", fields=(Field("a", SqlType("INT")),))),
        (
            "ARRAY<ROW<end TIMESTAMP>>",
            SqlType("ARRAY", elements=(SqlType("STRUCT", fields=(Field("end", TIMESTAMP),)),)),
        ),
    ],
)
def test_types(text: str, expected: SqlType) -> None:
    """B1 to B9, B14: every spelling gives one type, and the type's own text gives it back."""
    assert column(f"c {text} NOT NULL").type == expected
    assert column(f"c {expected}").type == expected


@pytest.mark.parametrize(("text", "hint"), [("VARCAR", "did you mean VARCHAR?"), ("DUOBLE", "did you mean DOUBLE?")])
def test_unknown_types_name_the_nearest(text: str, hint: str) -> None:
    """A10"""
    error = refusal(f"CREATE TABLE t (a INT, b {text})")
    assert (error.condition, error.hint) == ("UNKNOWN_TYPE", hint)
    assert text in error.message
    assert error.span is not None
    assert (error.span.column, error.span.length) == (26, len(text))


@pytest.mark.parametrize("text", ["DECIMAL(39)", "DECIMAL(5, 6)", "DECIMAL(0)"])
def test_impossible_precision_is_refused(text: str) -> None:
    assert refusal(f"CREATE TABLE t (a {text})").condition == "INVALID_ARGUMENT"


def test_column_forms() -> None:
    """Computed, generated, metadata, header, comment, NOT NULL."""
    computed = column("total AS price * quantity")
    assert computed.type is None
    assert isinstance(computed.computed, exp.Mul)
    generated = column("total DOUBLE GENERATED ALWAYS AS (price * quantity) STORED")
    assert generated.computed == computed.computed
    assert generated.type == SqlType("DOUBLE")
    assert column("c INT AS a + 1").computed == column("c INT AS ((a + 1))").computed
    metadata = column("o BIGINT METADATA FROM 'offset' VIRTUAL")
    assert (metadata.metadata, metadata.virtual) == ("offset", True)
    assert column("partition INT METADATA").metadata == "partition"
    assert column("h STRING HEADER('trace')").header == "trace"
    assert column("c INT NOT NULL COMMENT 'it''s'").comment == "it's"
    assert column("c INT NULL").nullable


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a INT DEFAULT 0", "CLAUSE_NOT_YET"),
        ("a INT UNIQUE", "CLAUSE_NOT_YET"),
        ("a INT REFERENCES u (a)", "CLAUSE_NOT_YET"),
        ("a INT, FOREIGN KEY (a) REFERENCES u (a)", "CLAUSE_NOT_YET"),
        ("a INT CHECK (a > 0)", "CLAUSE_NOT_YET"),
        ("a INT KEY", "DIALECT_NOT_YET"),
        ("*", "CLAUSE_NOT_YET"),
        ("a INT GENERATED ALWAYS AS IDENTITY", "CLAUSE_NOT_YET"),
        ("a INT,,", "SYNTAX_ERROR"),
        ("a", "SYNTAX_ERROR"),
        ("a INT b INT", "SYNTAX_ERROR"),
        ("a INT METADATA HEADER('k')", "SYNTAX_ERROR"),
        ("PRIMARY KEY ()", "SYNTAX_ERROR"),
    ],
)
def test_column_forms_that_are_not_there(text: str, condition: str) -> None:
    assert refusal(f"CREATE TABLE t ({text})").condition == condition


def test_keys_and_table_clauses() -> None:
    found = relation(
        "CREATE OR REPLACE TEMPORARY TABLE IF NOT EXISTS t (a INT, b INT, CONSTRAINT pk PRIMARY KEY (a, b) NOT ENFORCED) "
        "COMMENT 'c' PARTITIONED BY (a) WITH (x = 1)"
    )
    assert found.primary_key == (Name("a"), Name("b"))
    assert found.partitioned_by == (Name("a"),)
    assert (found.or_replace, found.temporary, found.if_not_exists, found.comment) == (True, True, True, "c")
    assert relation("CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED)").primary_key == (Name("a"),)


def test_empty_column_list_and_no_list_are_told_by_nobody_here() -> None:
    """A18: the parser takes them; what they mean is decided where connectors are known."""
    assert relation("CREATE TABLE t () WITH (a = 1)").columns == relation("CREATE TABLE t WITH (a = 1)").columns == ()


def test_option_keys_and_values() -> None:
    """C8, C11: keys as written, values of every kind, references kept."""
    found = relation(
        "CREATE TABLE t (a INT) WITH ('k-1' = 'v', properties.bootstrap.server = 'x:1', batch-size = 5, \"q\" = -1.5, "
        "on = TRUE, wait = INTERVAL '5' MINUTE, pw = SECRET my_pw, e = '${env:X}', j = '{{ Y }}', d = $$a'b$$)"
    )
    assert values(found.options) == {
        "k-1": ("text", "v"),
        "properties.bootstrap.server": ("text", "x:1"),
        "batch-size": ("number", "5"),
        "q": ("number", "-1.5"),
        "on": ("boolean", "true"),
        "wait": ("interval", str(300 * SECOND)),
        "pw": ("secret", "my_pw"),
        "e": ("text", "${env:X}"),
        "j": ("text", "{{ Y }}"),
        "d": ("text", "a'b"),
    }


def test_option_spans_point_at_key_and_value() -> None:
    text = "CREATE TABLE t (a INT)\nWITH (topic = 'x', wait = INTERVAL '5' MINUTE)"
    found = relation(text)
    cuts = [
        (text[o.key_span.start : o.key_span.end], text[o.value_span.start : o.value_span.end]) for o in found.options
    ]
    assert cuts == [("topic", "'x'"), ("wait", "INTERVAL '5' MINUTE")]
    assert text[found.with_span.start : found.with_span.end] == text[text.index("WITH") :]
    assert (found.options[0].key_span.line, found.options[0].key_span.column) == (2, 7)


@pytest.mark.parametrize(
    "clause", ["WITH (a)", "WITH (a = )", "WITH (a = b)", "WITH (= 1)", "WITH (a = 1,)", "WITH", "WITH () WITH ()"]
)
def test_malformed_options(clause: str) -> None:
    """A10"""
    assert refusal(f"CREATE TABLE t (a INT) {clause}").condition == "SYNTAX_ERROR"


def test_risingwave_includes_and_format() -> None:
    found = relation(
        "CREATE SOURCE s (v INT) INCLUDE KEY AS k INCLUDE PARTITION AS p INCLUDE TIMESTAMP AS ts INCLUDE HEADER 'h' AS hh "
        "WITH (connector = 'kafka') FORMAT UPSERT ENCODE AVRO (schema.registry = 'x') KEY ENCODE TEXT"
    )
    extra = found.columns[1:]
    assert [(item.name.text, item.metadata, item.header) for item in extra] == [
        ("k", "key", None),
        ("p", "partition", None),
        ("ts", "timestamp", None),
        ("hh", None, "h"),
    ]
    assert isinstance(found.format, Format)
    assert (found.format.envelope, found.format.encode, found.format.key_encode) == ("upsert", "avro", "text")
    assert values(found.format.options) == {"schema.registry": ("text", "x")}
    assert relation("CREATE TABLE t (a INT) APPEND ONLY") == relation("CREATE STREAM t (a INT)")
