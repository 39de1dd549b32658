"""What a prompt needs to know of the text that is typed: whether it is whole, what is remembered, what fits next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from penstock.sql.lexical import first_words, split

if TYPE_CHECKING:
    from penstock.plan.session import Session

_SETS: Final = (["EXECUTE", "STATEMENT", "SET"], ["BEGIN", "STATEMENT", "SET"])
_END_OF_SET: Final = re.compile(r"\bEND\s*;\s*\Z", re.IGNORECASE)


def is_complete(text: str) -> bool:
    """Whether the last statement of a text is ended by a semicolon; commands of the prompt and blanks need none.

    >>> is_complete("SELECT ';'"), is_complete("SELECT ';'; -- done"), is_complete(r"\\\\d")
    (False, True, True)
    """
    if text.lstrip().startswith("\\") or not text.strip():
        return True
    if first_words(text, 0, len(text), 3) in _SETS and _END_OF_SET.search(text) is None:
        return False
    # One more word: where it begins a statement of its own, the one before has ended.
    pieces = split(f"{text}\nX")
    return bool(pieces) and pieces[-1].start == len(text) + 1


def remembered(text: str) -> str:
    """A text as the history keeps it: everything that may be secret is replaced.

    >>> remembered("CREATE SECRET p AS 'hunter2';")
    'CREATE SECRET p AS *********;'
    """
    if text.lstrip().startswith("\\"):
        return text
    from penstock.plan.script import read_script

    statements, source = read_script(text)
    return source.masked if statements else ""


def words_for(session: Session | None) -> list[str]:
    """What can be completed: keywords, functions, and the names in the catalog."""
    from penstock.catalog.functions import known_functions
    from penstock.sql.redact import FIRST_WORDS
    from penstock.sql.tokens import WORDS

    found: dict[str, None] = dict.fromkeys(word for word in (*FIRST_WORDS, *WORDS, *_MORE) if word.isalpha())
    found |= dict.fromkeys(known_functions())
    if session is not None:
        found |= dict.fromkeys(_names(session))
    return list(found)


_MORE: Final = (
    "MATERIALIZED",
    "VIEW",
    "STREAM",
    "SINK",
    "SOURCE",
    "SECRET",
    "CONNECTION",
    "WATERMARK",
    "EMIT",
    "CHANGES",
    "FINAL",
)


def _names(session: Session) -> Iterator[str]:
    from penstock.catalog.system import SYSTEM_TABLES

    for item in session.catalog:
        yield item.name.text
    for relation in session.catalog.relations():
        for column in relation.columns:
            yield column.name
    for table in SYSTEM_TABLES:
        yield table.name
    yield from session.jobs


def completions(words: Iterable[str], typed: str) -> list[str]:
    """The words that begin with what is typed: names as they are, keywords in the case of the typed letters.

    >>> completions(["SELECT", "SET", "seller"], "se")
    ['select', 'seller', 'set']
    """
    if not typed:
        return []
    found = {
        word.lower() if word.isupper() and typed.islower() else word
        for word in words
        if word.lower().startswith(typed.lower()) and word.lower() != typed.lower()
    }
    return sorted(found, key=str.lower)
