"""The grammar of queries: SELECT and its clauses, WITH, set operations, EMIT."""

from __future__ import annotations

from typing import ClassVar, cast

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.errors import Span
from penstock.sql.dialects import ksql_windows
from penstock.sql.hints import select_hints, state_ttl
from penstock.sql.reading import NAME_TOKENS, SyntaxFailure
from penstock.sql.relations import RelationGrammar
from penstock.sql.statements import NOWHERE, Emit, Query

T = TokenType


class QueryGrammar(RelationGrammar):
    """Queries."""

    QUERY_MODIFIER_PARSERS: ClassVar = {
        T.MATCH_RECOGNIZE: lambda self: ("match", self._parse_match_recognize()),
        T.WHERE: lambda self: ("where", self._parse_where()),
        T.GROUP_BY: lambda self: ("group", self._parse_group()),
        T.HAVING: lambda self: ("having", self._parse_having()),
        T.QUALIFY: lambda self: ("qualify", self._parse_qualify()),
        T.WINDOW: lambda self: (
            (ksql_windows.CLAUSE, ksql_windows.parse_window(self))
            if ksql_windows.window_ahead(self)
            else ("windows", self._parse_window_clause())
        ),
        T.ORDER_BY: lambda self: ("order", self._parse_order()),
        T.LIMIT: lambda self: ("limit", self._parse_limit()),
        T.FETCH: lambda self: ("limit", self._parse_limit()),
        T.OFFSET: lambda self: ("offset", self._parse_offset()),
    }
    QUERY_MODIFIER_TOKENS: ClassVar = set(QUERY_MODIFIER_PARSERS)
    OPTIONAL_ALIAS_TOKEN_CTE: ClassVar = False

    def query(self, *, kept: bool = False) -> Query:
        """A query with its EMIT, which may stand before or after LIMIT; `kept`: that of a materialized view."""
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
        if not kept:
            state_ttl(tree, kept=False)
        return Query(cast(exp.Query, tree), emit, emit_span, self.since(first))

    def _emit(self) -> tuple[Emit | None, Span]:
        first = self._curr
        if not self.word("EMIT"):
            return None, NOWHERE
        if self.word("CHANGES"):
            return Emit.CHANGES, self.since(first)
        if not self.word("FINAL") and not self.word("ON", "WINDOW", "CLOSE"):
            self.fail("CHANGES, FINAL or ON WINDOW CLOSE")
        return Emit.FINAL, self.since(first)

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
            if self.whole_ahead():
                inner = self._parse_select(nested=True, parse_subquery_alias=False)
            else:
                inner = self._parse_wrapped_select(table=table)
            if inner is None:
                self.fail("SELECT")
            self._match_r_paren()
            this = self._parse_subquery(inner, parse_alias=parse_subquery_alias)
            if table:
                return this  # a set operation behind it belongs to the SELECT around, or to the brackets around
        elif self.whole_ahead():
            this = self._whole()
        elif self._curr.token_type == T.VALUES:
            this = self._parse_derived_table_values()
        else:
            return None
        return self._parse_set_operations(this) if parse_set_operation else this

    def _whole(self) -> exp.Select:
        """TABLE r, which is SELECT * FROM r"""
        first = self._curr
        self._advance()
        star = exp.Star().update_positions(first)
        made = exp.Select(expressions=[star], from_=exp.From(this=self.table_name())).update_positions(first)
        return self._parse_query_modifiers(made)

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
        hints = select_hints(self)
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
        this.meta.update(hints)
        source = self._parse_from()
        if source is not None:
            this.set("from_", source)
        made = self._parse_query_modifiers(this)
        window = made.args.pop(ksql_windows.CLAUSE, None)
        if window is not None:
            ksql_windows.as_group(made, window)
        return made

    def parse_set_operation(
        self, this: exp.Expr | None, consume_pipe: bool = False, intersect_only: bool = False
    ) -> exp.SetOperation | None:
        """UNION, INTERSECT, and EXCEPT, which is MINUS too; a SELECT in front whose ORDER BY or LIMIT would be
        its own needs brackets."""
        if self.at(T.VAR) and self._curr.text.upper() == "MINUS" and self.peek_text(1, "SELECT", "ALL", "DISTINCT"):
            self._curr.token_type = T.EXCEPT
        if not self.at(T.UNION, T.EXCEPT, T.INTERSECT):
            return None
        if isinstance(this, exp.Select) and any(this.args.get(clause) for clause in ("order", "limit", "offset")):
            raise SyntaxFailure(None, self._curr, "put a SELECT with its own ORDER BY or LIMIT in brackets")
        operand = self.peek(2 if self.peek_text(1, "ALL", "DISTINCT") else 1)
        starts = {T.SELECT, T.WITH, T.VALUES, T.L_PAREN}
        if operand is None or (operand.token_type not in starts and operand.text.upper() != "TABLE"):
            raise SyntaxFailure("SELECT", operand)
        return super().parse_set_operation(this, consume_pipe, intersect_only)

    def _parse_connect(self, skip_start_token: bool = False) -> exp.Connect | None:
        return None

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

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        first = self._curr
        if not self._match(T.GROUP_BY):
            return None
        if self._curr.token_type == T.ALL and self._next.token_type not in {T.COMMA, T.DOT, T.L_PAREN}:
            self._advance()
            return exp.Group(all=True).update_positions(first)
        items = self._parse_csv(self._group_item)
        if not items:
            self.fail("an expression")
        return exp.Group(expressions=self._with_sets(items)).update_positions(first)

    def _with_sets(self, items: list[exp.Expr]) -> list[exp.Expr]:
        """GROUP BY a, b WITH ROLLUP, as Spark and MySQL write ROLLUP (a, b)."""
        if self._curr.token_type != T.WITH or self._next.token_type not in {T.ROLLUP, T.CUBE}:
            return items
        self._advance(2)
        kind = exp.Rollup if self._prev.token_type == T.ROLLUP else exp.Cube
        return [kind(expressions=items)]

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
        """LIMIT n, LIMIT ALL, FETCH FIRST n ROWS ONLY, FETCH FIRST n ROWS WITH TIES"""
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
            if self._match(T.WITH):
                self.expect("TIES")
                options = exp.LimitOptions(rows=True, with_ties=True)
                return exp.Fetch(direction="FIRST", count=count, limit_options=options).update_positions(first)
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

    def _parse_match_recognize(self) -> exp.MatchRecognize | None:
        first = self._curr
        try:
            found = super()._parse_match_recognize()
        except ValueError:
            raise SyntaxFailure("a pattern", self._prev) from None  # PATTERN ()
        if found is not None:
            found.update_positions(first)
            found.set("define", found.args.get("define") or [])  # what prints it wants a list
        pattern = found.args.get("pattern") if found is not None else None
        if pattern is not None:
            pattern.set("this", " ".join(pattern.name.split()))
        return found
