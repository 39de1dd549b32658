"""Flink: what its statements mean by default, and what only it has. Its other spellings are part of our grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql.nodes import SystemTime

if TYPE_CHECKING:
    from penstock.sql.relations import RelationGrammar

NAME = "Flink"


def snapshot(p: RelationGrammar) -> exp.Table | None:
    """SNAPSHOT(input => TABLE t) inside LATERAL TABLE(…), which is t FOR SYSTEM_TIME AS OF PROCTIME().

    None, having taken nothing, when something else comes next.
    """
    first = p.current
    if first.text.upper() != "SNAPSHOT" or p.following.token_type != TokenType.L_PAREN:
        return None
    p.step(2)
    if p.word("INPUT"):
        p.expect_symbol(TokenType.FARROW, "=>")
    p.expect("TABLE")
    table = p.table_name()
    if p.at(TokenType.COMMA):
        p.not_yet("SNAPSHOT with more than its input is not there yet", "use FOR SYSTEM_TIME AS OF PROCTIME()", first)
    p.close()
    now = exp.Anonymous(this="PROCTIME", expressions=[]).update_positions(first)
    table.set("system_time", SystemTime(this=now).update_positions(first))
    return table
