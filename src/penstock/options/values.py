"""The kinds of value an option can have: how each is read, written back and described.

A kind reads an `OptionValue` as the parser hands it over and gives a Python value, or raises `ValueError` with what
it expected, never with what it got: only the caller knows whether the value may be shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from penstock.frozen import frozen
from penstock.options.keys import normalise
from penstock.options.units import read_duration, read_size
from penstock.secrets import Reference, Secret, carries_credentials, only_references, references
from penstock.sql.statements import OptionValue


@frozen
class Deferred:
    """A value with references inside (`SECRET name`, `${env:X}`, …): kept as written and read when it is used."""

    text: Secret
    references: tuple[Reference, ...]

    def __str__(self) -> str:
        """The value as it may be shown: whole where it is nothing but references, else a mask."""
        written = self.text.reveal()
        named = self.references[0].kind == "secret"
        return written if named or only_references(written) else str(self.text)


class Kind(Protocol):
    """One kind of option value."""

    @property
    def name(self) -> str:
        """What the documentation calls it."""

    def read(self, value: OptionValue) -> object:
        """The typed value; raises ValueError with the words after 'must be'."""

    def write(self, typed: object) -> OptionValue:
        """The canonical spelling of a typed value."""

    def sensitive(self, typed: object) -> bool:
        """Whether this value holds something that must not be shown although the option is public."""


def text_value(text: str) -> OptionValue:
    """An option value that is a string."""
    return OptionValue("text", Secret(text))


def deferred(value: OptionValue) -> Deferred | None:
    """The value as a `Deferred` where it holds a reference, else None."""
    written = value.reveal()
    if value.kind == "secret":
        return Deferred(Secret(f"SECRET {written}"), (Reference("secret", written),))
    found = references(written) if value.kind == "text" else ()
    return Deferred(value.text, found) if found else None


class _Plain:
    """What most kinds share."""

    __slots__ = ()

    def write(self, typed: object) -> OptionValue:
        return text_value(str(typed))

    def sensitive(self, typed: object) -> bool:
        # Whatever the option is for: an address with a password in it may have been given.
        return carries_credentials(typed) if isinstance(typed, str) else False


@frozen
class Text(_Plain):
    """Any text that is not empty; with `pattern`, text of that form, which `expects` puts into words."""

    name: str = "text"
    pattern: str | None = None
    expects: str = "a text that is not empty"
    empty: bool = False

    def read(self, value: OptionValue) -> object:
        written = value.reveal()
        if value.kind == "interval" or (not written and not self.empty):
            raise ValueError(self.expects)
        if self.pattern is not None and not re.fullmatch(self.pattern, written):
            raise ValueError(self.expects)
        return written


@frozen
class Word(Text):
    """The name of a connector or format; what is no plain name is not shown."""

    def sensitive(self, typed: object) -> bool:
        return not is_plain_name(str(typed))


@frozen
class Label(Text):
    """A name that the user makes up and sees everywhere, such as that of a job; `etl:orders@home` is no address."""

    def read(self, value: OptionValue) -> object:
        found = str(Text.read(self, value))  # a class with slots is made anew, and `super()` knows the old one
        # A job has a directory of this name.
        if not found.strip() or not found.isprintable() or not found.strip("."):
            raise ValueError("a name that can be shown")
        return found

    def sensitive(self, typed: object) -> bool:
        return False


def is_plain_name(text: str) -> bool:
    """Whether a text can be the name of a connector or format, so that an error may quote it."""
    return bool(re.fullmatch(r"\s*\w[\w.+/ -]*", text)) and "//" not in text


@frozen
class Url(_Plain):
    """An address; one that carries a user or parameters is not shown, nor what is no address at all."""

    name: str = "address"
    schemes: tuple[str, ...] = ("http", "https")

    def read(self, value: OptionValue) -> object:
        written = value.reveal()
        if value.kind != "text" or not self._is_address(written):
            raise ValueError(f"an address that begins with {' or '.join(f'{scheme}://' for scheme in self.schemes)}")
        return written

    def sensitive(self, typed: object) -> bool:
        return "@" in str(typed) or "?" in str(typed) or not self._is_address(str(typed))

    def _is_address(self, text: str) -> bool:
        scheme, found, rest = text.partition("://")
        return bool(found) and scheme.lower() in self.schemes and bool(rest.strip("/"))


@frozen
class Integer(_Plain):
    """A whole number, given as a number or as a string."""

    minimum: int | None = None
    maximum: int | None = None

    @property
    def name(self) -> str:
        return "positive integer" if self.minimum == 1 else "integer"

    def read(self, value: OptionValue) -> object:
        written = value.reveal().strip()
        if value.kind not in ("text", "number") or not re.fullmatch(r"[+-]?[0-9]{1,18}", written):
            raise ValueError(self._expects())
        number = int(written)
        if (self.minimum is not None and number < self.minimum) or (self.maximum is not None and number > self.maximum):
            raise ValueError(self._expects())
        return number

    def write(self, typed: object) -> OptionValue:
        return OptionValue("number", Secret(str(typed)))

    def _expects(self) -> str:
        if self.maximum is not None:
            return f"a whole number from {self.minimum} to {self.maximum}"
        if self.minimum == 1:
            return "a positive whole number"
        return "a whole number" if self.minimum is None else f"a whole number of at least {self.minimum}"


@frozen
class Real(_Plain):
    """A number, not below `minimum` (or not at it either, with `above`)."""

    name: str = "number"
    minimum: float | None = None
    above: bool = False

    def read(self, value: OptionValue) -> object:
        written = value.reveal().strip()
        if value.kind not in ("text", "number") or not re.fullmatch(
            r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", written
        ):
            raise ValueError(self._expects())
        number = float(written)
        if number in (float("inf"), float("-inf")):
            raise ValueError(self._expects())
        if self.minimum is not None and (number < self.minimum or (self.above and number == self.minimum)):
            raise ValueError(self._expects())
        return number

    def write(self, typed: object) -> OptionValue:
        whole = isinstance(typed, float) and typed.is_integer()
        return OptionValue("number", Secret(f"{typed:.0f}" if whole else repr(typed)))

    def _expects(self) -> str:
        if self.minimum is None:
            return "a number"
        return f"a number {'above' if self.above else 'of at least'} {self.minimum:g}"


@frozen
class Boolean(_Plain):
    """true or false."""

    name: str = "boolean"

    def read(self, value: OptionValue) -> object:
        written = value.reveal().strip().lower()
        if value.kind in ("text", "boolean") and written in ("true", "false"):
            return written == "true"
        raise ValueError("true or false")

    def write(self, typed: object) -> OptionValue:
        return OptionValue("boolean", Secret("true" if typed else "false"))


@frozen
class Duration(_Plain):
    """A length of time: an INTERVAL, or text such as '5 s' or '1min'. A bare number needs `unit`, its meaning."""

    name: str = "duration"
    unit: str | None = None
    zero: bool = False

    def read(self, value: OptionValue) -> object:
        if value.kind == "interval":
            length: timedelta | None = timedelta(microseconds=int(value.reveal()))
        elif value.kind in ("text", "number"):
            length = read_duration(value.reveal(), self.unit)
        else:
            length = None
        if length is None or length < timedelta(0):
            raise ValueError("a duration such as INTERVAL '5' SECOND, '5 s' or '1 min'")
        if not length and not self.zero:
            raise ValueError("a duration longer than zero")
        return length

    def write(self, typed: object) -> OptionValue:
        assert isinstance(typed, timedelta)
        return OptionValue("interval", Secret(str(typed // timedelta(microseconds=1))))


@frozen
class Size(_Plain):
    """A number of bytes: a bare number, or text such as '64 MB' or '1GiB'."""

    name: str = "size"

    def read(self, value: OptionValue) -> object:
        number = read_size(value.reveal()) if value.kind in ("text", "number") else None
        if not number:
            raise ValueError("a size such as 1048576, '64 MB' or '1 GiB'")
        return number

    def write(self, typed: object) -> OptionValue:
        return OptionValue("number", Secret(str(typed)))


@frozen
class Choice(_Plain):
    """One of a few words; `synonyms` are what other systems call them."""

    values: tuple[str, ...]
    synonyms: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return " or ".join(f"`{value}`" for value in self.values)

    def read(self, value: OptionValue) -> object:
        if value.kind in ("text", "boolean", "number"):
            wanted = normalise(value.reveal())
            for known in self.values:
                if normalise(known) == wanted:
                    return known
            for other, meaning in self.synonyms.items():
                if normalise(other) == wanted:
                    return meaning
        raise ValueError("one of " + ", ".join(f"'{value}'" for value in self.values))


@frozen
class Names(_Plain):
    """A list of words, separated by `,` or `;`."""

    name: str = "list"

    def read(self, value: OptionValue) -> object:
        words = tuple(word.strip() for word in re.split(r"[,;]", value.reveal()))
        if value.kind != "text" or not all(words) or len(set(words)) != len(words):
            raise ValueError("a list of names separated by commas, none of them empty or twice")
        return words

    def sensitive(self, typed: object) -> bool:
        return carries_credentials(",".join(typed) if isinstance(typed, tuple) else str(typed))

    def write(self, typed: object) -> OptionValue:
        assert isinstance(typed, tuple)
        return text_value(",".join(typed))


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Moment(_Plain):
    """A point in time: epoch milliseconds (DEC3) or ISO 8601 text, UTC where it names no zone."""

    name: str = "timestamp"

    def read(self, value: OptionValue) -> object:
        written = value.reveal().strip()
        if value.kind in ("text", "number") and re.fullmatch(r"-?[0-9]{1,15}", written):
            try:
                return _EPOCH + timedelta(milliseconds=int(written))
            except OverflowError:
                raise ValueError(self._expects) from None
        try:
            moment = datetime.fromisoformat(written) if value.kind == "text" else None
        except ValueError:
            moment = None
        if moment is None:
            raise ValueError(self._expects)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    def write(self, typed: object) -> OptionValue:
        assert isinstance(typed, datetime)
        return OptionValue("number", Secret(str((typed - _EPOCH) // timedelta(milliseconds=1))))

    @property
    def _expects(self) -> str:
        return "epoch milliseconds or a time such as '2026-01-31T12:00:00Z'"


@frozen
class Offsets(_Plain):
    """Start offsets for each partition, as Flink writes them: `partition:0,offset:42;partition:1,offset:300`."""

    name: str = "offsets"

    def read(self, value: OptionValue) -> object:
        found: dict[int, int] = {}
        for part in value.reveal().split(";"):
            match = re.fullmatch(r"\s*partition\s*:\s*([0-9]{1,9})\s*,\s*offset\s*:\s*([0-9]{1,18})\s*", part)
            if value.kind != "text" or not match or int(match[1]) in found:
                raise ValueError("offsets such as 'partition:0,offset:42;partition:1,offset:300'")
            found[int(match[1])] = int(match[2])
        return tuple(sorted(found.items()))

    def write(self, typed: object) -> OptionValue:
        assert isinstance(typed, tuple)
        return text_value(";".join(f"partition:{partition},offset:{offset}" for partition, offset in typed))
