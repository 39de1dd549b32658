"""What a schema registry is to formats: schemas by number and by subject, and the five bytes before each record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from penstock.errors import OptionError

MAGIC: Final = b"\x00"
SIDE: Final = "record_side"  # where options say whether they are those of keys
HEAD: Final = 5  # the magic byte and the number of the schema


# Another schema that a schema needs: the name by which it asks for it, and its subject and version in the registry.
Reference = tuple[str, str, int]


class Registry(Protocol):
    """A schema registry. A schema never changes under its number, so each is asked for once."""

    def by_id(self, number: int) -> str | None:
        """The schema of a number; None where there is none."""

    def versions(self, subject: str) -> Sequence[tuple[int, str]]:
        """The schemas of a subject with their numbers, the newest last; none where there is no such subject."""

    def register(self, subject: str, text: str, kind: str = "AVRO", references: Sequence[Reference] = ()) -> int:
        """The number of a schema, which is put into the subject where it is not there yet."""

    def version_of(self, subject: str, text: str, kind: str, references: Sequence[Reference] = ()) -> int:
        """Which version of its subject a schema is that was registered."""

    def learned(self, scope: str) -> Sequence[int]:
        """The numbers that records of a scope had although its subjects do not list them."""

    def learn(self, scope: str, number: int) -> None:
        """Remember such a number as long as the process lives."""


def uses_registry(format_name: str | None, options: Mapping[str, object]) -> bool:
    """Whether records of a relation begin with the number of their schema."""
    if format_name == "avro-confluent":
        return True
    asked = options.get("avro.confluent_schema_registry") is True or options.get("schema_registry.url") is not None
    return format_name == "avro" and asked


def head(number: int) -> bytes:
    """What stands before a record of a schema.

    >>> head(12345).hex()
    '0000003039'
    """
    return MAGIC + number.to_bytes(HEAD - 1, "big")


def subjects_of(options: Mapping[str, object]) -> tuple[str, ...]:
    """The subjects that the records of a relation have their schemas in; none where records themselves name them.

    >>> subjects_of({"topic": ("a", "b")}), subjects_of({"topic": "a", "schema_registry.subject": "s"})
    (('a-value', 'b-value'), ('s',))
    """
    named = options.get("schema_registry.subject") or options.get(f"{options.get(SIDE, 'value')}.subject")
    if named is not None:
        return (str(named),)
    if options.get("schema_registry.naming", "topic") != "topic":
        return ()
    return tuple(f"{topic}-{options.get(SIDE, 'value')}" for topic in _topics(options))


def subject_to_write(options: Mapping[str, object], record: str) -> str:
    """The subject of a sink, by the name of its record.

    >>> subject_to_write({"topic": "t", "schema_registry.naming": "topic_record"}, "shop.Trade")
    't-shop.Trade'
    """
    naming = options.get("schema_registry.naming", "topic")
    found = subjects_of(options)
    if found:
        return found[0]
    if naming == "record":
        return record
    for topic in _topics(options):
        return f"{topic}-{record}"
    raise OptionError(
        "MISSING_OPTION", "the subject of the schema registry is not known", hint="add schema_registry.subject = '…'"
    )


def _topics(options: Mapping[str, object]) -> tuple[str, ...]:
    found = options.get("topic")
    if found is None:
        return ()
    return tuple(str(one) for one in found) if isinstance(found, tuple) else (str(found),)
