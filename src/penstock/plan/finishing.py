"""Cutting a query in two: what Spark does with the rows of each batch, and what the view store makes of all of them.

The query comes here as it would run over bounded input. The core takes the scans out of it, with the conditions that
speak of one scan alone and with what only Spark can compute; the rest becomes the text of the finish.
"""

from __future__ import annotations

from dataclasses import field as dataclass_field
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.changed_rows import change_items, only_present
from penstock.plan.core_rows import CoreRows, in_store
from penstock.plan.decimal_types import spark_type
from penstock.plan.dimension_cores import DimensionCores
from penstock.plan.final_windows import closing_of, final_windows, kept_times, with_end
from penstock.plan.finish_lists import settle_lists
from penstock.plan.finish_orders import NotFinishableError, settle_orders
from penstock.plan.finish_plan import SIDE, FinishPlan
from penstock.plan.finish_stages import Stages
from penstock.plan.finish_versions import one_version_a_moment
from penstock.plan.from_clause import NAMELESS
from penstock.plan.kept_fewer import batch_text, kept_fewer
from penstock.plan.kept_random import check_random, differs
from penstock.plan.met_once import keep_front_keys, passing_rows, set_clock_apart
from penstock.plan.moving_clock import settle_clock
from penstock.plan.nodes import Core, Filter, Finish, Join, Output, Project, Scan, all_nodes
from penstock.plan.prune import prune
from penstock.plan.relation import HIDDEN_PREFIX, Mode, State
from penstock.plan.spark_blocks import outputs, scans
from penstock.plan.spark_text import spark_sql
from penstock.plan.store_asked import AskedOfSpark
from penstock.plan.store_terms import DiffersError, kept
from penstock.plan.store_unnest import makes_rows_of, settle_json
from penstock.plan.trees import (
    aggregate_text,
    aliased,
    as_written,
    identifier,
    nondeterministic_call,
    number,
    select,
    subquery,
)
from penstock.plan.view_rows import check_views, of_views, parents_of, view_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.plan.context import CoreQuery
    from penstock.plan.final_windows import FinalWindows
    from penstock.plan.finish_plan import KeptRows, Stage
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.nodes import Node
    from penstock.types import SqlType

_ASKING: Final = (
    "the view store asks Spark for what only Spark knows, each time for at most 2,048 rows of what a batch touches: "
    "every such expression adds milliseconds to a batch; computed from the columns of one stream it would not"
)

_TIMED: Final = (
    "a condition of {} on the clock is not one on a time of each row of one stream: it is answered anew as a whole "
    "with every batch, and every second"
)

_PAIRS: Final = "the join keeps {} for ever; bound their event times, or set state_ttl, to let go of old rows"

_GROWS: Final = "state grows for ever: the answer of {} is kept; filter or aggregate before"

__all__ = ["Finished", "NotFinishableError", "finished", "only_adds", "with_finish"]


@frozen
class Finished:
    """The core, over the names of relations, the finish, and the types of the columns of the view.

    None as core: all that is read are materialized views, which the view store has.
    """

    core: exp.Query | None
    plan: FinishPlan
    types: tuple[SqlType, ...]
    static: frozenset[str]  # relations that Spark joins with as a whole
    dimensions: Mapping[str, tuple[str, ...]]  # those whose rows the store keeps, with the columns that it reads
    below: frozenset[str]  # names under which the query reads dimensions that Spark joins
    windows: FinalWindows | None = None  # that are shown once, when they close
    conditions: Mapping[str, exp.Expr] = dataclass_field(default_factory=dict)  # on their rows

    @property
    def batch(self) -> str | None:
        """Spark's text that takes out of a large batch what the view store would not keep; None: all of it is kept."""
        return batch_text(self.plan)

    @property
    def _reduces(self) -> str:
        """In words, what that text leaves of a batch."""
        if self.batch is None:
            return ""
        best = next((each.best for each in self.plan.rows if each.best is not None), None)
        if best is None:
            return " and takes duplicates out of large ones"
        return f" and leaves of large ones the best {'row' if best.count == 1 else f'{best.count} rows'}"

    @property
    def how(self) -> str:
        """In words, who does what, for EXPLAIN."""
        asked = ", ".join(dict.fromkeys(each.words for each in self.plan.asked))
        return f"{self._how}; asked of Spark: {asked}" if asked else self._how

    @property
    def _how(self) -> str:
        view, views = self.plan.view, parents_of(self.plan)
        if self.core is None:
            what = view_words(self.plan)
        else:
            here = [each for each in self.plan.rows if each.read is None and not each.passing]
            rows = " and ".join(
                f"{kept.relation} ({', '.join(kept.shown)})"
                + (f", the latest by ({', '.join(kept.changed_by)})," if kept.changed_by else "")
                + (f", {kept.shown_while}," if kept.shown_while else "")
                for kept in here
                if not kept.fewer
            )
            listed = [*([f"the rows of {rows}"] if rows else []), *(each.fewer for each in here if each.fewer)]
            keeps = f"keeps {' and '.join(listed)} and " if listed else ""
            what = f"Spark reads and filters each batch{self._reduces}, the view store {keeps}answers the query"
            if views:
                what += f" beside {', '.join(views)}, which it reads as they are and as they change,"
        if dimensions := [kept.relation for kept in self.plan.rows if kept.dimension]:
            also = " and" if views and self.core is not None else ""
            what = f"{what.rstrip(',')}{also} beside {' and '.join(dimensions)}, in the version of the batch,"
        if len(self.plan.stages) > 1:
            steps = "; ".join(self._step(stage) for stage in self.plan.stages)
            return f"{what} in {len(self.plan.stages)} stages, each for what has changed below it: {steps}"
        if self.windows is not None:
            return f"{what.rstrip(',')}, once for each window: when the watermark has passed its end"
        if view.once:
            return f"{what.rstrip(',')}: {self._once(view)}"
        if view.pairs:
            return f"{what}: what new rows make with those that are there is added, and nothing is answered anew"
        if view.timed:
            return f"{what} over all of them after each batch and every second: the clock decides"
        if not view.keys:
            return f"{what} over all of them after each batch: it has no key"
        return f"{what} for the keys that a batch touches: {self._by(view)}"

    def _step(self, stage: Stage) -> str:
        names = [name for name, _ in stage.columns if not name.startswith(HIDDEN_PREFIX)]
        kept = "" if stage is self.plan.view else f" ({', '.join(names)}), kept"
        if stage.once or stage.meets:
            return f"{stage.words}{kept}, {self._once(stage)}"
        if stage.timed:
            return f"{stage.words}{kept}, as a whole, after each batch and every second: the clock decides"
        if stage.keys:
            return f"{stage.words}{kept}, for the keys of {self._by(stage)}"
        return f"{stage.words}{kept}, as a whole: it has no key"

    def _once(self, stage: Stage) -> str:
        """What a stage that is answered once has to do with the rows that come."""
        in_front = [leaf for leaf in stage.leaves if leaf.fresh or (stage.meets and leaf.key)]
        came = [self._source(leaf.source) for leaf in in_front]
        there = [self._source(leaf.source) for leaf in stage.leaves if leaf not in in_front]
        met = " and ".join(dict.fromkeys(there))
        until = ", until that goes or another one takes its place" if stage.meets else ""
        rows = f"once, for each row of {' and '.join(dict.fromkeys(came))} that a batch brings{until}"
        if not there:
            return rows
        return f"{rows}, beside {met} as of that batch, with the changes that it brings itself"

    def _source(self, source: int) -> str:
        below = self.plan.stage_of(source)
        return self.plan.rows[source].relation if below is None else below.words

    def _by(self, stage: Stage) -> str:
        """The keys by which a stage reads."""
        words: list[str] = []
        for leaf in stage.leaves:
            below = self.plan.stage_of(leaf.source)
            if below is not None:
                words.append(f"{below.words} by ({', '.join(leaf.key)})")
                continue
            rows = self.plan.rows[leaf.source]
            names = {entry.name: shown for entry, shown in zip(rows.columns, rows.shown, strict=True)}
            words.append(f"{rows.relation} by ({', '.join(names[name] for name in leaf.key)})")
        return ", ".join(dict.fromkeys(words))


def finished(plan: LogicalPlan) -> Finished:
    """The cut of a query that was planned as if its input were bounded; NotFinishableError where there is none."""
    try:
        return _finished(plan, guarded=True)
    except NotFinishableError:
        return _finished(plan, guarded=False)  # rather a job that some rows end than none


def _finished(plan: LogicalPlan, *, guarded: bool) -> Finished:
    tree = plan.spark.copy()
    settle_clock(tree)
    set_clock_apart(tree)
    known: dict[str, Scan | Core] = {}
    for node in (plan.root, *plan.subqueries):
        for found in _read(node):
            earlier = known.setdefault(found.relation, found)
            if isinstance(earlier, Scan) and isinstance(found, Scan) and earlier.key != found.key:
                raise NotFinishableError(
                    f'"{found.relation}" is read with all versions of its rows, and without',
                    f'declare a second stream over the topic of "{found.relation}", '
                    "and join that one FOR SYSTEM_TIME AS OF",
                )
    known = _row_by_row(known)
    constant = not known and plan.root.kind == "materialized view"
    if not constant and not any(isinstance(each, Core) or not each.looked_up for each in known.values()):
        raise NotFinishableError("it reads no stream and no table that batches bring rows of")
    for found in known.values():
        _check(found)
    check_random(tree, known)
    check_views(plan, known)
    below = DimensionCores(tree, known, plan.cores)
    plan = replace(plan, cores=tuple(below.cores))
    settle_json(tree)
    made_of_rows = [each for each in tree.find_all(exp.Lateral) if not isinstance(each.this, exp.Subquery)]
    if any(makes_rows_of(each) is None for each in made_of_rows) or any(each.name not in known for each in scans(tree)):
        raise NotFinishableError(
            "a table function is not answered by the view store",
            "put it into a subquery over its stream, FROM (SELECT … FROM … CROSS JOIN LATERAL …), or write UNNEST",
        )
    windows = final_windows(tree, known)
    keep_front_keys(tree, known)
    prune(tree)
    settle_lists(tree)
    try:
        one_version_a_moment(tree)
        asked = AskedOfSpark()
        rows = CoreRows(tree, known, guarded=guarded, tried=guarded and not plan.pairs)
        ends = {} if windows is None else kept_times(windows, rows)
        _check_repeatable(tree)
        read = of_views(rows, known, asked)
        settle_orders(tree, rows.types)
        names = outputs(tree)
        cut = Stages(tree, rows, asked, pairs=plan.pairs, closing=windows is not None)
        stages = cut.made
        read = passing_rows(read, stages)
        if plan.ttl is None:  # a row counts from the batch that last brought it
            read = kept_fewer(read, stages, cut.trees)
        elif plan.ttl.asked and not stages[-1].once and all(in_store(each) for each in known.values()):
            read = of_views(rows, known, asked, forgotten=True)
        if windows is not None:
            read = tuple(with_end(each, ends, windows) for each in read)
        types = _types(stages[-1].columns[: len(names)], plan)
    except DiffersError as error:
        raise NotFinishableError(_unknown(error), error.hint) from error
    static = frozenset(relation for core in plan.cores for relation in core.static)
    texts = [*(each.read for each in read if each.read is not None), *(stage.text for stage in stages)]
    closing = None if windows is None else closing_of(windows, ends)
    made = FinishPlan(_named(read, plan), tuple(stages), asked.within(texts, plan.functions), closing)
    conditions = {
        relation: condition
        for place, relation in enumerate(each.relation for each in rows.kept)
        if relation in ends and (condition := rows.condition(place)) is not None
    }
    core = _core(rows, made, plan.cores)
    return Finished(core, made, types, static, rows.dimensions, frozenset(below.aliases), windows, conditions)


def _check_repeatable(tree: exp.Expr) -> None:
    """What is different each time cannot be answered again, but where it came with a row."""
    found = nondeterministic_call(tree)
    if found is not None:
        raise differs(found)


def _unknown(error: DiffersError) -> str:
    """In words, what the store does not know."""
    node, why = error.node, error.why
    if node is None or isinstance(node, exp.Query) or (why is None and isinstance(node, exp.Column)):
        return why or "it computes something that only Spark knows"
    text = spark_sql(as_written(node), pretty=False).replace("`", "").replace(f"{NAMELESS}.", "")
    if why is not None:
        return f"{text}: {why}"
    if spark_type(node) is None and aggregate_text(node) is None:
        return f"the type of {text} is not known before it runs (CAST it to the type that it has)"
    return f"only Spark knows {text}"


def with_finish(plan: LogicalPlan, made: Finished) -> LogicalPlan:
    """The plan with the finish as an operator, and with how its result changes."""
    if only_adds(plan):
        return replace(plan, root=replace(plan.root, mode=Mode.APPEND, key=None, bounded=False))
    unique = made.plan.unique
    mode = Mode.APPEND if made.plan.only_adds else Mode.RETRACT if unique is None else Mode.UPSERT
    scanned = [node for node in (*plan.scans(), *plan.subquery_nodes()) if isinstance(node, Scan)]
    bounded = all(scan.kind == "table" or scan.looked_up for scan in scanned)
    keeps = made.plan.keeps
    ending = _ending(plan)
    grows = [each.warning for each in made.plan.rows if each.grows and each.relation not in ending]
    if made.plan.view.pairs and grows:
        grows = [_PAIRS.format(made.plan.keeps)]
    grows += [_GROWS.format(stage.words) for stage in made.plan.stages[:-1] if stage.once]
    ends = [each.bound for each in made.plan.rows if each.bound is not None]
    ends += [f"the rows of {each.relation} end" for each in made.plan.rows if each.grows and each.relation in ending]
    if len(made.plan.stages) > 1 and (views := parents_of(made.plan)):
        ends.append(f"what follows from the rows of {' and '.join(views)}")
    bound = "its input ends" if bounded else None if grows else "; ".join(dict.fromkeys(ends)) or None
    below = _by_the_store(plan.root.inputs[0], made.below)
    finish = Finish(
        fields=below.fields,
        inputs=(below,),
        mode=mode,
        key=unique,
        bounded=bounded,
        state=State(keeps, bound) if keeps else None,
        answers=_answers(made.plan),
    )
    root = replace(plan.root, inputs=(finish,), mode=mode, key=unique, event_time=None, bounded=bounded)
    more = list(grows) if not bounded else []
    more += [_TIMED.format(stage.words) for stage in made.plan.stages if stage.timed]
    if made.plan.takes_longer and not made.plan.only_adds:
        over = " over the answers of its subqueries" if len(made.plan.stages) > 1 else ""
        more.append(f"the query has no key: every batch answers all of it anew{over}, which takes longer as rows come")
    if made.plan.asked:
        more.append(_ASKING)
    return replace(plan, root=root, warnings=(*plan.warnings, *more))


def _ending(plan: LogicalPlan) -> frozenset[str]:
    """What is read whose rows end: tables, and what Spark makes of tables alone, as it is named in the plan."""
    found: set[str] = set()
    for node in (each for root in (plan.root, *plan.subqueries) for each in all_nodes(root)):
        below = [each for each in all_nodes(node) if isinstance(each, Scan)]
        if isinstance(node, Scan | Core) and below and all(each.kind in ("table", "dimension") for each in below):
            found.add(node.relation if isinstance(node, Scan) else node.words)
    return frozenset(found)


def _by_the_store(node: Node, below: frozenset[str]) -> Node:
    """The operators with who does the joins: outside of what Spark runs by itself the view store does them all."""
    if isinstance(node, Core):
        return node
    made = replace(node, inputs=tuple(_by_the_store(each, below) for each in node.inputs))
    if not isinstance(made, Join) or (made.static_input is not None and _all_in(below, made.static_input)):
        return made
    return replace(made, strategy="view store")


def _all_in(below: frozenset[str], node: Node) -> bool:
    """Whether Spark joins with all that operators read: a subquery that it runs, and rows written out, are kept."""
    read = _aliases(node)
    return bool(read) and read <= below


def _aliases(node: Node) -> set[str | None]:
    """The names under which operators read relations."""
    return {each.alias for each in all_nodes(node) if isinstance(each, Scan)}


def only_adds(plan: LogicalPlan) -> bool:
    """Whether a query for a sink makes one row, or none, of each row of a materialized view that rows are only added
    to: then there is nothing to keep."""
    nodes = [node for node in plan.nodes() if not isinstance(node, Output)]
    if plan.root.kind not in ("sink", "topic") or plan.subqueries or len(plan.scans()) != 1:
        return False
    if nondeterministic_call(plan.spark) is not None:
        return False  # rows are taken away as time goes on, or have the time at which they came
    (scan,) = plan.scans()
    by_rows = all(isinstance(node, Project | Filter | Scan) for node in nodes)
    return by_rows and scan.kind == "materialized view" and scan.changes is Mode.APPEND


def _answers(plan: FinishPlan) -> str:
    """In words, what a batch makes the store do."""
    if plan.view.pairs:
        return "what the rows of each batch make, added once"
    if plan.closing is not None:
        return "each window once, when the watermark passes its end"
    if plan.only_adds:
        return "each row once, when it comes"
    what = "the touched keys" if plan.keys and not plan.view.timed else "everything anew after each batch"
    if plan.moves:
        what += ", and as time goes on"
    if len(plan.stages) == 1:
        return what
    return f"{what}, over {', '.join(dict.fromkeys(stage.words for stage in plan.stages[:-1]))}"


def _read(node: Node) -> Iterator[Scan | Core]:
    """What the store keeps the rows of: streams, and subqueries that Spark runs, which are not looked into."""
    if isinstance(node, Scan | Core):
        yield node
        return
    for below in node.inputs:
        yield from _read(below)


def _row_by_row(known: dict[str, Scan | Core]) -> dict[str, Scan | Core]:
    """Tables with `refresh` that are joined with no stream are read once, row by row, as tables without."""
    if not all(isinstance(each, Scan) and each.looked_up for each in known.values()):
        return known
    return {
        name: replace(each, looked_up=False) if isinstance(each, Scan) and each.kind == "table" else each
        for name, each in known.items()
    }


def _named(rows: tuple[KeptRows, ...], plan: LogicalPlan) -> tuple[KeptRows, ...]:
    """The kept rows, those of Spark's subqueries under a name to read."""
    words = {core.relation: core.words for core in plan.cores}
    return tuple(replace(each, relation=words.get(each.relation, each.relation)) for each in rows)


def _check(scan: Scan | Core) -> None:
    if isinstance(scan, Core) or in_store(scan):
        return
    if scan.kind not in ("stream", "table"):
        raise NotFinishableError(f'"{scan.relation}" is no stream')
    if scan.changes is Mode.UPSERT and not scan.key:
        raise NotFinishableError(f'the rows of "{scan.relation}" change, and it has no primary key')


def _types(columns: tuple[tuple[str, SqlType], ...], plan: LogicalPlan) -> tuple[SqlType, ...]:
    """The types of the columns of the view; one that is not what was planned means that one of us is wrong."""
    for (_, kind), field in zip(columns, plan.columns, strict=True):
        planned = kept(field.type)
        if planned is not None and planned != kind:
            raise DiffersError
    return tuple(kind for _, kind in columns)


def _core(rows: CoreRows, plan: FinishPlan, cores: tuple[CoreQuery, ...]) -> exp.Query | None:
    """The rows of every scan of a stream and of every subquery, one below the other: each in columns of its own."""
    trees = {core.relation: core.tree for core in cores}
    kept_of_all = rows.kept
    every = [entry for kept_rows in plan.rows if kept_rows.read is None for entry in kept_rows.columns]
    made: exp.Query | None = None
    for place, kept_rows in enumerate(kept_of_all):
        if plan.rows[place].read is not None:
            continue
        own = {entry.name for entry in kept_rows.columns}
        where = rows.condition(place)
        replaces = kept_rows.changes is not None and bool(kept_rows.changes.key)
        items: list[exp.Expr] = [aliased(number(place), SIDE)]
        for entry in every:
            value = rows.value(entry.name) if entry.name in own else exp.Null()
            if entry.name in own and replaces:
                value = only_present(kept_rows, value, where)
            items.append(aliased(value, entry.name))
        for other in kept_of_all:
            items += change_items(other, where if replaces else None, own=other is kept_rows)
        if replaces:
            where = None  # a row that is filtered out still takes the place of an earlier one
        name = kept_rows.relation
        source: exp.Expr = exp.Table(this=identifier(name), alias=exp.TableAlias(this=identifier(name)))
        if name in trees:
            source = subquery(trees[name].copy(), name)
        clauses = {"where": exp.Where(this=where)} if where is not None else {}
        block = select(items, source, **clauses)
        made = block if made is None else exp.Union(this=made, expression=block, distinct=False)
    assert made is None or not any(table.name.startswith("__leaf") for table in scans(made))
    return made
