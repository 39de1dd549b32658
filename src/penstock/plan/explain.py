"""EXPLAIN: a plan as a tree to read, and as JSON for tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import NotYetError
from penstock.plan.nodes import Aggregate, Join, Node, Project, WindowAssign, describe_event_time
from penstock.plan.relation import Mode
from penstock.plan.scan_columns import Reads, source_reads
from penstock.plan.shared_reads import insert_jobs
from penstock.plan.shown_changes import shown_modes, unbounded_scans
from penstock.sql import statements as s

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog
    from penstock.plan.job_plan import JobPlan
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.script import StatementReport

_MODES = {
    Mode.APPEND: "append: rows are only added",
    Mode.UPSERT: "upsert: a later row replaces the earlier one with the same key",
    Mode.RETRACT: "retract: rows are taken back one by one",
}


def explain_text(report: StatementReport) -> str:
    """The plans of a statement as trees, with change mode, event time, state and warnings."""
    if report.analysis is None or not report.analysis.plans:
        return f"{report.kind}: nothing to plan"
    catalog = report.analysis.session.catalog
    return "\n\n".join([*(plan_text(plan, catalog) for plan in report.analysis.plans), *_shared(report)])


def _shared(report: StatementReport) -> list[str]:
    """Which INSERTs of a statement set are one job."""
    statement, analysis = report.statement, report.analysis
    if isinstance(statement, s.Explain):
        statement = statement.statement
    if not isinstance(statement, s.StatementSet) or analysis is None or analysis.session.lenient:
        return []
    lines = []
    for job in insert_jobs(statement.inserts, analysis.plans, analysis.session):
        if len(job.places) > 1:
            targets = ", ".join(statement.inserts[place].target.text for place in job.places)
            stream = analysis.plans[job.places[0]].scans()[0].relation
            lines.append(f"one job     {job.name} reads {stream} once for {targets}")
    return ["\n".join(lines)] if lines else []


def plan_text(plan: LogicalPlan, catalog: Catalog | None = None) -> str:
    """One plan as a tree.

    The first line is the output; below it stand the operators down to the sources, each with what it remembers.
    What is fetched from sources beside the columns that the query names stands in their definitions, in `catalog`.
    """
    job = _job(plan)
    plan = _as_run(plan, job)
    lines: list[str] = []
    _tree(plan.root, "", "", lines)
    lines.append("")
    lines.append(f"changes     {_MODES[plan.mode]}{_key(plan)}")
    lines.append(f"runs        {'once, over bounded input' if plan.bounded else 'continuously, until it is stopped'}")
    lines += [f"engine      {_engine(job)}"] if job is not None else []
    times = (
        f"event time  {scan.relation}.{describe_event_time(scan.event_time)}"
        for scan in unbounded_scans(plan)
        if scan.event_time is not None
    )
    lines += dict.fromkeys(times)
    reads = _reads(plan, job, catalog)
    lines += [f"reads       {relation} ({', '.join(columns)})" for relation, columns in reads.items() if columns]
    lines += [f"functions   in Python: {', '.join(plan.functions)}"] if plan.functions else []
    lines += [f"functions   in their places: {', '.join(plan.in_place)}"] if plan.in_place else []
    lines.append(f"columns     {_columns(plan)}")
    lines += [f"state       {state}" for state in _states(plan)]
    lines += [f"note        {text}" for text in plan.warnings]
    return "\n".join(lines)


def _job(plan: LogicalPlan) -> JobPlan | NotYetError | None:
    """The job of a query, or why there is none for it yet; None where none is needed."""
    from penstock.plan.job_plan import plan_job

    if plan.root.kind == "view" or (plan.root.kind == "result" and plan.bounded):
        return None
    if any(scan.kind == "unknown" for scan in plan.scans()):
        return None
    try:
        return plan_job(plan)
    except NotYetError as error:
        return error


def _as_run(plan: LogicalPlan, job: JobPlan | NotYetError | None) -> LogicalPlan:
    """The plan with the joins that its job has, or the operators that it has in their place."""
    from penstock.plan.best_nodes import without_join
    from penstock.plan.joined_nodes import joined_by_store

    if job is None or isinstance(job, NotYetError) or job.merge is None:
        return plan
    if job.joined is not None:
        return joined_by_store(plan)
    return plan if job.merge.best is None else without_join(plan)


def _engine(job: JobPlan | NotYetError | None) -> str | None:
    """Which engine does what in a job."""
    return f"not run yet: {job.message}" if isinstance(job, NotYetError) else None if job is None else job.how


def _reads(plan: LogicalPlan, job: JobPlan | NotYetError | None, catalog: Catalog | None) -> Reads:
    """The columns that are fetched of each relation; of a job that cannot run, those that the query names."""
    if catalog is None or isinstance(job, NotYetError):
        return dict(plan.reads)
    return source_reads(plan, job, catalog)


def _key(plan: LogicalPlan) -> str:
    if plan.mode is not Mode.UPSERT:
        return ""
    return f"; key ({', '.join(plan.root.key or ())})" if plan.root.key else "; one row"


def _columns(plan: LogicalPlan) -> str:
    return ", ".join(f"{field.name} {field.type or '?'}" for field in plan.columns)


def _states(plan: LogicalPlan) -> list[str]:
    found = []
    for node in plan.nodes():
        if node.state is not None:
            bound = node.state.bound or "nothing bounds it: it grows for ever"
            found.append(f"{node.label}: {node.state.keeps}; {bound}")
    return found or ["none"]


def _tree(node: Node, first: str, rest: str, lines: list[str]) -> None:
    details = ", ".join(f"{name} {value}" if name not in _BARE else value for name, value in node.details().items())
    lines.append(f"{first}{node.label}{'  ' + details if details else ''}{_flags(node)}")
    last = len(node.inputs) - 1
    for position, inner in enumerate(node.inputs):
        end = position == last
        _tree(inner, rest + ("└─ " if end else "├─ "), rest + ("   " if end else "│  "), lines)


# Details whose value says what it is.
_BARE = frozenset({"relation", "name", "columns", "condition", "expression", "operator"})


def _flags(node: Node) -> str:
    flags = []
    if node.stateful:
        flags.append("stateful")
    if node.broadcast:
        flags.append("broadcast")
    if node.shuffles:
        flags.append("shuffle")
    return f"  [{', '.join(flags)}]" if flags else ""


def explain_json(report: StatementReport) -> dict[str, Any]:
    """The plans of a statement for tools: operators with `is_stateful`, `is_broadcast` and `requires_shuffle`."""
    found = report.analysis
    plans = [] if found is None else [plan_json(plan, found.session.catalog) for plan in found.plans]
    return {
        "kind": report.kind,
        "mode": report.mode,
        "plans": plans,
        "notices": list(report.notices),
    }


def plan_json(plan: LogicalPlan, catalog: Catalog | None = None) -> dict[str, Any]:
    """One plan as plain values."""
    job = _job(plan)
    plan = _as_run(plan, job)
    numbers = {id(node): number for number, node in enumerate(plan.nodes())}
    modes = shown_modes(plan.root)
    operators = [_operator(node, numbers, modes[id(node)]) for node in plan.nodes()]
    nodes = list(plan.nodes())
    return {
        "output": {"name": plan.root.target, "kind": plan.root.kind, "connector": plan.root.connector},
        "mode": plan.mode.value,
        "key": list(plan.root.key) if plan.root.key is not None else None,
        "bounded": plan.bounded,
        "job": _engine(job),
        "emit": plan.emit.value.lower() if plan.emit is not None else None,
        "columns": [_field(field) for field in plan.columns],
        "reads": {relation: list(columns) for relation, columns in _reads(plan, job, catalog).items()},
        "functions": list(plan.functions),
        "operators": operators,
        "summary": {
            "sources": len(unbounded_scans(plan)),
            "windows": sum(1 for node in nodes if _windowed(node)),
            "stateful": sum(1 for node in nodes if node.stateful),
            "dimensions": sum(1 for node in nodes if isinstance(node, Join) and node.broadcast),
            "operators": len(nodes),
            "outputs": 1,
        },
        "warnings": list(plan.warnings),
    }


def _windowed(node: Node) -> bool:
    return isinstance(node, WindowAssign) or (
        isinstance(node, Aggregate) and node.window is not None and not _below(node)
    )


def _below(node: Node) -> bool:
    """Whether the window of an aggregate is assigned by an operator of its own below it."""
    inner = node.inputs[0]
    while isinstance(inner, Project) or (not isinstance(inner, WindowAssign) and len(inner.inputs) == 1):
        inner = inner.inputs[0]
    return isinstance(inner, WindowAssign)


def _operator(node: Node, numbers: dict[int, int], mode: Mode | None) -> dict[str, Any]:
    return {
        "id": numbers[id(node)],
        "name": node.label,
        "details": node.details(),
        "inputs": [numbers[id(inner)] for inner in node.inputs],
        "mode": mode.value if mode is not None else None,
        "is_stateful": node.stateful,
        "is_broadcast": node.broadcast,
        "requires_shuffle": node.shuffles,
        "state": {"keeps": node.state.keeps, "bound": node.state.bound} if node.state is not None else None,
        "event_time": describe_event_time(node.event_time) if node.event_time is not None else None,
        "columns": [_field(field) for field in node.visible],
    }


def _field(field: Any) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": str(field.type) if field.type is not None else None,
        "nullable": field.nullable,
        "event_time": field.event_time,
    }
