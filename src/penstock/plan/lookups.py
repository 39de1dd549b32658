"""Joins with dimensions written as calls: a function that finds the row of a key in the place of a join.

    FROM __scan_0 AS t LEFT JOIN __dimension_0 AS s ON t.symbol = s.id

becomes

    FROM (SELECT t.…, __lookup_0(t.symbol) AS __found_0 FROM __scan_0 AS t) AS t

with `t.__found_0.name` for `s.name`; an inner join also asks that something was found. It gives the same rows where no
key stands twice in the dimension. Spark sends a dimension that is joined to its tasks in every batch; one that is asked
by a call stays where it is. Which of the two is faster depends on its size, so a job has both texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.distinct_steps import DistinctStep
from penstock.plan.job_dimensions import DimensionPlan, is_static
from penstock.plan.prune import columns_read
from penstock.plan.spark_blocks import relations, selects
from penstock.plan.trees import aliased, call, column, dot, select, subquery, type_of, typed

if TYPE_CHECKING:
    from penstock.plan.job_scans import JobScans

FUNCTION: Final = "__lookup_"
_FOUND: Final = "__found_"
_KEY_TYPES: Final = frozenset({"STRING", "TINYINT", "SMALLINT", "INT", "BIGINT"})


@frozen
class Lookup:
    """A dimension that is looked up: by a call of `function` with a value for the column `key`."""

    dimension: DimensionPlan
    function: str
    key: str


@frozen
class LookupTexts:
    """The texts of a job over calls in the place of joins; see `JobPlan`."""

    core: str
    steps: tuple[DistinctStep, ...]
    late: str | None
    lookups: tuple[Lookup, ...]


def with_lookups(found: JobScans) -> tuple[exp.Query, tuple[Lookup, ...]] | None:
    """The tree of a job with calls in the place of the joins that can be calls; None where none can."""
    tree = found.tree.copy()
    known = {dimension.view: dimension for dimension in found.dimensions}
    made: list[Lookup] = []
    for block in selects(tree):
        _rewrite(block, known, made)
    return (tree, tuple(made)) if made else None


def _rewrite(block: exp.Select, known: dict[str, DimensionPlan], made: list[Lookup]) -> None:
    from_ = block.args.get("from_")
    joins = block.args.get("joins") or []
    if not isinstance(from_, exp.From) or not isinstance(from_.this, exp.Table | exp.Subquery):
        return
    base = from_.this
    alias = base.alias or base.name
    if is_static(base) or not all(_keeps_rows(join) for join in joins):
        return
    needed = sorted(columns_read(block).get(alias, set()))
    calls: list[exp.Expr] = []
    for join in list(joins):
        found = _key(join, alias, known)
        if found is None:
            continue
        dimension, key, value = found
        lookup = Lookup(dimension, f"{FUNCTION}{len(made)}", key)
        row = f"{_FOUND}{len(made)}"
        made.append(lookup)
        calls.append(aliased(call(lookup.function, value.copy()), row))
        joins.remove(join)
        _replace_columns(block, join.this.alias or join.this.name, alias, row)
        if join.side != "LEFT":
            _require(block, column(row, alias))
    if calls:
        kept: list[exp.Expr] = [aliased(column(name, alias), name) for name in needed]
        from_.set("this", subquery(select([*kept, *calls], base.copy()), alias))
        block.set("joins", joins or None)


def _keeps_rows(join: exp.Join) -> bool:
    """Whether a join leaves the rows before it as they are, or leaves some of them out, or repeats them."""
    if isinstance(join.this, exp.Lateral):
        return True
    below = join.this.this if isinstance(join.this, exp.Subquery) else join.this
    return is_static(below) and join.side in ("", "LEFT")


def _key(join: exp.Join, alias: str, known: dict[str, DimensionPlan]) -> tuple[DimensionPlan, str, exp.Expr] | None:
    """The dimension of a join, the column of it that is compared, and the value it is compared with."""
    table, on = join.this, join.args.get("on")
    if not isinstance(table, exp.Table) or table.name not in known or join.kind not in ("", "INNER", "OUTER"):
        return None
    while isinstance(on, exp.Paren):
        on = on.this
    if not isinstance(on, exp.EQ):
        return None
    own = table.alias or table.name
    for side, other in ((on.this, on.expression), (on.expression, on.this)):
        owners = {found.table for found in other.find_all(exp.Column)}
        kind = type_of(side)
        if (
            isinstance(side, exp.Column)
            and side.table == own
            and owners == {alias}
            and kind is not None
            and kind.name in _KEY_TYPES
            and type_of(other) == kind
        ):
            return known[table.name], side.name, other
    return None


def _replace_columns(block: exp.Select, own: str, alias: str, row: str) -> None:
    """The columns of a dimension as fields of the row that was found."""
    below = {id(query) for query in relations(block).values()}
    for node in list(block.walk(prune=lambda inner: id(inner) in below)):
        if isinstance(node, exp.Column) and node.table == own:
            field = typed(dot(column(row, alias), node.name), type_of(node))
            bare = node.parent is block and node.arg_key == "expressions"
            node.replace(aliased(field, node.name) if bare else field)


def _require(block: exp.Select, found: exp.Expr) -> None:
    there = exp.Not(this=exp.Is(this=found, expression=exp.Null()))
    where = block.args.get("where")
    condition = there if where is None else exp.And(this=exp.Paren(this=where.this), expression=there)
    block.set("where", exp.Where(this=condition))
