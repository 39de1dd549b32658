"""Settings of other systems: those that change nothing here, and those that are not there yet."""

from __future__ import annotations

import re
from typing import Final

from penstock.errors import NotYetError, OptionError, Span
from penstock.frozen import frozen
from penstock.options.keys import normalise

_BATCHES: Final = "rows are always taken in batches"
_DISPLAY: Final = "it is about how a client shows results"
_OPTIMIZER: Final = "it is advice to an optimizer, and Spark has its own"
_CHECKPOINTS: Final = "every batch is durable, and checkpoint_interval says how often state is written out whole"

# A key that ends with a dot stands for all that begin with it.
IDLE_SETTINGS: Final = {
    "execution.runtime-mode": "every query over a stream goes on until it is stopped",
    "pipeline.name": "name a job with the option job_name of INSERT and CREATE SINK",
    "sql-client.": _DISPLAY,
    "table.display.": _DISPLAY,
    "table.exec.mini-batch.": _BATCHES,
    "table.optimizer.": _OPTIMIZER,
    "execution.checkpointing.mode": _CHECKPOINTS,
    "execution.checkpointing.min-pause": _CHECKPOINTS,
    "execution.checkpointing.timeout": _CHECKPOINTS,
    "execution.checkpointing.unaligned": _CHECKPOINTS,
    "execution.checkpointing.max-concurrent-checkpoints": _CHECKPOINTS,
    "state.backend.incremental": _CHECKPOINTS,
    "pipeline.object-reuse": "rows are never handed on as objects",
    "pipeline.operator-chaining": _OPTIMIZER,
    "pipeline.operator-chaining.enabled": _OPTIMIZER,
    "background_ddl": "whether CREATE waits for a view is not to be chosen",
    "rw_enable_two_phase_agg": _OPTIMIZER,
    "rw_force_two_phase_agg": _OPTIMIZER,
    "rw_enable_join_ordering": _OPTIMIZER,
    "rw_implicit_flush": "INSERT has no flush of its own",
    "streaming_use_arrangement_backfill": _OPTIMIZER,
    "streaming_use_shared_source": _OPTIMIZER,
    "application_name": "connections have no names",
    "client_min_messages": _DISPLAY,
}
# Whole families of keys where a system has many; the families are narrow, so that what nobody knows stays unknown.
_FLINK: Final = """
    execution.checkpointing. execution.savepoint. execution.state-recovery. execution.batch. execution.attached
    execution.target execution.buffer-timeout execution.buffer-timeout. pipeline. table.exec. table.plan.
    table.dml-sync table.builtin-catalog-name table.builtin-database-name table.rtas-ctas.
    table.column-expansion-strategy table.resources.download-dir table.generated-code.max-length
    state.backend. state.checkpoints. state.savepoints. state.checkpoint-storage restart-strategy restart-strategy.
    taskmanager. jobmanager. cluster. rest. metrics. yarn.
    kubernetes. high-availability.
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


@frozen
class Idle:
    """A setting that is accepted and changes nothing: its key, and why it can be left out."""

    key: str
    reason: str


def idle_setting(key: str) -> Idle | None:
    """What is known of a setting that changes nothing here; None for every other."""
    reason = _lookup(key, IDLE_SETTINGS)
    return Idle(key.strip().lower(), reason) if reason else None


def refuse_foreign_value(key: str, name: str, value: str, span: Span) -> None:
    """CLAUSE_NOT_YET for what a setting can be elsewhere and not yet here."""
    wanted = normalise(value)
    if normalise(name) == "execution_runtime_mode" and wanted not in ("streaming", "batch", "automatic"):
        raise OptionError("INVALID_SETTING", f"setting {key} must be 'streaming'", hint="leave it out", span=span)
    if normalise(name) == "execution_runtime_mode" and wanted != "streaming":
        hint = "leave it out; a query over relations that end, ends by itself"
    elif name == "time_zone" and wanted not in ("utc", "etc/utc", "z", "gmt") and _ZONE.fullmatch(value.strip()):
        hint = "sessions run in UTC; turn single times with AT TIME ZONE"
    else:
        return
    raise NotYetError("CLAUSE_NOT_YET", f"setting {key} cannot have this value yet", hint=hint, span=span)


def refuse_foreign_setting(key: str, span: Span, meant: str | None) -> None:
    """CLAUSE_NOT_YET for a setting that another system knows, unless it is one of ours with a slip of the pen."""
    system = _lookup(key, NOT_YET_SETTINGS)
    if system is None or meant is not None:
        return
    hint = _RATES if "rate_limit" in normalise(key) else "leave it out; SHOW SETTINGS lists what can be set"
    raise NotYetError("CLAUSE_NOT_YET", f"setting {key} of {system} is not there yet", hint=hint, span=span)


def _lookup(key: str, table: dict[str, str]) -> str | None:
    wanted = normalise(key)
    for known, found in table.items():
        if "." in known and "." not in key:
            # state_size is nobody's setting, state.size could be Flink's.
            continue
        start = normalise(known)
        if wanted == start or (start.endswith("_") and wanted.startswith(start)):
            return found
    return None
