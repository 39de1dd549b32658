"""Settings of other systems: those that change nothing here, and those that are not there yet."""

from __future__ import annotations

import re
from typing import Final

from penstock.errors import NotYetError, Span
from penstock.options.keys import normalise
from penstock.options.schema import OptionSpec
from penstock.options.values import Boolean, Choice, Duration, Integer, Text

_BATCHES: Final = "rows are always taken in batches"
_DISPLAY: Final = "it is about how a client shows results"
_OPTIMIZER: Final = "it is advice to an optimizer, and Spark has its own"
_UNALIGNED: Final = "execution.checkpointing.unaligned.enabled"
_CHECKPOINTS: Final = "every batch is durable, and checkpoint_interval says how often state is written out whole"

IDLE_SETTINGS: Final = (
    OptionSpec(
        "execution.runtime-mode", Choice(("streaming",)), "every query over a stream goes on until it is stopped"
    ),
    OptionSpec("pipeline.name", Text(), "name a job with the option job_name of INSERT and CREATE SINK"),
    OptionSpec("pipeline.object-reuse", Boolean(), _OPTIMIZER),
    OptionSpec("pipeline.operator-chaining", Boolean(), _OPTIMIZER, aliases=("pipeline.operator-chaining.enabled",)),
    OptionSpec("sql-client.execution.result-mode", Choice(("table", "changelog", "tableau")), _DISPLAY),
    OptionSpec("sql-client.execution.max-table-result.rows", Integer(), _DISPLAY),
    OptionSpec("sql-client.display.max-column-width", Integer(), _DISPLAY, aliases=("table.display.max-column-width",)),
    OptionSpec("sql-client.display.print-time-cost", Boolean(), _DISPLAY),
    OptionSpec("sql-client.display.color-schema", Text(), _DISPLAY),
    OptionSpec("sql-client.verbose", Boolean(), _DISPLAY),
    OptionSpec("table.exec.mini-batch.enabled", Boolean(), _BATCHES),
    OptionSpec("table.exec.mini-batch.allow-latency", Duration(zero=True), _BATCHES),
    OptionSpec("table.exec.mini-batch.size", Integer(), _BATCHES),
    OptionSpec("table.optimizer.agg-phase-strategy", Choice(("auto", "two_phase", "one_phase")), _OPTIMIZER),
    OptionSpec("table.optimizer.distinct-agg.split.enabled", Boolean(), _OPTIMIZER),
    OptionSpec("table.optimizer.distinct-agg.split.bucket-num", Integer(), _OPTIMIZER),
    OptionSpec("table.optimizer.join-reorder-enabled", Boolean(), _OPTIMIZER),
    OptionSpec("table.optimizer.reuse-source-enabled", Boolean(), _OPTIMIZER),
    OptionSpec("table.optimizer.reuse-sub-plan-enabled", Boolean(), _OPTIMIZER),
    OptionSpec("execution.checkpointing.mode", Choice(("exactly_once", "at_least_once")), _CHECKPOINTS),
    OptionSpec("execution.checkpointing.min-pause", Duration(zero=True), _CHECKPOINTS),
    OptionSpec("execution.checkpointing.timeout", Duration(), _CHECKPOINTS),
    OptionSpec("execution.checkpointing.unaligned", Boolean(), _CHECKPOINTS, aliases=(_UNALIGNED,)),
    OptionSpec("execution.checkpointing.max-concurrent-checkpoints", Integer(), _CHECKPOINTS),
    OptionSpec("state.backend.incremental", Boolean(), _CHECKPOINTS),
    OptionSpec("background_ddl", Boolean(), "whether CREATE waits for a view is not to be chosen"),
    OptionSpec("rw_implicit_flush", Boolean(), "INSERT has no flush of its own"),
    OptionSpec("rw_enable_two_phase_agg", Boolean(), _OPTIMIZER),
    OptionSpec("rw_force_two_phase_agg", Boolean(), _OPTIMIZER),
    OptionSpec("rw_enable_join_ordering", Boolean(), _OPTIMIZER),
    OptionSpec("streaming_use_arrangement_backfill", Boolean(), _OPTIMIZER),
    OptionSpec("streaming_use_shared_source", Boolean(), _OPTIMIZER),
    OptionSpec("application_name", Text(empty=True), "connections have no names"),
    OptionSpec("client_min_messages", Text(), _DISPLAY),
)
# Whole families of keys where a system has many; the families are narrow, so that what nobody knows stays unknown.
_FLINK: Final = """
    execution.checkpointing. execution.savepoint. execution.state-recovery. execution.batch. execution.attached
    execution.target execution.buffer-timeout execution.buffer-timeout. pipeline. table.exec. table.plan.
    table.dml-sync table.builtin-catalog-name table.builtin-database-name table.rtas-ctas.
    table.column-expansion-strategy table.resources.download-dir table.generated-code.max-length
    state.backend. state.checkpoints. state.savepoints. state.checkpoint-storage restart-strategy restart-strategy.
    sql-client. table.display. table.optimizer. taskmanager. jobmanager. cluster. rest. metrics. yarn. kubernetes.
    high-availability.
"""
_RISINGWAVE: Final = """
    streaming_rate_limit backfill_rate_limit source_rate_limit sink_rate_limit dml_rate_limit streaming_max_parallelism
    streaming_parallelism_for_ streaming_enable_delta_join streaming_enable_bushy_join streaming_enable_unaligned_join
    streaming_over_window_cache_policy sink_decouple query_mode query_epoch visibility_mode transaction_isolation
    search_path statement_timeout batch_parallelism rw_batch_enable_lookup_join rw_batch_enable_sort_agg
    rw_enable_share_plan rw_streaming_over_window_cache_policy
"""
NOT_YET_SETTINGS: Final = {
    **dict.fromkeys(_FLINK.split(), "Flink"),
    **dict.fromkeys(_RISINGWAVE.split(), "RisingWave"),
}
_RATES: Final = "limit a batch with the option max_rows_per_batch"
_ZONE: Final = re.compile(
    r"(?:[A-Z][A-Za-z_]+/[A-Za-z_/+0-9-]+|(?:UTC|GMT)?[+-][0-9:]{1,6}|[A-Z]{3,4}|local)", re.ASCII
)


def refuse_foreign_value(key: str, name: str, value: str, span: Span) -> None:
    """CLAUSE_NOT_YET for what a setting can be elsewhere and not yet here."""
    wanted = normalise(value)
    if name == "execution.runtime-mode" and wanted in ("batch", "automatic"):
        hint = "leave it out; a query over relations that end, ends by itself"
    elif name == "time_zone" and wanted not in ("utc", "etc/utc", "z", "gmt") and _ZONE.fullmatch(value.strip()):
        hint = "sessions run in UTC; turn single times with AT TIME ZONE"
    else:
        return
    raise NotYetError("CLAUSE_NOT_YET", f"setting {key} cannot have this value yet", hint=hint, span=span)


def refuse_foreign_setting(key: str, span: Span, meant: str | None) -> None:
    """CLAUSE_NOT_YET for a setting that another system knows, unless it is one of ours with a slip of the pen."""
    system = _system(key)
    if system is None or meant is not None:
        return
    hint = _RATES if "rate_limit" in normalise(key) else "leave it out; SHOW SETTINGS lists what can be set"
    raise NotYetError("CLAUSE_NOT_YET", f"setting {key} of {system} is not there yet", hint=hint, span=span)


def _system(key: str) -> str | None:
    wanted = normalise(key)
    for known, found in NOT_YET_SETTINGS.items():
        if "." in known and "." not in key:
            # state_size is nobody's setting, state.size could be Flink's.
            continue
        start = normalise(known)
        if wanted == start or (start.endswith("_") and wanted.startswith(start)):
            return found
    return None
