"""Materialized views below a query: the view store has their rows, so that Spark has no part in reading them.

A view over views is answered in the transaction of the batch that changes one of them, for the keys of the rows that
came, left or changed there. So all of them always show the same batch. Where a view reads streams beside views, it has
batches of its own as well, whose rows are kept as those of any stream are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeGuard

from sqlglot import exp

from penstock.errors import NotYetError
from penstock.plan.core_rows import in_store
from penstock.plan.finish_orders import NotFinishableError
from penstock.plan.finish_plan import CLOCK_CALL, FORGOTTEN, KeptColumn
from penstock.plan.nodes import Aggregate, Core, Scan
from penstock.plan.store_terms import UNKNOWN, kept
from penstock.plan.store_text import kept_query
from penstock.plan.trees import aliased, call, column, identifier, select, typed
from penstock.sql.statements import Emit
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.errors import Span
    from penstock.plan.core_rows import CoreRows
    from penstock.plan.finish_plan import FinishPlan, KeptRows
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.nodes import Node
    from penstock.plan.store_asked import AskedOfSpark
    from penstock.types import SqlType

_KEY: Final = "__row_key"  # how columns begin that a query does not read, and that tell the rows of a view apart


def of_views(
    rows: CoreRows, known: Mapping[str, Scan | Core], asked: AskedOfSpark, *, forgotten: bool = False
) -> tuple[KeptRows, ...]:
    """The rows that a finish reads; those of materialized views and of dimensions with the text that gives them.
    `forgotten`: a row of a view counts for a time only, from when it came there.

    Raises DiffersError where something in it cannot be computed.
    """
    return tuple(
        _of_view(rows, place, found, scan, asked, forgotten=forgotten and _is_view(scan))
        if in_store(scan := known[found.relation])
        else found
        for place, found in enumerate(rows.kept)
    )


def _is_view(scan: Scan | Core) -> TypeGuard[Scan]:
    return isinstance(scan, Scan) and scan.kind == "materialized view"


def _of_view(
    rows: CoreRows, place: int, found: KeptRows, scan: Scan, asked: AskedOfSpark, *, forgotten: bool
) -> KeptRows:
    if forgotten:
        found = _forgotten(found, scan)
    source = exp.Table(this=identifier(scan.relation), alias=exp.TableAlias(this=identifier(scan.relation)))
    where = rows.condition(place)
    own = {entry.name for entry in rows.kept[place].columns}
    items: list[exp.Expr] = [
        aliased(rows.value(entry.name) if entry.name in own else _added(entry.name, scan), entry.name)
        for entry in found.columns
    ]
    block = select(items, source, **({"where": exp.Where(this=where)} if where is not None else {}))
    types: dict[str, SqlType | None] = {field.name: kept(field.type) or UNKNOWN for field in scan.fields}
    text, columns = kept_query(block, {scan.relation: types}, asked)
    if not _is_view(scan) and any(kind is None or kind == UNKNOWN for _, kind in columns):
        raise NotFinishableError(f'the type of a column of "{scan.relation}" is not known before it runs')
    typed = zip(found.columns, columns, strict=True)
    return replace(
        found,
        columns=tuple(replace(entry, type=kind or UNKNOWN) for entry, (_, kind) in typed),
        read=text,
        dimension=not _is_view(scan),
    )


def _forgotten(found: KeptRows, scan: Scan) -> KeptRows:
    """The rows of a view with a time until which each counts, and with the key that tells them apart: one that takes
    the place of another has come then, also where the query reads the same of both."""
    keys = [f"{_KEY}{place}" for place, _ in enumerate(scan.key or ())]
    return replace(
        found,
        columns=(*found.columns, *(KeptColumn(name, None) for name in (*keys, FORGOTTEN))),
        shown=(*found.shown, *(scan.key or ()), "its time by state_ttl"),
        until=(*found.until, FORGOTTEN),
        stamps=(*found.stamps, FORGOTTEN),
    )


def _added(name: str, scan: Scan) -> exp.Expr:
    """What a column holds that the query does not read."""
    if name == FORGOTTEN:
        return typed(call(CLOCK_CALL), TIMESTAMP)
    key = (scan.key or ())[int(name.removeprefix(_KEY))]
    return column(key, scan.relation)


def parents_of(plan: FinishPlan) -> tuple[str, ...]:
    """The materialized views that a finish reads, each once."""
    return tuple(dict.fromkeys(rows.relation for rows in plan.rows if rows.of_view))


def view_words(plan: FinishPlan) -> str:
    """For EXPLAIN: who answers a query over materialized views alone, and when."""
    names = parents_of(plan)
    who = "" if plan.asked else "no Spark: "
    if not names:
        return f"{who}the view store answers the query once, from the rows that are written out in it"
    whose = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return f"{who}in the transaction of each batch that changes {whose}, the view store answers the query"


def sink_words(views: tuple[str, ...], how: str, *, added: bool) -> str:
    """For EXPLAIN: what is written to a sink over materialized views."""
    if added:
        return (
            f"no Spark: the rows of each commit of {views[0]} are read from the view store and written; nothing is kept"
        )
    return f"{how}; the changes of each commit are written to the sink"


def check_views(plan: LogicalPlan, known: Mapping[str, Scan | Core]) -> None:
    """What is not answered over materialized views; NotFinishableError says why."""
    if not any(_is_view(found) for found in known.values()):
        return
    if plan.emit is not Emit.CHANGES and any(
        isinstance(node, Aggregate) and node.window is not None for node in _above_cores(plan.root)
    ):
        raise NotFinishableError(
            "its windows would have to close, and no watermark comes with rows of a view that change",
            "write EMIT CHANGES: the view shows each window as its rows change",
        )


def _above_cores(node: Node) -> Iterator[Node]:
    """The operators that the view store answers; what Spark does below them closes its own windows."""
    yield node
    for below in node.inputs if not isinstance(node, Core) else ():
        yield from _above_cores(below)


def cannot_read(what: str, views: list[str], reason: str, span: Span | None, hint: str | None = None) -> NotYetError:
    """The error for a view or a sink over materialized views that cannot be kept."""
    names = ", ".join(f'"{name}"' for name in dict.fromkeys(views))
    return NotYetError(
        "QUERY_NOT_YET",
        f"a {what} over materialized view {names} with this query is not there yet: {reason}",
        hint="; or ".join(
            filter(None, [hint, f"build on what {names} is built on: put its query in the place of its name"])
        ),
        span=span,
    )
