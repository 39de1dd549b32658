"""The values behind references in options, read when they are used: `SECRET name`, `${env:X}`, `${file:…}`.

The engine tells once, for its state directory, how a secret of the catalog is found. Nothing here is kept or printed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from penstock.errors import OptionError
from penstock.frozen import frozen
from penstock.options.values import Deferred
from penstock.secrets import Reference, Secret, filled_in
from penstock.stores.files.faults import outside
from penstock.stores.files.listing import within


@frozen
class _Known:
    """How the secrets of a state directory are found, and where files may lie; None: anywhere."""

    find: Callable[[str], Secret]
    roots: tuple[str, ...] | None


_known: Final[dict[Path, _Known]] = {}


def use_secrets(state_path: Path, find: Callable[[str], Secret], roots: tuple[str, ...] | None = None) -> None:
    """From now on the secrets of this state directory are found so, and files with values lie below `roots`."""
    _known[state_path] = _Known(find, roots)


def forget_secrets(state_path: Path) -> None:
    """The database is closed."""
    _known.pop(state_path, None)


def revealed(value: object, state_path: Path, given: Mapping[str, Secret] | None = None) -> object:
    """An option's value with its references read; what has none is given back, a secret as its text.

    `given` are secrets of the same statement, which may not be kept yet.
    """
    if isinstance(value, Secret):
        return value.reveal()
    if not isinstance(value, Deferred):
        return value
    if [reference.kind for reference in value.references] == ["secret"]:
        own = (given or {}).get(value.references[0].name)
        return _read(value.references[0], state_path) if own is None else own.reveal()
    return filled_in(value.text.reveal(), lambda reference: _read(reference, state_path))


def read_reference(reference: Reference, roots: tuple[str, ...] | None) -> str:
    """What an environment variable or a file below `roots` holds; a line end behind it is not part of it."""
    if reference.kind == "env":
        found = os.environ.get(reference.name)
        if found is None:
            raise OptionError(
                "INVALID_OPTION",
                f"environment variable {reference.name} is not set",
                hint="set it before Penstock is started",
            )
        return found
    if roots is not None and not within(reference.name, roots):
        raise outside(f"${{file:{reference.name}}}", reference.name)
    try:
        return Path(reference.name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            "INVALID_OPTION",
            f"file {reference.name} of an option cannot be read: {type(error).__name__}",
            hint="make it a text file that Penstock may read",
        ) from None


def _read(reference: Reference, state_path: Path) -> str:
    known = _known.get(state_path)
    if reference.kind != "secret":
        return read_reference(reference, None if known is None else known.roots)
    if known is None:
        raise OptionError("UNKNOWN_SECRET", f"secret {reference.name} cannot be read", hint="the database is closed")
    return known.find(reference.name).reveal()
