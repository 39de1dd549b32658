"""Calls with keywords inside their brackets.

Each rule is asked once the name and the opening bracket are taken, and returns the node up to the closing bracket, or
None, having taken nothing, when the call is an ordinary one. A rule that sees so only behind the first argument goes on
as an ordinary call itself: stepping back would read nested calls over and over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.durations import unit_name
from penstock.sql.typenames import data_type
from penstock.sql.windows import window_call, window_part

if TYPE_CHECKING:
    from penstock.sql.call_grammar import CallGrammar

T = TokenType
Special = Callable[["CallGrammar", Token], exp.Expr | None]

_UNIT_FIRST: Final = frozenset(
    {"TIMESTAMPDIFF", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "DATEADD", "DATE_ADD", "TIMESTAMP_DIFF"}
)


def unit_argument(parser: CallGrammar, upper: str) -> exp.Expr | None:
    """The bare unit that TIMESTAMPDIFF(SECOND, a, b) and its like begin with."""
    token = parser.current
    if upper not in _UNIT_FIRST or token.token_type != T.VAR or parser.following.token_type != T.COMMA:
        return None
    unit = unit_name(token.text)
    if unit is None:
        return None
    parser.step()
    return exp.Var(this=unit).update_positions(token)


def json_returning(parser: CallGrammar, upper: str) -> exp.DataType | None:
    """The type behind RETURNING in JSON_VALUE(x, '$.a' RETURNING INT), which is a cast of the value."""
    if upper == "JSON_EXISTS" and parser.any_word("TRUE", "FALSE", "UNKNOWN", "ERROR") is not None:
        parser.not_yet("ON ERROR of a JSON function is not there yet", "leave the clause out", parser.taken)
    if upper not in {"JSON_VALUE", "JSON_QUERY"}:
        return None
    found = data_type(parser.type_name()) if parser.word("RETURNING") else None
    while parser.word("NULL", "ON", "EMPTY") or parser.word("NULL", "ON", "ERROR"):
        pass  # what happens anyway
    if parser.any_word("DEFAULT", "ERROR", "WITH", "WITHOUT") is not None:
        parser.not_yet("this clause of a JSON function is not there yet", "use COALESCE for a default", parser.taken)
    return found


def behind_arguments(parser: CallGrammar, upper: str, arguments: list[exp.Expr]) -> None:
    """What GROUP_CONCAT and JSON aggregates have behind their arguments: a separator is one more, before the order, as
    in STRING_AGG; what happens anyway is left out."""
    if upper == "GROUP_CONCAT" and parser.word("SEPARATOR"):
        separator, last = parser.operand(), arguments[-1]
        if isinstance(last, exp.Order):
            arguments[-1] = last.this
            separator = exp.Order(this=separator, expressions=last.expressions)
        arguments.append(separator)
    if upper == "JSON_OBJECTAGG" and not parser.word("NULL", "ON", "NULL") and parser.word("ABSENT", "ON", "NULL"):
        parser.not_yet("ABSENT ON NULL is not there yet", "write FILTER (WHERE value IS NOT NULL)", parser.taken)
    if upper == "JSON_ARRAYAGG" and not parser.word("ABSENT", "ON", "NULL") and parser.word("NULL", "ON", "NULL"):
        parser.not_yet("NULL ON NULL is not there yet", "NULLs are left out", parser.taken)


def _json_objectagg(parser: CallGrammar, token: Token) -> exp.Expr | None:
    """JSON_OBJECTAGG([KEY] k VALUE v), (k : v), (k, v)."""
    if parser.following.token_type not in {T.COMMA, T.COLON, T.R_PAREN, T.DOT, T.L_PAREN}:
        parser.word("KEY")
    key = parser.an_expression()
    if not parser.word("VALUE") and not parser.symbol(T.COLON):
        made = _ordinary(parser, token, key)
    else:
        made = exp.Anonymous(this=token.text, expressions=[key, parser.an_expression()])
    behind_arguments(parser, token.text.upper(), [])
    return made


def _ordinary(parser: CallGrammar, token: Token, first: exp.Expr) -> exp.Expr:
    """The rest of an ordinary call whose first argument is taken."""
    arguments = [first]
    if parser.symbol(T.COMMA):
        rest = parser.several(parser.argument)
        if not rest:
            parser.fail("an expression")
        arguments += rest
    return exp.Anonymous(this=token.text, expressions=arguments)


def _cast(parser: CallGrammar, token: Token) -> exp.Expr:
    value = parser.an_expression()
    parser.expect("AS")
    kind = exp.TryCast if token.text.upper() == "TRY_CAST" else exp.Cast
    return kind(this=value, to=data_type(parser.type_name()))


def _extract(parser: CallGrammar, _: Token) -> exp.Expr | None:
    unit = parser.current
    if parser.following.token_type != T.FROM:
        return None
    parser.step(2)
    return exp.Extract(this=exp.Var(this=unit.text.upper()).update_positions(unit), expression=parser.an_expression())


def _trim(parser: CallGrammar, token: Token) -> exp.Expr | None:
    if parser.current.token_type == T.R_PAREN:
        return None
    position = parser.any_word("LEADING", "TRAILING", "BOTH")
    what = None if parser.current.token_type == T.FROM else parser.an_expression()
    if not parser.symbol(T.FROM):
        if position:
            parser.fail("FROM")
        return _ordinary(parser, token, what) if what is not None else None
    return exp.Trim(this=parser.an_expression(), position=position or "BOTH", expression=what)


def _substring(parser: CallGrammar, token: Token) -> exp.Expr:
    text = parser.an_expression()
    if parser.current.token_type not in {T.FROM, T.FOR}:
        return _ordinary(parser, token, text)
    start = parser.an_expression() if parser.symbol(T.FROM) else exp.Literal.number(1)
    length = parser.an_expression() if parser.symbol(T.FOR) else None
    return exp.Substring(this=text, start=start, length=length)


def _position(parser: CallGrammar, token: Token) -> exp.Expr:
    needle = parser.operand()
    if not parser.symbol(T.IN):
        return _ordinary(parser, token, needle)
    return exp.StrPosition(this=parser.operand(), substr=needle)


def _overlay(parser: CallGrammar, token: Token) -> exp.Expr:
    text = parser.an_expression()
    if not parser.word("PLACING"):
        return _ordinary(parser, token, text)
    new = parser.an_expression()
    parser.expect("FROM")
    start = parser.an_expression()
    length = parser.an_expression() if parser.symbol(T.FOR) else None
    return exp.Overlay(this=text, expression=new, from_=start, for_=length)


def _if(parser: CallGrammar, _: Token) -> exp.Expr:
    condition = parser.an_expression()
    parser.expect_symbol(T.COMMA, ",")
    true = parser.an_expression()
    false = parser.an_expression() if parser.symbol(T.COMMA) else None
    return exp.If(this=condition, true=true, false=false)


def _struct(parser: CallGrammar, _: Token) -> exp.Expr | None:
    """ROW(a, b) and STRUCT(a AS x, b)."""
    if parser.current.token_type == T.R_PAREN:
        return None

    def field() -> exp.Expr | None:
        value = parser.an_expression()
        if not parser.symbol(T.ALIAS):
            return value
        return exp.PropertyEQ(this=parser.identifier(), expression=value)

    return exp.Struct(expressions=parser.several(field))


def _floor(parser: CallGrammar, token: Token) -> exp.Expr:
    """FLOOR(ts TO HOUR), which is DATE_TRUNC."""
    value = parser.an_expression()
    if not parser.word("TO"):
        return _ordinary(parser, token, value)
    if token.text.upper() != "FLOOR":
        parser.not_yet("CEIL to a unit of time is not there yet", "use FLOOR and add the unit", token)
    unit = unit_name(parser.current.text) if parser.current else None
    if unit is None:
        parser.fail("a unit of time")
    parser.step()
    return exp.Anonymous(this="DATE_TRUNC", expressions=[exp.Literal.string(unit), value])


def _predicate(parser: CallGrammar, token: Token) -> exp.Expr | None:
    """EXISTS (SELECT …), ANY (SELECT …), ALL (…)"""
    upper = token.text.upper()
    query = parser.nested_query()
    if upper == "EXISTS":
        return exp.Exists(this=query) if query is not None else None
    kind = exp.All if upper == "ALL" else exp.Any
    inner = exp.Subquery(this=query) if query is not None else exp.Paren(this=parser.an_expression())
    return kind(this=inner)


SPECIAL_CALLS: Final[dict[str, Special]] = {
    "CAST": _cast,
    "TRY_CAST": _cast,
    "EXTRACT": _extract,
    "TRIM": _trim,
    "SUBSTRING": _substring,
    "POSITION": _position,
    "OVERLAY": _overlay,
    "IF": _if,
    "JSON_OBJECTAGG": _json_objectagg,
    "ROW": _struct,
    "STRUCT": _struct,
    "FLOOR": _floor,
    "CEIL": _floor,
    "EXISTS": _predicate,
    "ANY": _predicate,
    "SOME": _predicate,
    "ALL": _predicate,
    **dict.fromkeys(("TUMBLE", "HOP", "SESSION", "CUMULATE", "WINDOW", "SESSION_WINDOW"), window_call),
    **{
        f"{kind}_{part}": window_part
        for kind in ("TUMBLE", "HOP", "SESSION", "CUMULATE")
        for part in ("START", "END", "ROWTIME", "PROCTIME")
    },
}
