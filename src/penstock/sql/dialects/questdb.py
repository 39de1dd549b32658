"""QuestDB: recognised and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError, Span
from penstock.sql.spans import token_span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sql.reading import Reader

NAME = "QuestDB"

_INSTEAD: Final = {
    ("SAMPLE", "BY"): "use GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
    ("LATEST", "BY"): "use max_by(column, ts) … GROUP BY key",
    ("LATEST", "ON"): "use max_by(column, ts) … GROUP BY key",
}


def check_clause(parser: Reader) -> None:
    """SAMPLE BY …, LATEST BY …, LATEST ON … behind a relation."""
    if parser.current.token_type != TokenType.VAR:
        return
    second = parser.following.text
    after = parser.peek(3)
    if second.upper() == "ON" and (after is None or not after.text.upper().startswith("PARTITION")):
        return  # JOIN t latest ON …
    _refuse(parser.current.text, second, token_span(parser.current))


def check_glued(tokens: Sequence[Token]) -> None:
    """SAMPLE BY 1h: a number with a unit stands nowhere else, so it is met before there is a grammar."""
    if len(tokens) >= 3:
        _refuse(tokens[-3].text, tokens[-2].text, token_span(tokens[-3]))


def _refuse(first: str, second: str, span: Span) -> None:
    pair = first.upper(), second.upper()
    instead = _INSTEAD.get(pair)
    if instead is not None:
        raise NotYetError("DIALECT_NOT_YET", f"{' '.join(pair)} of QuestDB is not there yet", hint=instead, span=span)
