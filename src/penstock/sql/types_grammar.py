"""The grammar of data types."""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import TokenType

from penstock.errors import ResolutionError
from penstock.sql.lexical import too_deep
from penstock.sql.reading import WORD_TOKENS, Reader
from penstock.sql.spans import token_span
from penstock.sql.typenames import MAX_PRECISION, NAMES, PARAMETERS, UNSIGNED, nearest_type
from penstock.types import Field, SqlType

T = TokenType

MAX_TYPE: Final = 50  # types in types; the type of a column is walked by functions that call themselves


class TypeGrammar(Reader):
    """Types: names with their parameters, nested types, arrays behind."""

    def type_name(self, depth: int = 1) -> SqlType:
        """A data type, `depth` levels inside others."""
        token = self._curr
        if depth > MAX_TYPE:
            raise too_deep(token_span(token or self._prev))
        if token.token_type not in WORD_TOKENS:
            self.fail("a type")
        upper = token.text.upper()
        if upper in {"ARRAY", "MAP"} and self._next.token_type == T.LT:
            found = self._collection(upper, depth)
        elif upper in {"STRUCT", "ROW"} and self._next.token_type in {T.LT, T.L_PAREN}:
            found = self._struct(depth)
        else:
            found = self._scalar()
        while self._curr.token_type == T.L_BRACKET and self._next.token_type == T.R_BRACKET:
            depth += 1
            if depth > MAX_TYPE:
                raise too_deep(token_span(token))
            self._advance(2)
            found = SqlType("ARRAY", elements=(found,))
        return found

    def _collection(self, upper: str, depth: int) -> SqlType:
        self._advance(2)
        elements = [self._element(depth)]
        if upper == "MAP":
            self.expect_symbol(T.COMMA, ",")
            elements.append(self._element(depth))
        self.expect_symbol(T.GT, ">")
        return SqlType(upper, elements=tuple(elements))

    def _element(self, depth: int) -> SqlType:
        found = self.type_name(depth + 1)
        if not self.word("NOT", "NULL"):
            self.word("NULL")
        return found

    def _struct(self, depth: int) -> SqlType:
        """STRUCT<a INT, b STRING>, STRUCT<a: INT>, ROW<…>, ROW(…)"""
        self._advance(2)
        closing = (T.GT, ">") if self._prev.token_type == T.LT else (T.R_PAREN, ")")
        fields = [self._field(depth)]
        while self.symbol(T.COMMA):
            fields.append(self._field(depth))
        self.expect_symbol(*closing)
        return SqlType("STRUCT", fields=tuple(fields))

    def _field(self, depth: int) -> Field:
        if self._curr.token_type not in WORD_TOKENS | {T.IDENTIFIER}:
            self.fail("the name of a field")
        name = self._curr.text
        self._advance()
        self.symbol(T.COLON)
        found = self._element(depth)
        if self.word("COMMENT"):
            self.string()
        elif self._curr.token_type == T.STRING:
            self._advance()
        return Field(name, found)

    def _scalar(self) -> SqlType:
        token = self._curr
        upper = token.text.upper()
        self._advance()
        if upper in {"CHARACTER", "CHAR"} and self.word("VARYING"):
            upper = "VARCHAR"
        elif upper == "DOUBLE":
            self.word("PRECISION")
        if upper in {"TIME", "TIMETZ"}:
            raise ResolutionError(
                "UNKNOWN_TYPE",
                f"the type {upper} is not offered: there is no time of day without a date",
                hint="use STRING, or TIMESTAMP for a point in time",
                span=token_span(token),
            )
        found = NAMES.get(upper)
        if found is None:
            near = nearest_type(upper)
            self.type_at = token.start
            shown = self.shown(token)
            called = f'"{shown}"' if shown not in {"a word", "a string"} else "this"
            raise ResolutionError(
                "UNKNOWN_TYPE",
                f"no data type is called {called}",
                hint=f"did you mean {near}?" if near else "use STRING, BIGINT, DOUBLE, DECIMAL, TIMESTAMP, BOOLEAN …",
                span=token_span(token),
            )
        parameters = self._parameters(PARAMETERS.get(upper, 0))
        if found.name == "DECIMAL" and parameters:
            precision, scale = parameters[0], parameters[1] if len(parameters) > 1 else 0
            if not 1 <= precision <= MAX_PRECISION or scale > precision:
                raise ResolutionError(
                    "INVALID_ARGUMENT",
                    f"a DECIMAL has at most {MAX_PRECISION} digits, and not more behind the point than in all",
                    span=self.since(token),
                )
            found = SqlType("DECIMAL", (precision, scale))
        if found.name == "TIMESTAMP":
            self._zone()
        if found.name in UNSIGNED and self.word("UNSIGNED"):
            found = SqlType(UNSIGNED[found.name])
        elif found.name == "STRING" and self.word("COLLATE"):
            self.fail("a type without a collation")
        return found

    def _parameters(self, most: int) -> tuple[int, ...]:
        if most == 0 or self._curr.token_type != T.L_PAREN:
            return ()
        self._advance()
        found: list[int] = []
        while len(found) < most and self.at(T.NUMBER) and self._curr.text.isdecimal():
            if len(self._curr.text) > 10:
                self.fail("a smaller number")
            found.append(int(self._curr.text))
            self._advance()
            if not self.symbol(T.COMMA):
                break
        if not found and self._curr.text.upper() == "MAX":
            self._advance()
        self.expect_symbol(T.R_PAREN, ")")
        return tuple(found)

    def _zone(self) -> None:
        """[WITH | WITHOUT] [LOCAL] TIME ZONE"""
        if self.ahead("WITH", "LOCAL") or self.ahead("WITH", "TIME") or self.ahead("WITHOUT"):
            self._advance()
            self.word("LOCAL")
            self.expect("TIME", "ZONE")
