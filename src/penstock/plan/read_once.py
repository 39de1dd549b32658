"""One reading of a stream for all the relations that a finish makes of it.

Views over one stream of many kinds of events, or a join of a stream with itself, hand over

    SELECT 0 AS __side, bidder AS __r0_0, NULL AS __r1_0 FROM events WHERE type = 2
    UNION ALL
    SELECT 1 AS __side, NULL AS __r0_0, name AS __r1_0 FROM events WHERE type = 1

and Spark fetches and decodes every record once for each side. Sides that only pick, filter and compute are told apart
after one reading instead:

    SELECT __side, IF(__side = 0, bidder, NULL) AS __r0_0, IF(__side = 1, name, NULL) AS __r1_0
    FROM (SELECT bidder, name, CASE WHEN type = 2 THEN 0 WHEN type = 1 THEN 1 END AS __side FROM events)
    WHERE __side IS NOT NULL

Where a row may be one of several sides, it is made as many rows as there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.finish_plan import SIDE
from penstock.plan.joins import conjuncts_of
from penstock.plan.nodes import Scan
from penstock.plan.relation import Mode
from penstock.plan.spark_blocks import scans
from penstock.plan.trees import (
    aggregate_text,
    aliased,
    call,
    column,
    identifier,
    nondeterministic_call,
    number,
    select,
    subquery,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from penstock.plan.job_scans import JobScans
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.relation import EventTime

_ROWS: Final = "__rows"
_PASSES: Final = frozenset({"expressions", "from_", "where"})  # the clauses of a SELECT of rows, each by itself
_PATH: Final = (exp.Column, exp.Dot, exp.Identifier, exp.Literal, exp.Null, exp.Boolean)
_WHOLE: Final = (*_PATH, exp.Func, exp.Paren)  # what needs no parentheses around it


@dataclass(slots=True)
class _Side:
    """One side of the union over the columns of the relation: what it computes, and for which rows."""

    place: int  # among the sides
    number: int
    table: str  # which it reads
    relation: str  # what is read in its place
    items: dict[str, exp.Expr]
    conditions: list[exp.Expr]


def read_once(core: exp.Query, plan: LogicalPlan) -> tuple[exp.Query, tuple[str, ...]]:
    """The core of a plan with one reading for all sides of a relation, and which relations that concerns.

    Their rows are only ever added. A function of the user's is called for the rows of its side and for no others.
    """
    made, shared = _together(core, {name: name for name in _added(plan)}, plan)
    return made, tuple(shared)


def scans_read_once(core: exp.Query, found: JobScans, plan: LogicalPlan) -> tuple[exp.Query, JobScans]:
    """The same for a core over the scans of a job, which late rows are looked for in, too: rows of one side each."""
    first: dict[tuple[str, EventTime | None], str] = {}
    views = {
        scan.view: first.setdefault((scan.relation, scan.event_time), scan.view)
        for scan in found.scans
        if not scan.changes
    }
    made, shared = _together(core, views, plan, apart=True)
    renamed = {view: one for one, several in shared.items() for view in several}
    if not renamed:
        return core, found
    tree = found.tree.copy()
    for table in scans(tree):
        table.set("this", identifier(renamed.get(table.name, table.name)))
    declared = {scan.relation: [entry.name for entry in scan.fields] for scan in plan.scans()}
    needed: dict[str, set[str]] = {}
    for scan in found.scans:
        needed.setdefault(renamed.get(scan.view, scan.view), set()).update(scan.columns)
    kept = [
        replace(scan, columns=tuple(name for name in declared[scan.relation] if name in needed[scan.view]))
        for scan in found.scans
        if scan.view in needed
    ]
    return made, replace(found, tree=tree, scans=tuple(kept))


def _together(
    core: exp.Query, names: Mapping[str, str], plan: LogicalPlan, *, apart: bool = False
) -> tuple[exp.Query, dict[str, tuple[str, ...]]]:
    """The core with its sides put together, and what each of the readings that are left reads in the place of.

    `names`: the tables that may be read together, and which one is read then. `apart`: not where a row is of two sides.
    """
    functions = {name.casefold() for name in plan.functions}
    blocks = list(_sides(core))
    together: dict[str, list[_Side]] = {}
    for place, block in enumerate(blocks):
        side = _side(place, block, names, functions)
        if side is not None:
            together.setdefault(side.relation, []).append(side)
    shared = {name: sides for name, sides in together.items() if len(sides) > 1 and (not apart or _all_apart(sides))}
    if not shared:
        return core, {}
    left_out = {side.place for sides in shared.values() for side in sides[1:]}
    for name, sides in shared.items():
        blocks[sides[0].place] = _reading(name, sides)
    kept = [block for place, block in enumerate(blocks) if place not in left_out]
    made: exp.Query = kept[0]
    for block in kept[1:]:
        made = exp.Union(this=made, expression=block, distinct=False)
    return made, {name: tuple(side.table for side in sides) for name, sides in shared.items()}


def _added(plan: LogicalPlan) -> frozenset[str]:
    """The relations whose rows are only added, in whichever way the query reads them."""
    read = [*plan.scans(), *(node for node in plan.subquery_nodes() if isinstance(node, Scan))]
    changing = {scan.relation for scan in read if scan.changes is not Mode.APPEND or scan.looked_up}
    return frozenset(scan.relation for scan in read) - changing


def _sides(core: exp.Query) -> Iterator[exp.Query]:
    if isinstance(core, exp.Union) and not core.args.get("distinct"):
        yield from _sides(core.this)
        yield from _sides(core.expression)
    else:
        yield core


def _side(place: int, block: exp.Query, names: Mapping[str, str], functions: Collection[str]) -> _Side | None:
    """A side over the columns of its relation; None where it does more than to pick, filter and compute."""
    if nondeterministic_call(block) is not None or any(_is_more(node, functions) for node in block.walk()):
        return None
    flat = _flat(block, names)
    if flat is None:
        return None
    table, items, conditions = flat
    own = items.pop(SIDE, None)
    if not isinstance(own, exp.Literal):
        return None
    return _Side(place, int(own.name), table, names[table], items, conditions)


def _is_more(node: exp.Expr, functions: Collection[str]) -> bool:
    if isinstance(node, exp.Exists | exp.Window | exp.Lateral | exp.Unnest) or aggregate_text(node) is not None:
        return True
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From):
        return True
    return isinstance(node, exp.Anonymous) and node.name.casefold() in functions


def _flat(block: exp.Expr, names: Mapping[str, str]) -> tuple[str, dict[str, exp.Expr], list[exp.Expr]] | None:
    """The table that a SELECT reads, through any subqueries, and its items and conditions over the columns there."""
    if not isinstance(block, exp.Select) or any(value for name, value in block.args.items() if name not in _PASSES):
        return None
    source = block.args["from_"].this
    if isinstance(source, exp.Table):
        if not isinstance(source.this, exp.Identifier) or source.name not in names:
            return None
        table, below = source.name, None
        conditions: list[exp.Expr] = []
    elif isinstance(source, exp.Subquery):
        inner = _flat(source.this, names)
        if inner is None:
            return None
        table, below, conditions = inner
    else:
        return None
    texts = [item.unalias() for item in block.expressions]
    if where := block.args.get("where"):
        texts += conjuncts_of(where.this)
    if below is not None and _computed_twice(texts, below):
        return None
    moved = [_moved(text, names[table], below) for text in texts]
    columns = [item.alias_or_name for item in block.expressions]
    items = dict(zip(columns, moved, strict=False))
    return (table, items, [*conditions, *moved[len(columns) :]]) if len(items) == len(columns) else None


def _computed_twice(texts: Sequence[exp.Expr], below: Mapping[str, exp.Expr]) -> bool:
    """Whether something that is computed below would be computed for each of its uses."""
    used: set[str] = set()
    for node in (each for text in texts for each in text.find_all(exp.Column)):
        value = below.get(node.name)
        if value is None:
            return True  # not as we write it
        if node.name in used and any(not isinstance(part, _PATH) for part in value.walk()):
            return True
        used.add(node.name)
    return False


def _moved(text: exp.Expr, relation: str, below: Mapping[str, exp.Expr] | None) -> exp.Expr:
    """An expression over what stands below it: over the columns of the relation, under its own name."""

    def over(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if below is None:
            made = node.copy()
            made.set("table", identifier(relation))
            return made
        value = below[node.name].copy()
        return value if isinstance(value, _WHOLE) else exp.Paren(this=value)

    return text.copy().transform(over, copy=False)


def _reading(relation: str, sides: Sequence[_Side]) -> exp.Query:
    """One SELECT over the relation for all its sides."""
    read = dict.fromkeys(
        node.name for side in sides for part in side.items.values() for node in part.find_all(exp.Column)
    )
    source = exp.Table(this=identifier(relation), alias=exp.TableAlias(this=identifier(relation)))
    inner = select([*(column(name, relation) for name in read), aliased(_which(sides), SIDE)], source)
    items: list[exp.Expr] = [
        aliased(column(SIDE, _ROWS), SIDE),
        *(aliased(_value([(side.number, side.items[name]) for side in sides]), name) for name in sides[0].items),
    ]
    known = exp.Not(this=exp.Is(this=column(SIDE, _ROWS), expression=exp.Null()))
    return select(items, subquery(inner, _ROWS), where=exp.Where(this=known))


def _value(of_sides: Sequence[tuple[int, exp.Expr]]) -> exp.Expr:
    """A column of the core, which is one thing or another by the side."""
    first = of_sides[0][1]
    if all(value == first for _, value in of_sides):
        return _renamed(first)
    made: exp.Expr = exp.Null()
    for side, value in of_sides:
        if not isinstance(value, exp.Null):
            made = call("if", exp.EQ(this=column(SIDE, _ROWS), expression=number(side)), _renamed(value), made)
    return made


def _renamed(value: exp.Expr) -> exp.Expr:
    made = value.copy()
    for node in [made] if isinstance(made, exp.Column) else list(made.find_all(exp.Column)):
        node.set("table", identifier(_ROWS))
    return made


def _which(sides: Sequence[_Side]) -> exp.Expr:
    """Of which side a row is; as many rows as there are, where it may be of several."""
    if _all_apart(sides):
        cases = [exp.If(this=_holds(side), true=number(side.number)) for side in sides]
        return exp.Case(ifs=cases)
    each = [
        call("if", _holds(side), number(side.number), exp.Null()) if side.conditions else number(side.number)
        for side in sides
    ]
    return call("explode", call("array_compact", call("array", *each)))


def _holds(side: _Side) -> exp.Expr:
    made: exp.Expr | None = None
    for condition in side.conditions:
        grouped = exp.Paren(this=condition.copy())
        made = grouped if made is None else exp.And(this=made, expression=grouped)
    return made if made is not None else exp.Boolean(this=True)


def _all_apart(sides: Sequence[_Side]) -> bool:
    """Whether no row is of two sides."""
    return all(_apart(one, other) for place, one in enumerate(sides) for other in sides[place + 1 :])


def _apart(one: _Side, other: _Side) -> bool:
    """Whether no row is of both: they ask for different values of the same thing."""
    wanted = dict(_equals(one))
    return any(name in wanted and wanted[name] != value for name, value in _equals(other))


def _equals(side: _Side) -> Iterator[tuple[str, tuple[str, object]]]:
    """What has to be equal to which constant, for the rows of a side."""
    for condition in side.conditions:
        node = condition.unnest()
        if not isinstance(node, exp.EQ):
            continue
        for value, constant in ((node.this, node.expression), (node.expression, node.this)):
            if isinstance(constant, exp.Literal) and not isinstance(value, exp.Literal):
                compared = _compared(value, constant)
                if compared is not None:
                    yield value.sql(dialect="spark"), compared


def _compared(value: exp.Expr, constant: exp.Literal) -> tuple[str, object] | None:
    """A constant as something that differs where no value equals both."""
    if not constant.is_string:
        return "number", Decimal(constant.name)
    kind = type_of(value)
    if kind is None or kind.name != "STRING" or not constant.name.isascii():
        return None  # it may be cast: '1' and '01' are one number
    return "string", constant.name.casefold().rstrip()
