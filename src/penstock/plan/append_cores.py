"""Subqueries that Spark runs by itself below a finish.

    SELECT w.auction, w.n
    FROM (SELECT window_start, auction, COUNT(*) AS n FROM HOP(…) GROUP BY window_start, window_end, auction) AS w
    JOIN (…the largest n of each window…) AS m ON w.window_start = m.window_start AND w.n = m.n

Spark counts the windows and adds their rows when they close; only what is made of them changes. So a subquery whose
rows are only ever added, and which keeps something of its own in Spark (a window that closes, a join within a bound,
the first row of each key) or joins a dimension, becomes a core: its rows are kept, as those of a stream are, and what
stands above it is answered by the view store. So does one that filters or computes the rows of a stream, such as a view
of the bids among all events: Spark does that, and the store keeps what is left. The outermost such subquery is taken,
but for one that stands in the statement twice: that is run once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.model import ViewDefinition
from penstock.errors import NotYetError, PenstockError
from penstock.plan.context import CoreQuery, EventTimeWantedError, PlanContext, Relation
from penstock.plan.nodes import (
    Aggregate,
    Core,
    Deduplicate,
    Filter,
    Join,
    Node,
    Output,
    Project,
    Scan,
    SessionRows,
    TopN,
    Unnest,
    WindowAssign,
    all_nodes,
)
from penstock.plan.relation import Field, Mode
from penstock.plan.scope import field_tree
from penstock.plan.spark_text import spark_sql
from penstock.plan.split_rows import split_rows
from penstock.plan.trees import aliased, column, identifier, select, subquery
from penstock.sql.format import format_tree
from penstock.sql.statements import Name

_INNER = "__core"


Bind = Callable[[PlanContext, exp.Expr], Relation]


def append_core(context: PlanContext, tree: exp.Expr, bind: Bind) -> Relation | None:
    """A subquery as a relation that Spark adds rows to; None where it is left to the view store."""
    if context.depth == 0:
        context.repeated = dict(_subqueries(context, tree))
        return None
    name, context.view = context.view, ""
    in_front, context.in_front = context.in_front, False
    tried = _tried(context, tree, bind, in_front=in_front)
    if tried is None:
        return None
    trial, relation, static = tried
    for read, columns in trial.reads.items():
        context.reads.setdefault(read, set()).update(columns)
    context.depends_on |= trial.depends_on
    context.functions |= trial.functions
    context.notices |= trial.notices
    context.warnings |= trial.warnings
    return _relation(context, relation, static, name)


def closing_core(context: PlanContext, tree: exp.Expr, bind: Bind) -> Relation | None:
    """A subquery below LATERAL, or below a subquery of an expression, that closes windows and sees nothing of the rows
    around it; None for any other."""

    def closing(trial: PlanContext, inner: exp.Expr) -> Relation:
        relation = bind(trial, inner)
        if not any(isinstance(each, Aggregate | TopN) and each.window is not None for each in all_nodes(relation.node)):
            raise NotYetError("UPDATING_SUBQUERY", "the view store answers what closes no window")
        return relation

    return append_core(context, tree, closing)


def above_core(context: PlanContext, tree: exp.Expr, bind: Bind) -> exp.Expr:
    """A query over the rows of its own FROM clause as a subquery, where Spark can run that one by itself."""
    split = split_rows(tree)
    if split is None:
        return tree
    return tree if _tried(context, split.args["from_"].this.this, bind) is None else split


def _tried(
    context: PlanContext, tree: exp.Expr, bind: Bind, *, in_front: bool = False
) -> tuple[PlanContext, Relation, frozenset[str]] | None:
    """A subquery planned for Spark alone; None where it has to change rows, or has nothing to do there."""
    if not isinstance(tree, exp.Select | exp.SetOperation) or _shares(context, tree):
        return None
    depth = max(context.depth, 1)
    trial = replace(
        context, kept=False, depth=depth, reads={}, depends_on={}, functions={}, subqueries=[], notices={}, warnings={},
        cores={},
    )  # fmt: skip
    try:
        relation = bind(trial, tree)
        forgets = context.forgets and _for_ever(relation.node)
        if (
            forgets
            or not (_keeps(relation.node, in_front=in_front) or _prepares(relation))
            or trial.subqueries
            or relation.open
            or relation.unmerged
        ):
            return None
        return trial, relation, _checked(relation)
    except PenstockError:
        return None
    except EventTimeWantedError as wanted:
        if context.assumed_event_times.get(wanted.relation) == wanted.column:
            return None  # it was given one, and takes none: a materialized view
        raise


def _subqueries(context: PlanContext, tree: exp.Expr) -> Counter[str]:
    """How often each subquery, or view, stands in the FROM clauses of a query."""
    found: Counter[str] = Counter()
    for node in tree.find_all(exp.Subquery, exp.Table):
        if isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join):
            found[format_tree(node.this)] += 1
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = Name(node.name, quoted=bool(node.this.quoted))
            if isinstance(context.catalog.find(name), ViewDefinition):
                found[node.name] += 1
    return found


def _shares(context: PlanContext, tree: exp.Expr) -> bool:
    """Whether something in a subquery stands elsewhere in the statement too: then that is what Spark runs, once."""
    times = max(context.repeated.get(format_tree(tree), 1), 1)
    return any(context.repeated.get(text, 0) > count * times for text, count in _subqueries(context, tree).items())


def _for_ever(node: Node) -> bool:
    """Whether Spark would remember every key whose first row it has let through."""
    firsts = [each for each in all_nodes(node) if isinstance(each, Deduplicate)]
    return any(each.state is not None and each.state.bound is None for each in firsts)


def _keeps(node: Node, *, in_front: bool) -> bool:
    """Whether Spark only adds rows, and does more for it than to filter and compute."""
    if node.bounded or node.mode is not Mode.APPEND:
        return False
    nodes = list(all_nodes(node))
    if any(isinstance(each, WindowAssign | Aggregate) and each.window and each.window.processing for each in nodes):
        return False  # the view store closes windows of the clock
    joins = [each for each in nodes if isinstance(each, Join)]
    if not in_front and any(_endless(join) for join in joins):
        return False  # the rows of both sides are kept anyway: the store answers that join
    return bool(joins) or any(
        isinstance(each, Aggregate | Deduplicate | SessionRows | TopN | Unnest | WindowAssign) for each in nodes
    )


def _endless(join: Join) -> bool:
    """Whether Spark keeps every row of both sides."""
    return join.strategy == "stream" and join.state is not None and join.state.bound is None


def _prepares(relation: Relation) -> bool:
    """Whether the rows of one stream are filtered or computed, and nothing else."""
    nodes = list(all_nodes(relation.node))
    if not isinstance(nodes[-1], Scan) or nodes[-1].bounded or nodes[-1].mode is not Mode.APPEND:
        return False
    if not isinstance(relation.tree, exp.Select) or not all(
        isinstance(each, Filter | Project | Scan) for each in nodes
    ):
        return False
    computes = any(not isinstance(item.unalias(), exp.Column) for item in relation.tree.expressions)
    return computes or any(isinstance(each, Filter) for each in nodes)


def _checked(relation: Relation) -> frozenset[str]:
    """The relations that the subquery joins with as a whole; an error where a job could not run it by itself."""
    from penstock.plan.job_dimensions import static_relations
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.refused import refuse

    node = relation.node
    output = Output(fields=node.fields, inputs=(node,), target=None, kind="materialized view")
    plan = LogicalPlan(output, relation.tree, None)
    refuse(plan)
    return static_relations(plan)


def _relation(context: PlanContext, relation: Relation, static: frozenset[str], name: str) -> Relation:
    visible = relation.node.visible
    shown: list[exp.Expr] = [aliased(field_tree(entry, _INNER, relation.window), entry.name) for entry in visible]
    tree = select(shown, subquery(relation.tree, _INNER))
    text = spark_sql(tree)
    fields = tuple(
        Field(entry.name, entry.type, nullable=entry.nullable, processing_time=entry.processing_time)
        for entry in visible
    )
    known = context.cores.get(text)
    if known is None:
        read = dict.fromkeys(scan.relation for scan in all_nodes(relation.node) if isinstance(scan, Scan))
        words = f"view {name}" if name else f"subquery {len(context.cores) + 1} over {' and '.join(read)}"
        node = Core(
            fields=fields,
            inputs=(relation.node,),
            bounded=True,
            relation=f"{_INNER}_{len(context.cores)}",
            words=words,
        )
        known = context.cores[text] = CoreQuery(node.relation, tree, node, words, static)
    else:
        node = replace(known.node, inputs=())
    items: list[exp.Expr] = [column(entry.name, known.relation) for entry in fields]
    table = exp.Table(this=identifier(known.relation), alias=exp.TableAlias(this=identifier(known.relation)))
    return Relation(node, select(items, table), direct=True)
