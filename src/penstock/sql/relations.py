"""The grammar of queries: SELECT, FROM, joins, set operations."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Final, cast

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.errors import Span
from penstock.sql.dialects import ksqldb, spark_pipelines
from penstock.sql.expressions import ExpressionGrammar
from penstock.sql.nodes import SystemTime
from penstock.sql.reading import NAME_TOKENS
from penstock.sql.statements import Emit, Query
from penstock.sql.windows import window_table

T = TokenType

_WINDOWS: Final = frozenset({"TUMBLE", "HOP", "SESSION", "CUMULATE"})

# Two words that begin a clause behind a relation or a select item, where one word would be taken for an alias.
_CLAUSES: Final = {
    "EMIT": frozenset({"CHANGES", "FINAL", "ON"}),
    "PIVOT": frozenset({"("}),
    "UNPIVOT": frozenset({"("}),
    "TABLESAMPLE": frozenset({"(", "BERNOULLI", "SYSTEM"}),
    "SORT": frozenset({"BY"}),
    "CLUSTER": frozenset({"BY"}),
    "DISTRIBUTE": frozenset({"BY"}),
    "START": frozenset({"WITH"}),
    "CONNECT": frozenset({"BY"}),
    "FORMAT": frozenset({"PLAIN", "UPSERT", "DEBEZIUM", "NATIVE"}),
    "MINUS": frozenset({"SELECT"}),
}


class RelationGrammar(ExpressionGrammar):
    """Queries."""

    QUERY_MODIFIER_PARSERS: ClassVar = {
        T.MATCH_RECOGNIZE: lambda self: ("match", self._parse_match_recognize()),
        T.WHERE: lambda self: ("where", self._parse_where()),
        T.GROUP_BY: lambda self: ("group", self._parse_group()),
        T.HAVING: lambda self: ("having", self._parse_having()),
        T.QUALIFY: lambda self: ("qualify", self._parse_qualify()),
        T.WINDOW: lambda self: ("windows", self._parse_window_clause()),
        T.ORDER_BY: lambda self: ("order", self._parse_order()),
        T.LIMIT: lambda self: ("limit", self._parse_limit()),
        T.FETCH: lambda self: ("limit", self._parse_limit()),
        T.OFFSET: lambda self: ("offset", self._parse_offset()),
    }
    QUERY_MODIFIER_TOKENS: ClassVar = set(QUERY_MODIFIER_PARSERS)
    OPTIONAL_ALIAS_TOKEN_CTE: ClassVar = False

    # the whole query

    def query(self) -> Query:
        """A query with its EMIT, which may stand before or after LIMIT."""
        first = self._curr
        tree = self._parse_select(nested=True, parse_subquery_alias=False)
        if tree is None:
            self.fail("SELECT")
        if isinstance(tree, exp.Subquery):
            tree = self._parse_query_modifiers(tree)
        emit, emit_span = self._emit()
        if emit is not None and self._curr.token_type in {T.LIMIT, T.FETCH, T.OFFSET}:
            tree = self._parse_query_modifiers(tree)
        if isinstance(tree, exp.Subquery) and tree.is_wrapper:
            tree = tree.unnest()
        return Query(cast(exp.Query, tree), emit, emit_span, self.since(first))

    def _emit(self) -> tuple[Emit | None, Span]:
        first = self._curr
        if not self.word("EMIT"):
            return None, Span(1, 1, 0)
        if self.word("CHANGES"):
            return Emit.CHANGES, self.since(first)
        if self.word("FINAL") or self.word("ON", "WINDOW", "CLOSE"):
            return Emit.FINAL, self.since(first)
        self.fail("CHANGES, FINAL or ON WINDOW CLOSE")

    def _parse_statement(self) -> exp.Expr | None:
        """What stands in a WITH clause: a query, never another statement."""
        found = self._parse_select(nested=True, parse_subquery_alias=False)
        if found is None:
            self.fail("SELECT")
        return found

    def _parse_select_query(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
    ) -> exp.Expr | None:
        this: exp.Expr | None
        if self._curr.token_type == T.WITH:
            return self._with_query()
        if self._curr.token_type == T.SELECT:
            this = self._select()
        elif (table or nested) and self._curr.token_type == T.L_PAREN:
            self._advance()
            inner = self._parse_wrapped_select(table=table)
            if inner is None:
                self.fail("SELECT")
            self._match_r_paren()
            this = self._parse_subquery(inner, parse_alias=parse_subquery_alias)
            if table and self._curr.token_type not in self.SET_OPERATIONS:
                return this
        elif self._curr.token_type == T.VALUES:
            this = self._parse_derived_table_values()
        else:
            return None
        return self._parse_set_operations(this) if parse_set_operation else this

    def _with_query(self) -> exp.Expr:
        clause = self._parse_with()
        this = self._parse_select(nested=True, parse_subquery_alias=False)
        while isinstance(this, exp.Subquery) and this.is_wrapper:
            this = this.this
        if this is None or clause is None:
            self.fail("SELECT")
        if isinstance(this, exp.Values):
            this = self._values_to_select(this)
        inner = this.args.get("with_")
        if inner is not None:
            clause.set("expressions", clause.expressions + inner.expressions)
        this.set("with_", clause)
        return this

    def _select(self) -> exp.Expr:
        first = self._curr
        self._advance()
        distinct = None
        if self._match(T.DISTINCT):
            on = exp.Tuple(expressions=self._parse_wrapped_csv(self._parse_disjunction)) if self._match(T.ON) else None
            distinct = exp.Distinct(on=on)
        elif self._curr.token_type == T.ALL and self._next.token_type not in {T.COMMA, T.FROM, T.DOT}:
            self._advance()
        items = self._parse_expressions()
        if not items:
            self.fail("an expression")
        this = exp.Select(distinct=distinct, expressions=items).update_positions(first)
        source = self._parse_from()
        if source is not None:
            this.set("from_", source)
        return self._parse_query_modifiers(this)

    def _parse_from(self, joins: bool = False, skip_from_token: bool = False, consume_pipe: bool = False) -> exp.From | None:
        if not self._match(T.FROM):
            return None
        return exp.From(this=self.relation())

    def _parse_connect(self, skip_start_token: bool = False) -> exp.Connect | None:
        return None

    def subquery(self) -> exp.Subquery:
        """( SELECT … )"""
        found = self._parse_select(nested=True, parse_subquery_alias=False)
        if not isinstance(found, exp.Subquery):
            self.fail("(SELECT …)")
        return found

    # relations

    def relation(self) -> exp.Expr:
        """One item of a FROM clause, without the joins behind it."""
        found = self._parse_table()
        if found is None:
            self.fail("a table name")
        return found

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
        return self._dimension(self.table_name())

    def table_name(self) -> exp.Table:
        """name, or database.name for system tables"""
        parts = [self._name_part()]
        while self._match(T.DOT):
            parts.append(self._name_part())
        if len(parts) > 3:
            self.raise_error("Expected table name")
        parts.reverse()
        node = exp.Table(**dict(zip(("this", "db", "catalog"), parts, strict=False)))
        return node.update_positions(parts[0])

    def _name_part(self) -> exp.Expr:
        found = self._parse_id_var(any_token=False)
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
        """t [FOR SYSTEM_TIME AS OF e] [AS a]; the alias may come first."""
        system_time = self._system_time()
        self._aliased(table)
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
        upper = token.text.upper()
        following = _CLAUSES.get(upper)
        if following is None or self._next.text.upper() not in following:
            return ksqldb.check_clause(self)
        if upper in {"PIVOT", "UNPIVOT", "TABLESAMPLE", "SORT", "CLUSTER", "DISTRIBUTE", "START", "CONNECT", "MINUS"}:
            hint = "use EXCEPT" if upper == "MINUS" else "write the query without it"
            self.not_yet(f"{upper} is not there yet", hint, token)
        return True

    # parts of sqlglot's rules, strict

    def _parse_pivots(self) -> list[exp.Expr] | None:  # type: ignore[override]
        return None

    def _parse_table_sample(self, as_modifier: bool = False) -> exp.TableSample | None:
        return None

    def _parse_lateral(self) -> exp.Lateral | None:
        first = self._curr
        if not self._match(T.LATERAL):
            return None
        if self._match(T.VIEW):
            return self._lateral_view()
        this: exp.Expr | None
        if self._curr.token_type == T.L_PAREN:
            this = self.subquery()
        elif self._curr.text.upper() == "TABLE" and self._next.token_type == T.L_PAREN:
            self._advance(2)
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

    def _parse_cte(self) -> exp.CTE | exp.FunctionSpecification | None:
        name = self._parse_table_alias(NAME_TOKENS)
        if name is None:
            self.fail("a name")
        self.expect("AS")
        if not self.word("NOT", "MATERIALIZED"):
            self.word("MATERIALIZED")
        inner = self._parse_wrapped(self._parse_statement)
        if isinstance(inner, exp.Values):
            inner = self._values_to_select(inner)
        return self.expression(exp.CTE(this=inner, alias=name))

    def _parse_with(self, skip_with_token: bool = False) -> exp.With | None:
        first = self._curr
        self._advance()
        recursive = self._match(T.RECURSIVE) or None
        tables = [self._parse_cte()]
        while self._match(T.COMMA):
            tables.append(self._parse_cte())
        return exp.With(expressions=tables, recursive=recursive).update_positions(first)

    def _parse_join(
        self,
        skip_join_token: bool = False,
        parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:
        first = self._curr
        if self._match(T.COMMA):
            return self.expression(exp.Join(this=self.relation()), first)
        words = self._join_words()
        if words is None:
            return None
        method, side, kind = words
        this = self.relation()
        node = exp.Join(this=this, method=method, side=side, kind=kind).update_positions(first)
        ksqldb.check_clause(self)
        if self._match(T.MATCH_CONDITION):
            node.set("match_condition", self._parse_wrapped(self._parse_disjunction))
        if not self._condition(node) and kind != "CROSS" and method != "NATURAL":
            joins = list(self._parse_joins())
            if not joins or not self._condition(node):
                self.fail("ON or USING")
            this.set("joins", joins)
        return node

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

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        first = self._curr
        if not self._match(T.GROUP_BY):
            return None
        items = self._parse_csv(self._group_item)
        if not items:
            self.fail("an expression")
        return exp.Group(expressions=items).update_positions(first)

    def _group_item(self) -> exp.Expr | None:
        if self._curr.token_type == T.GROUPING_SETS:
            return self._parse_grouping_sets()
        if self._curr.token_type in {T.CUBE, T.ROLLUP} and self._next.token_type == T.L_PAREN:
            return self._parse_cube_or_rollup()
        return self._parse_disjunction()

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._group_item()

    def _parse_limit(
        self, this: exp.Expr | None = None, top: bool = False, skip_limit_token: bool = False
    ) -> exp.Expr | None:
        """LIMIT n, LIMIT ALL, FETCH FIRST n ROWS ONLY"""
        first = self._curr
        if self._match(T.LIMIT):
            if self._match(T.ALL):
                return None
            count = self._parse_term()
            if count is None:
                self.fail("a number")
            return exp.Limit(expression=count).update_positions(first)
        if self._match(T.FETCH):
            if self.any_word("FIRST", "NEXT") is None:
                self.fail("FIRST or NEXT")
            one = self.ahead("ROW") or self.ahead("ROWS")
            count = exp.Literal.number(1) if one else self._parse_primary()
            if self.any_word("ROW", "ROWS") is None:
                self.fail("ROWS ONLY")
            self.expect("ONLY")
            return exp.Limit(expression=count).update_positions(first)
        return this

    def _parse_offset(self, this: exp.Expr | None = None) -> exp.Expr | None:
        first = self._curr
        if not self._match(T.OFFSET):
            return this
        count = self._parse_term()
        if count is None:
            self.fail("a number")
        self.any_word("ROW", "ROWS")
        return exp.Offset(expression=count).update_positions(first)

    def _can_parse_limit_or_offset(self) -> bool:
        """OFFSET begins a clause only before a number; else it is a name."""
        return self._curr.token_type == T.LIMIT or (
            self._curr.token_type == T.OFFSET and self._next.token_type == T.NUMBER
        )

    def _parse_match_recognize(self) -> exp.MatchRecognize | None:
        found = super()._parse_match_recognize()
        pattern = found.args.get("pattern") if found is not None else None
        if pattern is not None:
            pattern.set("this", " ".join(pattern.name.split()))
        return found


