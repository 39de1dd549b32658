"""Names that nothing can have, quoted or not: they would show as nothing, or lead out of the state directory."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from penstock.catalog.system import find_system

_LONGEST: Final = 200  # of the file that is named after it, where a letter may take several bytes


def name_problem(text: str) -> str | None:
    """Why no object can have a name, to follow the words "the name"; None where it can.

    >>> name_problem(" "), name_problem("a\\nb"), name_problem(".."), name_problem("a.b c")
    ('is empty', 'holds a character that cannot be shown', 'is made of dots only', None)
    """
    if not text.strip():
        return "is empty"
    if not text.isprintable():
        return "holds a character that cannot be shown"
    if not text.strip("."):
        return "is made of dots only"
    if len(quote(text, safe="")) > _LONGEST:
        return f"is too long: at most {_LONGEST} plain letters"
    if find_system(text) is not None:
        return "is that of a system table"
    return None
