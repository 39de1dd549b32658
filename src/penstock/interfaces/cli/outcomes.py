"""What a statement has done, in a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan.insert_options import insert_options
from penstock.plan.shared_reads import insert_jobs
from penstock.sql import statements as s

if TYPE_CHECKING:
    from penstock.plan.script import StatementReport
    from penstock.plan.session import Session

_CREATED = (
    s.CreateRelation
    | s.CreateSink
    | s.CreateView
    | s.CreateMaterializedView
    | s.CreateFunction
    | s.CreateSecret
    | s.CreateConnection
)

_DONE = {"PAUSE": "paused", "RESUME": "resumed", "RESTART": "restarted", "STOP": "stopped", "DROP": "dropped"}


def outcome(report: StatementReport) -> str | None:
    """The line for a statement that was run; None for one whose answer speaks for itself."""
    statement = report.statement
    if isinstance(statement, _CREATED):
        return _created(statement, report)
    if isinstance(statement, s.Insert):
        count = rows_given(statement)
        if count is None:
            return f"job {', '.join(jobs_of(report))} runs"
        return f"inserted {count:,} {'row' if count == 1 else 'rows'} into {statement.target}"
    if isinstance(statement, s.StatementSet):
        jobs = jobs_of(report)
        return f"job {jobs[0]} runs" if len(jobs) == 1 else f"jobs {', '.join(jobs)} run"
    return _changed(statement)


def _created(statement: s.Statement, report: StatementReport) -> str:
    definition = report.analysis.definition if report.analysis is not None else None
    kind = definition.kind if definition is not None else report.kind.removeprefix("CREATE ").lower()
    name = definition.name if definition is not None else getattr(statement, "name", "")
    if not is_new(report):
        # The notice says whether the definition is the same.
        return f"{kind} {name} is there"
    runs = isinstance(statement, s.CreateMaterializedView | s.CreateSink) and jobs_of(report)
    return f"created {kind} {name}" + (", which runs" if runs else "")


def _changed(statement: s.Statement | None) -> str | None:
    if isinstance(statement, s.Drop):
        return f"dropped {statement.kind.lower()} {statement.name}"
    if isinstance(statement, s.Alter):
        return f"altered {statement.kind.lower()} {statement.name}"
    if isinstance(statement, s.ControlJob):
        return f"{_DONE[statement.action]} job {statement.name}"
    if isinstance(statement, s.AdvanceWatermark):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=statement.timestamp_us)
        return f"watermark of {statement.stream} moved to {moment:%Y-%m-%d %H:%M:%S}"
    if isinstance(statement, s.RetryDeadLetters):
        return "read dead letters again" + ("" if statement.job is None else f" for job {statement.job}")
    if isinstance(statement, s.SetSetting):
        return f"set {statement.key}"
    if isinstance(statement, s.ResetSetting):
        return f"reset {statement.key or 'all settings'}"
    return None


def is_new(report: StatementReport) -> bool:
    """Whether a CREATE has changed the catalog: the same definition again leaves it as it is."""
    if report.analysis is None or report.session is None:
        return True
    return report.analysis.session.catalog is not report.session.catalog


def rows_given(statement: s.Insert) -> int | None:
    """How many rows INSERT … VALUES gives; None for INSERT … SELECT."""
    tree = statement.query.tree
    return len(tree.expressions) if isinstance(tree, exp.Values) else None


def jobs_of(report: StatementReport) -> tuple[str, ...]:
    """The jobs that a statement starts."""
    statement, session = report.statement, report.session
    if isinstance(statement, s.CreateMaterializedView) or (
        isinstance(statement, s.CreateSink) and statement.query is not None
    ):
        definition = report.analysis.definition if report.analysis is not None else None
        return (definition.name.text if definition is not None else statement.name.text,)
    if session is None:
        return ()
    if isinstance(statement, s.Insert):
        return _insert_job(statement, session)
    if isinstance(statement, s.StatementSet):
        plans = report.analysis.plans if report.analysis is not None else ()
        return tuple(job.name for job in insert_jobs(statement.inserts, plans, session))
    return ()


def _insert_job(statement: s.Insert, session: Session) -> tuple[str, ...]:
    if rows_given(statement) is not None:
        return ()
    target = session.catalog.find(statement.target)
    options = insert_options(statement, session)
    return (options.job_name or f"insert_{target.name.text if target is not None else statement.target}",)
