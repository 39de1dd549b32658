"""The grammar of expressions, but for calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import ClassVar, Final

from sqlglot import exp
from sqlglot.parser import IsPredicatePrecedence, Parser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import ResolutionError
from penstock.sql.call_grammar import CallGrammar
from penstock.sql.durations import Duration, NotADuration, parse_duration, unit_name
from penstock.sql.fields import field_of
from penstock.sql.moments import DATE_FORM, TIMESTAMP_FORM, NotAMoment, check_date, check_timestamp
from penstock.sql.reading import NAME_TOKENS, Reader, SyntaxFailure
from penstock.sql.spans import token_span
from penstock.sql.typenames import data_type
from penstock.types import SqlType

T = TokenType

# Operators with something on both sides: one of them where an operand should stand is the error.
_INFIX: Final = frozenset(
    {
        T.AND,
        T.OR,
        T.EQ,
        T.NEQ,
        T.GT,
        T.GTE,
        T.LT,
        T.LTE,
        T.NULLSAFE_EQ,
        T.LIKE,
        T.ILIKE,
        T.RLIKE,
        T.IRLIKE,
        T.SIMILAR_TO,
    }
    | {T.BETWEEN, T.IN, T.IS, T.DPIPE, T.SLASH, T.MOD, T.PIPE, T.AMP, T.CARET, T.ARROW, T.DARROW, T.DCOLON, T.DOT}
)
_LITERAL_TYPES: Final = frozenset(
    {"TIMESTAMP", "DATE", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"}
)
_NOT_OFFERED: Final = frozenset({"TIME", "TIMETZ"})


class ExpressionGrammar(CallGrammar):
    """Expressions."""

    IS_PREDICATE_PRECEDENCE: ClassVar[IsPredicatePrecedence] = IsPredicatePrecedence.LOW
    ID_VAR_TOKENS: ClassVar = set(NAME_TOKENS)
    ALIAS_TOKENS: ClassVar = set(NAME_TOKENS)
    TABLE_ALIAS_TOKENS: ClassVar = set(NAME_TOKENS) - {
        T.ANTI,
        T.ASOF,
        T.FULL,
        T.LEFT,
        T.MATCH_CONDITION,
        T.MATCH_RECOGNIZE,
        T.OFFSET,
        T.OUTER,
        T.RIGHT,
        T.SEMI,
        T.WINDOW,
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr]]] = {}
    BRACKETS = frozenset({T.L_BRACKET})
    PRIMARY_PARSERS: ClassVar = {
        **{
            kind: Parser.PRIMARY_PARSERS[kind]
            for kind in (T.STRING, T.NUMBER, T.HEX_STRING, T.NULL, T.TRUE, T.FALSE, T.STAR)
        },
    }
    STRING_PARSERS: ClassVar = {T.STRING: Parser.STRING_PARSERS[T.STRING]}
    RANGE_PARSERS: ClassVar = {
        **{
            kind: Parser.RANGE_PARSERS[kind] for kind in (T.BETWEEN, T.ILIKE, T.IN, T.IS, T.LIKE, T.RLIKE, T.SIMILAR_TO)
        },
        T.TILDE: lambda self, this: self.matched(this),
        T.IRLIKE: lambda self, this: self.matched(this),
    }
    COLUMN_OPERATORS: ClassVar = {
        T.DOT: None,
        T.DCOLON: Parser.COLUMN_OPERATORS[T.DCOLON],
        T.ARROW: lambda self, this, path: self.json_path(exp.JSONExtract, this, path),
        T.DARROW: lambda self, this, path: self.json_path(exp.JSONExtractScalar, this, path),
        T.HASH_ARROW: Parser.COLUMN_OPERATORS[T.HASH_ARROW],
        T.DHASH_ARROW: Parser.COLUMN_OPERATORS[T.DHASH_ARROW],
    }
    CAST_COLUMN_OPERATORS: ClassVar = {T.DCOLON}
    TERM: ClassVar = {kind: Parser.TERM[kind] for kind in (T.PLUS, T.DASH)}
    FACTOR: ClassVar = {kind: Parser.FACTOR[kind] for kind in (T.DIV, T.MOD, T.SLASH, T.STAR)}
    UNARY_PARSERS: ClassVar = {kind: Parser.UNARY_PARSERS[kind] for kind in (T.PLUS, T.NOT, T.TILDE, T.DASH)}

    def json_path(self, kind: type[exp.Expr], this: exp.Expr, path: exp.Expr | None) -> exp.Expr:
        """A step into JSON: `this -> 'key'`, `this -> 0`. A path that is computed could not be told from a lambda.

        A name is a field of a struct, as ksqlDB writes it: `address->city` is `address.city`.
        """
        if kind is exp.JSONExtract and isinstance(path, exp.Column):
            return reduce(field_of, path.parts, this)
        if kind is exp.JSONExtract and isinstance(this, exp.Column) and isinstance(path, exp.Star):
            return field_of(this, path)  # address->*, all fields
        if not isinstance(path, exp.Literal):
            self.step_back()
            self.fail("a key in quotes or a number")
        return kind(this=this, expression=path)

    def matched(self, this: exp.Expr) -> exp.Expr:
        """The operators of PostgreSQL that match a pattern: a ~ 'x' is a RLIKE 'x', !~ is its opposite, ~* takes any
        case; stands behind the operator."""
        operator, first = self._prev.text, self._prev
        pattern = self._parse_bitwise()
        if pattern is None:
            self.fail("a pattern")
        if operator.endswith("*"):
            pattern = _in_any_case(pattern)
        found = exp.RegexpLike(this=this, expression=pattern).update_positions(first)
        return exp.Not(this=found).update_positions(first) if operator.startswith("!") else found

    def _parse_unary(self) -> exp.Expr | None:
        first = self._curr
        found = super()._parse_unary()
        if isinstance(found, exp.Neg | exp.Not | exp.BitwiseNot) and first.token_type in self.UNARY_PARSERS:
            self._stretch(found, first)
        if found is None and self._curr.token_type in _INFIX:
            self.fail("an expression")
        return found

    def interval(self) -> exp.Expr | None:
        """INTERVAL …; None, having taken nothing, when this is no interval."""
        return self._parse_interval()

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        if self._curr.token_type == T.INTERVAL:
            interval = self._parse_interval()
            if interval is not None:
                return self._parse_column_ops(interval)
        word = self._curr.text.upper() if self._curr.token_type == T.VAR else ""
        if word in _NOT_OFFERED and self._next.token_type == T.STRING:
            self.type_name()  # says so
        if word in _LITERAL_TYPES:
            literal = self._typed_literal()
            if literal is not None:
                return self._parse_column_ops(literal)
        return self._parse_atom() or self._parse_column()

    def _typed_literal(self) -> exp.Expr | None:
        """TIMESTAMP '…', DATE '…', TIMESTAMP WITH TIME ZONE '…'; anything else is a column or a call of that name."""
        index, first = self._index, self._curr
        if self._next.token_type not in {T.STRING, T.L_PAREN} and self._next.text.upper() not in {"WITH", "WITHOUT"}:
            return None
        if self._next.token_type != T.STRING:
            kind = self._try_parse(self.type_name)
            if kind is None or self._curr.token_type != T.STRING:
                self._retreat(index)
                return None
        else:
            kind = self.type_name()
        self._check_moment(kind)
        value = self._parse_primary()
        return self.expression(exp.Cast(this=value, to=data_type(kind)), first)

    def _check_moment(self, kind: SqlType) -> None:
        """Refuses the text of a typed literal that is no date or no time; stands in front of it."""
        check, form = (check_date, DATE_FORM) if kind.name == "DATE" else (check_timestamp, TIMESTAMP_FORM)
        try:
            check(str(self._curr.text))
        except NotAMoment as problem:
            raise ResolutionError(
                "INVALID_ARGUMENT", str(problem), hint=f"write {form}", span=token_span(self._curr)
            ) from None

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        return data_type(self.type_name())

    def _parse_primary(self) -> exp.Expr | None:
        if self._curr.token_type in self.PRIMARY_PARSERS:
            token = self._curr
            self._advance()
            parse: Callable[[Reader, Token], exp.Expr] = self.PRIMARY_PARSERS[token.token_type]
            primary = parse(self, token)
            return primary.update_positions(token)
        first = self._curr
        found = self._parse_paren()
        if isinstance(found, exp.Paren | exp.Tuple):
            self._stretch(found, first)
        return found

    def _stretch(self, node: exp.Expr, first: Token) -> None:
        """A node that begins or ends with a sign of its own: it stands from there to what was read last."""
        node.meta.update(line=first.line, col=first.col, start=first.start, end=self._prev.end)

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        # `1 .a` would print as `1.a`, which is no number and no name.
        if self._curr.token_type == T.DOT and isinstance(this, exp.Literal) and not this.is_string:
            raise SyntaxFailure(None, self._curr, "a number has no fields")
        return super()._parse_column_ops(this)

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> exp.Expr | None:  # type: ignore[override]
        first = self._curr
        following = self._next.token_type
        signed = self.peek(2) if following in {T.DASH, T.PLUS} else self._next
        if signed is None or signed.token_type not in {T.STRING, T.NUMBER}:
            return None  # a column called interval
        if signed is not self._next and signed.token_type == T.NUMBER and not self._unit_at(3):
            return None  # a column called interval, plus or minus a number
        self._advance()
        sign = "-" if self._curr.token_type == T.DASH else ""
        if self._curr.token_type in {T.DASH, T.PLUS}:
            self._advance()
        self._advance()
        text = sign + self._prev.text
        unit, last = self._interval_units(bare=self._prev.token_type == T.NUMBER)
        try:
            duration = parse_duration(text, unit, last)
        except NotADuration as problem:
            raise ResolutionError(
                "INVALID_ARGUMENT",
                str(problem),
                hint="write INTERVAL '5' MINUTE, INTERVAL '5 minutes' or INTERVAL '1 02:03:04' DAY TO SECOND",
                span=self.since(first),
            ) from None
        node = duration.node().update_positions(first)
        node.meta["stop"] = self._prev.end
        return node

    def _unit_at(self, offset: int) -> bool:
        token = self.peek(offset)
        return token is not None and token.token_type == T.VAR and unit_name(token.text) is not None

    def _interval_units(self, *, bare: bool) -> tuple[str | None, str | None]:
        """MINUTE, DAY TO SECOND, SECOND(3)."""
        unit = self._unit()
        if unit is None:
            if bare:
                self.fail("a unit of time")
            return None, None
        last = None
        if self.ahead("TO"):
            self._advance()
            last = self._unit()
            if last is None:
                self.fail("a unit of time")
        return unit, last

    def _unit(self) -> str | None:
        if not self._unit_at(0):
            return None
        self._advance()
        unit = self._prev.text
        following = self.peek(1)
        if self.at(T.L_PAREN) and following is not None and following.token_type == T.NUMBER:
            self._advance(2)
            self._match_r_paren()
        return unit

    def constant(self, micros: int) -> exp.Interval:
        """The canonical interval of a number of microseconds."""
        return Duration(micros=micros).node()

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if self._curr.token_type != T.L_BRACKET:
            return this
        first = self._curr
        self._advance()
        items = self._parse_csv(self._parse_bracket_key_value)
        self.expect_symbol(T.R_BRACKET, "]")
        word = this.name.upper() if isinstance(this, exp.Column) and _bare(this) else ""
        node: exp.Expr
        if this is None or word == "ARRAY":
            node = exp.Array(expressions=items)
        elif word == "MAP" and len(items) != 1:
            node = self._map(items)
        else:
            if len(items) != 1:
                self.raise_error("Expecting ]", first)
            node = exp.Bracket(this=this, expressions=items)
        node.update_positions(this.this if this is not None and word else first)
        node.meta["stop"] = self._prev.end
        return self._parse_bracket(node)

    def _map(self, items: list[exp.Expr]) -> exp.Expr:
        """MAP[key, value, …]"""
        if len(items) % 2:
            self.fail("a value for the last key of the map")
        return exp.VarMap(keys=exp.Array(expressions=items[0::2]), values=exp.Array(expressions=items[1::2]))

    def _parse_case(self) -> exp.Expr | None:
        first = self._prev
        operand = None if self._curr.token_type == T.WHEN else self.an_expression()
        branches = []
        while self._match(T.WHEN):
            condition = self.an_expression()
            self.expect("THEN")
            branches.append(self.expression(exp.If(this=condition, true=self.an_expression())))
        if not branches:
            self.fail("WHEN")
        default = self.an_expression() if self._match(T.ELSE) else None
        self.expect("END")
        node = self.expression(exp.Case(this=operand, ifs=branches, default=default), first)
        node.meta["stop"] = self._prev.end
        return node

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        if isinstance(this, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ):
            this = exp.Paren(this=this)
        symmetric = self.any_word("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC" or None
        low = self._parse_bitwise()
        if not self._match(T.AND):
            self.fail("AND")
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise(), symmetric=symmetric))

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        unnest = self._parse_unnest(with_alias=False)
        if unnest is not None:
            return self.expression(exp.In(this=this, unnest=unnest))
        self.expect_symbol(T.L_PAREN, "(")
        query = self.nested_query()
        if query is not None:
            node = self.expression(exp.In(this=this, query=exp.Subquery(this=query)))
        else:
            node = self.expression(exp.In(this=this, expressions=self._parse_csv(self._parse_disjunction)))
            if not node.expressions:
                self.fail("an expression")
        self._match_r_paren()
        node.meta["stop"] = self._prev.end
        return node

    def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
        found = super()._parse_is_rhs(distinct=distinct)
        if not distinct and not isinstance(found, exp.Null | exp.Boolean):
            self.fail("NULL, TRUE, FALSE or DISTINCT FROM")
        return found

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        if not self._match(T.ESCAPE):
            return this
        if self._curr.token_type != T.STRING:
            self.fail("a string")
        return self.expression(exp.Escape(this=this, expression=self._parse_string()))

    def _parse_having_max(self, this: exp.Expr | None) -> exp.Expr | None:
        return this

    def _parse_per(self, this: exp.Expr | None) -> exp.Expr | None:
        return this


def _bare(column: exp.Column) -> bool:
    return not column.table and isinstance(column.this, exp.Identifier) and not column.this.quoted


def _in_any_case(pattern: exp.Expr) -> exp.Expr:
    """A regular expression that takes upper and lower case alike."""
    flag = "(?i)"
    if isinstance(pattern, exp.Literal) and pattern.is_string:
        made = exp.Literal.string(flag + pattern.name)
        made.meta.update(pattern.meta)
        return made
    return exp.DPipe(this=exp.Literal.string(flag), expression=exp.Paren(this=pattern), safe=True)
