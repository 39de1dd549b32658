"""Cutting a query in two: what Spark does with the rows of each batch, and what the view store makes of all of them.

The query comes here as it would run over bounded input. The core takes the scans out of it, with the conditions that
speak of one scan alone and with what only Spark can compute; the rest becomes the text of the finish.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.core_rows import CoreRows
from penstock.plan.finish_keys import keys_of, shown_key
from penstock.plan.finish_orders import NotFinishableError, settle_orders
from penstock.plan.finish_plan import SIDE, FinishPlan, Leaf
from penstock.plan.nodes import Finish, Scan
from penstock.plan.prune import prune
from penstock.plan.relation import Mode, State
from penstock.plan.spark_blocks import aggregates, group_keys, outputs, scans
from penstock.plan.store_terms import UNKNOWN, DiffersError, kept
from penstock.plan.store_text import kept_query
from penstock.plan.trees import aliased, identifier, nondeterministic_call, nondeterministic_name, number, select

if TYPE_CHECKING:
    from penstock.plan.logical import LogicalPlan
    from penstock.types import SqlType

__all__ = ["Finished", "NotFinishableError", "finished", "with_finish"]


@frozen
class Finished:
    """The core, over the names of relations, the finish, and the types of the columns of the view."""

    core: exp.Query
    plan: FinishPlan
    types: tuple[SqlType, ...]

    @property
    def how(self) -> str:
        """In words, who does what, for EXPLAIN."""
        rows = " and ".join(f"{kept.relation} ({', '.join(kept.shown)})" for kept in self.plan.rows)
        what = f"Spark reads and filters each batch, the view store keeps the rows of {rows} and answers the query"
        if not self.plan.keys:
            return f"{what} over all of them after each batch: it has no key"
        shown = ", ".join(dict.fromkeys(self._key_words()))
        return f"{what} for the keys that a batch touches: {shown}"

    def _key_words(self) -> list[str]:
        words: list[str] = []
        for leaf in self.plan.leaves:
            rows = self.plan.rows[leaf.rows]
            names = {entry.name: shown for entry, shown in zip(rows.columns, rows.shown, strict=True)}
            words.append(f"{rows.relation} by ({', '.join(names[name] for name in leaf.key)})")
        return words


def finished(plan: LogicalPlan) -> Finished:
    """The cut of a query that was planned as if its input were bounded; NotFinishableError where there is none."""
    called = nondeterministic_call(plan.spark)
    if called is not None:
        raise NotFinishableError(f"{nondeterministic_name(called)} differs each time it is computed")
    known = {scan.relation: scan for scan in plan.scans()}
    known |= {scan.relation: scan for scan in plan.subquery_nodes() if isinstance(scan, Scan)}
    for scan in known.values():
        _check(scan)
    tree = plan.spark.copy()
    if any(table.name not in known for table in scans(tree)) or tree.find(exp.Lateral) is not None:
        raise NotFinishableError("a lateral query is not answered by the view store")
    prune(tree)
    try:
        rows = CoreRows(tree, known)
        types = rows.types
        settle_orders(tree, types)
        names = outputs(tree)
        keys = keys_of(tree)
        shown = [shown_key(tree, key, f"__key{place}") for place, key in enumerate(keys)]
        text, columns = kept_query(tree, types)
        found = _types(columns, names, plan)
    except DiffersError as error:
        raise NotFinishableError("it computes something that only Spark knows") from error
    hidden = tuple((name, _known(kind)) for name, kind in columns[len(names) :])
    leaves = tuple(
        Leaf(leaf.name, leaf.rows, leaf.columns, tuple(leaf.kept_name(key.leaves[leaf.name]) for key in keys))
        for leaf in rows.leaves
    )
    unique = _unique(tree)
    made = FinishPlan(rows.kept, leaves, text, tuple(shown), hidden, unique)
    return Finished(_core(rows), made, found)


def with_finish(plan: LogicalPlan, made: Finished) -> LogicalPlan:
    """The plan with the finish as an operator, and with how its result changes."""
    unique = made.plan.unique
    mode = Mode.RETRACT if unique is None else Mode.UPSERT
    bounded = all(scan.kind == "table" for scan in (*plan.scans(), *plan.subquery_nodes()) if isinstance(scan, Scan))
    rows = [f"every row of {kept_rows.relation} ({', '.join(kept_rows.shown)})" for kept_rows in made.plan.rows]
    below = plan.root.inputs[0]
    finish = Finish(
        fields=below.fields,
        inputs=(below,),
        mode=mode,
        key=unique,
        bounded=bounded,
        state=State(" and ".join(rows), "its input ends" if bounded else None),
        answers="the touched keys" if made.plan.keys else "everything anew after each batch",
    )
    root = replace(plan.root, inputs=(finish,), mode=mode, key=unique, event_time=None, bounded=bounded)
    more = [f"state grows for ever: {each} is kept; filter or aggregate before" for each in rows if not bounded]
    if not made.plan.keys:
        more.append("the query has no key: every batch answers all of it anew, which takes longer as rows come")
    return replace(plan, root=root, warnings=(*plan.warnings, *more))


def _check(scan: Scan) -> None:
    if scan.kind not in ("stream", "table") or scan.looked_up:
        raise NotFinishableError(f'"{scan.relation}" is no stream')
    if scan.mode is not Mode.APPEND:
        raise NotFinishableError(f'the rows of "{scan.relation}" change')


def _types(columns: list[tuple[str, SqlType | None]], names: list[str], plan: LogicalPlan) -> tuple[SqlType, ...]:
    """The types of the columns of the view; one that is not what was planned means that one of us is wrong."""
    found: list[SqlType] = []
    for (_, kind), field in zip(columns[: len(names)], plan.columns, strict=True):
        planned = kept(field.type)
        if planned is not None and planned != kind:
            raise DiffersError
        found.append(_known(kind))
    return tuple(found)


def _known(kind: SqlType | None) -> SqlType:
    if kind is None or kind == UNKNOWN:
        raise NotFinishableError("the type of a column is not known before it runs")
    return kind


def _unique(tree: exp.Expr) -> tuple[str, ...] | None:
    """The columns of an aggregate that are its whole key."""
    if not isinstance(tree, exp.Select) or not aggregates(tree):
        return None
    group = tree.args.get("group")
    entries = group.expressions if isinstance(group, exp.Group) else []
    names: list[str] = []
    for key in group_keys(tree):
        shown = [item.alias_or_name for item in tree.expressions if item.unalias() == key]
        if key not in entries or not shown:
            return None
        names.append(shown[0])
    return tuple(names)


def _core(rows: CoreRows) -> exp.Query:
    """The rows of every scan, one below the other: each in columns of its own."""
    every = [entry for kept_rows in rows.kept for entry in kept_rows.columns]
    made: exp.Query | None = None
    for place, kept_rows in enumerate(rows.kept):
        own = {entry.name for entry in kept_rows.columns}
        items: list[exp.Expr] = [aliased(number(place), SIDE)]
        for entry in every:
            value = rows.value(entry.name) if entry.name in own else exp.Null()
            items.append(aliased(value, entry.name))
        source = exp.Table(
            this=identifier(kept_rows.relation), alias=exp.TableAlias(this=identifier(kept_rows.relation))
        )
        where = rows.condition(place)
        clauses = {"where": exp.Where(this=where)} if where is not None else {}
        block = select(items, source, **clauses)
        made = block if made is None else exp.Union(this=made, expression=block, distinct=False)
    assert made is not None
    assert not any(table.name.startswith("__leaf") for table in scans(made))
    return made
