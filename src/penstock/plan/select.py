"""Planning one SELECT."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.context import PlanContext, RankLimit, Relation
from penstock.plan.expressions import ExpressionBinder
from penstock.plan.from_clause import Bound, plan_from, settle_joins
from penstock.plan.grouping import Grouping, check_grouped, plan_grouping
from penstock.plan.joins import conjuncts_of
from penstock.plan.modifiers import plan_modifiers
from penstock.plan.nodes import Aggregate, Filter, Node, Project, Rank
from penstock.plan.ranking import ranked_subquery, refuse_over, window_top_n
from penstock.plan.relation import (
    EVENT_TIME_COLUMN,
    HIDDEN_PREFIX,
    WINDOW_COLUMN,
    WINDOW_END_COLUMN,
    WINDOW_PARTS,
    WINDOW_TYPE,
    EventTime,
    Field,
    Mode,
    WindowPart,
)
from penstock.plan.rules.distinct_aggregates import distinct_aggregates
from penstock.plan.rules.group_by_references import alias_of
from penstock.plan.scope import Scope, same_name, window_bound
from penstock.plan.trees import aggregate_text, aliased, column, has_aggregate, own_nodes, select, subquery, type_of
from penstock.sql.format import format_tree
from penstock.sql.nodes import WindowCall
from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.plan.windows import WindowSpec


@dataclass(slots=True)
class Item:
    """One column of a SELECT list: its output field, its tree in Spark, and its text for EXPLAIN."""

    field: Field
    tree: exp.Expr
    text: str
    place: Span | None = None


@dataclass(slots=True)
class Block:
    """A SELECT while it is planned."""

    context: PlanContext
    written: exp.Select
    scope: Scope
    binder: ExpressionBinder
    bound: Bound
    where: exp.Expr | None = None
    having: exp.Expr | None = None
    grouping: Grouping | None = None
    items: list[Item] = field(default_factory=list)

    @property
    def node(self) -> Node:
        return self.bound.node


def plan_select(context: PlanContext, written: exp.Select, outer: Scope | None, limit: RankLimit | None) -> Relation:
    """A SELECT as operators and as Spark's tree."""
    _refuse_clauses(written)
    scope = Scope(outer=outer)
    binder = ExpressionBinder(
        scope,
        context.user_function,
        lambda tree, inner: _expression_subquery(context, tree, inner),
        dialect=context.settings.dialect if context.settings.dialect != "penstock" else None,
        truncating_division=context.settings.truncating_division,
        read=context.read,
    )
    inner_limit = ranked_subquery(written)
    if inner_limit is not None:
        context = replace_bind(context, written, inner_limit)
    bound = plan_from(context, written, scope, binder)
    block = Block(context, written, scope, binder, bound)
    _where(block)
    _group(block)
    _select_list(block)
    _having(block)
    if binder.over and not block.node.bounded:
        return _ranked(block, limit)
    node = _operators(block)
    _keep_distinct(block)
    return plan_modifiers(context, written, _finish(block, node), scope, binder)


def replace_bind(context: PlanContext, written: exp.Select, limit: RankLimit) -> PlanContext:
    """The context, in which the ranked subquery of this SELECT is told how many rows of each rank are kept."""
    target = written.args["from_"].this.this
    plain = context.bind_query

    def bind(inner: PlanContext, tree: exp.Expr, outer: Scope | None, given: RankLimit | None) -> Relation:
        inner.bind_query = plain
        return plain(inner, tree, outer, limit if tree is target else given)

    context.bind_query = bind
    return context


def _refuse_clauses(written: exp.Select) -> None:
    if written.args.get("match") is not None:
        raise _match_recognize(written)
    from_ = written.args.get("from_")
    if isinstance(from_, exp.From) and from_.find(exp.MatchRecognize) is not None:
        raise _match_recognize(written)
    for clause, word in (
        ("pivots", "PIVOT"), ("connect", "CONNECT BY"), ("into", "SELECT INTO"), ("cluster", "CLUSTER BY"),
        ("distribute", "DISTRIBUTE BY"), ("sort", "SORT BY"), ("sample", "TABLESAMPLE"), ("locks", "FOR UPDATE"),
        ("hint", "an optimizer hint"), ("prewhere", "PREWHERE"), ("settings", "SETTINGS"), ("format", "FORMAT"),
    ):  # fmt: skip
        if written.args.get(clause):
            raise UnsupportedError(
                "UNSUPPORTED_CLAUSE", f"{word} has no meaning here", hint="leave it out", span=span_of(written)
            )


def _match_recognize(written: exp.Select) -> UnsupportedError:
    found = written.find(exp.MatchRecognize)
    return UnsupportedError(
        "MATCH_RECOGNIZE",
        "row pattern matching is not offered",
        hint="express the pattern with joins bounded in time, or with a session window",
        span=(span_of(found) if found is not None else None) or span_of(written),
    )


def _expression_subquery(context: PlanContext, tree: exp.Expr, scope: Scope) -> exp.Expr:
    inner = tree.this if isinstance(tree, exp.Subquery) else tree
    context.depth += 1
    relation = context.bind_query(context, inner, scope, None)
    context.depth -= 1
    if not relation.node.bounded and not relation.open:
        error = NotYetError(
            "UPDATING_SUBQUERY",
            "a subquery over a stream inside an expression is not there yet",
            hint="write it as a join: an interval join, a window join, or a join with a dimension table",
            span=span_of(tree),
        )
        error.mode = Mode.RETRACT.value
        raise error
    visible = [entry for entry in relation.fields if not entry.hidden]
    if len(visible) != len(relation.fields):
        inner_name = "__in"
        relation.tree = select([column(entry.name, inner_name) for entry in visible], subquery(relation.tree, inner_name))
    found = exp.Subquery(this=relation.tree)
    found.meta["penstock_type"] = visible[0].type if visible else None
    return found


def _where(block: Block) -> None:
    clause = block.written.args.get("where")
    conjuncts: list[exp.Expr] = []
    if isinstance(clause, exp.Where):
        block.binder.aggregates_allowed = False
        block.where = block.binder.bind(clause.this)
        block.binder.aggregates_allowed = True
        conjuncts = conjuncts_of(block.where)
    settle_joins(block.context, block.bound, block.scope, conjuncts)
    for condition in block.bound.anti:
        block.where = condition if block.where is None else exp.And(this=block.where, expression=condition)
    if isinstance(clause, exp.Where):
        block.bound.node = _filtered(block.node, format_tree(clause.this))


def _filtered(node: Node, condition: str) -> Node:
    return Filter(
        fields=node.fields,
        inputs=(node,),
        mode=node.mode,
        key=node.key,
        event_time=node.event_time,
        bounded=node.bounded,
        condition=condition,
    )


def _group(block: Block) -> None:
    block.grouping = plan_grouping(block.context, block.written, block.bound, block.scope, block.binder)
    if block.grouping is not None:
        block.binder.window = block.grouping.window
        block.binder.grouped = True


def _select_list(block: Block) -> None:
    for written in block.written.expressions:
        if isinstance(written, exp.Star):
            _expand(block, None, written)
        elif isinstance(written, exp.Column) and isinstance(written.this, exp.Star):
            _expand(block, written.table, written)
        else:
            _add_item(block, written)
    if block.grouping is None and any(has_aggregate(item.tree) for item in block.items):
        block.grouping = Grouping.whole()
    seen: dict[str, Item] = {}
    for item in block.items:
        other = seen.setdefault(item.field.name.casefold(), item)
        if other is not item and (block.context.depth or block.context.unique_names):
            raise ResolutionError(
                "DUPLICATE_COLUMN",
                f'two columns of the SELECT list are called "{item.field.name}"',
                hint="give one of them another name with AS",
                span=item.place or span_of(item.tree),
            )


def _expand(block: Block, table: str | None, written: exp.Expr) -> None:
    if block.grouping is not None:
        raise ResolutionError(
            "NOT_GROUPED", "* cannot stand in a grouped query", hint="name the grouped columns", span=span_of(written)
        )
    leaves = [leaf for leaf in block.scope.leaves if table is None or same_name(leaf.alias, table, quoted=False)]
    if not leaves:
        raise ResolutionError("UNKNOWN_RELATION", f'"{table}" is not in the FROM clause', span=span_of(written))
    excluded = {name.name.casefold() for name in written.args.get("except_") or []}
    for leaf in leaves:
        if leaf.open:
            block.items.append(Item(Field("*", None), exp.Star(), "*"))
        for entry in leaf.fields:
            if entry.hidden or entry.name.startswith(HIDDEN_PREFIX) or entry.name.casefold() in excluded:
                continue
            reference = exp.Column(
                this=exp.Identifier(this=entry.name, quoted=True), table=exp.Identifier(this=leaf.alias, quoted=True)
            )
            found = block.scope.resolve(reference)
            block.context.read(found)
            kept = replace(found.field, qualifier=None, nullable=_nullable(block.node, leaf.alias, found.field))
            block.items.append(Item(kept, found.tree, entry.name))


def _nullable(node: Node, alias: str, entry: Field) -> bool:
    for known in node.fields:
        if known.qualifier == alias and known.name == entry.name:
            return known.nullable
    return entry.nullable


def _add_item(block: Block, written: exp.Expr) -> None:
    expression = written.this if isinstance(written, exp.Alias) else written
    tree = block.binder.bind(expression)
    name = written.alias if isinstance(written, exp.Alias) else _output_name(expression, len(block.items))
    entry = Field(name, type_of(tree))
    if isinstance(expression, exp.Column):
        found = block.scope.find(expression)
        if found is not None and not found.path and found.leaf is not None:
            nullable = _nullable(block.node, found.leaf.alias, found.field)
            entry = replace(found.field, name=name, qualifier=None, nullable=nullable)
        elif found is not None and found.field.window and found.path:
            entry = Field(name, type_of(tree), part=_part(found.path[-1]))
    entry = _window_field(block, expression, entry, tree)
    if name.startswith(HIDDEN_PREFIX) and not name.startswith("__qualified"):
        raise ResolutionError(
            "INVALID_DEFINITION",
            f'the name "{name}" begins with {HIDDEN_PREFIX}, which is kept for our own columns',
            span=span_of(written),
        )
    place = span_of(written.args["alias"]) if isinstance(written, exp.Alias) else span_of(expression)
    block.items.append(Item(entry, tree, format_tree(expression), place))


def _part(name: str) -> WindowPart:
    return "start" if name.casefold() in ("start", "window_start") else "end"


def _window_field(block: Block, expression: exp.Expr, entry: Field, tree: exp.Expr) -> Field:
    """Marks output columns that are the window itself or one of its bounds, so that the query around can use them."""
    window = block.binder.window
    if window is None:
        return entry
    if isinstance(expression, WindowCall) or tree == window.tree:
        return replace(entry, window=True, type=WINDOW_TYPE, part=None)
    for part in WINDOW_PARTS:
        if tree == window_bound(window.tree.copy(), part, window.end):
            return replace(entry, part=part, event_time=part == "time", nullable=False)
    return entry


def _output_name(expression: exp.Expr, position: int) -> str:
    if isinstance(expression, exp.Column):
        return str(expression.name)
    if isinstance(expression, exp.Dot):
        return str(expression.expression.name)
    if isinstance(expression, WindowCall):
        return "window"
    if isinstance(expression, exp.Filter | exp.WithinGroup | exp.Window | exp.Paren | exp.Cast | exp.TryCast):
        return _output_name(expression.this, position)
    if isinstance(expression, exp.Anonymous):
        return str(expression.name).lower()
    return f"_c{position}"


def _having(block: Block) -> None:
    clause = block.written.args.get("having")
    if isinstance(clause, exp.Having):
        block.having = block.binder.bind(_replace_aliases(block, clause.this.copy()))
        if block.grouping is None:
            block.grouping = Grouping.whole()
    if block.grouping is None:
        return
    for item in block.items:
        check_grouped(block.grouping, item.tree)
    if block.having is not None:
        check_grouped(block.grouping, block.having)


def _replace_aliases(block: Block, condition: exp.Expr) -> exp.Expr:
    """HAVING may name an output column; a column of the input of that name comes first."""
    for reference in list(condition.find_all(exp.Column)):
        if block.scope.find(reference) is None:
            found = alias_of(block.written, reference)
            if found is not None:
                if reference is condition:
                    return found.copy()
                reference.replace(found.copy())
    return condition


def _operators(block: Block) -> Node:
    node = block.node
    if block.grouping is not None:
        node = _aggregate(block, node)
        clause = block.written.args.get("having")
        if isinstance(clause, exp.Having):
            node = _filtered(node, format_tree(clause.this))
    elif node.mode is not Mode.APPEND and not node.bounded and _from_source(node):
        raise _updating_input(block, node)
    if block.binder.over:
        over = tuple(format_tree(written) for written in block.binder.over)
        node = Rank(fields=node.fields, inputs=(node,), bounded=True, functions=over)
    return node


def _keep_distinct(block: Block) -> None:
    """Distinct aggregates in the shape that Spark keeps on a stream."""
    if block.grouping is None or block.node.bounded:
        return
    for item in block.items:
        item.tree = distinct_aggregates(item.tree)
    if block.having is not None:
        block.having = distinct_aggregates(block.having)


def _from_source(node: Node) -> bool:
    """Whether changes come from a source rather than from an aggregate of the query itself."""
    if isinstance(node, Aggregate):
        return False
    return all(_from_source(inner) for inner in node.inputs)


def _updating_input(block: Block, node: Node) -> NotYetError:
    error = NotYetError(
        "UPDATING_INPUT",
        "queries over a source whose rows change are not there yet",
        hint="read the topic as an append-only stream, with connector = 'kafka' and a plain format",
        span=span_of(block.written.args["from_"].this),
    )
    error.mode = node.mode.value
    return error


def _aggregate(block: Block, node: Node) -> Node:
    grouping = block.grouping
    assert grouping is not None
    texts: dict[str, None] = {}
    trees = [item.tree for item in block.items] + ([block.having] if block.having is not None else [])
    for tree in trees:
        for inner in own_nodes(tree):
            text = aggregate_text(inner)
            if text is not None:
                texts[text] = None
    return grouping.operator(block.context, block.written, node, tuple(texts), trees)


def _finish(block: Block, node: Node) -> Relation:
    """The projection on top, with the hidden columns that carry the event time to the query around."""
    items = list(block.items)
    window: WindowSpec | None = None
    event_time: EventTime | None = None
    hidden: list[Item] = []
    grouping = block.grouping
    if grouping is not None:
        if grouping.window is not None and node.mode is Mode.APPEND:
            window = grouping.window.spec
            hidden.append(_hidden(WINDOW_COLUMN, grouping.window.tree.copy()))
            if grouping.window.end is not None:
                hidden.append(_hidden(WINDOW_END_COLUMN, grouping.window.end.copy()))
            delay = block.node.event_time.delay_us if block.node.event_time else 0
            event_time = EventTime(WINDOW_COLUMN, delay, of_window=True)
    elif not node.bounded and block.bound.carrier is not None and node.event_time is not None:
        window, event_time = _carry(block, node, items, hidden)
    mode, key = _mode(node, grouping, items)
    if not any(item.field.name == WINDOW_COLUMN for item in hidden):
        for item in items:  # nothing carries the window further: its bounds are plain columns from here on
            item.field = replace(item.field, part=None, window=False, event_time=item.field.event_time and not item.field.part)
    fields = tuple(item.field for item in items) + tuple(item.field for item in hidden)
    texts = tuple(
        item.text if item.text == item.field.name else f"{item.text} AS {item.field.name}" for item in items
    )
    project = Project(
        fields=fields,
        inputs=(node,),
        mode=mode,
        key=key,
        event_time=None if node.bounded else event_time,
        bounded=node.bounded,
        columns=texts,
    )
    return Relation(
        project,
        _tree(block, items + hidden),
        window,
        _open(block),
        window_end=any(item.field.name == WINDOW_END_COLUMN for item in hidden),
        unmerged=grouping is None and block.bound.unmerged,
    )


def _open(block: Block) -> bool:
    return any(item.field.name == "*" for item in block.items)


def _hidden(name: str, tree: exp.Expr) -> Item:
    sql_type = WINDOW_TYPE if name == WINDOW_COLUMN else None
    return Item(Field(name, sql_type, hidden=True, window=name == WINDOW_COLUMN, nullable=False), tree, name)


def _carry(
    block: Block, node: Node, items: list[Item], hidden: list[Item]
) -> tuple[WindowSpec | None, EventTime | None]:
    carrier = block.bound.carrier
    event_time = node.event_time
    assert carrier is not None and event_time is not None
    if isinstance(carrier, exp.Column) and carrier.name == WINDOW_COLUMN:
        hidden.append(_hidden(WINDOW_COLUMN, carrier.copy()))
        leaf = next(leaf for leaf in block.scope.leaves if leaf.alias == carrier.table)
        if leaf.window_end is not None:
            hidden.append(_hidden(WINDOW_END_COLUMN, leaf.window_end.copy()))
        return block.bound.windows.get(carrier.table), event_time
    for item in items:
        if item.tree == carrier:
            return None, replace(event_time, column=item.field.name)
    if block.context.depth == 0:
        return None, None
    entry = Field(EVENT_TIME_COLUMN, None, hidden=True, event_time=True)
    hidden.append(Item(entry, carrier.copy(), EVENT_TIME_COLUMN))
    return None, replace(event_time, column=EVENT_TIME_COLUMN)


def _mode(node: Node, grouping: Grouping | None, items: list[Item]) -> tuple[Mode, tuple[str, ...] | None]:
    """An updating aggregate is told apart by its keys; without all of them in the output its rows are taken back one by one."""
    if node.mode is Mode.APPEND:
        return Mode.APPEND, None
    if grouping is not None:
        names: list[str] = []
        for key in grouping.keys:
            found = [item.field.name for item in items if item.tree == key]
            if not found and grouping.window is not None and key == grouping.window.tree:
                found = _window_shown(items)
            if not found:
                return Mode.RETRACT, None
            names += found[:1]
        return Mode.UPSERT, tuple(dict.fromkeys(names))
    if node.key is None:
        return node.mode, None
    kept = []
    for name in node.key:
        shown = [i.field.name for i in items if isinstance(i.tree, exp.Column) and i.tree.name == name]
        if not shown:
            return Mode.RETRACT, None
        kept.append(shown[0])
    return node.mode, tuple(kept)


def _window_shown(items: list[Item]) -> list[str]:
    """The output columns that tell windows of one kind apart: the window itself, or one of its bounds."""
    whole = [item.field.name for item in items if item.field.window]
    return whole or [item.field.name for item in items if item.field.part is not None][:1]


def _tree(block: Block, items: list[Item]) -> exp.Select:
    clauses: dict[str, object] = {}
    columns = [aliased(item.tree.copy(), item.field.name) if item.field.name != "*" else exp.Star() for item in items]
    if block.bound.source is not None:
        clauses["from_"] = exp.From(this=block.bound.source)
    clauses["joins"] = block.bound.joins
    if block.where is not None:
        clauses["where"] = exp.Where(this=block.where)
    if block.grouping is not None:
        group = block.grouping.clause()
        if group is not None:
            clauses["group"] = group
    if block.having is not None:
        clauses["having"] = exp.Having(this=block.having)
    return exp.Select(expressions=columns, **{key: value for key, value in clauses.items() if value})


def _ranked(block: Block, limit: RankLimit | None) -> Relation:
    """OVER on a stream: the first N rows of each window are kept by Spark; everything else is not there yet."""
    base = _operators_without_over(block)
    windows = block.bound.windows if block.grouping is None else {}
    plan = window_top_n(block, base, limit, windows)
    if plan is None:
        raise refuse_over(block.binder.over[0])
    return plan


def _operators_without_over(block: Block) -> Node:
    over, block.binder.over = block.binder.over, []
    node = _operators(block)
    block.binder.over = over
    return node

