"""The grammar of expressions.

Every ordinary call becomes `exp.Anonymous` with its name as written, because the function registry alone decides what
a name means. Only what the SQL standard writes with keywords inside the brackets has a node of its own, and only when
it is written so: `SUBSTRING(a FROM 2)` is an `exp.Substring`, `SUBSTRING(a, 2)` an `exp.Anonymous`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from sqlglot import exp
from sqlglot.parser import IsPredicatePrecedence, Parser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import ResolutionError, UnsupportedError
from penstock.sql.calls import SPECIAL_CALLS, unit_argument
from penstock.sql.durations import Duration, NotADuration, parse_duration, unit_name
from penstock.sql.reading import NAME_TOKENS, WORD_TOKENS, Reader
from penstock.sql.typenames import data_type
from penstock.sql.types_grammar import TypeGrammar

T = TokenType

# Words before a bracket that are never the name of a function.
_NO_CALL: Final = frozenset({T.OVER, T.CUBE, T.ROLLUP, T.MATCH_CONDITION, T.MATCH_RECOGNIZE, T.INTERVAL})
_CALLABLE: Final = (NAME_TOKENS | {T.LEFT, T.RIGHT}) - _NO_CALL
# Operators with something on both sides: one of them where an operand should stand is the error.
_INFIX: Final = frozenset(
    {T.AND, T.OR, T.EQ, T.NEQ, T.GT, T.GTE, T.LT, T.LTE, T.NULLSAFE_EQ, T.LIKE, T.ILIKE, T.RLIKE, T.SIMILAR_TO}
    | {T.BETWEEN, T.IN, T.IS, T.DPIPE, T.SLASH, T.MOD, T.PIPE, T.AMP, T.CARET, T.ARROW, T.DARROW, T.DCOLON, T.DOT}
)
_LITERAL_TYPES: Final = frozenset(
    {"TIMESTAMP", "DATE", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"}
)


class ExpressionGrammar(TypeGrammar, Reader):
    """Expressions."""

    IS_PREDICATE_PRECEDENCE: ClassVar[IsPredicatePrecedence] = IsPredicatePrecedence.LOW
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, type[exp.Expr]]] = {
        T.CURRENT_DATE: exp.CurrentDate,
        T.CURRENT_TIME: exp.CurrentTime,
        T.CURRENT_TIMESTAMP: exp.CurrentTimestamp,
        T.LOCALTIME: exp.Localtime,
        T.LOCALTIMESTAMP: exp.Localtimestamp,
    }
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
    FUNC_TOKENS: ClassVar = set(_CALLABLE)
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
        kind: Parser.RANGE_PARSERS[kind] for kind in (T.BETWEEN, T.ILIKE, T.IN, T.IS, T.LIKE, T.RLIKE, T.SIMILAR_TO)
    }
    COLUMN_OPERATORS: ClassVar = {
        T.DOT: None,
        T.DCOLON: Parser.COLUMN_OPERATORS[T.DCOLON],
        T.ARROW: lambda self, this, path: self.expression(exp.JSONExtract(this=this, expression=path)),
        T.DARROW: lambda self, this, path: self.expression(exp.JSONExtractScalar(this=this, expression=path)),
        T.HASH_ARROW: Parser.COLUMN_OPERATORS[T.HASH_ARROW],
        T.DHASH_ARROW: Parser.COLUMN_OPERATORS[T.DHASH_ARROW],
    }
    CAST_COLUMN_OPERATORS: ClassVar = {T.DCOLON}
    TERM: ClassVar = {kind: Parser.TERM[kind] for kind in (T.PLUS, T.DASH)}
    FACTOR: ClassVar = {kind: Parser.FACTOR[kind] for kind in (T.DIV, T.MOD, T.SLASH, T.STAR)}
    UNARY_PARSERS: ClassVar = {kind: Parser.UNARY_PARSERS[kind] for kind in (T.PLUS, T.NOT, T.TILDE, T.DASH)}

    def _parse_unary(self) -> exp.Expr | None:
        found = super()._parse_unary()
        if found is None and self._curr.token_type in _INFIX:
            self.fail("an expression")
        return found

    def an_expression(self) -> exp.Expr:
        """An expression without an alias."""
        found = self._parse_disjunction()
        if found is None:
            self.fail("an expression")
        return found

    def operand(self) -> exp.Expr:
        """An expression without comparisons, AND, OR."""
        found = self._parse_bitwise()
        if found is None:
            self.fail("an expression")
        return found

    def argument(self) -> exp.Expr | None:
        """An argument of a call."""
        return self._parse_lambda()

    def interval(self) -> exp.Expr | None:
        """INTERVAL …; None, having taken nothing, when this is no interval."""
        return self._parse_interval()

    def nested_query(self) -> exp.Expr | None:
        """A query inside brackets; None, having taken nothing, when none begins here."""
        return self._parse_select(nested=True) if self.at(T.SELECT, T.WITH) else None

    # atoms

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        if self._curr.token_type == T.INTERVAL:
            interval = self._parse_interval()
            if interval is not None:
                return self._parse_column_ops(interval)
        if self._curr.token_type == T.VAR and self._curr.text.upper() in _LITERAL_TYPES:
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
        value = self._parse_primary()
        return self.expression(exp.Cast(this=value, to=data_type(kind)), first)

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
        return self._parse_paren()

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

    # calls

    def _parse_function_call(
        self,
        functions: dict[str, Callable[..., exp.Expr]] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        token = self._curr
        after_dot = self._prev.token_type == T.DOT
        if token.token_type == T.CASE and not after_dot:
            self._advance()
            return self._parse_case()
        if self._next.token_type != T.L_PAREN:
            if optional_parens and token.token_type in self.NO_PAREN_FUNCTIONS and not after_dot:
                self._advance()
                return self.NO_PAREN_FUNCTIONS[token.token_type]().update_positions(token)
            return None
        if token.token_type not in self.FUNC_TOKENS:
            return None
        self._advance(2)
        call = self._call(token)
        call.update_positions(token)
        call.meta["stop"] = self._prev.end
        if self._curr.token_type == T.USING and token.text.upper() == "TRANSFORM":
            self.refuse(UnsupportedError, "UNSUPPORTED_CLAUSE", "scripts are never run", "write the step in SQL", token)
        self._called = token
        return self._parse_window(call)

    def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
        found = super()._parse_partition_and_order()
        if self.ahead("SESSION", "WITH", "GAP"):
            self.not_yet(
                "sessions as the frame of a window function are not there yet",
                "use GROUP BY SESSION(ts, gap)",
                self._called,
                "UPDATING_WINDOW_FUNCTION",
            )
        return found

    def _call(self, token: Token) -> exp.Expr:
        """A call whose name and opening bracket are taken, up to and with its closing bracket."""
        upper = token.text.upper()
        special = SPECIAL_CALLS.get(upper)
        if special is not None:
            index = self._index
            found: exp.Expr | None = special(self, token)
            if found is not None:
                self._match_r_paren()
                return found
            self._retreat(index)
        if self._match(T.R_PAREN):
            if token.token_type in self.NO_PAREN_FUNCTIONS:
                return self.NO_PAREN_FUNCTIONS[token.token_type]()
            return self.expression(exp.Anonymous(this=token.text, expressions=[]))
        first = unit_argument(self, upper)
        arguments = [first] if first is not None else []
        if first is None or self._match(T.COMMA):
            arguments += self._parse_csv(self._parse_lambda)
        self._match_r_paren()
        return self.expression(exp.Anonymous(this=token.text, expressions=arguments))

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        """An argument: a lambda, a named argument, DISTINCT …, or an expression, with ORDER BY and the like behind."""
        named = self._named_argument()
        if named is not None:
            return named
        parameters = self._lambda_parameters()
        if parameters is not None:
            body = self._replace_lambda(self.an_expression(), parameters)
            return self.expression(exp.Lambda(this=body, expressions=parameters))
        this: exp.Expr | None
        if self._match(T.DISTINCT):
            this = self.expression(exp.Distinct(expressions=self._parse_csv(self._parse_disjunction)))
        else:
            if self._curr.token_type == T.ALL and self._next.token_type != T.L_PAREN:
                self._match(T.ALL)
            this = self.nested_query() or self._parse_disjunction()
        if this is None:
            return None
        return self._parse_respect_or_ignore_nulls(self._parse_order(self._parse_respect_or_ignore_nulls(this)))

    def _named_argument(self) -> exp.Expr | None:
        if self._next.token_type != T.FARROW or self._curr.token_type not in WORD_TOKENS | {T.IDENTIFIER}:
            return None
        token = self._curr
        self._advance(2)
        value = self._parse_disjunction() or self._parse_select()
        if value is None:
            self.fail("an expression")
        return self.expression(exp.Kwarg(this=exp.Var(this=token.text), expression=value), token)

    def _lambda_parameters(self) -> list[exp.Expr] | None:
        """X -> …, (x, y) -> …. `payload -> 'key'` reads JSON: a lambda's body names its parameter."""
        tokens: list[Token] = []
        index = self._index
        if self._curr.token_type in NAME_TOKENS and self._next.token_type == T.ARROW:
            tokens, body = [self._curr], index + 2
            if not self._mentions(self._curr.text, body):
                return None
        elif self._curr.token_type == T.L_PAREN:
            body = index + 1
            while body + 1 < self._tokens_size and self._tokens[body].token_type in NAME_TOKENS:
                tokens.append(self._tokens[body])
                body += 1
                if self._tokens[body].token_type != T.COMMA:
                    break
                body += 1
            arrow = self._tokens[body : body + 2]
            if [token.token_type for token in arrow] != [T.R_PAREN, T.ARROW] or not tokens:
                return None
            body += 2
            if len(tokens) == 1 and not self._mentions(tokens[0].text, body):
                return None
        else:
            return None
        self._advance(body - index)
        return [self._identifier_expression(token, quoted=token.token_type == T.IDENTIFIER) for token in tokens]

    def _mentions(self, parameter: str, start: int) -> bool:
        """Whether the body that begins at `start` names the parameter; a literal that does not is a path into JSON."""
        if start < self._tokens_size and self._tokens[start].token_type not in {T.STRING, T.NUMBER}:
            return True
        depth = 0
        for token in self._tokens[start:]:
            if token.token_type in {T.L_PAREN, T.L_BRACKET}:
                depth += 1
            elif token.token_type in {T.R_PAREN, T.R_BRACKET}:
                depth -= 1
            if depth < 0 or (depth == 0 and token.token_type == T.COMMA):
                return False
            if token.token_type in NAME_TOKENS and token.text.upper() == parameter.upper():
                return True
        return False

    # constructors and subscripts

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
        node.update_positions(this if this is not None and word else first)
        node.meta["stop"] = self._prev.end
        return self._parse_bracket(node)

    def _map(self, items: list[exp.Expr]) -> exp.Expr:
        """MAP[key, value, …]"""
        if len(items) % 2:
            self.fail("a value for the last key of the map")
        return exp.VarMap(keys=exp.Array(expressions=items[0::2]), values=exp.Array(expressions=items[1::2]))

    # rules of sqlglot that let too much pass

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
