"""Materialize's options in brackets: several words, perhaps an =, and a value.

(BROKER 'b:9092', SASL PASSWORD = SECRET p, START OFFSET (0, 10))
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import OptionError
from penstock.frozen import frozen
from penstock.secrets import Secret
from penstock.sql.dialects import materialize
from penstock.sql.grammar.options import value
from penstock.sql.parser import PenstockParser
from penstock.sql.statements import Option, OptionValue

T = TokenType


@frozen
class Phrases:
    """The words that may stand there, with our keys; and those that are refused, with what to do instead."""

    known: Mapping[str, str]
    later: Mapping[str, str]


def phrases(p: PenstockParser, rules: Phrases) -> tuple[Option, ...]:
    """( words [=] value, … )"""
    found = p.bracketed(lambda: _phrase(p, rules))
    seen: set[str] = set()
    for option in found:
        if option.key in seen:
            raise OptionError(
                "CONFLICTING_OPTIONS",
                "an option of the connection is given twice",
                hint="keep one of them",
                span=option.key_span,
            )
        seen.add(option.key)
    return found


def _phrase(p: PenstockParser, rules: Phrases) -> Option:
    first = p.current
    for words in sorted((*rules.known, *rules.later), key=len, reverse=True):
        if p.word(*words.split()) or p.word(words):  # PARTITION BY is one token
            if words in rules.later:
                materialize.refuse(words, rules.later[words], first)
            return _option(p, rules.known[words], first)
    return p.fail(", ".join(rules.known))


def _option(p: PenstockParser, key: str, first: Token) -> Option:
    key_span = p.since(first)
    p.symbol(T.EQ)
    at = p.current
    if p.at(T.L_PAREN):
        texts = p.bracketed(lambda: value(p).reveal())
        found = OptionValue("text", Secret(_listed(key, texts)))
    else:
        found = value(p, bare=True)
        if p.ahead("USING"):
            materialize.refuse("USING behind a broker", "name brokers that can be reached", p.current)
    return Option(key, found, key_span, p.since(at))


def _listed(key: str, texts: tuple[str, ...]) -> str:
    """A list as one text: the offsets of partitions as Flink writes them, else words with commas between them."""
    if key == "start_offsets":
        return ";".join(f"partition:{number},offset:{text}" for number, text in enumerate(texts))
    return ",".join(texts)
