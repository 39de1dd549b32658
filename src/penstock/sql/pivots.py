"""PIVOT and UNPIVOT behind a relation, read as the queries that they stand for.

    orders PIVOT (SUM(amount) FOR status IN ('paid', 'open' AS waiting))
    -> (SELECT * EXCEPT (amount, status), SUM(amount) FILTER (WHERE status = 'paid') AS paid,
               SUM(amount) FILTER (WHERE status = 'open') AS waiting FROM orders GROUP BY ALL)
    prices UNPIVOT (price FOR kind IN (low, high))
    -> (SELECT * EXCEPT (low, high, …), … FROM prices CROSS JOIN LATERAL (VALUES ('low', low), ('high', high)) …)

What the values are is known before any row comes only where they are written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from penstock.sql.relations import RelationGrammar

T = TokenType
_FIRST_WORDS: Final = {"PIVOT": ("(",), "UNPIVOT": ("(", "INCLUDE", "EXCLUDE")}
_ROWS, _NAME, _VALUE = "unpivoted", "unpivoted_name", "unpivoted_value"
_WRITTEN_OUT: Final = "write the values out: FOR status IN ('paid', 'open')"


def pivot_ahead(parser: RelationGrammar) -> bool:
    """Whether PIVOT (…) or UNPIVOT (…) begins here."""
    return parser.following.text.upper() in _FIRST_WORDS.get(parser.current.text.upper(), ())


def pivoted(parser: RelationGrammar, source: exp.Expr) -> exp.Expr:
    """The relation behind such a clause."""
    first = parser.current
    made = _pivot(parser, source) if parser.word("PIVOT") else _unpivot(parser, source)
    alias = parser.relation_alias()
    return exp.Subquery(this=made.update_positions(first), alias=alias).update_positions(first)


def _pivot(parser: RelationGrammar, source: exp.Expr) -> exp.Select:
    parser.expect_symbol(T.L_PAREN, "(")
    calls = parser.several(lambda: _named(parser))
    parser.expect("FOR")
    keys = _columns(parser)
    parser.expect("IN")
    parser.expect_symbol(T.L_PAREN, "(")
    if parser.at(T.SELECT, T.ANY, T.WITH):
        parser.not_yet("PIVOT over values that are not written out is not there yet", _WRITTEN_OUT, parser.current)
    values = parser.several(lambda: _named(parser))
    parser.expect_symbol(T.R_PAREN, ")")
    parser.expect_symbol(T.R_PAREN, ")")
    read = [column for call, _ in calls for column in call.find_all(exp.Column)]
    items: list[exp.Expr] = [_all_but([*(key.name for key in keys), *(column.name for column in read)])]
    for value, named in values:
        shown = named or _shown(parser, value)
        for call, name in calls:
            items.append(
                _of_value(parser, call, keys, value, shown if len(calls) == 1 else f"{shown}_{_must(parser, name)}")
            )
    return exp.Select(expressions=items, from_=exp.From(this=source), group=exp.Group(all=True))


def _unpivot(parser: RelationGrammar, source: exp.Expr) -> exp.Select:
    parser.expect("UNPIVOT")
    nulls = parser.word("INCLUDE", "NULLS")
    if not nulls:
        parser.word("EXCLUDE", "NULLS")
    parser.expect_symbol(T.L_PAREN, "(")
    if parser.at(T.L_PAREN):
        parser.not_yet("UNPIVOT of several columns at once is not there yet", "use UNION ALL", parser.current)
    value = parser.identifier()
    parser.expect("FOR")
    name = parser.identifier()
    parser.expect("IN")
    parser.expect_symbol(T.L_PAREN, "(")
    columns = parser.several(lambda: _column_named(parser))
    parser.expect_symbol(T.R_PAREN, ")")
    parser.expect_symbol(T.R_PAREN, ")")
    rows: list[exp.Expr] = [
        exp.Tuple(expressions=[exp.Literal.string(shown), column.copy()]) for column, shown in columns
    ]
    alias = exp.TableAlias(this=exp.to_identifier(_ROWS), columns=[exp.to_identifier(each) for each in (_NAME, _VALUE)])
    lateral = exp.Lateral(this=exp.Subquery(this=exp.Values(expressions=rows)), alias=alias)
    made = exp.Select(
        expressions=[
            _all_but([*(column.name for column, _ in columns), _NAME, _VALUE]),
            exp.Alias(this=exp.column(_NAME), alias=name),
            exp.Alias(this=exp.column(_VALUE), alias=value),
        ],
        from_=exp.From(this=source),
        joins=[exp.Join(this=lateral, kind="CROSS")],
    )
    if not nulls:
        made.set("where", exp.Where(this=exp.Not(this=exp.Is(this=exp.column(_VALUE), expression=exp.Null()))))
    return made


def _named(parser: RelationGrammar) -> tuple[exp.Expr, str | None]:
    """An expression with the name behind it, if it has one."""
    value = parser.an_expression()
    return value, parser.identifier().name if parser.symbol(T.ALIAS) else None


def _column_named(parser: RelationGrammar) -> tuple[exp.Column, str]:
    column = exp.Column(this=parser.identifier())
    if not parser.symbol(T.ALIAS):
        return column, column.name
    shown = parser.an_expression()
    return column, shown.name


def _columns(parser: RelationGrammar) -> list[exp.Expr]:
    if not parser.symbol(T.L_PAREN):
        return [exp.Column(this=parser.identifier())]
    found: list[exp.Expr] = parser.several(lambda: exp.Column(this=parser.identifier()))
    parser.expect_symbol(T.R_PAREN, ")")
    return found


def _all_but(names: list[str]) -> exp.Star:
    return exp.Star(except_=[exp.to_identifier(name) for name in dict.fromkeys(names)])


def _of_value(parser: RelationGrammar, call: exp.Expr, keys: list[exp.Expr], value: exp.Expr, name: str) -> exp.Expr:
    """An aggregate of the rows that have one of the values."""
    if not isinstance(call, exp.Anonymous):
        parser.not_yet("PIVOT of something else than one aggregate is not there yet", "compute it around the PIVOT")
    parts = list(value.expressions) if isinstance(value, exp.Tuple) else [value]
    if len(parts) != len(keys):
        parser.fail("a value for each column of FOR")
    condition: exp.Expr | None = None
    for key, part in zip(keys, parts, strict=True):
        kind = exp.Is if isinstance(part, exp.Null) else exp.EQ
        same = kind(this=key.copy(), expression=part.copy())
        condition = same if condition is None else exp.And(this=condition, expression=same)
    filtered = exp.Filter(this=call.copy(), expression=exp.Where(this=condition))
    return exp.Alias(this=filtered, alias=exp.to_identifier(name, quoted=True))


def _shown(parser: RelationGrammar, value: exp.Expr) -> str:
    """The name of the column of a value that has no other: as it is written."""
    parts = list(value.expressions) if isinstance(value, exp.Tuple) else [value]
    if not all(isinstance(part, exp.Literal | exp.Null | exp.Boolean) for part in parts):
        parser.not_yet("PIVOT over values that are not written out is not there yet", _WRITTEN_OUT)
    return "_".join(part.name if isinstance(part, exp.Literal) else part.sql().lower() for part in parts)


def _must(parser: RelationGrammar, name: str | None) -> str:
    if name is None:
        parser.not_yet("PIVOT of several aggregates without names is not there yet", "name each: SUM(amount) AS total")
    return name
