"""SET and RESET."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.sql.grammar.options import key, value
from penstock.sql.parser import PenstockParser
from penstock.sql.statements import ResetSetting, SetSetting, Show, Statement

T = TokenType


def set_setting(p: PenstockParser) -> Statement:
    """SET key = value, SET 'key' = 'value', SET key TO value; SET alone shows all."""
    p.expect("SET")
    if not p.current:
        return Show(kind="SETTINGS")
    first = p.current
    if p.ahead("TIME", "ZONE"):
        p.not_yet("SET TIME ZONE is not there yet", "leave it out; sessions run in UTC", first, "STATEMENT_NOT_YET")
    name = key(p)
    key_span = p.since(first)
    if not p.symbol(T.EQ) and not p.word("TO"):
        p.fail("=")
    at = p.current
    if p.word("DEFAULT"):
        return ResetSetting(key=name, key_span=key_span)
    found = value(p, bare=True)
    return SetSetting(key=name, value=found, key_span=key_span, value_span=p.since(at))


def reset_setting(p: PenstockParser) -> ResetSetting:
    """RESET key, RESET 'key', RESET, RESET ALL"""
    p.expect("RESET")
    first = p.current
    if not first or p.word("ALL"):
        return ResetSetting(key=None)
    return ResetSetting(key=key(p), key_span=p.since(first))
