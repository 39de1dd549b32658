"""The schema that FROM_JSON, FROM_CSV and FROM_XML are given as a text: columns, a type, or Spark's JSON of either.

Only what Spark's parser surely refuses is found here; what it may know of types that come later is let through by name.
"""

from __future__ import annotations

import json
import re
from typing import Final

_TOKEN: Final = re.compile(r"`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|[<>(),:-]")
_TYPES: Final = frozenset({
    "array", "bigint", "binary", "boolean", "byte", "char", "character", "date", "dec", "decimal", "double",
    "float", "geography", "geometry", "int", "integer", "interval", "long", "map", "numeric", "real", "short",
    "smallint", "string", "struct", "time", "timestamp", "timestamp_ltz", "timestamp_ntz", "tinyint", "varchar",
    "variant", "void",
})  # fmt: skip
_NESTED: Final = {"array": 1, "map": 2}
# Words that may stand behind a type: of times, intervals, texts and columns.
_BEHIND: Final = frozenset({
    "with", "without", "local", "time", "zone", "year", "month", "day", "hour", "minute", "second", "to",
    "collate", "not", "null", "comment", "default",
})  # fmt: skip


class _Fault(Exception):
    """What stands where something else is wanted."""


def schema_fault(text: str) -> str | None:
    """What is wrong with a schema, in words; None where nothing is.

    >>> schema_fault("a INT, b ARRAY<STRUCT<c: STRING>>"), schema_fault("MAP<STRING, INT>")
    (None, None)
    >>> schema_fault("nope nope nope"), schema_fault("a INT, ")
    ("'nope' is no type", 'a name is missing at its end')
    """
    if text.lstrip().startswith(("{", '"')):
        return None if _is_json(text) else "it is no JSON"
    reading = _Reading(text)
    try:
        if reading.is_type():
            return None
        reading.columns(end=None)
    except _Fault as fault:
        return str(fault)
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


class _Reading:
    """The tokens of a schema, from the first to the last."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        rest = _TOKEN.sub("", text).strip()
        self._strange = rest[:1]
        self._at = 0

    def is_type(self) -> bool:
        """Whether all of it is one type; else it is read as columns, from the beginning."""
        try:
            self._type()
        except _Fault:
            if self._tokens[1:2] == ["<"]:
                raise
            self._at = 0
            return False
        whole = self._at == len(self._tokens) and not self._strange
        self._at = self._at if whole else 0
        return whole

    def columns(self, end: str | None) -> None:
        """Columns up to a bracket, or to the end."""
        if self._strange:
            raise _Fault(f"'{self._strange}' stands in it")
        if end is not None and self._next == end:
            return
        while True:
            self._name()
            if self._next == ":":
                self._at += 1
            self._type()
            if self._next == end:
                return
            self._take(",")

    @property
    def _next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _name(self) -> None:
        found = self._next
        if found is None or not (found[0] == "`" or re.fullmatch(r"\w+", found)):
            raise _Fault(f"a name is missing {_place(found)}")
        self._at += 1

    def _type(self) -> None:
        found = self._next
        word = (found or "").lower()
        if word not in _TYPES:
            raise _Fault("a type is missing at its end" if found is None else f"'{found}' is no type")
        self._at += 1
        if word in _NESTED or (word == "struct" and self._next == "<"):
            self._take("<")
            if word == "struct":
                self.columns(end=">")
            else:
                self._types(_NESTED[word])
            self._take(">")
        elif self._next == "(":
            self._parameters()
        self._behind()

    def _types(self, count: int) -> None:
        for place in range(count):
            if place:
                self._take(",")
            self._type()

    def _parameters(self) -> None:
        while self._next not in (")", None):
            self._at += 1
        self._take(")")

    def _behind(self) -> None:
        """NOT NULL, COMMENT '…', COLLATE name, WITHOUT TIME ZONE, DAY TO SECOND."""
        while (found := self._next) is not None and found.lower() in _BEHIND:
            self._at += 1
            if found.lower() in ("collate", "comment", "default"):
                self._at += 1

    def _take(self, token: str) -> None:
        found = self._next
        if found != token:
            raise _Fault(f"'{token}' is missing {_place(found)}")
        self._at += 1


def _place(found: str | None) -> str:
    return "at its end" if found is None else f"before '{found}'"
