"""Options that many connectors share."""

from __future__ import annotations

from typing import Final

from penstock.options.schema import ANY, BOTH, READ, SINK, SOURCE, Alias, OptionSpec
from penstock.options.values import Choice, Duration, Integer, Label, Names, Text, Word

# What ignoring a bad record means in other systems: it is skipped. Ours is kept as a dead letter, so nothing is lost.
IGNORE_ERRORS: Final = {"true": "dead_letter", "false": "fail"}

CONNECTOR: Final = OptionSpec(
    "connector",
    Word(),
    "the connector; an embedded topic when none is given",
    aliases=("connector.type",),
    literal=True,
)
TYPE: Final = OptionSpec(
    "type",
    Choice(("source", "sink", "lookup")),
    "whether the relation is read, written or looked up; `append-only`, `upsert` and `debezium` mean `changes`",
    literal=True,
)
FORMAT: Final = OptionSpec("format", Word(), "the format of the records", aliases=("value.format",), literal=True)
CHANGES: Final = OptionSpec(
    "changes",
    Choice(("append", "upsert", "retract"), {"append-only": "append", "debezium": "retract"}),
    "what the records are: rows that are only added, the newest row of a key, or changes with the old row",
    aliases=(Alias("force_append_only", values={"true": "append"}),),
    roles=BOTH,
    literal=True,
)
VERSION: Final = OptionSpec(
    "version_column",
    Text(name="column"),
    "of rows that replace each other: the row with the highest value is the latest, whenever it comes",
    roles=SOURCE,
    literal=True,
)

EVENT_TIME: Final = (
    OptionSpec(
        "event_time_field",
        Text(name="column"),
        "the column that holds the event time; the watermark delay is the setting `default_watermark_delay`",
        aliases=("timestamp_field", "event_time_column"),
        roles=SOURCE,
        literal=True,
    ),
    OptionSpec(
        "watermark_field", Text(name="column"), "a column that holds the watermark itself", roles=SOURCE, literal=True
    ),
    OptionSpec(
        "idle_timeout",
        Duration(zero=True),
        "how long a partition may be silent before it no longer holds the watermark back",
        aliases=("scan.watermark.idle-timeout", Alias("idle_micros", unit="us"), "source.idle-timeout"),
        roles=SOURCE,
        setting="idle_timeout",
    ),
    OptionSpec(
        "max_future_drift",
        Duration(),
        "how far a row's event time may lie past the clock before the row goes to the dead letters",
        roles=SOURCE,
        setting="max_future_drift",
    ),
)

BAD_DATA: Final = OptionSpec(
    "bad_data",
    Choice(("dead_letter", "null", "fail"), {"drop": "dead_letter", "skip": "dead_letter"}),
    "what becomes of a record that cannot be read: kept in `penstock.dead_letters`, read as NULLs, or the job fails",
    roles=READ,
    setting="bad_data",
)

PARALLELISM: Final = OptionSpec(
    "max_parallelism",
    Integer(minimum=1),
    "the most readers; there are never more than partitions",
    aliases=("scan.parallelism", "source.parallelism"),
    roles=SOURCE,
    setting="max_parallelism",
)
BATCH_SIZE: Final = OptionSpec(
    "batch_size",
    Integer(minimum=1),
    "the most rows in an Arrow batch that a reader fetches or a consumer is handed",
    setting="batch_size",
    roles=ANY,
)
MAX_ROWS: Final = OptionSpec(
    "max_rows_per_batch",
    Integer(minimum=1),
    "the most rows of one Spark batch; by itself small when live and large when catching up",
    aliases=("maxOffsetsPerTrigger",),
    roles=BOTH,
)
PRIMARY_KEY: Final = OptionSpec(
    "primary_key", Names(), "the key columns of a sink that takes upserts", roles=SINK, literal=True
)
REFRESH: Final = OptionSpec(
    "refresh",
    Duration(),
    "how often a table that is looked up is read again; never when not given",
    aliases=(
        "lookup.cache.ttl",
        "lookup.partial-cache.expire-after-write",
        "lookup.full-cache.periodic-reload.interval",
    ),
    roles=READ,
)
DELIVERY: Final = OptionSpec(
    "delivery",
    Choice(("at_least_once", "exactly_once")),
    "the guarantee of the sink",
    aliases=("sink.delivery-guarantee", "sink.commit_mode", "sink.semantic"),
    roles=SINK,
)
SINK_PARALLELISM: Final = OptionSpec("sink.parallelism", Integer(minimum=1), "the most tasks that write", roles=SINK)

STREAM_SOURCE: Final = (*EVENT_TIME, PARALLELISM, BATCH_SIZE, MAX_ROWS)

LATE: Final = OptionSpec(
    "late",
    Choice(("keep", "drop", "fail"), {"side_output": "keep"}),
    "what becomes of rows whose window has closed: kept in `penstock.late_rows`, only counted, or the job fails",
    aliases=("late_data",),
    setting="late",
    roles=SINK,
)
JOB: Final = (
    LATE,
    OptionSpec(
        "state",
        Choice(("store", "spark")),
        "where an updating query, or one of windows that close, keeps its state: with the view or in Spark",
        roles=SINK,
    ),
    OptionSpec(
        "state_backend",
        Choice(("rocksdb", "memory"), {"tonbo": "rocksdb", "marbledb": "rocksdb"}),
        "Spark's state store; `tonbo` and `marbledb` mean `rocksdb`",
        setting="state_backend",
        roles=SINK,
    ),
    OptionSpec(
        "state_ttl",
        Duration(),
        "forget state not touched for this long; never when not given",
        setting="state_ttl",
        roles=SINK,
    ),
    OptionSpec(
        "mode",
        Choice(("microbatch", "realtime"), {"micro-batch": "microbatch", "real-time": "realtime"}),
        "how Spark runs the job",
        default="microbatch",
        roles=SINK,
    ),
    OptionSpec(
        "parallelism", Integer(minimum=1), "the number of shuffle partitions", setting="parallelism", roles=SINK
    ),
    MAX_ROWS,
)
JOB_NAME: Final = OptionSpec(
    "job_name", Label(), "the name of the job; `insert_<sink>` when not given", aliases=("pipeline.name",), roles=SINK
)
