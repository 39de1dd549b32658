"""The grammar of relations: what stands in a FROM clause, with its aliases and joins."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import UnsupportedError
from penstock.sql.dialects import flink, ksql_windows, ksqldb, questdb, spark_pipelines
from penstock.sql.expressions import ExpressionGrammar
from penstock.sql.hints import table_options
from penstock.sql.nodes import SystemTime
from penstock.sql.pivots import pivot_ahead, pivoted
from penstock.sql.reading import NAME_TOKENS
from penstock.sql.windows import window_table

T = TokenType

_WINDOWS: Final = frozenset({"TUMBLE", "HOP", "SESSION", "CUMULATE"})

FILE_HINT: Final = "make a table of a file first: CREATE TABLE t (…) WITH (connector = 'file', path = '…')"

# Two words that begin a clause behind a relation or a select item, where one word would be taken for an alias.
_CLAUSES: Final = {
    "EMIT": frozenset({"CHANGES", "FINAL", "ON"}),
    "PIVOT": frozenset({"("}),
    "UNPIVOT": frozenset({"(", "INCLUDE", "EXCLUDE"}),
    "TABLESAMPLE": frozenset({"(", "BERNOULLI", "SYSTEM"}),
    "SORT": frozenset({"BY"}),
    "CLUSTER": frozenset({"BY"}),
    "DISTRIBUTE": frozenset({"BY"}),
    "START": frozenset({"WITH"}),
    "CONNECT": frozenset({"BY"}),
    "FORMAT": frozenset({"PLAIN", "UPSERT", "DEBEZIUM", "NATIVE"}),
    "MINUS": frozenset({"SELECT", "ALL", "DISTINCT"}),
}


class RelationGrammar(ExpressionGrammar):
    """Relations and joins."""

    def relation(self) -> exp.Expr:
        """One item of a FROM clause, without the joins behind it."""
        found = self._parse_table()
        if found is None:
            self.fail("a table name", FILE_HINT if self.at(T.STRING) else None)
        while pivot_ahead(self):
            found = pivoted(self, found)
        return found

    def relation_alias(self) -> exp.TableAlias | None:
        """[AS] name [(columns)] behind a relation."""
        return self._parse_table_alias()

    def subquery(self) -> exp.Subquery:
        """( SELECT … )"""
        found = self._parse_select(nested=True, parse_subquery_alias=False)
        if not isinstance(found, exp.Subquery):
            self.fail("(SELECT …)")
        return found

    def _parse_from(
        self, joins: bool = False, skip_from_token: bool = False, consume_pipe: bool = False
    ) -> exp.From | None:
        if not self._match(T.FROM):
            return None
        return exp.From(this=self.relation())

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        token = self._curr
        if token.token_type == T.LATERAL:
            return self._parse_lateral()
        if token.token_type == T.UNNEST:
            return self._parse_unnest()
        if token.token_type in {T.SELECT, T.WITH, T.VALUES, T.L_PAREN}:
            return self._nested_relation()
        if token.token_type not in NAME_TOKENS:
            return None
        upper = token.text.upper()
        called = self._next.token_type == T.L_PAREN
        if upper == "TABLE" and called:
            return self._table_call()
        if upper in _WINDOWS and called:
            return self._aliased(window_table(self))
        spark_pipelines.check_relation(self)
        if called:
            return self._aliased(exp.Table(this=self._parse_function_call()))
        return self._dimension(self.read_table())

    def read_table(self) -> exp.Table:
        """The name of a table, and what a hint says of this reading of it."""
        table = self.table_name()
        options = table_options(self)
        if options is not None:
            table.set("hints", options)
        return table

    def table_name(self) -> exp.Table:
        """A name, or database.name for system tables."""
        parts = [self._name_part()]
        while self._match(T.DOT):
            parts.append(self._name_part())
        if len(parts) > 3:
            self.raise_error("Expected table name")
        parts.reverse()
        node = exp.Table(**dict(zip(("this", "db", "catalog"), parts, strict=False)))
        return node.update_positions(parts[0])

    def _name_part(self) -> exp.Expr:
        found = self._parse_id_var(any_token=False) if self._curr.token_type in NAME_TOKENS else None
        if found is None:
            self.fail("a table name")
        return found

    def _nested_relation(self) -> exp.Expr:
        """(SELECT …), (VALUES …), (a JOIN b ON …)"""
        if self._curr.token_type == T.VALUES or (
            self._curr.token_type == T.L_PAREN and self._next.token_type == T.VALUES
        ):
            values = self._parse_derived_table_values()
            if values is not None:
                return values
        found = self._parse_select(table=True)
        if found is None:
            self.fail("a table name")
        return found

    def _table_call(self) -> exp.Expr:
        """TABLE(TUMBLE(…)), TABLE(f(x))"""
        self._advance(2)
        if self._curr.text.upper() in _WINDOWS and self._next.token_type == T.L_PAREN:
            inner: exp.Expr = window_table(self)
        else:
            call = self._parse_function_call(optional_parens=False)
            if call is None:
                self.fail("a function")
            inner = exp.Table(this=call)
        self._match_r_paren()
        return self._aliased(inner)

    def _aliased(self, node: exp.Expr) -> exp.Expr:
        if self._match(T.WITH):
            if not self._match(T.ORDINALITY):
                self._retreat(self._index - 1)
            else:
                node.set("ordinality", True)
        alias = self._parse_table_alias()
        if alias is not None:
            node.set("alias", alias)
        return node

    def _dimension(self, table: exp.Table) -> exp.Expr:
        """T [FOR SYSTEM_TIME AS OF e] [AS a]; the alias may come first."""
        system_time = self._system_time()
        self._aliased(table)
        options = table_options(self)  # behind the alias, where some write it
        if options is not None:
            if table.args.get("hints") is not None:
                self.step_back()
                self.fail("one OPTIONS")
            table.set("hints", options)
        system_time = system_time or self._system_time()
        if system_time is not None:
            table.set("system_time", system_time)
        return table

    def _system_time(self) -> exp.Expr | None:
        first = self._curr
        if first.token_type != T.FOR:
            return None
        self._advance()
        self.expect("SYSTEM_TIME", "AS", "OF")
        time = self._parse_bitwise()
        if time is None:
            self.fail("an expression")
        return SystemTime(this=time).update_positions(first)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        if self._clause_ahead() or self._can_parse_limit_or_offset():
            return None
        explicit = self._match(T.ALIAS)
        name = self._parse_id_var(tokens=NAME_TOKENS if explicit else (alias_tokens or self.TABLE_ALIAS_TOKENS))
        if name is None:
            if explicit:
                self.fail("a name")
            return None
        columns = self._parse_wrapped_csv(self._alias_column) if self._curr.token_type == T.L_PAREN else None
        return exp.TableAlias(this=name, columns=columns).update_positions(name)

    def _alias_column(self) -> exp.Expr:
        found = self._parse_id_var(any_token=False)
        if found is None:
            self.fail("a name")
        return found

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        if this is None:
            return None
        if not self._match(T.ALIAS):
            if explicit or self._clause_ahead() or self._can_parse_limit_or_offset() or self._can_parse_named_window():
                return this
            name = self._parse_id_var(tokens=self.ALIAS_TOKENS)
            return self.expression(exp.Alias(this=this, alias=name)) if name is not None else this
        if self._match(T.L_PAREN):
            names = self._parse_csv(self._alias_column)
            self._match_r_paren()
            return self.expression(exp.Aliases(this=this, expressions=names))
        name = self._parse_id_var()
        if name is None:
            self.fail("a name")
        return self.expression(exp.Alias(this=this, alias=name))

    def _clause_ahead(self) -> bool:
        """Whether a clause begins here whose first word is no keyword; refuses those that are not there."""
        token = self._curr
        if token.token_type not in {T.VAR, T.WINDOW}:
            return False
        spark_pipelines.check_watermark(self)
        questdb.check_clause(self)
        upper = token.text.upper()
        following = _CLAUSES.get(upper)
        if following is None or self._next.text.upper() not in following:
            return ksqldb.check_clause(self)
        if upper == "TABLESAMPLE":
            self.refuse(
                UnsupportedError, "UNSUPPORTED_CLAUSE", "a stream cannot be sampled", "filter by a hash of a key", token
            )
        if upper in {"SORT", "CLUSTER", "DISTRIBUTE", "START", "CONNECT"}:
            self.not_yet(f"{upper} is not there yet", "write the query without it", token)
        return True

    def _can_parse_limit_or_offset(self) -> bool:
        """OFFSET begins a clause only before a number; else it is a name."""
        return self._curr.token_type == T.LIMIT or (
            self._curr.token_type == T.OFFSET and self._next.token_type == T.NUMBER
        )

    def _parse_pivots(self) -> list[exp.Expr] | None:  # type: ignore[override]
        return None

    def _parse_table_sample(self, as_modifier: bool = False) -> exp.TableSample | None:
        return None

    def _parse_lateral(self) -> exp.Expr | None:  # type: ignore[override]
        first = self._curr
        if not self._match(T.LATERAL):
            return None
        return self._lateral_view() if self._match(T.VIEW) else self._lateral_item(first)

    def _lateral_item(self, first: Token) -> exp.Expr:
        """What stands behind LATERAL and APPLY: a query or a function over the relations in front of it."""
        this: exp.Expr | None
        if self._curr.token_type == T.L_PAREN:
            this = self.subquery()
        elif self._curr.text.upper() == "TABLE" and self._next.token_type == T.L_PAREN:
            self._advance(2)
            table = flink.snapshot(self)
            if table is not None:
                self._match_r_paren()
                return self._aliased(table)
            this = self._parse_function_call(optional_parens=False)
            self._match_r_paren()
        elif self._curr.token_type == T.UNNEST:
            this = self._parse_unnest(with_alias=False)
        else:
            this = self._parse_function_call(optional_parens=False)
        if this is None:
            self.fail("a subquery or a function")
        node = exp.Lateral(this=this, alias=None)
        if self._match(T.WITH):
            self.expect("ORDINALITY")
            node.set("ordinality", True)
        node.set("alias", self._parse_table_alias())
        return node.update_positions(first)

    def _lateral_view(self) -> exp.Lateral:
        """LATERAL VIEW [OUTER] explode(xs) t AS x"""
        outer = self._match(T.OUTER) or None
        call = self._parse_function_call(optional_parens=False)
        if call is None:
            self.fail("a function")
        name = self._parse_id_var(tokens=self.TABLE_ALIAS_TOKENS)
        columns = self._parse_csv(self._alias_column) if self._match(T.ALIAS) else []
        alias = exp.TableAlias(this=name, columns=columns) if name is not None or columns else None
        return exp.Lateral(this=call, view=True, outer=outer, alias=alias)

    def _parse_unnest(self, with_alias: bool = True) -> exp.Unnest | None:
        first = self._curr
        if first.token_type != T.UNNEST or self._next.token_type != T.L_PAREN:
            return None
        self._advance()
        items = self._parse_wrapped_csv(self._parse_disjunction)
        if not items:
            self.fail("an expression")
        ordinality = self._match(T.WITH)
        if ordinality:
            self.expect("ORDINALITY")
        alias = self._parse_table_alias() if with_alias else None
        node = exp.Unnest(expressions=items, alias=alias, offset=ordinality or None)
        return node.update_positions(first)

    def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
        wrapped = self._match_pair(T.L_PAREN, T.VALUES)
        if not wrapped and not self._match(T.VALUES):
            return None
        first = self._prev
        rows = self._parse_csv(self._row)
        if not rows:
            self.fail("(")
        if wrapped:
            self._match_r_paren()
        return exp.Values(expressions=rows, alias=self._parse_table_alias()).update_positions(first)

    def _row(self) -> exp.Expr:
        if self._curr.text.upper() == "ROW" and self._next.token_type == T.L_PAREN:
            self._advance()
        self.expect_symbol(T.L_PAREN, "(")
        items = self._parse_csv(self._parse_disjunction)
        if not items:
            self.fail("an expression")
        self._match_r_paren()
        return exp.Tuple(expressions=items)

    def _parse_join(
        self,
        skip_join_token: bool = False,
        parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:
        first = self._curr
        if self._match(T.COMMA):
            return self.expression(exp.Join(this=self.relation()), first)
        if self.at(T.CROSS, T.OUTER) and self.peek_text(1, "APPLY"):
            return self._apply()
        words = self._join_words()
        if words is None:
            return None
        method, side, kind = words
        this = self.relation()
        node = exp.Join(this=this, method=method, side=side, kind=kind).update_positions(first)
        if ksqldb.check_clause(self):
            node.set("nearest", ksql_windows.parse_within(self))
        if self._match(T.MATCH_CONDITION):
            node.set("match_condition", self._parse_wrapped(self._parse_disjunction))
        matched = node.args.get("match_condition") is not None
        if not self._condition(node) and kind != "CROSS" and method != "NATURAL" and not matched:
            joins = list(self._parse_joins())
            if not joins or not self._condition(node):
                self.fail("ON or USING")
            this.set("joins", joins)
        return node

    def _apply(self) -> exp.Join:
        """CROSS APPLY (SELECT …), which is CROSS JOIN LATERAL, and OUTER APPLY, which is LEFT JOIN LATERAL … ON TRUE"""
        first = self._curr
        self._advance(2)
        item = self._lateral_item(first)
        if first.token_type == T.CROSS:
            return exp.Join(this=item, kind="CROSS").update_positions(first)
        return exp.Join(this=item, side="LEFT", on=exp.Boolean(this=True)).update_positions(first)

    def _join_words(self) -> tuple[str | None, str | None, str | None] | None:
        """The words before JOIN: NATURAL, ASOF, LEFT, OUTER, CROSS …; steps back when no JOIN follows."""
        index = self._index
        seen: set[str] = set()
        while self._curr.token_type in {
            T.NATURAL, T.ASOF, T.LEFT, T.RIGHT, T.FULL, T.OUTER, T.INNER, T.CROSS, T.SEMI, T.ANTI,
        }:  # fmt: skip
            seen.add(self._curr.text.upper())
            self._advance()
        if not self._match(T.JOIN):
            if seen & {"NATURAL", "INNER", "CROSS"}:
                self.fail("JOIN")
            self._retreat(index)
            return None
        method = next(iter(seen & {"NATURAL", "ASOF"}), None)
        side = next(iter(seen & {"LEFT", "RIGHT", "FULL"}), None)
        kind = next(iter(seen & {"CROSS", "SEMI", "ANTI"}), None)
        rest = seen - {method, side, kind, "INNER", "OUTER"}
        if rest or (kind == "CROSS" and (side or method)) or ("INNER" in seen and (side or kind)):
            self._retreat(self._index - 1)
            self.fail("a join such as LEFT JOIN or ASOF JOIN")
        return method, None if kind in {"SEMI", "ANTI"} and side == "LEFT" else side, kind

    def _condition(self, join: exp.Join) -> bool:
        if self._match(T.ON):
            join.set("on", self.an_expression())
        elif self._match(T.USING):
            join.set("using", self._parse_wrapped_csv(self._alias_column))
        else:
            return False
        return True
