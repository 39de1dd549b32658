"""What a format may reach beside its records: files with schemas, schema registries, the values behind references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from penstock.errors import OptionError, RuntimeFailure
from penstock.frozen import frozen
from penstock.options.values import Deferred
from penstock.secrets import Secret
from penstock.stores.files.listing import within

if TYPE_CHECKING:
    from penstock.formats.registry import Registry

_LARGEST: Final = 1 << 20  # bytes of a schema


def _plain(value: object) -> object:
    if isinstance(value, Deferred):
        raise OptionError("INVALID_OPTION", "an option of the format has references that cannot be read here")
    return value.reveal() if isinstance(value, Secret) else value


@frozen
class Outside:
    """Where files may lie (None: anywhere), how an option's value is read that has references in it, and how the schema
    registry is reached that options name."""

    roots: tuple[str, ...] | None = None
    reveal: Callable[[object], object] = _plain
    registry: Callable[[Mapping[str, object]], Registry] | None = None

    def text(self, options: Mapping[str, object], key: str) -> str | None:
        """The value of an option, its references read."""
        value = options.get(key)
        return None if value is None else str(self.reveal(value))

    def file(self, options: Mapping[str, object], key: str) -> bytes | None:
        """What is in the file that an option names; None where it names none."""
        named = self.text(options, key)
        if named is None:
            return None
        place = urlsplit(named)
        if place.scheme not in ("", "file"):
            raise OptionError("INVALID_OPTION", f"{key} is a file of this machine", hint=f"write {key} = '/path/to/it'")
        path = Path(unquote(place.path) if place.scheme else named)
        if self.roots is not None and not within(str(path), self.roots):
            raise RuntimeFailure(
                "PATH_NOT_ALLOWED",
                f"the file of {key} lies outside the allowed directories",
                hint="the setting allowed_paths names the directories that files may lie in",
            )
        try:
            with path.open("rb") as file:
                found = file.read(_LARGEST + 1)
        except OSError as error:
            raise OptionError(
                "INVALID_OPTION",
                f"the file of {key} cannot be read: {(error.strerror or 'error').lower()}",
                hint="make it a file that Penstock may read",
            ) from None
        if len(found) > _LARGEST:
            raise OptionError("INVALID_OPTION", f"the file of {key} is larger than {_LARGEST} bytes")
        return found
