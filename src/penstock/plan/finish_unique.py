"""Which columns tell the rows of an answer apart: by them a change is an update, and a sink knows which row it is.

They follow from GROUP BY, DISTINCT, set operations, ROW_NUMBER, and the keys of sources whose rows change. Joins have
the keys of both sides. Where nothing is known, the same row may be there twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from penstock.plan.grouping_sets import repeats_a_set
from penstock.plan.joins import conjuncts_of
from penstock.plan.spark_blocks import aggregates, group_keys, outputs, relations
from penstock.plan.trees import whole_number

RowKeys = Mapping[str, tuple[str, ...] | None]
Names = tuple[str, ...]
_ONE_SIDE = frozenset({"SEMI", "ANTI"})


def unique_columns(query: exp.Expr, keys: RowKeys, seen: Sequence[str]) -> Names | None:
    """The output columns of a query that tell its rows apart, the fewest of them, among those that can be seen.

    `keys` are those of the scans, by name.
    """
    return min((names for names in _of_query(query, keys) if set(names) <= set(seen)), key=len, default=None)


def _of_query(query: exp.Expr, keys: RowKeys) -> list[Names]:
    if isinstance(query, exp.SetOperation):
        return [tuple(outputs(query))] if query.args.get("distinct") else []
    return _of_select(query, keys) if isinstance(query, exp.Select) else []


def _of_select(query: exp.Select, keys: RowKeys) -> list[Names]:
    if aggregates(query):
        found = _of_groups(query)
    elif query.args.get("laterals"):
        found = []
    else:
        found = [names for places in _of_from(query, keys) if (names := _shown(query, places)) is not None]
        found += [names for item in query.expressions if (names := _numbered(query, item)) is not None]
    if query.args.get("distinct") is not None:
        found.append(tuple(item.alias_or_name for item in query.expressions))
    return found


def _of_groups(query: exp.Select) -> list[Names]:
    group = query.args.get("group")
    entries = group.expressions if isinstance(group, exp.Group) else []
    if repeats_a_set(group):
        return []
    names: list[str] = []
    for key in group_keys(query):
        shown = [item.alias_or_name for item in query.expressions if item.unalias() == key]
        if key not in entries or not shown:
            return []
        names.append(shown[0])
    return [tuple(names)]


def _of_from(query: exp.Select, keys: RowKeys) -> list[tuple[exp.Column, ...]]:
    """The ways to tell the rows of a FROM clause apart, as columns."""
    below = relations(query)
    from_ = query.args.get("from_")
    if not isinstance(from_, exp.From) or from_.this.alias_or_name not in below:
        return []
    first = from_.this.alias_or_name
    found = _of_relation(first, below[first], keys)
    for join in query.args.get("joins") or []:
        alias = join.this.alias_or_name
        if join.kind.upper() in _ONE_SIDE:
            continue
        if alias not in below or not isinstance(join.this, exp.Table | exp.Subquery):
            return []
        if join.side.upper() == "FULL":
            return []  # a row of one side whose key is NULL looks like one that only the other side has
        found = [(*one, *other) for one in found for other in _of_relation(alias, below[alias], keys)]
    ones = _ones(query)
    return [tuple(place for place in places if place not in ones) for places in found]


def _of_relation(alias: str, below: exp.Table | exp.Query, keys: RowKeys) -> list[tuple[exp.Column, ...]]:
    if isinstance(below, exp.Table):
        names = keys.get(below.name)
        ways = [names] if names is not None else []
    else:
        ways = _of_query(below, keys)
    return [tuple(_column(alias, name) for name in way) for way in ways]


def _ones(query: exp.Select) -> list[exp.Expr]:
    """The columns that WHERE holds to one value."""
    where = query.args.get("where")
    found: list[exp.Expr] = []
    for conjunct in conjuncts_of(where.this) if where is not None else []:
        column, limit = conjunct.this, conjunct.expression if isinstance(conjunct, exp.Binary) else None
        if not isinstance(column, exp.Column):
            continue
        single = isinstance(conjunct, exp.EQ) and isinstance(limit, exp.Literal)
        if single or (isinstance(conjunct, exp.LTE) and whole_number(limit) == 1 and _counts_from_one(query, column)):
            found.append(_column(column.table, column.name))
    return found


def _counts_from_one(query: exp.Select, column: exp.Column) -> bool:
    """Whether a column is a ROW_NUMBER of the query below."""
    below = relations(query).get(column.table)
    if not isinstance(below, exp.Select):
        return False
    return any(
        item.alias_or_name == column.name and _row_number(item.unalias()) is not None for item in below.expressions
    )


def _numbered(query: exp.Select, item: exp.Expr) -> Names | None:
    """A row number, and what it begins anew for."""
    over = _row_number(item.unalias())
    if over is None:
        return None
    names = _shown(query, tuple(over.args.get("partition_by") or []))
    return None if names is None else (*names, item.alias_or_name)


def _row_number(node: exp.Expr) -> exp.Window | None:
    if not isinstance(node, exp.Window):
        return None
    call = node.this
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    return node if name == "row_number" or isinstance(call, exp.RowNumber) else None


def _shown(query: exp.Select, places: tuple[exp.Expr, ...]) -> Names | None:
    """The output columns that hold some trees; None where one is not shown."""
    names: list[str] = []
    for place in places:
        shown = [item.alias_or_name for item in query.expressions if _same(item.unalias(), place)]
        if not shown:
            return None
        names.append(shown[0])
    return tuple(dict.fromkeys(names))


def _same(one: exp.Expr, other: exp.Expr) -> bool:
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        return one.name == other.name and one.table in ("", other.table)
    return one == other


def _column(alias: str, name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(alias, quoted=True))
