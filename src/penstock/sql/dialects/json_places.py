"""JSON inside a string of the user's, with the place of every part, so that errors can point at it.

Also what of it may be shown depends on that: an option has the stretch of its own value, and of nothing beside it.
"""

from __future__ import annotations

import json
from typing import Final

from penstock.errors import Span
from penstock.frozen import frozen

_BLANKS: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()


@frozen
class Node:
    """A value: a dict of members by name, a list of nodes, or a scalar; and where it stands."""

    value: object
    span: Span

    @property
    def members(self) -> dict[str, Member]:
        """The members of an object; none of anything else."""
        return self.value if isinstance(self.value, dict) else {}


@frozen
class Member:
    """A member of an object, and where its name stands."""

    node: Node
    key_span: Span


def read_json(text: str, span: Span, source: str) -> Node:
    """The JSON in a string literal at `span` of the source; raises ValueError where it is none."""
    json.loads(text)
    plain = source[span.start + 1 : span.end - 1] == text
    return _Reader(text, span, plain=plain).node(0)[0]


class _Reader:
    """Walks over a text that is known to be JSON."""

    def __init__(self, text: str, span: Span, *, plain: bool) -> None:
        self._text = text
        self._span = span
        self._plain = plain  # without escapes: what stands in the literal is the text itself

    def node(self, at: int) -> tuple[Node, int]:
        at = self._skip(at)
        first = self._text[at]
        value: object
        if first == "{":
            value, end = self._object(at + 1)
        elif first == "[":
            value, end = self._list(at + 1)
        else:
            value, end = _DECODER.raw_decode(self._text, at)
        return Node(value, self._place(at, end)), end

    def _object(self, at: int) -> tuple[dict[str, Member], int]:
        found: dict[str, Member] = {}
        at = self._skip(at)
        while self._text[at] != "}":
            at = self._skip(at + 1) if self._text[at] == "," else at
            key, end = _DECODER.raw_decode(self._text, at)
            node, after = self.node(self._skip(end) + 1)
            if key in found:
                raise ValueError(f"the member {key} stands there twice")
            found[key] = Member(node, self._place(at, end))
            at = self._skip(after)
        return found, at + 1

    def _list(self, at: int) -> tuple[list[Node], int]:
        found: list[Node] = []
        at = self._skip(at)
        while self._text[at] != "]":
            node, at = self.node(at + 1 if self._text[at] == "," else at)
            found.append(node)
            at = self._skip(at)
        return found, at + 1

    def _skip(self, at: int) -> int:
        while at < len(self._text) and self._text[at] in _BLANKS:
            at += 1
        return at

    def _place(self, start: int, end: int) -> Span:
        span = self._span
        if not self._plain:
            return Span(span.line, span.column, 0, span.start)
        before = self._text[:start]
        lines = before.count("\n")
        column = start - before.rfind("\n") if lines else span.column + 1 + start
        return Span(span.line + lines, column, end - start, span.start + 1 + start)
