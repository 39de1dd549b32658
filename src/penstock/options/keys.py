"""How option keys are compared: without regard to case, and with `-`, `_` and `.` as one character."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_SEPARATORS: Final = str.maketrans("-.", "__")


def normalise(key: str) -> str:
    """The form in which two spellings of a key are compared (DEC9).

    >>> normalise("Properties.Bootstrap-Servers")
    'properties_bootstrap_servers'
    """
    return key.strip().lower().translate(_SEPARATORS)


def nearest(word: str, known: Iterable[str], count: int = 1, cutoff: float = 0.6) -> tuple[str, ...]:
    """The known words most like `word`, best first, none when nothing comes close.

    >>> nearest("batchsize", ["batch_size", "topic"])
    ('batch_size',)
    """
    # Imported here because only errors need it, and start-up time is shared by every command.
    from difflib import get_close_matches

    spelt = {normalise(candidate): candidate for candidate in known}
    return tuple(spelt[match] for match in get_close_matches(normalise(word), spelt, n=count, cutoff=cutoff))
