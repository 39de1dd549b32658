"""`state_ttl`: how long the view store keeps what nobody asks for any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from penstock.errors import NotYetError
from penstock.frozen import frozen
from penstock.plan.nodes import Finish, Node, all_nodes
from penstock.plan.relation import State
from penstock.plan.windows import duration_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.plan.job_plan import JobPlan
    from penstock.plan.logical import LogicalPlan

AnyNode = TypeVar("AnyNode", bound=Node)


@frozen
class Ttl:
    """A length of time in microseconds. `asked`: the statement itself names it, and not a setting for all."""

    length_us: int
    asked: bool


def with_ttl(
    plan: LogicalPlan, length: timedelta, kept: Callable[[], LogicalPlan | None], *, asked: bool
) -> LogicalPlan:
    """The plan of a view that keeps its state for a time only; EXPLAIN tells of it where that bounds something.

    Spark never forgets by age what it keeps of a join without a bound or of first rows: then the view store keeps the
    rows instead, by the plan that `kept` gives. That is the plan too of a join that the store only adds rows to: rows
    that are forgotten take what they made with them.
    """
    from penstock.plan.job_plan import plan_job

    ttl = Ttl(length // timedelta(microseconds=1), asked)
    if plan.pairs:
        other = kept() if asked else None
        if other is None:
            return plan
        plan = replace(other, state=plan.state)
    plan = replace(plan, ttl=ttl)
    try:
        job = plan_job(plan)
    except NotYetError:
        if plan.state == "spark":
            return plan  # told when the job is to run
        other = kept() if asked else None
        if other is None:
            raise
        plan = replace(other, ttl=ttl, state=plan.state)
        job = plan_job(plan)
    if job.ttl_us is None:
        return replace(plan, warnings=(*plan.warnings, _nothing_to_forget(plan))) if asked else plan
    root = _bounded(plan.root, duration_words(job.ttl_us), job.finish.keeps if job.finish is not None else None)
    unbounded = any(node.state is not None and node.state.bound is None for node in all_nodes(root))
    warnings = plan.warnings if unbounded else tuple(text for text in plan.warnings if "grows for ever" not in text)
    return replace(plan, root=root, warnings=warnings)


def _bounded(node: AnyNode, words: str, keeps: str | None) -> AnyNode:
    """The operators with what bounds the uppermost state, which is the view store's; what is below is Spark's. `keeps`:
    what the store keeps to answer the query, where that is another thing with a time to live."""
    if isinstance(node, Finish) and node.state is None and keeps:  # rows of views, which are kept for their times
        return replace(
            node, state=State(keeps, f"what follows from a row is forgotten {words} after it came (state_ttl)")
        )
    if node.state is None:
        return replace(node, inputs=tuple(_bounded(below, words, keeps) for below in node.inputs))
    if isinstance(node, Finish):
        forgotten = f"a row is forgotten {words} after its batch (state_ttl)"
        bound = forgotten if node.state.bound is None else f"{node.state.bound}; {forgotten}"
        return replace(node, state=State(keeps or node.state.keeps, bound))
    if node.state.bound is not None:
        return node
    bound = f"a group is forgotten when no row came for it for {words} (state_ttl)"
    return replace(node, state=State(keeps or node.state.keeps, bound))


def _nothing_to_forget(plan: LogicalPlan) -> str:
    """A notice: the option is asked for, and does nothing."""
    if any(node.state is not None for node in plan.nodes()):
        return "state_ttl has no effect here: what is kept has a bound of its own, in the line state of EXPLAIN"
    return (
        "state_ttl has no effect here: nothing is kept between batches, and the rows of the view itself stay; "
        "WHERE ts > mz_now() - INTERVAL '30 days' in its query bounds them, and changelog_retention its changes"
    )


def _of_spark(node: Node) -> bool:
    """Whether Spark keeps something for ever below what the view store keeps."""
    if node.state is None and not isinstance(node, Finish):
        return any(_of_spark(below) for below in node.inputs)
    below = [each for inner in node.inputs for each in all_nodes(inner)]
    return any(each.state is not None and each.state.bound is None for each in below)


def job_with_ttl(plan: LogicalPlan, job: JobPlan) -> JobPlan:
    """The job, with the time for which the view store keeps its state; refused where it would not hold."""
    if plan.ttl is None:
        return job
    if job.kind in ("merge", "finish") and job.scans and not (plan.ttl.asked and _of_spark(plan.root)):
        return replace(job, ttl_us=plan.ttl.length_us)
    if not plan.ttl.asked:
        return job
    if job.of_views:
        forgets = job.finish is not None and job.finish.forgets
        return replace(job, ttl_us=plan.ttl.length_us) if forgets else job
    if any(node.state is not None and node.state.bound is None for node in plan.nodes()):
        hint = (
            "leave state = 'spark' out"
            if plan.state == "spark"
            else "bound it with a window or event times, or give DISTINCT ON an ORDER BY of a column"
        )
        raise _not_yet("over state that Spark keeps", hint)
    return job


def _not_yet(where: str, hint: str) -> NotYetError:
    return NotYetError("QUERY_NOT_YET", f"option state_ttl {where} is not there yet", hint=hint)
