"""WITH ( key = value, … ), and FORMAT … ENCODE … (RisingWave)."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.errors import OptionError, Span
from penstock.secrets import Secret
from penstock.sql.dialects import feldera, ksqldb
from penstock.sql.durations import NotADuration, duration_us
from penstock.sql.parser import PenstockParser
from penstock.sql.reading import WORD_TOKENS
from penstock.sql.statements import Format, Option, OptionValue

T = TokenType


def options(p: PenstockParser, *, foreign: bool = False) -> tuple[Option, ...]:
    """( key = value, … ); `foreign` where the caller reads the keys of ksqlDB and Feldera."""
    return p.bracketed(lambda: option(p, foreign=foreign))


def option(p: PenstockParser, *, foreign: bool = False) -> Option:
    """Key = value; the key a string or a dotted word."""
    first = p.current
    text = key(p)
    key_span = p.since(first)
    if not foreign:
        check_foreign(text, key_span)
    p.expect_symbol(T.EQ, "=")
    at = p.current
    found = value(p, bare=text.lower() == "connection")  # RisingWave writes the name of a connection as one
    return Option(text, found, key_span, p.since(at))


def check_foreign(key: str, span: Span) -> None:
    """Refuses the keys of ksqlDB and Feldera."""
    ksqldb.check_option(key, span)
    feldera.check_option(key, span)


def key(p: PenstockParser) -> str:
    """A string, or words with dots or dashes between them."""
    if p.current.token_type in {T.STRING, T.IDENTIFIER}:
        p.step()
        return str(p.taken.text)
    if p.current.token_type not in WORD_TOKENS:
        p.fail("the key of an option")
    p.step()
    text = p.taken.text
    while (p.at(T.DOT) or (p.at(T.DASH) and p.connected())) and p.following.token_type in WORD_TOKENS:
        p.step()
        text += p.taken.text + p.current.text
        p.step()
    return str(text)


def value(p: PenstockParser, *, bare: bool = False) -> OptionValue:
    """The value of an option; the stretch is remembered as one that may be secret. `bare` takes an unquoted word."""
    first = p.current
    if p.word("SECRET"):
        return OptionValue("secret", Secret(secret_name(p)))
    found = _value(p, bare=bare)
    span = p.since(first)
    p.secret_stretches.append((span.start, span.end))
    return found


def secret_name(p: PenstockParser) -> str:
    """The name behind SECRET."""
    name = p.name("the name of a secret")
    if p.word("AS"):
        p.not_yet("secrets as files are not there yet", "use SECRET name alone", p.taken)
    return name.text


def _value(p: PenstockParser, *, bare: bool) -> OptionValue:
    token = p.current
    kind = token.token_type
    if kind == T.STRING:
        p.step()
        return OptionValue("text", Secret(token.text))
    if kind == T.NUMBER or (kind == T.DASH and p.following.token_type == T.NUMBER):
        sign = "-" if p.symbol(T.DASH) else ""
        p.step()
        return OptionValue("number", Secret(sign + p.taken.text))
    if kind in {T.TRUE, T.FALSE}:
        p.step()
        return OptionValue("boolean", Secret(token.text.lower()))
    if kind == T.INTERVAL and p.following.token_type in {T.STRING, T.NUMBER, T.DASH, T.PLUS}:
        node = p.interval()
        try:
            return OptionValue("interval", Secret(str(duration_us(node or ""))))
        except NotADuration as problem:
            message = f"the interval cannot be used: {problem}"
            raise OptionError("INVALID_OPTION", message, span=p.since(token)) from None
    if not bare or kind not in WORD_TOKENS:
        p.fail("a value", "put a text value in single quotes")
    return OptionValue("text", Secret(key(p)))


def format_clause(p: PenstockParser) -> Format | None:
    """FORMAT UPSERT ENCODE AVRO (…) KEY ENCODE TEXT"""
    first = p.current
    if not p.word("FORMAT"):
        return None
    envelope = _plain_word(p, "PLAIN, UPSERT, DEBEZIUM or NATIVE")
    encode = key_encode = None
    found: tuple[Option, ...] = options(p) if p.current.token_type == T.L_PAREN else ()
    if p.word("ENCODE"):
        encode = _plain_word(p, "JSON, AVRO, PROTOBUF, CSV or BYTES")
        if p.current.token_type == T.L_PAREN:
            found += options(p)
    if p.word("KEY", "ENCODE"):
        key_encode = _plain_word(p, "TEXT, JSON or BYTES")
    return Format(envelope, encode, found, key_encode, p.since(first))


def _plain_word(p: PenstockParser, what: str) -> str:
    if p.current.token_type not in WORD_TOKENS:
        p.fail(what)
    p.step()
    return str(p.taken.text.lower())
