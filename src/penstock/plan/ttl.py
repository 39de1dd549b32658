"""`state_ttl`: how long the view store keeps what nobody asks for any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.nodes import Finish, Node
from penstock.plan.relation import State
from penstock.plan.windows import duration_words

if TYPE_CHECKING:
    from penstock.plan.job_plan import JobPlan
    from penstock.plan.logical import LogicalPlan

AnyNode = TypeVar("AnyNode", bound=Node)


@frozen
class Ttl:
    """A length of time in microseconds. `asked`: the statement itself names it, and not a setting for all."""

    length_us: int
    asked: bool


def with_ttl(plan: LogicalPlan, length: timedelta, *, asked: bool) -> LogicalPlan:
    """The plan of a view that keeps its state for a time only; EXPLAIN tells of it where that bounds something."""
    from penstock.plan.job_plan import plan_job

    plan = replace(plan, ttl=Ttl(length // timedelta(microseconds=1), asked))
    try:
        job = plan_job(plan)
    except NotYetError:
        return plan  # told when the job is to run
    if job.ttl_us is None:
        return plan
    warnings = tuple(text for text in plan.warnings if "grows for ever" not in text)
    return replace(plan, root=_bounded(plan.root, duration_words(job.ttl_us)), warnings=warnings)


def _bounded(node: AnyNode, words: str) -> AnyNode:
    found = replace(node, inputs=tuple(_bounded(below, words) for below in node.inputs))
    if node.state is None or node.state.bound is not None:
        return found
    bound = (
        f"a row is forgotten {words} after its batch (state_ttl)"
        if isinstance(node, Finish)
        else f"a group is forgotten when no row came for it for {words} (state_ttl)"
    )
    return replace(found, state=State(node.state.keeps, bound))


def job_with_ttl(plan: LogicalPlan, job: JobPlan) -> JobPlan:
    """The job, with the time for which the view store keeps its state; refused where it would not hold."""
    if plan.ttl is None:
        return job
    if job.kind in ("merge", "finish") and job.scans:
        return replace(job, ttl_us=plan.ttl.length_us)
    if not plan.ttl.asked:
        return job
    if job.of_views:
        raise _not_yet("of a view over views", f"set it on what is below: {', '.join(job.views)}")
    if any(node.state is not None and node.state.bound is None for node in plan.nodes()):
        raise _not_yet("over state that Spark keeps", "leave state = 'spark' out, or bound the query with a window")
    return job


def _not_yet(where: str, hint: str) -> NotYetError:
    return NotYetError("QUERY_NOT_YET", f"option state_ttl {where} is not there yet", hint=hint)
