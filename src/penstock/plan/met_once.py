"""Joins of rows that are only added with what is current when they come: FOR SYSTEM_TIME AS OF PROCTIME().

    SELECT o.id, u.v FROM o JOIN u FOR SYSTEM_TIME AS OF PROCTIME() AS u ON o.v = u.id

The answer for a row of o is made once, in the batch that brings it, and stays what it is, whatever becomes of u. The
changes of u in that batch come first. So the join is a stage of its own that is never answered anew: where the whole
query makes its rows of one row of o each it is the view, else a subquery, over which the rest is answered as ever.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.core_rows import only_added
from penstock.plan.decimal_types import spark_type
from penstock.plan.finish_orders import NotFinishableError
from penstock.plan.finish_plan import ONCE
from penstock.plan.finish_unique import unique_columns
from penstock.plan.front_copies import asked_of_rows
from penstock.plan.moving_clock import reads_clock
from penstock.plan.nodes import Core, Scan
from penstock.plan.prune import keep_columns
from penstock.plan.relation import HIDDEN_PREFIX, Mode
from penstock.plan.spark_blocks import aggregates, outputs, relations
from penstock.plan.trees import aliased, column, stand_in, subquery, typed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from penstock.plan.finish_plan import KeptRows, Stage

_MET: Final = "__met"
_MORE: Final = ("distinct", "limit", "offset", "laterals", "order", "having", "group")
_OF_MANY: Final = (exp.Window, exp.Subquery, exp.Exists)


def meets_once(tree: exp.Expr) -> bool:
    """Whether there is such a join in a tree."""
    return any(join.method == ONCE for join in tree.find_all(exp.Join))


def by_added_rows(query: exp.Expr, added: Collection[str]) -> bool:
    """Whether each row of an answer is made of one row of a relation that rows are only added to, and of what that
    meets once; `added` are the names of such relations."""
    if isinstance(query, exp.Union):
        both = by_added_rows(query.this, added) and by_added_rows(query.expression, added)
        return both and not any(query.args.get(clause) for clause in ("distinct", "limit", "offset", "order"))
    if not isinstance(query, exp.Select) or not _by_rows(query):
        return False
    first = query.args["from_"].this
    if isinstance(first, exp.Subquery):
        return by_added_rows(first.this, added)
    return isinstance(first, exp.Table) and first.name in added


def _by_rows(query: exp.Select) -> bool:
    joins = query.args.get("joins") or []
    if aggregates(query) or any(query.args.get(clause) for clause in _MORE):
        return False
    if any(join.method != ONCE or meets_once(join.this) for join in joins) or len(relations(query)) != len(joins) + 1:
        return False
    parts = [*query.expressions, query.args.get("where"), *(join.args.get("on") for join in joins)]
    return not any(isinstance(node, _OF_MANY) for part in parts if part is not None for node in part.walk())


def fresh_relations(query: exp.Expr) -> Iterator[str]:
    """The relations whose rows an answer is made of once: those in front of the joins."""
    if isinstance(query, exp.Union):
        yield from fresh_relations(query.this)
        yield from fresh_relations(query.expression)
    elif isinstance(query, exp.Select):
        first = query.args["from_"].this
        if isinstance(first, exp.Table):
            yield first.name
        else:
            yield from fresh_relations(first.this)


def met(query: exp.Expr) -> Iterator[exp.Subquery]:
    """The subqueries that rows meet once."""
    for join in query.find_all(exp.Join):
        if join.method == ONCE and isinstance(join.this, exp.Subquery):
            yield join.this


def set_met_apart(query: exp.Select) -> exp.Subquery | None:
    """Puts such joins of a SELECT itself, with all in front of them, into a subquery of it, in place."""
    joins = query.args.get("joins") or []
    count = max((place for place, join in enumerate(joins, start=1) if join.method == ONCE), default=0)
    if not count:
        return None
    if any(isinstance(join.this, exp.Lateral) for join in joins[:count]):
        raise NotFinishableError("LATERAL stands beside a join as of PROCTIME()", "put the join into a subquery")
    aliases = list(relations(query))[: count + 1]
    taken: list[tuple[exp.Expr, str]] = []  # what is read of these rows, and under which name

    def take(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.table not in aliases or _of_subquery(node, query):
            return node
        name = next((known for value, known in taken if value == node), None)
        if name is None:
            owner = "" if node.table.startswith(HIDDEN_PREFIX) else f"{node.table}_"
            name = f"{owner}{node.name}_{len(taken)}"
            taken.append((node.copy(), name))
        return stand_in(typed(column(name, _MET), spark_type(node)), node)

    query.set("expressions", [_named(item) for item in query.expressions])
    behind = [*_conditions(joins[count:]), *(join.this for join in joins[count:] if isinstance(join.this, exp.Lateral))]
    for part in [*query.expressions, *(query.args[clause] for clause in _above(query)), *behind]:
        changed = part.transform(take, copy=False)
        if changed is not part:
            part.replace(changed)
    if not taken:  # only whether there is a row
        taken.append((exp.Literal.number(1), "nothing"))
    first = exp.Select(
        expressions=[aliased(value, name) for value, name in taken],
        from_=query.args["from_"].copy(),
        joins=[join.copy() for join in joins[:count]],
    )
    made = subquery(first, _MET)
    query.set("from_", exp.From(this=made))
    query.set("joins", joins[count:])
    return made


def keep_front_keys(tree: exp.Query, known: Mapping[str, Scan | Core]) -> None:
    """Lets the subqueries in front of such joins show by what their rows are told apart, whether it is read or not:
    their key, or else all that is asked of them."""
    keys = {name: scan.key if isinstance(scan, Scan) and scan.changes is not Mode.APPEND else None
            for name, scan in known.items()}  # fmt: skip
    added = [name for name, scan in known.items() if only_added(scan)]
    for query in tree.find_all(exp.Select):
        front = query.args["from_"].this if query.args.get("from_") is not None else None
        once = any(join.method == ONCE for join in query.args.get("joins") or [])
        if once and isinstance(front, exp.Subquery):
            told = unique_columns(front.this, keys, outputs(front.this))
            if told is None and not by_added_rows(front.this, added):
                told = tuple(asked_of_rows(front.this))
            keep_columns(front, told or ())


def set_clock_apart(tree: exp.Query) -> None:
    """Puts such joins below the conditions on the clock that stand beside them, in place: what a row has met stays,
    and is shown as long as the clock says."""
    for query in list(tree.find_all(exp.Select)):
        where = query.args.get("where")
        if (
            where is not None
            and reads_clock(where)
            and any(join.method == ONCE for join in query.args.get("joins") or [])
        ):
            set_met_apart(query)


def _of_subquery(node: exp.Column, query: exp.Select) -> bool:
    """Whether a column is one of a subquery inside a SELECT that has a relation of that name itself."""
    around = node.parent
    while around is not None and around is not query:
        if isinstance(around, exp.Select) and node.table in relations(around):
            return True
        around = around.parent
    return False


def _above(query: exp.Select) -> list[str]:
    clauses = ("where", "group", "having", "distinct", "order")
    return [clause for clause in clauses if query.args.get(clause) is not None]


def _conditions(joins: list[exp.Join]) -> list[exp.Expr]:
    return [join.args["on"] for join in joins if join.args.get("on") is not None]


def _named(item: exp.Expr) -> exp.Expr:
    return aliased(column(item.name, item.table), item.name) if isinstance(item, exp.Column) else item


def passing_rows(rows: tuple[KeptRows, ...], stages: Sequence[Stage]) -> tuple[KeptRows, ...]:
    """The rows of relations, those marked that nothing needs once their batch is over."""
    made: list[KeptRows] = []
    for place, each in enumerate(rows):
        fresh = [leaf.fresh for stage in stages for leaf in stage.leaves if leaf.source == place]
        if any(fresh) and (each.since or each.until):
            raise NotFinishableError(
                f'rows of "{each.relation}" are shown as long as the clock says, and are to be met once',
                "put the condition on the clock into the query around the join",
            )
        made.append(replace(each, passing=each.read is None and bool(fresh) and all(fresh)))
    return tuple(made)
