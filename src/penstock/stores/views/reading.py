"""Queries over views: one SELECT, one snapshot.

The text comes from our planner. A view stands in it under its own quoted name, a system table or other Arrow table
under the name it is given with (a dotted name is one quoted name). For the time of the query each becomes a temporary
view of the reader's connection, with the visible rows and columns only; the tables of the store cannot be named.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.stores.duckdb_types import from_duckdb, quoted, to_duckdb
from penstock.stores.views.database import fetched
from penstock.stores.views.model import Answer, AsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
    """The last batch of each view, and the watermark it had."""
    if not views:
        return {}
    numbers = ", ".join(str(view.id) for view in views.values())
    rows = reader.execute(
        f"SELECT view, max(batch), max_by(struct_pack(wm := wm), batch) FROM store.ledger WHERE view IN ({numbers}) "
        "GROUP BY view"
    ).fetchall()
    latest: dict[int, AsOf] = {view: (batch, mark["wm"]) for view, batch, mark in rows}
    return {name: latest.get(view.id, (None, None)) for name, view in views.items()}


def _named(sql: str, views: Iterable[str]) -> list[str]:
    """The views whose names stand in the text, exactly or, where none does, in another case; each name once."""
    words = {found[1].replace('""', '"') if found[1] is not None else found[2] for found in _WORDS.finditer(sql)}
    folded = {word.lower() for word in words if word is not None}
    result: dict[str, str] = {}
    for view in views:
        if view in words or (view.lower() in folded and view.lower() not in result):
            result[view.lower()] = view
    return list(result.values())
