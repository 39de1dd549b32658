"""What windows in GROUP BY stand on: times that nobody wrote, and relations that have window bounds of their own.

ksqlDB's windows name no time. Over a source whose rows change that is its event time, over a materialized view the one
TIMESTAMP that it has. A view of windows has a column window_start already, as the rows of further windows would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.model import MaterializedViewDefinition, SourceDefinition
from penstock.plan.trees import own_nodes
from penstock.sql.nodes import WindowCall
from penstock.sql.statements import Name
from penstock.types import TIMESTAMP

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog

_ADDED: Final = ("window_start", "window_end", "window_time")


def with_window_times(catalog: Catalog, written: exp.Select) -> exp.Select:
    """The SELECT with times in its windows that name none, where the event time of the input does not say them."""
    calls = [call for call in _windows(written) if call.args.get("time") is None]
    source = _source(catalog, written) if calls else None
    time = None
    if isinstance(source, SourceDefinition) and source.mode != "append" and source.event_time is not None:
        time = source.event_time.column
    elif isinstance(source, MaterializedViewDefinition) and source.event_time is None:
        times = [entry.name for entry in source.columns if entry.type == TIMESTAMP]
        time = times[0] if len(times) == 1 else None
    if time is None:
        return written
    made = written.copy()
    for call in list(made.find_all(WindowCall)):
        if call.args.get("time") is None:
            call.set("time", exp.column(time, quoted=True))
    return made


def without_own_bounds(catalog: Catalog, written: exp.Select) -> exp.Select:
    """The SELECT with other names for window bounds that its relation has already, so that windows may have them."""
    source = _source(catalog, written) if _windows(written) else None
    if not isinstance(source, MaterializedViewDefinition | SourceDefinition):
        return written
    taken = {entry.name.casefold() for entry in source.columns}
    clashing = {entry.name: _free(entry.name, taken) for entry in source.columns if entry.name.casefold() in _ADDED}
    if not clashing or any(item.is_star for item in written.expressions):
        return written
    made = written.copy()
    table = made.args["from_"].this
    alias = table.alias_or_name
    shown = [
        exp.alias_(exp.column(entry.name, quoted=True), clashing.get(entry.name, entry.name), quoted=True)
        for entry in source.columns
    ]
    plain = table.copy()
    plain.set("alias", None)
    query = exp.Select(expressions=shown, from_=exp.From(this=plain))
    table.replace(exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
    for item in list(made.expressions):
        if isinstance(item, exp.Column) and item.name.casefold() in _ADDED:
            item.replace(exp.alias_(item.copy(), item.name))
    clauses = [made.args.get(clause) for clause in ("where", "group", "having", "qualify", "order")]
    for part in [*made.expressions, *(clause for clause in clauses if clause is not None)]:
        for node in list(own_nodes(part)):
            if isinstance(node, exp.Column) and node.table in ("", alias):
                found = next((name for name in clashing if name.casefold() == node.name.casefold()), None)
                if found is not None:
                    node.set("this", exp.to_identifier(clashing[found], quoted=True))
    return made


def _free(name: str, taken: set[str]) -> str:
    while name.casefold() in taken:
        name = f"own_{name}"
    return name


def _windows(written: exp.Select) -> list[WindowCall]:
    group = written.args.get("group")
    return [key for key in group.expressions if isinstance(key, WindowCall)] if isinstance(group, exp.Group) else []


def _source(catalog: Catalog, written: exp.Select) -> object:
    """The one relation that a SELECT reads, where it reads one by its name."""
    from_ = written.args.get("from_")
    table = from_.this if isinstance(from_, exp.From) else None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return None
    if table.args.get("db") is not None or written.args.get("joins") or table.args.get("joins"):
        return None
    return catalog.find(Name(table.name, quoted=bool(table.this.quoted)))
