"""Settings: what `SET key = value` and `connect(**settings)` accept, with types, defaults and other systems' names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from penstock.errors import OptionError, Span
from penstock.options.brokers import BROKERS
from penstock.options.foreign_settings import IDLE_SETTINGS, refuse_foreign_setting, refuse_foreign_value
from penstock.options.matching import NEARLY, KeyTable
from penstock.options.problems import quoted, value_hint
from penstock.options.schema import OptionSpec
from penstock.options.values import Choice, Duration, Integer, Size, Text, deferred
from penstock.secrets import Secret, has_malformed_reference
from penstock.sql.statements import OptionValue

OWN_SETTINGS: Final = (
    OptionSpec(
        "dialect",
        Choice(("penstock", "flink", "arroyo", "risingwave"), {"default": "penstock"}),
        "whose defaults are taken for emission and start position",
        default="penstock",
        aliases=("sql_dialect", "table.sql-dialect"),
    ),
    OptionSpec(
        "default_watermark_delay",
        Duration(zero=True),
        "the watermark delay where only a time column is named",
        default=timedelta(seconds=5),
    ),
    OptionSpec(
        "idle_timeout",
        Duration(zero=True),
        "how long a partition may be silent before it no longer holds the watermark back",
        default=timedelta(seconds=60),
        aliases=("table.exec.source.idle-timeout",),
    ),
    OptionSpec(
        "max_future_drift",
        Duration(),
        "how far an event time may lie past the clock before the row goes to the dead letters",
        default=timedelta(days=1),
    ),
    OptionSpec(
        "kafka.bootstrap_servers",
        BROKERS,
        "the brokers of a Kafka relation that names none",
        default="127.0.0.1:9092",
        aliases=("bootstrap_servers", "bootstrap.server"),
    ),
    OptionSpec(
        "max_parallelism",
        Integer(minimum=1),
        "the most readers of a source",
        default=16,
        aliases=("pipeline.max-parallelism",),
    ),
    OptionSpec(
        "parallelism",
        Integer(minimum=1),
        "the number of shuffle partitions; the number of cores when not given",
        aliases=("parallelism.default", "table.exec.resource.default-parallelism", "streaming_parallelism"),
    ),
    OptionSpec("batch_size", Integer(minimum=1), "the most rows in an Arrow batch", default=10_000),
    OptionSpec(
        "bad_data",
        Choice(("dead_letter", "null", "fail"), {"drop": "dead_letter"}),
        "what becomes of bad records",
        default="dead_letter",
    ),
    OptionSpec(
        "late",
        Choice(("keep", "drop", "fail"), {"side_output": "keep"}),
        "what becomes of late rows",
        default="keep",
        aliases=("late_data",),
    ),
    OptionSpec(
        "state_backend",
        Choice(("rocksdb", "memory"), {"tonbo": "rocksdb", "marbledb": "rocksdb", "hashmap": "memory"}),
        "Spark's state store; `tonbo` and `marbledb` mean `rocksdb`",
        default="rocksdb",
        aliases=("state.backend.type",),
    ),
    OptionSpec(
        "timer_backend", Choice(("rocksdb",)), "accepted; timers are kept in the state store", default="rocksdb"
    ),
    OptionSpec(
        "state_ttl",
        Duration(zero=True),
        "forget state not touched for this long; never when not given",
        aliases=("table.exec.state.ttl", "updating_ttl"),
    ),
    OptionSpec(
        "checkpoint_interval",
        Duration(),
        "how often state is written out whole; every batch is durable without it",
        default=timedelta(seconds=60),
        aliases=("execution.checkpointing.interval", "checkpoint_interval_seconds"),
    ),
    OptionSpec(
        "changelog_retention",
        Duration(),
        "how long the changes of a view can be subscribed to again; always when not given",
    ),
    OptionSpec(
        "late_rows_retention",
        Duration(zero=True),
        "how long `penstock.late_rows` keeps a row; for ever when zero",
        default=timedelta(days=90),
    ),
    OptionSpec(
        "dead_letters_retention",
        Duration(zero=True),
        "how long `penstock.dead_letters` keeps a record; for ever when zero",
        default=timedelta(days=90),
    ),
    OptionSpec(
        "job_history_retention",
        Duration(zero=True),
        "how long `penstock.job_history` keeps a step, the last one of a job always; for ever when zero",
        default=timedelta(days=365),
    ),
    OptionSpec(
        "broadcast_max_bytes", Size(), "the largest dimension that is broadcast, in bytes", default=100 * 1024 * 1024
    ),
    OptionSpec(
        "broadcast_max_rows",
        Integer(minimum=1),
        "the largest dimension that is broadcast, in rows",
        default=100_000_000,
    ),
    OptionSpec(
        "driver_memory", Size(), "the heap of the Spark driver", default=2 * 1024**3, aliases=("spark.driver.memory",)
    ),
    OptionSpec(
        "spark_master",
        Text(name="master"),
        "where Spark runs its tasks, such as `local-cluster[2,1,1024]`; given to `connect` only. Workers must see the "
        "files of this machine",
        default="local[*]",
        aliases=("spark.master",),
    ),
    OptionSpec(
        "restart_attempts",
        Integer(minimum=0),
        "how often a job is started again after errors that may pass, before it fails; without end when not given",
        aliases=("restart-strategy.fixed-delay.attempts",),
    ),
    OptionSpec(
        "restart_delay",
        Duration(),
        "the wait before each of these starts; when not given, longer each time, from half a second to a minute",
        aliases=("restart-strategy.fixed-delay.delay",),
    ),
    OptionSpec(
        "metrics",
        Choice(("on", "off"), {"true": "on", "false": "off", "none": "off"}),
        "whether jobs count rows in `penstock.metrics`; SHOW JOBS counts what was read in any case",
        default="on",
    ),
    OptionSpec(
        "allowed_paths",
        Text(name="paths"),
        "the directories that file relations and CREATE FUNCTION may use, separated as in PATH; given to `connect` "
        "only, anywhere when not",
    ),
    OptionSpec(
        "time_zone",
        Choice(("UTC",), {"Etc/UTC": "UTC", "Z": "UTC", "GMT": "UTC"}),
        "sessions run in UTC",
        default="UTC",
        aliases=("timezone", "table.local-time-zone"),
    ),
)

# What guards the machine is not for those who are guarded against.
CONNECT_ONLY: Final = frozenset({"allowed_paths", "spark_master"})

SETTINGS: Final = (*OWN_SETTINGS, *IDLE_SETTINGS)

_TABLE: Final = KeyTable(SETTINGS)
_IDLE: Final = frozenset(spec.key for spec in IDLE_SETTINGS)
_NOWHERE: Final = Span(1, 1, 0)
_SECONDS: Final = "checkpoint_interval_seconds"


def default_settings() -> Mapping[str, object]:
    """The value of every setting before anything is set; None where there is none."""
    return _DEFAULTS


def setting_key(key: str, span: Span = _NOWHERE) -> str:
    """The canonical key of a setting, for RESET; an unknown one is UNKNOWN_SETTING."""
    return _find(key, span).key


def setting_notice(key: str, value: OptionValue | None = None) -> str | None:
    """What to tell the user of a setting: that it changes nothing here, or how a number without a unit is taken."""
    spec = _find(key, _NOWHERE)
    if spec.key in _IDLE:
        return f"setting {spec.key} changes nothing here: {spec.summary}"
    # Who writes a key of Flink's knows that it counts milliseconds.
    if value is None or key.lower() != spec.key or not isinstance(spec.kind, Duration) or not _has_no_unit(value):
        return None
    number = value.reveal().strip()
    if not number.strip("0."):
        return None
    return f"{key} = {number} means {number} milliseconds; to say so, or seconds, write '{number} ms' or '{number} s'"


def resolve_setting(
    key: str, value: OptionValue, key_span: Span = _NOWHERE, value_span: Span = _NOWHERE
) -> tuple[str, object]:
    """The canonical key and typed value of `SET key = value`.

    The value of an address with a password in it is a `Secret`.
    A setting of another system that can be left out without changing a result is accepted: `setting_notice` says so.
    """
    spec = _find(key, key_span)
    if deferred(value) is not None:
        raise OptionError(
            "INVALID_SETTING", f"setting {spec.key} takes no reference", hint="write the value out", span=value_span
        )
    if value.kind == "text" and has_malformed_reference(value.reveal()):
        raise OptionError(
            "INVALID_SETTING",
            f"the value of setting {spec.key} has a reference that cannot be read",
            hint="settings take no references; write the value out",
            span=value_span,
        )
    refuse_foreign_value(key, spec.key, value.reveal(), value_span)
    kind = spec.kind
    if isinstance(kind, Duration) and _has_no_unit(value):
        # Flink counts a bare number in milliseconds; the streaming guide's own parameter says seconds in its name.
        kind = Duration(unit="s" if key.lower() == _SECONDS else "ms", zero=kind.zero)
    try:
        typed = kind.read(value)
    except ValueError as error:
        raise OptionError(
            "INVALID_SETTING",
            f"setting {spec.key} must be {error}"
            + ("" if kind.sensitive(value.reveal()) else f", not {quoted(value)}"),
            hint=value_hint(spec, value),
            span=value_span,
        ) from None
    return spec.key, Secret(str(typed)) if kind.sensitive(typed) else typed


def _has_no_unit(value: OptionValue) -> bool:
    return value.kind == "number" or (value.kind == "text" and value.reveal().strip().isdigit())


def _find(key: str, span: Span) -> OptionSpec:
    match = _TABLE.find(key)
    if match is not None:
        return match.spec
    refuse_foreign_setting(key, span, _TABLE.suggest(key, NEARLY))
    close = _TABLE.suggest(key)
    raise OptionError(
        "UNKNOWN_SETTING",
        f"unknown setting {key}",
        hint=f"did you mean {close}?" if close else "SHOW SETTINGS lists what can be set",
        detail="known settings: " + ", ".join(spec.key for spec in OWN_SETTINGS),
        span=span,
    )


_DEFAULTS: Final = MappingProxyType({spec.key: spec.default for spec in SETTINGS})
