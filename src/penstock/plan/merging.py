"""Which running aggregates the view store can keep, and how: partial results of a batch that merge by key.

COUNT, SUM, MIN, MAX and AVG merge, each with FILTER, and aggregates of the user's that say how. What is computed from
them above the aggregate must mean the same in Spark and in the store; where it might not, or an aggregate does not
merge, Spark keeps the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.event_marks import column_words
from penstock.plan.kept_values import KeptValues, kept_values
from penstock.plan.merge_plan import (
    FINISH,
    PARTIAL,
    Best,
    MergeColumn,
    MergeHow,
    MergeKey,
    MergePlan,
    Partial,
    Reduction,
)
from penstock.plan.pane_plan import PANE
from penstock.plan.store_calls import MEAN
from penstock.plan.store_terms import Term, quoted
from penstock.plan.store_text import store_expression
from penstock.plan.trees import (
    aggregate_text,
    aliased,
    call,
    column,
    in_parts,
    number,
    select,
    subquery,
    type_of,
    typed,
)
from penstock.types import BIGINT, DOUBLE, STRING, SqlType

if TYPE_CHECKING:
    from penstock.plan.relation import Field
    from penstock.plan.running import Running

BATCH_VIEW: Final = "__batch"  # the temporary view of one batch of the core
_PLACE: Final = "__place"
_ORDERED: Final = frozenset(
    {"STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP",
     "BINARY", "UTINYINT", "USMALLINT", "UINT", "UBIGINT"}
)  # fmt: skip
_LOGICAL: Final[dict[str, MergeHow]] = {
    "bool_and": "min", "every": "min", "bool_or": "max", "any": "max", "some": "max",
}  # fmt: skip


# What Spark calls it, where that is not the name of how it is merged.
_REDUCED: Final = {"list": "collect_list", "set": "collect_set"}


class NotMergeableError(Exception):
    """The view store cannot keep this aggregate; the message says why, for EXPLAIN."""


@frozen
class Pane:
    """What a batch is reduced by in the place of a window: the pane of a row, or what else `key` says. `bounds` are the
    trees that read the window above the aggregate, and the names under which the store has what they mean. Without a
    tree all rows of a batch are in one, and Spark does not know it. `functions`: the store merges aggregates of the
    user's there too. `values`: aggregates that do not merge are made of their values, which the store keeps."""

    tree: exp.Expr | None
    bounds: tuple[tuple[str, exp.Expr], ...]
    key: MergeKey = MergeKey(PANE, BIGINT)
    functions: bool = False
    values: bool = False


@frozen
class Compared:
    """Of the groups of a window those with the largest value of `tree`, or the smallest, among those that are the same
    in `by`; `keep` says which of them are shown. `rows`: the keys are those of rows, which are not grouped."""

    tree: exp.Expr
    by: tuple[exp.Expr, ...]
    keep: exp.Expr | None
    largest: bool
    rows: bool


@frozen
class Merged:
    """The rows that Spark makes for a batch (`core`), their aggregation (`batch`, `reductions`), the store's part.

    `shown` are the first count, sum, min and max of the query, and their partials; an average counts where none is.
    """

    core: exp.Select
    batch: exp.Select
    reductions: tuple[Reduction, ...]
    plan: MergePlan
    shown: tuple[tuple[str, str], ...]


def merged(
    running: Running, fields: tuple[Field, ...], pane: Pane | None = None, compared: Compared | None = None
) -> Merged:
    """A running aggregate as something to merge, or NotMergeableError; with a pane, the aggregate of a window, whose
    groups may be compared with each other."""
    maker = _Maker(pane)
    for key in running.keys:
        maker.add_key(key)
    columns = tuple(maker.shown(item, field) for (_, item), field in zip(running.items, fields, strict=True))
    keep = maker.expression(running.keep, "HAVING").sql if running.keep is not None else None
    if not maker.keys and not maker.partials:
        raise NotMergeableError("there is nothing to merge")
    best = maker.best(compared) if compared is not None else None
    return maker.finish(running, MergePlan(tuple(maker.keys), tuple(maker.partials), columns, keep, best=best))


class _Maker:
    """Gathers keys, arguments and partials while the expressions above the aggregate are read."""

    def __init__(self, pane: Pane | None) -> None:
        self.keys: list[MergeKey] = [] if pane is None else [pane.key]
        self._pane = pane
        self._shown: dict[str, str] = {}
        self._averaged: dict[str, str] = {}
        self.partials: list[Partial] = []
        self._key_trees: list[exp.Expr] = []
        self._arguments: list[exp.Expr] = []
        self._calls: list[exp.Expr] = []  # of the batch, one for each partial
        self._reductions: list[Reduction] = []

    def add_key(self, key: exp.Expr) -> None:
        self.keys.append(MergeKey(f"__k{len(self._key_trees)}", type_of(key)))
        self._key_trees.append(key)

    def shown(self, tree: exp.Expr, field: Field) -> MergeColumn:
        """A column of the view. Its type is the planned one; of a value that the store computes it may know more."""
        term = self.expression(tree, field.name)
        return MergeColumn(field.name, field.type or term.type, term.sql)

    def expression(self, tree: exp.Expr, name: str) -> Term:
        """An expression above the aggregate, for the store."""
        replaced = self._replaced(tree)
        if isinstance(replaced, exp.Column) and not replaced.table:
            return Term(quoted(replaced.name), None)  # whatever its type is, the value stays what it is
        term = store_expression(replaced)
        if term is None:
            raise NotMergeableError(f"{column_words(name)} is computed in a way that only Spark knows")
        return term

    def best(self, compared: Compared) -> Best:
        """The comparison of the groups of a window, for the store."""
        value = self.expression(compared.tree, "a value that is compared")
        found = type_of(self._replaced(compared.tree)) or value.type
        if found is None or found.name not in _ORDERED:
            raise NotMergeableError("the type of the value that is compared is not known, or has no order")
        if compared.rows and found.numeric:
            self._shown["max" if compared.largest else "min"] = _key(value.sql).name
        keep = self.expression(compared.keep, "a condition").sql if compared.keep is not None else None
        by = tuple(self.expression(key, "a key").sql for key in compared.by)
        return Best(value.sql, compared.largest, by, keep, compared.rows)

    def _replaced(self, tree: exp.Expr) -> exp.Expr:
        """The tree over keys and partials."""
        for name, bound in self._pane.bounds if self._pane is not None else ():
            if tree == bound:
                return typed(column(name), type_of(bound))
        for place, key in enumerate(self._key_trees):
            if tree == key:
                return typed(column(f"__k{place}"), type_of(key))
        if aggregate_text(tree) is not None:
            return self._aggregate(tree)
        if isinstance(tree, exp.Cast) and (values := self._values(tree)) is not None:
            return self._of_values(tree, values)  # COUNT(DISTINCT …) FILTER (…), whose filter stands inside
        if isinstance(tree, exp.Column | exp.Subquery):
            raise NotMergeableError("a subquery above the aggregate needs Spark")
        made = tree.copy()
        for name, value in tree.args.items():
            if isinstance(value, exp.Expr):
                made.set(name, self._replaced(value))
            elif isinstance(value, list):
                made.set(name, [self._replaced(part) if isinstance(part, exp.Expr) else part for part in value])
        return made

    def _aggregate(self, tree: exp.Expr) -> exp.Expr:
        if in_parts(tree):
            return self._of_user(tree)
        if (values := self._values(tree)) is not None:
            return self._of_values(tree, values)
        inner, condition = tree, None
        if isinstance(tree, exp.Filter):
            inner, condition = tree.this, tree.expression.this
        name = inner.name.lower() if isinstance(inner, exp.Anonymous) else ""
        arguments = inner.expressions if isinstance(inner, exp.Anonymous) else []
        shown = aggregate_text(tree) or name
        if len(arguments) != 1 or isinstance(arguments[0], exp.Distinct):
            raise NotMergeableError(f"{shown} does not merge")
        argument = arguments[0]
        found = type_of(argument)
        if name == "count":
            value = number(1) if isinstance(argument, exp.Star) else argument
            return self._show("count", self._partial("count", _filtered(value, condition), BIGINT))
        if name == "count_if":
            return self._partial("count", _filtered(number(1), _both(condition, argument)), BIGINT)
        if name == "sum" and (found is None or found.numeric):
            return self._show("sum", self._partial("sum", _filtered(argument, condition), type_of(inner)))
        if name in ("avg", "mean") and found is not None and found.numeric and found.name not in ("DECIMAL", "UBIGINT"):
            value = _filtered(argument, condition)
            summed = value if found == DOUBLE else exp.Cast(this=value.copy(), to=exp.DataType.build("DOUBLE"))
            parts = self._partial("sum", summed, DOUBLE), self._partial("count", value, BIGINT)
            for kind, part in zip(("sum", "count"), parts, strict=True):
                self._averaged.setdefault(kind, part.name)
            return typed(call(MEAN, *parts), DOUBLE)
        if name in ("min", "max") and found is not None and found.name in _ORDERED:
            how: MergeHow = "min" if name == "min" else "max"
            return self._show(name, self._partial(how, _filtered(argument, condition), found))
        if name in _LOGICAL and found is not None and found.name == "BOOLEAN":
            return self._partial(_LOGICAL[name], _filtered(argument, condition), found)
        raise NotMergeableError(f"{shown} does not merge")

    def _values(self, tree: exp.Expr) -> KeptValues | None:
        return kept_values(tree) if self._pane is not None and self._pane.values else None

    def _of_values(self, tree: exp.Expr, values: KeptValues) -> exp.Expr:
        found = type_of(values.argument)
        if found is None or found.name not in _ORDERED:
            raise NotMergeableError(f"{aggregate_text(tree)} does not merge, and the type of its values is not known")
        kind = SqlType("ARRAY", elements=(found,))
        partial = self._partial(values.how, _filtered(values.argument, values.condition), kind)
        if values.made is None:
            return partial
        made = call(values.made, partial, *(each.copy() for each in values.more))
        return typed(made, type_of(tree))

    def _of_user(self, tree: exp.Expr) -> exp.Expr:
        """An aggregate of the user's in parts: over the collected rows of a batch, and of the batches before."""
        if self._pane is not None and not self._pane.functions:
            raise NotMergeableError(f"{aggregate_text(tree)} is not kept in panes")
        rows, condition = tree.expressions[0], None
        if isinstance(rows, exp.Filter):
            rows, condition = rows.this, rows.expression.this
        partial = self._partial("function", _filtered(rows.expressions[0], condition), STRING, tree.name)
        return typed(call(FINISH + tree.name, partial), type_of(tree))

    def _partial(
        self, how: MergeHow, argument: exp.Expr, sql_type: SqlType | None, function: str | None = None
    ) -> exp.Expr:
        if argument not in self._arguments:
            self._arguments.append(argument)
        name = f"__a{self._arguments.index(argument)}"
        made = (
            call(_REDUCED.get(how, how), column(name))
            if function is None
            else call(PARTIAL + function, call("collect_list", column(name)))
        )
        if made not in self._calls:
            self.partials.append(Partial(f"__p{len(self._calls)}", sql_type, how, function))
            self._reductions.append(Reduction(f"__p{len(self._calls)}", how, name))
            self._calls.append(made)
        return typed(column(f"__p{self._calls.index(made)}"), sql_type)

    def _show(self, kind: str, partial: exp.Expr) -> exp.Expr:
        self._shown.setdefault(kind, partial.name)
        return partial

    def finish(self, running: Running, plan: MergePlan) -> Merged:
        rows: list[exp.Expr] = []
        known = list(plan.keys)
        if self._pane is not None and self._pane.tree is not None:
            rows.append(aliased(self._pane.tree.copy(), self._pane.key.name))
        elif self._pane is not None:
            known.remove(self._pane.key)
        rows += [aliased(key.copy(), f"__k{place}") for place, key in enumerate(self._key_trees)]
        rows += [aliased(value.copy(), f"__a{place}") for place, value in enumerate(self._arguments)]
        clauses = {name: running.block.args[name].copy() for name in ("from_", "where") if running.block.args.get(name)}
        joins = [join.copy() for join in running.block.args.get("joins") or []]
        core = exp.Select(expressions=rows, joins=joins, **clauses)
        keys: list[exp.Expr] = [column(key.name) for key in known]
        shown = keys + [aliased(made, part.name) for made, part in zip(self._calls, plan.partials, strict=True)]
        source = exp.Table(this=column(BATCH_VIEW).this)
        if plan.best is not None and plan.best.rows:
            batch = _best_of_batch(keys, plan.best)
        elif keys:
            batch = select(shown, source, group=exp.Group(expressions=[key.copy() for key in keys]))
        else:
            # without rows there is no group, as there is none for each key
            some = exp.GT(this=call("count", exp.Star()), expression=number(0))
            batch = select(shown, source, having=exp.Having(this=some))
        found = {**self._averaged, **self._shown}
        return Merged(core, batch, tuple(self._reductions), plan, tuple(sorted(found.items())))


def _best_of_batch(keys: list[exp.Expr], best: Best) -> exp.Select:
    """The rows of a batch that can be the best of a window: those that are the best of their pane. Spark leaves most
    others out before it moves rows around. A pane without a value keeps its rows, by which late ones are told."""
    place = exp.Window(
        this=call("rank"),
        partition_by=[column(PANE), *(_key(name) for name in best.by)],
        order=exp.Order(expressions=[exp.Ordered(this=_key(best.value), desc=best.largest, nulls_first=False)]),
    )
    ranked = select([exp.Star(), aliased(place, _PLACE)], exp.Table(this=column(BATCH_VIEW).this))
    first = exp.EQ(this=column(_PLACE), expression=number(1))
    return select(keys, subquery(ranked, _PLACE), where=exp.Where(this=first))


def _key(text: str) -> exp.Column:
    """The column of a batch that the text of a key names."""
    return column(text.strip('"'))


def _filtered(value: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """The argument of an aggregate with FILTER: NULL, which no aggregate counts, where the condition does not hold."""
    value = value.copy()
    return value if condition is None else call("if", condition.copy(), value, exp.Null())


def _both(condition: exp.Expr | None, other: exp.Expr) -> exp.Expr:
    if condition is None:
        return other
    return exp.And(this=exp.Paren(this=condition.copy()), expression=exp.Paren(this=other.copy()))
