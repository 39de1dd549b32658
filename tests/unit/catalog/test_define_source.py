"""CREATE STREAM, TABLE and SOURCE: what they define and what is wrong with them (A, B, C6, C7, E1, E18)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlglot import exp

from penstock.catalog.define import Surroundings, as_sink
from penstock.catalog.model import EventTime
from penstock.catalog.snapshot import Catalog
from penstock.errors import PenstockError
from penstock.sql.statements import Name
from tests.unit.catalog.defining import catalog_of, define, refused, sink_of, source_of

TRADES = """
CREATE TABLE trades (
    symbol STRING,
    price DOUBLE,
    volume INT,
    ts TIMESTAMP,
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'market-trades',
    'max-parallelism' = '16',
    'batch-size' = '10000',
    'format' = 'json'
)
"""

IMPULSE = """
CREATE TABLE impulse_source (
    timestamp TIMESTAMP,
    counter BIGINT UNSIGNED NOT NULL,
    subtask_index BIGINT UNSIGNED NOT NULL
) WITH (
    connector = 'kafka',
    topic = 'impulse',
    format = 'json',
    type = 'source',
    bootstrap_servers = 'localhost:9092',
    event_time_field = 'timestamp')
"""


def test_a1_flink_table() -> None:
    found = source_of(TRADES)
    assert [(column.name, str(column.type)) for column in found.columns] == [
        ("symbol", "STRING"),
        ("price", "DOUBLE"),
        ("volume", "INT"),
        ("ts", "TIMESTAMP"),
    ]
    assert found.event_time == EventTime("ts", 5_000_000, "watermark")
    assert len(found.options.given) == 5
    assert (found.kind, found.mode, found.bounded, found.key) == ("table", "append", False, ())


def test_a2_stream_with_a_time_option_equals_a_table_with_one() -> None:
    body = "(id STRING, amount DECIMAL, at TIMESTAMP) WITH (topic = 'orders', format = 'json', timestamp_field = 'at')"
    stream, table = source_of(f"CREATE STREAM orders {body}"), source_of(f"CREATE TABLE orders {body}")
    assert stream.event_time == EventTime("at", 5_000_000, "option")
    assert (stream.columns, stream.options, stream.event_time) == (table.columns, table.options, table.event_time)


def test_a3_c12_a_stream_needs_no_event_time() -> None:
    assert source_of("CREATE STREAM s (a INT, ts TIMESTAMP)").event_time is None


def test_a4_c6_b7_b8_b9_arroyo_table() -> None:
    found = source_of(IMPULSE)
    assert found.event_time == EventTime("timestamp", 5_000_000, "option")
    assert [column.nullable for column in found.columns] == [True, False, False]
    assert str(found.columns[1].type) == "BIGINT UNSIGNED"


def test_the_default_delay_is_a_setting() -> None:
    known = Surroundings(settings={"default_watermark_delay": timedelta(minutes=1)})
    found = source_of("CREATE STREAM s (ts TIMESTAMP) WITH (event_time_field = 'ts')", known)
    assert found.event_time == EventTime("ts", 60_000_000, "option")


@pytest.mark.parametrize(
    ("clause", "delay"),
    [
        ("WATERMARK FOR ts AS ts", 0),
        ("WATERMARK FOR ts", 0),
        ("WATERMARK FOR TS AS ts - INTERVAL '250' MILLISECOND", 250_000),
        ("WATERMARK FOR ts AS ts - INTERVAL '1 hour'", 3_600_000_000),
    ],
)
def test_e1_delays(clause: str, delay: int) -> None:
    assert source_of(f"CREATE STREAM s (ts TIMESTAMP, {clause})").event_time == EventTime("ts", delay, "watermark")


def test_lateness_is_a_watermark() -> None:
    found = source_of("CREATE STREAM s (ts TIMESTAMP LATENESS INTERVAL 1 HOURS)")
    assert found.event_time == EventTime("ts", 3_600_000_000, "watermark")


def test_dec7_a_clause_and_an_option_may_name_the_same_column() -> None:
    found = source_of("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts) WITH (event_time_field = 'TS')")
    assert found.event_time == EventTime("ts", 0, "watermark")


def test_arroyo_watermark_column_gives_the_delay() -> None:
    found = source_of(
        "CREATE TABLE s (ts TIMESTAMP, wm TIMESTAMP GENERATED ALWAYS AS (ts - INTERVAL '9' SECOND) STORED) "
        "WITH (connector = 'topic', event_time_field = 'ts', watermark_field = 'wm')"
    )
    assert found.event_time == EventTime("ts", 9_000_000, "watermark")


@pytest.mark.parametrize(
    ("columns", "options", "condition", "at", "hint"),
    [
        ("a INT, WATERMARK FOR ts", "", "INVALID_WATERMARK", "ts", "declare a column of type TIMESTAMP"),
        ("a INT, t TIMESTAMP, WATERMARK FOR ts", "", "INVALID_WATERMARK", "ts", "time columns: t"),
        ("ts BIGINT, WATERMARK FOR ts", "", "INVALID_WATERMARK", "ts", "declare it ts TIMESTAMP (an integer there is"),
        ("ts DATE, WATERMARK FOR ts", "", "INVALID_WATERMARK", "ts", "a day is too coarse"),
        ("ts STRING, WATERMARK FOR ts", "", "INVALID_WATERMARK", "ts", "TO_TIMESTAMP(ts)"),
        ("ts AS PROCTIME(), a INT, WATERMARK FOR ts", "", "INVALID_WATERMARK", "ts", "when the event happened"),
        ("a INT", "event_time_field = 'ts'", "INVALID_WATERMARK", "'ts'", "declare a column of type TIMESTAMP"),
        ("ts INT", "timestamp_field = 'ts'", "INVALID_WATERMARK", "'ts'", "declare it ts TIMESTAMP"),
        ("a INT, A STRING", "", "DUPLICATE_COLUMN", "A", "rename one"),
        ("a INT, PRIMARY KEY (b)", "", "UNKNOWN_COLUMN", "b", "columns: a"),
        ("abc INT, PRIMARY KEY (abd)", "", "UNKNOWN_COLUMN", "abd", "did you mean abc?"),
        ("a INT, PRIMARY KEY (a, A)", "", "DUPLICATE_COLUMN", "A", ""),
        ("a INT, b AS a + 1, PRIMARY KEY (b)", "", "INVALID_DEFINITION", "b", "comes with the data"),
        ("a INT, b AS c + 1", "", "UNKNOWN_COLUMN", "c", "columns: a, b"),
        ("a INT, b AS c + 1, c AS a", "", "INVALID_DEFINITION", "c", "define c before b"),
        ("a INT, b AS (SELECT 1)", "", "INVALID_DEFINITION", "b AS (SELECT 1)", "other columns of the row"),
        ("b AS 1", "", "INVALID_DEFINITION", "s", "neither computed nor metadata"),
        (
            "a INT METADATA FROM 'ofset'",
            "",
            "INVALID_DEFINITION",
            "a INT METADATA FROM 'ofset'",
            "did you mean offset?",
        ),
        (
            "a DOUBLE METADATA FROM 'offset'",
            "",
            "TYPE_MISMATCH",
            "DOUBLE",
            "declare it a BIGINT METADATA FROM 'offset'",
        ),
        ("a INT METADATA FROM 'offset'", "", "TYPE_MISMATCH", "INT", "BIGINT"),
        ("h INT HEADER('trace')", "", "TYPE_MISMATCH", "INT", "CAST"),
    ],
)
def test_a10_b_e18_refusals(columns: str, options: str, condition: str, at: str, hint: str) -> None:
    error, found = refused(f"CREATE STREAM s ({columns})" + (f" WITH ({options})" if options else ""))
    assert (error.condition, found) == (condition, at)
    assert hint in (error.hint or "")


def test_dec7_two_event_times_are_refused() -> None:
    error, at = refused("CREATE STREAM s (a TIMESTAMP, b TIMESTAMP, WATERMARK FOR a) WITH (event_time_field = 'b')")
    assert (error.condition, at) == ("INVALID_WATERMARK", "WATERMARK FOR a")


def test_arroyo_watermark_column_of_another_form_is_refused() -> None:
    error, at = refused(
        "CREATE TABLE s (ts TIMESTAMP, wm TIMESTAMP) "
        "WITH (connector = 'topic', event_time_field = 'ts', watermark_field = 'wm')"
    )
    assert (error.condition, at) == ("INVALID_WATERMARK", "'wm'")


def test_a18_no_columns() -> None:
    error, at = refused("CREATE TABLE t () WITH (topic = 'x')")
    assert (error.condition, error.message, at) == ("INVALID_DEFINITION", "table t has no columns", "t")
    assert "format = 'raw'" in (error.hint or "")


@pytest.mark.parametrize("options", ["connector = 'kafka', topic = 't', format = 'raw'", "format = 'raw'"])
def test_i10_raw_has_exactly_five_columns(options: str) -> None:
    found = source_of(f"CREATE TABLE t WITH ({options})")
    assert [(column.name, str(column.type)) for column in found.columns] == [
        ("key", "STRING"),
        ("value", "STRING"),
        ("timestamp", "TIMESTAMP"),
        ("partition", "INT"),
        ("offset", "BIGINT"),
    ]
    assert all(column.nullable for column in found.columns)


def test_i10_raw_with_declared_columns() -> None:
    assert len(source_of("CREATE TABLE t (line STRING) WITH (format = 'raw')").columns) == 1
    assert len(source_of("CREATE TABLE t (value BYTES, offset BIGINT) WITH (format = 'raw')").columns) == 2
    error, at = refused("CREATE TABLE t (value STRING, price INT) WITH (format = 'raw')")
    assert (error.condition, at) == ("INVALID_DEFINITION", "price INT")
    error, at = refused("CREATE TABLE t (value STRING, offset STRING) WITH (format = 'raw')")
    assert error.message == "column offset is BIGINT, not STRING"


def test_v10_impulse_has_fixed_columns() -> None:
    found = source_of("CREATE TABLE impulse WITH (connector = 'impulse', event_rate = '10')")
    assert [column.name for column in found.columns] == ["timestamp", "counter", "subtask_index"]
    assert found.event_time == EventTime("timestamp", 0, "default")
    error, _ = refused("CREATE TABLE impulse (counter STRING) WITH (connector = 'impulse')")
    assert error.message == "column counter is BIGINT UNSIGNED, not STRING"


@pytest.mark.parametrize(
    ("table_type", "columns"),
    [
        ("person", "id name emailAddress creditCard city state dateTime extra"),
        ("auction", "id itemName description initialBid reserve dateTime expires seller category extra"),
        ("bid", "auction bidder price channel url dateTime extra"),
        ("all", "event_type person auction bid dateTime"),
    ],
)
def test_nexmark_has_fixed_columns(table_type: str, columns: str) -> None:
    found = source_of(f"CREATE TABLE n WITH (connector = 'nexmark', table_type = '{table_type}')")
    assert " ".join(column.name for column in found.columns) == columns
    assert found.event_time == EventTime("dateTime", 4_000_000, "default")


def test_nexmark_as_risingwave_writes_it() -> None:
    found = source_of(
        "CREATE SOURCE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, "
        "date_time TIMESTAMP, extra VARCHAR, WATERMARK FOR date_time AS date_time - INTERVAL '4 seconds') "
        "WITH (connector = 'nexmark', nexmark.table.type = 'Bid')"
    )
    assert found.event_time == EventTime("date_time", 4_000_000, "watermark")


def test_computed_columns_stand_on_columns_that_come_with_the_data() -> None:
    found = source_of(
        "CREATE STREAM s (ms BIGINT, at AS TO_TIMESTAMP_LTZ(ms, 3), later AS at + INTERVAL '1' DAY, "
        "WATERMARK FOR at AS at - INTERVAL '1' SECOND)"
    )
    assert found.event_time == EventTime("at", 1_000_000, "watermark")
    assert [str(column.type) for column in found.columns] == ["BIGINT", "TIMESTAMP", "TIMESTAMP"]
    tree = found.columns[2].computed
    assert tree is not None
    assert [node.name for node in tree.find_all(exp.Column)] == ["ms"]


def test_metadata_and_header_columns() -> None:
    found = source_of(
        "CREATE TABLE t (a INT, o BIGINT METADATA FROM 'offset' VIRTUAL, `timestamp` TIMESTAMP(3) METADATA, "
        "p STRING METADATA FROM 'PARTITION', trace STRING HEADER('trace')) "
        "WITH (connector = 'kafka', topic = 't', format = 'json')"
    )
    assert [(column.name, column.metadata, column.header) for column in found.columns] == [
        ("a", None, None),
        ("o", "offset", None),
        ("timestamp", "timestamp", None),
        ("p", "partition", None),
        ("trace", None, "trace"),
    ]


def test_risingwave_include_columns_have_the_type_of_their_key() -> None:
    found = source_of(
        "CREATE SOURCE s (a INT) INCLUDE OFFSET AS o INCLUDE TIMESTAMP AS at "
        "WITH (connector = 'kafka', topic = 't', properties.bootstrap.server = 'k:9092') FORMAT PLAIN ENCODE JSON"
    )
    assert [(column.name, str(column.type)) for column in found.columns[1:]] == [("o", "BIGINT"), ("at", "TIMESTAMP")]


def test_columns_named_like_metadata_are_ordinary() -> None:
    found = source_of("CREATE STREAM s (offset BIGINT, partition INT, timestamp TIMESTAMP)")
    assert all(column.physical for column in found.columns)


def test_metadata_of_a_connector_without_any() -> None:
    error, _ = refused("CREATE TABLE t (a INT, o BIGINT METADATA FROM 'offset') WITH (connector = 'datagen')")
    assert (error.condition, error.message) == (
        "INVALID_DEFINITION",
        "column o asks for metadata, but connector datagen has none",
    )


def test_upsert_sources_have_a_key_and_append_sources_have_none() -> None:
    body = "(id INT, n INT, PRIMARY KEY (ID) NOT ENFORCED) WITH (connector = '{}', topic = 't', {})"
    upsert = source_of("CREATE TABLE t " + body.format("upsert-kafka", "key.format = 'json', value.format = 'json'"))
    assert (upsert.mode, upsert.key, upsert.primary_key) == ("upsert", ("id",), ("id",))
    assert not upsert.columns[0].nullable
    append = source_of("CREATE TABLE t " + body.format("kafka", "format = 'json'"))
    assert (append.mode, append.key, append.primary_key) == ("append", (), ("id",))


def test_an_upsert_source_without_a_key_is_refused() -> None:
    error, at = refused(
        "CREATE TABLE t (id INT) "
        "WITH (connector = 'upsert-kafka', topic = 't', key.format = 'json', value.format = 'json')"
    )
    assert error.condition == "INVALID_DEFINITION"
    assert at == "t"


def test_a_table_over_a_bounded_connector_is_bounded() -> None:
    assert source_of("CREATE TABLE t (a INT) WITH (connector = 'file', path = '/data', format = 'csv')").bounded
    assert not source_of("CREATE STREAM s (a INT)").bounded


def test_a7_c4_type_sink_and_connectors_that_are_only_sinks() -> None:
    sink = sink_of("CREATE TABLE k (a INT) WITH (connector = 'kafka', topic = 't', format = 'json', type = 'sink')")
    assert (sink.created_as, [column.name for column in sink.columns]) == ("table", ["a"])
    assert sink_of("CREATE TABLE k (a INT) WITH (connector = 'blackhole')").kind == "sink"
    assert sink_of("CREATE TABLE k (a INT) WITH ('connector' = 'print')").options.connector == "console"


def test_a_sink_has_no_watermark() -> None:
    error, at = refused("CREATE TABLE k (ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'blackhole')")
    assert (error.condition, at) == ("INVALID_WATERMARK", "WATERMARK FOR ts")


def test_a_sink_cannot_write_an_offset() -> None:
    sql = "CREATE TABLE k (a INT, o BIGINT METADATA FROM 'offset'{}) WITH (topic = 't', type = 'sink')"
    assert refused(sql.format(""))[0].condition == "INVALID_DEFINITION"
    assert len(sink_of(sql.format(" VIRTUAL")).columns) == 2


def test_a7_a_table_that_is_read_can_be_written_without_its_computed_columns() -> None:
    found = source_of(
        "CREATE TABLE t (a INT, b AS a + 1, o BIGINT METADATA FROM 'offset' VIRTUAL) "
        "WITH (connector = 'kafka', topic = 't', format = 'json', 'scan.startup.mode' = 'earliest-offset')"
    )
    sink = as_sink(found, Name("t"))
    assert [column.name for column in sink.columns] == ["a"]
    assert (sink.options.role, sink.options.bounded, sink.object_key) == ("sink", False, found.object_key)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a INT) WITH (connector = 'datagen')",
        "CREATE TABLE t (a INT) WITH (connector = 'kafka', topic = 't', format = 'json', type = 'source')",
    ],
)
def test_c4_what_is_only_a_source_cannot_be_written(sql: str) -> None:
    with pytest.raises(PenstockError) as error:
        as_sink(source_of(sql), Name("t"))
    assert error.value.condition == "WRONG_OBJECT_KIND"


def test_a10_running_a_script_again_changes_nothing_however_it_is_spelt() -> None:
    made = catalog_of(TRADES)
    for sql in (
        TRADES,
        TRADES.lower(),
        TRADES.replace("'max-parallelism' = '16'", "max_parallelism = 16"),
        TRADES.replace(
            "'connector' = 'kafka',\n    'topic' = 'market-trades'", "topic = 'market-trades', connector = 'kafka'"
        ),
        TRADES.replace("CREATE TABLE", "CREATE OR REPLACE TABLE"),
    ):
        again, notices = made.put(define(sql))
        assert again is made, sql
        assert len(notices) == 1
    with pytest.raises(PenstockError) as error:
        made.put(define(TRADES.replace("'5' SECOND", "'6' SECOND")))
    assert error.value.condition == "OBJECT_EXISTS"


def test_the_text_defines_the_same_again() -> None:
    for sql in (
        TRADES,
        IMPULSE,
        "CREATE OR REPLACE TEMPORARY TABLE t (a INT COMMENT 'x') WITH (connector = 'blackhole')",
    ):
        first = define(sql)
        again = define(first.text)
        assert again == first
        assert again.text == first.text
        assert "OR REPLACE" not in first.text


def test_a12_a_stream_is_found_right_after_it_is_created() -> None:
    made: Catalog = catalog_of(TRADES)
    assert made.get(Name("Trades")).name.text == "trades"
