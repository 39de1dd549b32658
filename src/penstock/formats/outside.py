"""What a format may reach beside its records: files with schemas, schema registries, the values behind references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote, urlsplit

from penstock.errors import OptionError, RuntimeFailure
from penstock.frozen import frozen
from penstock.options.values import Deferred
from penstock.secrets import Secret
from penstock.stores.files.listing import within

if TYPE_CHECKING:
    from penstock.formats.registry import Registry

T = TypeVar("T")

_LARGEST: Final = 1 << 20  # bytes of a schema


def _plain(value: object) -> object:
    if isinstance(value, Deferred):
        raise OptionError("INVALID_OPTION", "an option of the format has references that cannot be read here")
    return value.reveal() if isinstance(value, Secret) else value


class KeptReadings:
    """What was found outside when it was first asked for, whatever has become of it since.

    The rows of a job are judged more than once: as they come, and again to tell which of them were bad or late. Were a
    schema's file read anew for that, a row could be bad at first and good then, and would be nowhere.
    """

    def __init__(self) -> None:
        self._found: dict[object, tuple[object, Callable[[], object]]] = {}

    def once(self, what: object, look: Callable[[], T]) -> T:
        """What a look at a thing finds, or has found the first time."""
        if what not in self._found:
            self._found[what] = (look(), look)
        found: T = self._found[what][0]  # type: ignore[assignment]
        return found

    def differ(self) -> bool:
        """Whether a look would find something else today."""
        return any(look() != found for found, look in tuple(self._found.values()))


@frozen
class Outside:
    """Where files may lie (None: anywhere), how an option's value is read that has references in it, and how the schema
    registry is reached that options name. `kept` has the files and values of who must find the same again; None: they
    are read anew each time."""

    roots: tuple[str, ...] | None = None
    reveal: Callable[[object], object] = _plain
    registry: Callable[[Mapping[str, object]], Registry] | None = None
    kept: KeptReadings | None = None

    def text(self, options: Mapping[str, object], key: str) -> str | None:
        """The value of an option, its references read."""
        value = options.get(key)
        return None if value is None else self._once(value, lambda: str(self.reveal(value)))

    def file(self, options: Mapping[str, object], key: str) -> bytes | None:
        """What is in the file that an option names; None where it names none."""
        named = self.text(options, key)
        if named is None:
            return None
        place = urlsplit(named)
        if place.scheme not in ("", "file"):
            raise OptionError("INVALID_OPTION", f"{key} is a file of this machine", hint=f"write {key} = '/path/to/it'")
        path = Path(unquote(place.path) if place.scheme else named)
        return self._once(path, lambda: self._read(path, key))

    def _once(self, what: object, look: Callable[[], T]) -> T:
        return look() if self.kept is None else self.kept.once(what, look)

    def _read(self, path: Path, key: str) -> bytes:
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
