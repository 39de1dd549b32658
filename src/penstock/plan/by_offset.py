"""ksqlDB's LATEST_BY_OFFSET and EARLIEST_BY_OFFSET: values by the place of their rows in the topic.

    LATEST_BY_OFFSET(v)     ->  MAX_BY(v, place) FILTER (WHERE NOT v IS NULL)
    LATEST_BY_OFFSET(v, 3)  ->  REVERSE(SLICE(ARRAY_AGG(v ORDER BY place DESC) FILTER (WHERE NOT v IS NULL), 1, 3))

The place is the offset, and of rows with the same one in several partitions the number of the partition: the same
whatever batches the rows came in. Both are METADATA columns that the stream declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.model import SourceDefinition
from penstock.errors import ResolutionError
from penstock.plan.trees import call, number, own_nodes, whole_number
from penstock.sql.spans import span_of
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog

_NAMES: Final = {"latest_by_offset": True, "earliest_by_offset": False}
_PARTITIONS: Final = 100_000  # more than any topic has


def with_places(catalog: Catalog, written: exp.Select) -> exp.Select:
    """The SELECT without such calls."""
    if not any(map(_is_call, _own(written))):
        return written
    made = written.copy()
    assert isinstance(made, exp.Select)
    for node in [each for each in _own(made) if _is_call(each)]:
        assert isinstance(node, exp.Anonymous)
        node.replace(_rewritten(node, _place(catalog, made, node)))
    return made


def _own(select: exp.Select) -> list[exp.Expr]:
    clauses = [select.args.get(name) for name in ("having", "order", "qualify")]
    parts = [*select.expressions, *(clause for clause in clauses if clause is not None)]
    return [node for part in parts for node in own_nodes(part)]


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _NAMES


def _place(catalog: Catalog, select: exp.Select, node: exp.Anonymous) -> exp.Expr:
    from_ = select.args.get("from_")
    table = from_.this if isinstance(from_, exp.From) else None
    found = None
    if isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier):
        found = catalog.find(Name(table.name, quoted=bool(table.this.quoted)))
    columns = found.columns if isinstance(found, SourceDefinition) else ()
    names = {entry.metadata: entry.name for entry in columns if entry.metadata in ("partition", "offset")}
    if table is None or len(names) != 2:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{node.name.upper()} needs a stream that declares the partition and the offset of its rows",
            hint="add the columns part INT METADATA FROM 'partition', place BIGINT METADATA FROM 'offset' to it, "
            "or use MAX_BY(value, ts)",
            span=span_of(node),
        )
    offset, partition = (
        exp.column(names[key], table=table.alias_or_name, quoted=True) for key in ("offset", "partition")
    )
    wide = exp.Cast(this=offset, to=exp.DataType.build("DECIMAL(20, 0)"))
    return exp.Add(this=exp.Mul(this=wide, expression=number(_PARTITIONS)), expression=partition)


def _rewritten(node: exp.Anonymous, place: exp.Expr) -> exp.Expr:
    """`(v)`, `(v, n)`, and both with whether to leave NULLs out, which is so unless it is said."""
    latest = _NAMES[node.name.lower()]
    value, *rest = node.expressions or [None]
    skips = True
    if rest and isinstance(rest[-1], exp.Boolean):
        skips = bool(rest.pop().this)
    count = whole_number(rest[0]) if len(rest) == 1 else None
    if value is None or len(rest) > 1 or (rest and not count):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{node.name.upper()} takes a column, perhaps how many values, and perhaps whether NULLs are left out",
            hint=f"write {node.name.upper()}(price), or {node.name.upper()}(price, 3)",
            span=span_of(node),
        )
    if not rest:
        return _there(_named(node, "MAX_BY" if latest else "MIN_BY", value.copy(), place), value, skips=skips)
    by = exp.Ordered(this=place, desc=latest, nulls_first=False)
    listed = _named(node, "ARRAY_AGG", exp.Order(this=value.copy(), expressions=[by]))
    first = call("SLICE", _there(listed, value, skips=skips), number(1), number(count or 1))
    return call("REVERSE", first) if latest else first


def _named(node: exp.Anonymous, name: str, *arguments: exp.Expr) -> exp.Anonymous:
    made = exp.Anonymous(this=name, expressions=list(arguments))
    made.meta.update(node.meta)
    return made


def _there(made: exp.Expr, value: exp.Expr, *, skips: bool) -> exp.Expr:
    if not skips:
        return made
    there = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    return exp.Filter(this=made, expression=exp.Where(this=there))
