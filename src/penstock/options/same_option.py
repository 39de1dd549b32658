"""Whether two keys mean the same option, whatever their spelling."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.options.choosing import guess_connector, guess_formats
from penstock.options.jobs import view_table
from penstock.options.keys import normalise
from penstock.options.matching import key_table
from penstock.sql.statements import Option


def option_slot(options: Iterable[Option], *, view: bool = False) -> Callable[[str], str]:
    """Gives the canonical key of any spelling, for the connector and formats that these options name."""
    given = tuple(options)
    connector = guess_connector(given)
    if view:
        table = view_table()
    elif connector is None:
        return normalise
    else:
        table = key_table(connector, *guess_formats(given), job=True)

    def slot(key: str) -> str:
        found = table.find(key)
        return found.slot if found is not None else normalise(key)

    return slot
