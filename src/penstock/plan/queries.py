"""From the query of a statement to a logical plan with an output on top."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from sqlglot import exp

from penstock.catalog.model import SourceDefinition, ViewDefinition
from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.frozen import frozen
from penstock.plan.added_pairs import joins_for_ever
from penstock.plan.context import PlanContext, Relation
from penstock.plan.emission import check_emission, note_emission
from penstock.plan.finishing import NotFinishableError, finished, with_finish
from penstock.plan.first_rows import ordered_by_arrival
from penstock.plan.inlining import checked_inlined
from penstock.plan.job_plan import plan_job
from penstock.plan.joined_panes import closes_together
from penstock.plan.logical import LogicalPlan
from penstock.plan.nodes import Aggregate, Limit, Output, Scan, TopN, all_nodes
from penstock.plan.processing import over_processing_time, processing_of
from penstock.plan.query import bind_query, plan_query
from penstock.plan.refused import refuse
from penstock.plan.relation import Field, Mode
from penstock.plan.rules.with_ties import with_ties
from penstock.plan.scans import renamed
from penstock.plan.store_terms import DiffersError
from penstock.plan.timed_exists import timed_exists
from penstock.plan.trees import column, select, subquery
from penstock.plan.view_rows import cannot_read
from penstock.plan.why_not import Reason, why_not
from penstock.sql.spans import span_of
from penstock.sql.statements import Emit, Name, Query

if TYPE_CHECKING:
    from penstock.plan.session import Session

# The conditions of queries whose answer changes as rows come.
_UPDATING: Final = ("UPDATING_", "CLAUSE_NOT_YET", "VERSIONED_JOIN")
_ELSEWHERE: Final = "compute it from the columns of one stream, or in the query that reads the view"
OutputKind = Literal["view", "materialized view", "sink", "topic", "result"]


def plan_output(
    session: Session,
    query: Query,
    kind: OutputKind,
    *,
    target: str | None = None,
    connector: str | None = None,
    names: tuple[Name, ...] = (),
    by_position: bool = False,
    state: str | None = None,
) -> LogicalPlan:
    """The plan of a query that goes to a view, a sink or the user; `by_position`: the target has names of its own,
    `state`: 'spark' where Spark is asked to keep its state.

    A query that Spark cannot keep up to date by itself is planned over all rows so far, for the view store to answer.
    """

    def chosen(query: Query) -> LogicalPlan:
        return _chosen(_Asked(session, query, kind, target, connector, names, by_position, state))

    plan = timed_exists(query, session.catalog, chosen) or chosen(query)
    check_emission(plan, query)
    return plan


def kept_output(session: Session, query: Query, target: str, names: tuple[Name, ...]) -> LogicalPlan | None:
    """The plan of a materialized view whose rows the view store keeps, also where Spark could keep them; None where it
    cannot."""
    query = replace(query, tree=ordered_by_arrival(query.tree))
    asked = _Asked(session, query, "materialized view", target, None, names, by_position=False, forgets=True)
    with suppress(NotYetError):
        return asked.kept_plan()
    return None


def _chosen(asked: _Asked) -> LogicalPlan:
    session, kind = asked.session, asked.kind
    try:
        plan = asked.plan(kept=False)
    except NotYetError as error:
        if not error.condition.startswith(_UPDATING):
            raise
        reasons: list[Reason] = []
        other = _answered(asked, reasons)
        if other is None:
            raise why_not(error, reasons, asked.query.tree, stored=asked.kind == "materialized view") from None
        return other
    if kind == "view" or session.lenient or (plan.bounded and not _is_job(plan)):
        return plan
    if kind == "result" and any(isinstance(node, Limit) and not node.bounded for node in plan.nodes()):
        return plan  # it ends with the last of its rows
    try:
        refuse(plan)
        timed = over_processing_time(plan)
        if timed is not None:
            processing_of(plan, timed)
        if asked.state != "spark" and plan.mode is not Mode.APPEND:
            plan_job(plan)  # an aggregate that neither the store merges nor Spark keeps is told here
    except NotYetError:
        return _otherwise(asked, plan) or plan
    return _adding_pairs(asked, plan) or plan


def _adding_pairs(asked: _Asked, plan: LogicalPlan) -> LogicalPlan | None:
    """The plan for the view store of a join that Spark would keep every row of: the store is several times as fast.
    None where it would do more than to add rows, or has to ask Spark while it does."""
    if asked.kind != "materialized view" or asked.state == "spark" or not joins_for_ever(plan):
        return None
    if closes_together(plan):
        return replace(plan, warnings=tuple(text for text in plan.warnings if "for ever" not in text))
    found = asked.kept_plan(pairs=True)
    return None if found is None else _with_event_time(found, plan)


def _is_job(plan: LogicalPlan) -> bool:
    """Whether bounded input is read by a job, batch by batch: for a view, and for a sink from a table over a source."""
    return plan.root.kind == "materialized view" or (
        plan.root.kind != "result" and any(scan.kind == "table" for scan in plan.scans())
    )


def _otherwise(asked: _Asked, plan: LogicalPlan) -> LogicalPlan | None:
    """Another plan for a query that Spark does not run as it is planned."""
    refused: NotYetError | None = None
    try:
        if (found := asked.kept_plan()) is not None:
            return _with_event_time(found, plan)
    except NotYetError as error:
        refused = error
    if any(scan.kind == "materialized view" for scan in plan.scans()):
        with suppress(NotYetError):
            found = asked.inlined_plan()
            closes = any(isinstance(node, Aggregate | TopN) and node.window is not None for node in plan.nodes())
            if found is not None or (closes and asked.query.emit is None):
                return found  # its windows close, if only the streams below could be read again
    found = asked.open_plan()
    if found is None and refused is not None and asked.query.emit is None:
        raise refused
    return found


def _with_event_time(plan: LogicalPlan, streamed: LogicalPlan) -> LogicalPlan:
    """The plan of rows that are only added, with the event time that they have where Spark would read them."""
    if plan.mode is not Mode.APPEND or streamed.mode is not Mode.APPEND:
        return plan
    return replace(plan, root=replace(plan.root, event_time=streamed.root.event_time))


def _answered(asked: _Asked, reasons: list[Reason]) -> LogicalPlan | None:
    """A query whose answer changes, for the view store; with windows that close below it, where there are any."""
    try:
        found = asked.kept_plan(reasons)
    except NotYetError:
        found = asked.open_plan(reasons)
        if found is None:
            raise
        return found
    return found or asked.open_plan(reasons)


@frozen
class _Way:
    """How a query is planned; see PlanContext."""

    kept: bool
    inlined: bool
    open_windows: bool
    in_spark: bool
    forgets: bool


@frozen
class _Asked:
    """A query with where it goes, to be planned in one way or the other."""

    session: Session
    query: Query
    kind: OutputKind
    target: str | None
    connector: str | None
    names: tuple[Name, ...]
    by_position: bool
    state: str | None = None
    forgets: bool = False

    def plan(self, *, kept: bool, inlined: bool = False, open_windows: bool = False) -> LogicalPlan:
        """The plan; `kept`: over the whole of what has come so far, `inlined`: with the queries of views in their
        places, `open_windows`: with windows that show each change, as they never close."""
        session, query, kind = self.session, self.query, self.kind
        # A bare query over views and tables is answered at once, from what they hold now; only if it reads a stream is
        # it a job. A view keeps both readings open: it is inlined where it is used.
        continuous = kind not in ("result", "view") or _reads_stream(session, query.tree)
        if isinstance(query.tree.args.get("limit"), exp.Fetch):
            tree = with_ties(query.tree.copy())
            assert isinstance(tree, exp.Query)
            query = replace(query, tree=_unordered(tree) if continuous else tree)
        stored = (kind != "result" or kept) and not self.by_position  # under the names of its columns
        unordered = kind not in ("result", "view") and _order_tells_nothing(query.tree)
        if unordered:
            query = replace(query, tree=_unordered(query.tree))
        way = _Way(kept, inlined, open_windows, in_spark=self.state == "spark" and not kept, forgets=self.forgets)
        relation, context = _plan(session, query, way, continuous=continuous, stored=stored)
        if self.names:
            relation = _renamed(relation, self.names)
        relation = _visible(relation)
        node = relation.node
        root = Output(
            fields=node.fields,
            inputs=(node,),
            mode=node.mode,
            key=node.key,
            event_time=node.event_time,
            bounded=node.bounded,
            target=self.target,
            kind=kind,
            connector=self.connector,
        )
        warnings = list(context.warnings)
        if unordered:
            warnings.append("rows that are stored have no order: ORDER BY is left out, order them when you read them")
        warnings += [
            f"state grows for ever: {inner.state.keeps}; bound it with state_ttl or a window"
            for inner in all_nodes(root)
            if inner.state is not None and inner.state.bound is None and "group" in inner.state.keeps
        ]
        return LogicalPlan(
            root,
            relation.tree,
            query.emit,
            (*context.notices, *warnings),
            tuple(context.depends_on),
            tuple(context.functions),
            _reads(root, context),
            tuple(context.subqueries),
            kept=kept,
            cores=tuple(context.cores.values()),
            in_place=tuple(context.in_place),
            state=self.state,
        )

    def kept_plan(self, reasons: list[Reason] | None = None, *, pairs: bool = False) -> LogicalPlan | None:
        """The plan for the view store to answer; None where it cannot, or nobody keeps its rows.

        `reasons` takes why it cannot, and what to write instead. `pairs`: where it only adds what rows of batches make,
        by itself, and not otherwise.
        """
        if self.session.lenient:
            return None
        try:
            plan = replace(self.plan(kept=True), pairs=pairs)
            made = finished(plan)
            if pairs and (made.plan.asked or not made.plan.view.pairs):
                return None
            return with_finish(plan, made)
        except (NotYetError, UnsupportedError) as error:
            if reasons is not None:
                reasons.append(error)
            return None
        except NotFinishableError as error:
            views = [scan.relation for scan in plan.scans() if scan.kind == "materialized view"]
            if not views or self.kind == "result":
                if isinstance(error.__cause__, DiffersError):
                    error.hint = error.hint or _ELSEWHERE
                if reasons is not None and error.hint is not None:
                    reasons.append(error)
                return None
            what = "view" if self.kind == "materialized view" else "sink"
            raise cannot_read(what, views, str(error), error.span or span_of(self.query.tree), error.hint) from error

    def open_plan(self, reasons: list[Reason] | None = None) -> LogicalPlan | None:
        """The plan for the view store to answer, where the windows are over rows that may come for ever: they show each
        change, or are shown when the watermark passes their end. None where it cannot; `reasons` takes why windows that
        are asked for when they close do not."""
        if self.session.lenient:
            return None
        try:
            plan = self.plan(kept=True, open_windows=True)
            made = finished(plan)
            if self.query.emit is Emit.FINAL and made.windows is None:
                return None
            return with_finish(plan, made)
        except NotFinishableError as error:
            if self.query.emit is Emit.FINAL and reasons is not None and error.hint is not None:
                reasons[:] = [error]  # here the windows were those of the view store
            return None
        except (NotYetError, UnsupportedError, ResolutionError):
            return None

    def inlined_plan(self) -> LogicalPlan | None:
        """The plan with the queries of materialized views in their places; None where that is not the same."""
        try:
            return checked_inlined(self.plan(kept=False, inlined=True), self.session.catalog)
        except UnsupportedError:
            return None


def _order_tells_nothing(tree: exp.Query) -> bool:
    """Whether the order of a query chooses no rows: of a stored result nobody sees it."""
    distinct = tree.args.get("distinct")
    chooses = tree.args.get("limit") or tree.args.get("offset")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    return tree.args.get("order") is not None and not chooses and on is None


def _unordered(tree: exp.Query) -> exp.Query:
    made = tree.copy()
    made.set("order", None)
    return made


def _reads_stream(session: Session, tree: exp.Expr) -> bool:
    """Whether a query reads a stream, itself or through a view."""
    for table in tree.find_all(exp.Table):
        if table.args.get("db") is not None or not isinstance(table.this, exp.Identifier):
            continue
        found = session.catalog.find(Name(table.name, quoted=bool(table.this.quoted)))
        if isinstance(found, SourceDefinition | ViewDefinition) and not found.bounded:
            return True
        if found is None and session.lenient:
            return True
    return False


def _reads(root: Output, context: PlanContext) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The columns of each source that the query needs, in the order of the source."""
    found: dict[str, tuple[str, ...]] = {}
    nodes = chain(all_nodes(root), *map(all_nodes, context.subqueries))
    for scan in (node for node in nodes if isinstance(node, Scan)):
        needed = context.reads.get(scan.relation, set())
        found[scan.relation] = tuple(entry.name for entry in scan.fields if entry.name in needed)
    return tuple(found.items())


def _plan(session: Session, query: Query, way: _Way, *, continuous: bool, stored: bool) -> tuple[Relation, PlanContext]:
    settings = session.plan_settings()

    def make() -> PlanContext:
        return PlanContext(
            session.catalog,
            settings,
            bind_query,
            lenient=session.lenient,
            continuous=continuous,
            emit=query.emit,
            emit_span=query.emit_span if query.emit is not None else None,
            unique_names=stored,
            kept=way.kept,
            inlined=way.inlined,
            open_windows=way.open_windows,
            in_spark=way.in_spark,
            forgets=way.forgets,
        )

    relation, context = plan_query(make, query.tree)
    note_emission(context, relation.node, query)
    return relation, context


def _renamed(relation: Relation, names: tuple[Name, ...]) -> Relation:
    visible = relation.node.visible
    if len(names) != len(visible) and not relation.open:
        raise ResolutionError(
            "COLUMN_COUNT_MISMATCH",
            f"{len(names)} column names are given for {len(visible)} columns",
            hint="name every column of the query, or none",
            span=names[0].span,
        )
    return renamed(relation, [name.text for name in names])


def _visible(relation: Relation) -> Relation:
    """The relation without hidden columns: nobody above needs them."""
    visible = relation.node.visible
    if len(visible) == len(relation.fields) or relation.open:
        return relation
    tree = _without_hidden(relation, visible)
    shown = {field.name for field in visible}
    event_time = relation.node.event_time
    if event_time is not None and event_time.column not in shown:
        carried = [field.name for field in visible if field.event_time]
        event_time = replace(event_time, column=carried[0], of_window=False) if carried else None
    node = replace(relation.node, fields=visible, event_time=event_time)
    return Relation(node, tree, relation.window, relation.open)


def _without_hidden(relation: Relation, visible: tuple[Field, ...]) -> exp.Query:
    tree = relation.tree
    if isinstance(tree, exp.Select) and tree.args.get("distinct") is None and not isinstance(relation.node, TopN):
        names = {field.name for field in visible}
        shown = [item for item in tree.expressions if item.alias_or_name in names]
        if len(shown) == len(visible):
            tree.set("expressions", shown)
            return tree
    inner = "__result"
    return select([column(field.name, inner) for field in visible], subquery(tree, inner))
