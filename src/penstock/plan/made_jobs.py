"""The jobs that a statement makes, and whether this version runs them: told by a check, before anything starts."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.model import SinkDefinition
from penstock.errors import NotYetError, PenstockError
from penstock.options import option_slot, sink_job_options
from penstock.plan.insert_options import insert_options
from penstock.plan.job_plan import plan_job
from penstock.sql import statements as s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.errors import Span
    from penstock.options.resolved import ResolvedViewOptions
    from penstock.plan.analysis import Analysis
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.session import Session

# What an INSERT reads once, as it is; of materialized views alone it follows what they become.
_AT_ONCE: Final = frozenset({"materialized view", "system table", "dimension"})


def reads_once(plan: LogicalPlan) -> bool:
    """Whether an INSERT writes what there is now, and is no job."""
    kinds = {scan.kind for scan in plan.scans()}
    return kinds <= _AT_ONCE and kinds != {"materialized view"}


def grows_by_batches(plan: LogicalPlan) -> bool:
    """Whether a result over bounded input changes until the input has ended, as a job reads it batch by batch."""
    if not plan.bounded or not any(scan.kind == "table" for scan in plan.scans()):
        return False
    with suppress(NotYetError):
        return plan_job(plan).kind in ("merge", "update")
    return False


def check_insert_options(options: ResolvedViewOptions) -> None:
    """Options of a job that are read and checked, and do nothing yet: better refused than ignored."""
    if options.state_ttl and "state_ttl" not in options.from_settings:
        raise NotYetError(
            "QUERY_NOT_YET",
            "option state_ttl of an INSERT is not there yet",
            hint="leave it out; a window bounds the state of a query, and a materialized view can have a state_ttl",
        )


def check_jobs(statement: s.Statement, analysis: Analysis, session: Session) -> None:
    """Raises where a job of the statement cannot run; what only asks about a job is answered all the same.

    `session` is the one before the statement. Of relations that nobody knows, nothing is said.
    """
    for made, plan in _jobs(statement, analysis):
        try:
            _check_options(made, analysis, session)
            if not any(scan.kind == "unknown" for scan in plan.scans()):
                plan_job(plan)
        except PenstockError as error:
            error.span = error.span or _option_span(made, plan, error)
            raise


def _jobs(statement: s.Statement, analysis: Analysis) -> Iterator[tuple[s.Statement, LogicalPlan]]:
    """The plans of a statement that become jobs, each with the statement that makes it."""
    if isinstance(statement, s.StatementSet):
        each: list[s.Statement] = list(statement.inserts)
    elif isinstance(
        statement, s.Alter | s.CreateMaterializedView | s.CreateSink | s.Insert | s.Select | s.SubscribeQuery
    ):
        each = [statement] * len(analysis.plans)
    else:
        each = []
    for made, plan in zip(each, analysis.plans if each else (), strict=True):
        ends = isinstance(made, s.Select) and plan.bounded
        values = isinstance(made, s.Insert) and isinstance(made.query.tree, exp.Values)
        if not (ends or values or (isinstance(made, s.Insert) and reads_once(plan))):
            yield made, plan


def _check_options(statement: s.Statement, analysis: Analysis, session: Session) -> None:
    if isinstance(statement, s.Insert):
        check_insert_options(insert_options(statement, session))
    elif isinstance(statement, s.CreateSink) and isinstance(analysis.definition, SinkDefinition):
        found = analysis.definition
        check_insert_options(sink_job_options(found.options, found.name, session.settings))


def _option_span(statement: s.Statement, plan: LogicalPlan, error: PenstockError) -> Span | None:
    """The value of the option that an error is about: `state_ttl` where it names it, `state` where Spark cannot."""
    if not isinstance(statement, s.CreateMaterializedView | s.CreateSink | s.Insert | s.Alter):
        return None
    wanted = "state_ttl" if "state_ttl" in error.message else "state" if plan.state == "spark" else None
    slot = option_slot(statement.options, view=not isinstance(statement, s.CreateSink))
    return next((option.value_span for option in statement.options if slot(option.key) == wanted), None)
