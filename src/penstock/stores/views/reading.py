"""Queries over views: one SELECT, one snapshot.

The text comes from our planner. A view stands in it under its own quoted name, a system table or other Arrow table
under the name it is given with (a dotted name is one quoted name). For the time of the query each becomes a temporary
view of the reader's connection, with the visible rows and columns only; the tables of the store cannot be named.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.stores.duckdb_types import from_duckdb, quoted, to_duckdb
from penstock.stores.views.added_view import AddedView
from penstock.stores.views.database import fetched
from penstock.stores.views.finish_view import FinishView
from penstock.stores.views.model import Answer, AsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import duckdb
    import pyarrow as pa

    from penstock.stores.views.view_table import ViewTable

# Text in quotes, and names with quotes and without.
_WORDS: Final = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)"|([^\W\d]\w*)""")


def answer(
    reader: duckdb.DuckDBPyConnection,
    sql: str,
    relations: Mapping[str, pa.Table],
    views: Mapping[str, ViewTable],
) -> Answer:
    """Run a query in the reader's snapshot. A reader whose query failed is not used again."""
    given = list(relations)
    found = _named(sql, (name for name in views if name not in relations))
    for name in given:
        reader.register(name, to_duckdb(relations[name]))
    for name in found:
        reader.execute(f"CREATE TEMP VIEW {quoted(name)} AS {views[name].select()}")
    read = reader.get_table_names(sql, qualified=True) if found else set()
    table = from_duckdb(fetched(reader, sql))
    used = {name: views[name] for name in found if f"store.v{views[name].id}" in read}
    latest = as_of(reader, used)
    for name in given:
        reader.unregister(name)
    return Answer(table, latest)


def as_of(reader: duckdb.DuckDBPyConnection, views: Mapping[str, ViewTable]) -> dict[str, AsOf]:
    """The last batch of each view, and the watermark it had.

    A view that is built on others shows the batch of the job below. Where there are several such jobs it has no batch
    of its own, and what they have committed is told beside it.
    """
    if not views:
        return {}
    every = {below.id: below for view in views.values() for below in (view, *_below(view))}
    numbers = ", ".join(map(str, every))
    rows = reader.execute(
        f"SELECT view, max(batch), max_by(struct_pack(wm := wm), batch) FROM store.ledger WHERE view IN ({numbers}) "
        "GROUP BY view"
    ).fetchall()
    latest: dict[int, AsOf] = {view: (batch, mark["wm"]) for view, batch, mark in rows}
    found: dict[str, AsOf] = {}
    for name, view in views.items():
        shown = _shown(view, latest)
        if len(shown) == 1:
            found[name] = next(iter(shown.values()))
        else:
            marks = [mark for _, mark in shown.values()]
            known = [mark for mark in marks if mark is not None]
            found[name] = (None, min(known) if known and len(known) == len(marks) else None)
            found |= {every[number].spec.name: latest[number] for number in shown if number in latest}
    return found


def _below(view: ViewTable) -> Iterator[ViewTable]:
    for parent in view.parents:
        yield parent
        yield from _below(parent)


def _shown(view: ViewTable, latest: Mapping[int, AsOf]) -> dict[int, AsOf]:
    """The batches that a view shows, by the number of the view of each job."""
    fed = isinstance(view, AddedView | FinishView) and view.fed
    own = {view.id: latest.get(view.id, (None, None))}
    if not view.parents or (view.id in latest and not fed):
        return own
    found: dict[int, AsOf] = own if fed else {}
    for parent in view.parents:
        found |= _shown(parent, latest)
    return found


def _named(sql: str, views: Iterable[str]) -> list[str]:
    """The views whose names stand in the text, exactly or, where none does, in another case; each name once."""
    words = {found[1].replace('""', '"') if found[1] is not None else found[2] for found in _WORDS.finditer(sql)}
    folded = {word.lower() for word in words if word is not None}
    result: dict[str, str] = {}
    for view in views:
        if view in words or (view.lower() in folded and view.lower() not in result):
            result[view.lower()] = view
    return list(result.values())
