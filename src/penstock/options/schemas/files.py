"""Files and directories, and Delta tables."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from penstock.options.schema import ANY, READ, SINK, SOURCE, Alias, ConnectorSpec, Draft, OptionSpec, Problem
from penstock.options.schemas.common import BAD_DATA, DELIVERY, PRIMARY_KEY, REFRESH, SINK_PARALLELISM, STREAM_SOURCE
from penstock.options.values import Boolean, Choice, Duration, Integer, Moment, Names, Size, Text

_PATH: Final = OptionSpec(
    "path", Text(name="path"), "the file or directory", aliases=("write_path", "location"), required=True
)
_PARTITION_BY: Final = OptionSpec(
    "partition_by",
    Names(),
    "the columns that make directories",
    aliases=("partition_fields", "partition.fields", "sink.partition_fields"),
    literal=True,
    roles=SINK,
)
_TAIL: Final = (
    OptionSpec(
        "tail", Boolean(), "go on reading what is added; a source that does not tail ends", default=False, roles=SOURCE
    ),
    OptionSpec(
        "monitor_interval",
        Duration(),
        "how often to look for something new; implies tail",
        aliases=("source.monitor-interval", Alias("refresh.interval.sec", unit="s")),
        roles=SOURCE,
    ),
)


def _tails(draft: Draft) -> bool:
    return bool(draft.values.get("tail")) or "monitor_interval" in draft.given


def _ends(draft: Draft) -> bool:
    return not _tails(draft)


def _check(draft: Draft) -> None:
    if isinstance(regex := draft.values.get("pattern_regex"), str):
        try:
            re.compile(regex)
        except re.error as error:
            raise Problem(
                "INVALID_OPTION",
                f"option pattern_regex is no regular expression: {error.msg}",
                hint="option pattern takes a glob such as '*.json'",
                key="pattern_regex",
            ) from None
    if draft.role == "sink" and draft.values.get("single_file") and "partition_by" in draft.given:
        raise Problem(
            "CONFLICTING_OPTIONS",
            "one plain file cannot be partitioned",
            hint="leave out single_file or partition_by",
            key="partition_by",
        )
    if _tails(draft) and draft.values.get("tail") is False and "tail" in draft.given:
        raise Problem(
            "CONFLICTING_OPTIONS",
            "monitor_interval asks for tail and tail is false",
            hint="leave out one of the two",
            key="tail",
        )


# Of Flink, where the files of a directory are published when it is complete.
_COMMITS: Final = {
    "sink.partition-commit.trigger": "when a directory is complete",
    "sink.partition-commit.delay": "how long after that its files can be seen",
    "sink.partition-commit.watermark-time-zone": "the time zone of directories that are named by a time",
    "sink.partition-commit.policy.kind": "how it is told that a directory is complete",
    "sink.partition-commit.success-file.name": "the file that tells it",
    "partition.time-extractor.kind": "how the time of a directory is told from its name",
    "partition.time-extractor.timestamp-pattern": "how the time of a directory is told from its name",
    "partition.time-extractor.timestamp-formatter": "how the time of a directory is told from its name",
    "sink.rolling-policy.check-interval": "how often the age of a file is looked at",
}


_SEEN_AT_ONCE: Final = (
    "the files of a batch can be read as soon as the batch is done, and no file says that a directory is complete"
)


FILE: Final = ConnectorSpec(
    name="file",
    summary="files: one that ends, a directory that is tailed, or files written as a sink",
    aliases=("filesystem", "single_file", "posix_fs", "batch_posix_fs"),
    alias_options={"single_file": {"single_file": "true"}},
    options=(
        replace(_PATH, summary="the file or directory; of a source also a glob"),
        *_TAIL,
        OptionSpec(
            "pattern",
            Text(),
            "which files of the directory are read, as a glob over their names or their paths in it",
            aliases=("match_pattern", "pathGlobFilter"),
            roles=READ,
        ),
        OptionSpec(
            "pattern_regex",
            Text(),
            "the same as a regular expression, which has to fit the whole of the name or the path",
            aliases=("source.path.regex-pattern", "source.regex_pattern"),
            roles=READ,
        ),
        OptionSpec(
            "recursive",
            Boolean(),
            "whether subdirectories are read",
            default=True,
            aliases=("recursiveFileLookup",),
            roles=READ,
        ),
        OptionSpec(
            "compression",
            Choice(("none", "gzip", "zstd", "snappy", "lz4", "bzip2"), {"uncompressed": "none", "bz2": "bzip2"}),
            "how the files are compressed; told from their names when not given. `snappy` is for Parquet",
            aliases=("compression_format", "source.compression", "sink.compression", "compression.codec"),
        ),
        OptionSpec("single_file", Boolean(), "the path is one plain file, not a directory", default=False),
        OptionSpec(
            "rollover_size",
            Size(),
            "begin a new file at this size",
            aliases=("sink.rolling-policy.file-size", "target_file_size", "rolling_policy.size"),
            roles=SINK,
        ),
        OptionSpec(
            "rollover_rows",
            Integer(minimum=1),
            "begin a new file after so many rows",
            aliases=("target_part_size_rows", "max_row_count"),
            roles=SINK,
        ),
        OptionSpec(
            "rollover_interval",
            Duration(),
            "begin a new file after this time",
            idle="each batch ends its files, so none is open for longer than a batch",
            aliases=(
                "sink.rolling-policy.rollover-interval",
                Alias("rollover_seconds", unit="s"),
                Alias("rolling_policy.interval", unit="s"),
                Alias("inactivity_rollover_seconds", unit="s"),
            ),
            roles=SINK,
        ),
        _PARTITION_BY,
        OptionSpec(
            "filename_prefix",
            Text(),
            "the beginning of the files' names",
            aliases=("filename.prefix", "file_naming.prefix"),
            roles=SINK,
        ),
        OptionSpec(
            "filename_suffix",
            Text(),
            "the end of the files' names",
            aliases=("filename.suffix", "file_naming.suffix"),
            roles=SINK,
        ),
        *(OptionSpec(key, Text(), words, roles=SINK, idle=_SEEN_AT_ONCE) for key, words in _COMMITS.items()),
        *STREAM_SOURCE,
        BAD_DATA,
        REFRESH,
        DELIVERY,
        SINK_PARALLELISM,
    ),
    roles=ANY,
    formats=("json", "csv", "parquet", "raw", "avro"),
    default_format="json",
    bounded=_ends,
    check=_check,
    available=True,
)

DELTA: Final = ConnectorSpec(
    name="delta",
    summary="Delta tables",
    aliases=("deltalake", "delta_lake"),
    options=(
        _PATH,
        *_TAIL,
        OptionSpec(
            "start_version",
            Integer(minimum=0),
            "the table version to begin at",
            aliases=("startingVersion",),
            roles=SOURCE,
        ),
        OptionSpec("start_timestamp", Moment(), "the time to begin at", aliases=("startingTimestamp",), roles=SOURCE),
        _PARTITION_BY,
        OptionSpec(
            "merge_schema",
            Boolean(),
            "whether new columns are added to the table",
            default=False,
            aliases=("mergeSchema",),
            roles=SINK,
        ),
        *STREAM_SOURCE,
        REFRESH,
        DELIVERY,
        PRIMARY_KEY,
    ),
    roles=ANY,
    # What a Delta table holds; Arroyo has it written out.
    formats=("parquet",),
    sink_changes="upsert",
    bounded=_ends,
    check=_check,
)
