"""The grammar of calls: functions with their arguments, lambdas, FILTER, OVER.

Every ordinary call becomes `exp.Anonymous` with its name as written, because the function registry alone decides what
a name means. Only what the SQL standard writes with keywords inside the brackets has a node of its own, and only when
it is written so: `SUBSTRING(a FROM 2)` is an `exp.Substring`, `SUBSTRING(a, 2)` an `exp.Anonymous`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import UnsupportedError
from penstock.sql.calls import SPECIAL_CALLS, behind_arguments, json_returning, unit_argument
from penstock.sql.durations import NotADuration, parse_duration
from penstock.sql.reading import NAME_TOKENS, WORD_TOKENS
from penstock.sql.types_grammar import TypeGrammar

T = TokenType

# Words before a bracket that are never the name of a function.
_NO_CALL: Final = frozenset({T.OVER, T.CUBE, T.ROLLUP, T.MATCH_CONDITION, T.MATCH_RECOGNIZE, T.INTERVAL})
_CALLABLE: Final = (NAME_TOKENS | {T.LEFT, T.RIGHT, T.UNNEST}) - _NO_CALL


class CallGrammar(TypeGrammar):
    """Calls."""

    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, type[exp.Expr]]] = {
        T.CURRENT_DATE: exp.CurrentDate,
        T.CURRENT_TIME: exp.CurrentTime,
        T.CURRENT_TIMESTAMP: exp.CurrentTimestamp,
        T.LOCALTIME: exp.Localtime,
        T.LOCALTIMESTAMP: exp.Localtimestamp,
    }
    FUNC_TOKENS: ClassVar = set(_CALLABLE)
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}

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

    def nested_query(self) -> exp.Expr | None:
        """A query inside brackets; None, having taken nothing, when none begins here."""
        begins = self.at(T.SELECT, T.WITH) or self.whole_ahead()
        return self._parse_select(nested=True) if begins else None

    def whole_ahead(self) -> bool:
        """Whether TABLE and the name of a relation come next, which is a query of all of it."""
        return self.at(T.VAR) and self._curr.text.upper() == "TABLE" and self._next.token_type in NAME_TOKENS

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
        return self._parse_window(call)

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        if self._curr.token_type == T.FILTER and self._next.token_type == T.L_PAREN and not self.peek_text(2, "WHERE"):
            self._advance(2)
            self.fail("WHERE")
        found = super()._parse_window(this, alias)
        if self._session is not None and isinstance(found, exp.Window):
            found.set("spec", self._session)
            self._session = None
        spec = found.args.get("spec") if isinstance(found, exp.Window) else None
        session = spec is not None and spec.args["kind"] == "SESSION"
        if spec is not None and spec.args.get("end") is None and not session:  # ROWS 2 PRECEDING: to the current row
            spec.set("end", "CURRENT ROW")
        if spec is not None and self._framed is not None:
            first, last = self._framed
            spec.update_positions(first)
            spec.meta["stop"] = last.end
            self._framed = None
        return found

    def _parse_window_spec(self) -> dict[str, str | exp.Expr | None]:
        """One end of a frame: UNBOUNDED, CURRENT ROW or an expression, and on which side of the row it lies."""
        between = self._tokens[self._index - 1].text.upper() == "BETWEEN"
        first = self._framed[0] if self._framed is not None else self._tokens[self._index - 1 - between]
        found = self._frame_end()
        self._framed = first, self._prev
        return found

    def _frame_end(self) -> dict[str, str | exp.Expr | None]:
        if self.word("CURRENT"):
            self.expect("ROW")
            return {"value": "CURRENT ROW", "side": None}
        value: str | exp.Expr = "UNBOUNDED" if self.word("UNBOUNDED") else self.operand()
        side = self.any_word("PRECEDING", "FOLLOWING")
        if side is None:
            self.fail("PRECEDING or FOLLOWING")
        return {"value": value, "side": side}

    def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
        found = super()._parse_partition_and_order()
        if self.ahead("SESSION", "WITH", "GAP"):
            first = self.current
            self.step(3)
            gap = self.operand()
            if isinstance(gap, exp.Literal) and gap.is_string:
                gap = _length_of(gap)
            exclude = self._parse_var_from_options(self.WINDOW_EXCLUDE_OPTIONS) if self.word("EXCLUDE") else None
            self._session = exp.WindowSpec(kind="SESSION", start=gap, exclude=exclude)
            self._framed = first, self.taken
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
        begin = self._curr
        first = unit_argument(self, upper)
        arguments = [first] if first is not None else []
        if first is None or self._match(T.COMMA):
            arguments += self._parse_csv(self._parse_lambda)
        if first is not None and len(arguments) < 3:
            # DATEDIFF(d, e): a column that is called as a unit is
            arguments[0] = exp.Column(this=exp.to_identifier(begin.text)).update_positions(begin)
        behind_arguments(self, upper, arguments)
        returned = json_returning(self, upper)
        self._match_r_paren()
        call: exp.Expr = exp.Anonymous(this=token.text, expressions=arguments)
        last = arguments[-1] if arguments else None
        if isinstance(last, exp.IgnoreNulls | exp.RespectNulls):  # inside the brackets or behind them is the same
            arguments[-1] = last.this
            call = type(last)(this=exp.Anonymous(this=token.text, expressions=arguments).update_positions(token))
        return call if returned is None else exp.Cast(this=call.update_positions(token), to=returned)

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
            items = self._parse_csv(self._parse_disjunction)
            if not items:
                self.fail("an expression")
            this = self.expression(exp.Distinct(expressions=items))
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


def _length_of(text: exp.Expr) -> exp.Expr:
    """The interval that a text says; the text itself where it says none, which is told where it is used."""
    try:
        found = parse_duration(str(text.this)).node()
    except NotADuration:
        return text
    found.meta.update(text.meta)
    return found
