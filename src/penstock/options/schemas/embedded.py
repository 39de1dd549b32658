"""What needs nothing outside the engine: embedded topics, memory, console, blackhole."""

from __future__ import annotations

from typing import Final

from penstock.options.schema import SINK, SOURCE, ConnectorSpec, OptionSpec
from penstock.options.schemas.common import BAD_DATA, CHANGES, PRIMARY_KEY, STREAM_SOURCE, VERSION
from penstock.options.values import Boolean, Choice, Duration, Integer, Names, Size, Text

TOPIC: Final = ConnectorSpec(
    name="topic",
    available=True,
    summary="an embedded topic: a partitioned log kept by Penstock itself, the default connector",
    aliases=("embedded",),
    options=(
        OptionSpec("topic", Text(), "the name of the topic; the relation's own name when not given"),
        OptionSpec("partitions", Integer(minimum=1, maximum=4096), "the number of partitions", default=1),
        OptionSpec("retention", Duration(), "how long rows are kept; forever when not given"),
        OptionSpec("retention_bytes", Size(), "how many bytes a partition keeps; no limit when not given"),
        OptionSpec(
            "key.fields",
            Names(),
            "the columns that are hashed to choose a partition",
            aliases=("key", "key_field"),
            literal=True,
        ),
        OptionSpec(
            "start",
            Choice(("earliest", "latest"), {"earliest-offset": "earliest", "latest-offset": "latest"}),
            "where a new job begins to read",
            default="earliest",
            aliases=("scan.startup.mode", "source.offset"),
            roles=SOURCE,
        ),
        OptionSpec(
            "fsync",
            Choice(("always", "interval", "never")),
            "when appended rows are forced to disk",
            default="always",
        ),
        *STREAM_SOURCE,
        BAD_DATA,
        PRIMARY_KEY,
    ),
    formats=("json", "csv", "avro", "protobuf", "debezium-json", "raw"),
)

MEMORY: Final = ConnectorSpec(
    name="memory",
    available=True,
    summary="rows handed over by a program, which last as long as the database is open",
    options=(
        OptionSpec("partitions", Integer(minimum=1, maximum=4096), "the number of partitions", default=1),
        CHANGES,
        VERSION,
        *STREAM_SOURCE,
    ),
    roles=SOURCE,
)

CONSOLE: Final = ConnectorSpec(
    name="console",
    available=True,
    summary="rows printed to the terminal",
    aliases=("print", "stdout"),
    options=(
        OptionSpec("rows", Integer(minimum=1), "the most rows printed for a batch", default=20, aliases=("numRows",)),
        OptionSpec("truncate", Boolean(), "whether long values are cut", default=True),
        OptionSpec("prefix", Text(empty=True), "a text before each row", aliases=("print-identifier",)),
        OptionSpec("standard_error", Boolean(), "print to standard error", default=False, aliases=("standard-error",)),
        OptionSpec("sink.parallelism", Integer(minimum=1), "the most tasks that write"),
    ),
    roles=SINK,
    formats=("json", "csv"),
    sink_changes="retract",
)

BLACKHOLE: Final = ConnectorSpec(
    name="blackhole",
    available=True,
    summary="rows thrown away, for measurements",
    options=(),
    roles=SINK,
    sink_changes="retract",
)
