"""The view store's text of bounded queries: SELECTs over views, system tables and written-out rows.

The text is made from the same bound tree as Spark's. Only what means the same in both engines is written; one node that
might not, and there is no text: the query then runs on Spark, slower and with the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.finish_plan import ONCE
from penstock.plan.spark_blocks import group_keys
from penstock.plan.store_aggregates import aggregate_term
from penstock.plan.store_expressions import StoreExpressions, only_has
from penstock.plan.store_orders import orders_nothing, placed
from penstock.plan.store_over import over_term
from penstock.plan.store_terms import (
    UNKNOWN,
    DiffersError,
    Term,
    as_type,
    common,
    common_of,
    in_some_order,
    kept,
    of_both,
    quoted,
    told_apart_alike,
)
from penstock.plan.store_unnest import makes_rows_of, rows_of
from penstock.plan.trees import column, settles, type_of
from penstock.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.plan.logical import LogicalPlan
    from penstock.plan.store_asked import AskedOfSpark
    from penstock.types import SqlType

_JOINS: Final = {
    ("", ""): "JOIN", ("", "INNER"): "JOIN", ("", "CROSS"): "CROSS JOIN", ("LEFT", ""): "LEFT JOIN",
    ("RIGHT", ""): "RIGHT JOIN", ("FULL", ""): "FULL JOIN", ("LEFT", "OUTER"): "LEFT JOIN",
    ("RIGHT", "OUTER"): "RIGHT JOIN", ("FULL", "OUTER"): "FULL JOIN", ("LEFT", "SEMI"): "SEMI JOIN",
    ("LEFT", "ANTI"): "ANTI JOIN",
}  # fmt: skip
_WRITTEN: Final = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "distinct", "order", "limit", "offset", "kind"}
)
_SETS: Final[dict[type[exp.Expr], str]] = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}

_GROUPS: Final[dict[type[exp.Expr], str]] = {
    exp.Rollup: "ROLLUP", exp.Cube: "CUBE", exp.GroupingSets: "GROUPING SETS", exp.Tuple: "",
}  # fmt: skip

_SIDE: Final = "__side_of_set"
Columns = dict[str, "SqlType | None"]


def store_expression(tree: exp.Expr) -> Term | None:
    """An expression over typed columns for DuckDB; None where it might not mean what it means in Spark."""
    try:
        return StoreExpressions(_typed_column).term(tree)
    except DiffersError:
        return None


def _typed_column(node: exp.Column) -> Term:
    sql_type = kept(type_of(node))
    if sql_type is None:
        raise DiffersError
    return Term(quoted(node.name), sql_type)


def store_sql(plan: LogicalPlan, types: Mapping[str, Mapping[str, SqlType]] | None = None) -> str | None:
    """DuckDB's text of a bounded query, or None where only Spark answers it.

    A view is read under its own name and a system table under its whole name as one, both quoted. The columns of the
    answer have the planned types. `types` are those of views' columns that the planner left to Spark and the store
    knows by now; without them such a column can be selected, not computed with.
    """
    if not plan.bounded or plan.functions:
        return None
    relations: dict[str, Columns] = {}
    for scan in plan.scans():
        if scan.kind not in ("materialized view", "system table", "dimension"):
            return None
        found = (types or {}).get(scan.relation, {})
        relations[scan.relation] = {
            field.name: kept(field.type) or kept(found.get(field.name)) or UNKNOWN for field in scan.fields
        }
    try:
        writer = _Queries(relations)
        text, columns = writer.query(plan.spark, {})
        return _with_types(text, columns, plan)
    except DiffersError:
        return None


def _with_types(text: str, columns: list[tuple[str, SqlType | None]], plan: LogicalPlan) -> str:
    """Nothing is cast here: a type that is not what was planned means that one of us is wrong."""
    for (_, found), field in zip(columns, plan.columns, strict=True):
        planned = kept(field.type)
        if found is None or (planned is not None and planned != found):
            raise DiffersError
    return text


def kept_query(
    tree: exp.Expr, types: Mapping[str, Mapping[str, SqlType | None]], asked: AskedOfSpark | None = None
) -> tuple[str, list[tuple[str, SqlType | None]]]:
    """DuckDB's text of a query over kept rows, and its columns; DiffersError where it might mean something else.

    It is the same whenever it is asked: the clock is not in it. `asked` takes the expressions that only Spark
    knows; without it, there is no text of them.
    """
    return _Queries({name: dict(columns) for name, columns in types.items()}, clock=False, asked=asked).query(tree, {})


def writable(tree: exp.Expr, scope: Mapping[str, Mapping[str, SqlType | None]]) -> bool:
    """Whether there is a text of an expression over these relations."""
    try:
        _Queries({}, clock=False).expressions({name: dict(columns) for name, columns in scope.items()}).term(tree)
    except DiffersError:
        return False
    return True


class _Queries:
    """Writes queries; `relations` are the named relations with the types of their columns."""

    def __init__(self, relations: dict[str, Columns], *, clock: bool = True, asked: AskedOfSpark | None = None) -> None:
        self.relations = relations
        self.clock = clock
        self.asked = asked

    def query(self, query: exp.Expr, outer: dict[str, Columns]) -> tuple[str, list[tuple[str, SqlType | None]]]:
        """The text of a query and its columns; `outer` are the relations of the queries around it."""
        if isinstance(query, exp.SetOperation):
            return self._set(query, outer)
        if not isinstance(query, exp.Select) or not only_has(query, _WRITTEN):
            raise DiffersError
        return self._select(query, outer)

    def _select(self, query: exp.Select, outer: dict[str, Columns]) -> tuple[str, list[tuple[str, SqlType | None]]]:
        scope: dict[str, Columns] = {}
        from_ = query.args.get("from_")
        source = self._from(from_.this, scope, outer) if isinstance(from_, exp.From) else ""
        scope = {**outer, **scope}
        for join in query.args.get("joins") or []:
            source += self._join(join, scope, outer)
        write = self.expressions(scope)
        write.whole = group_keys(query)
        items: list[str] = []
        columns: list[tuple[str, SqlType | None]] = []
        for item in query.expressions:
            term = write.term(item.unalias())
            name = item.alias_or_name
            items.append(f"{term.sql} AS {quoted(name)}")
            columns.append((name, term.type))
            if query.args.get("distinct") is not None:
                _blamed(told_apart_alike, term, item.unalias())
        distinct = "DISTINCT " if query.args.get("distinct") is not None else ""
        text = f"SELECT {distinct}{', '.join(items)}"
        text += f" FROM {source}" if source else ""
        where = query.args.get("where")
        if where is not None:
            text += f" WHERE {write.condition(where.this)}"
        text += self._group(query, write)
        having = query.args.get("having")
        if having is not None:
            text += f" HAVING {write.condition(having.this)}"
        shown = {name: Term(quoted(name), sql_type) for name, sql_type in columns}
        return text + self._tail(query, write, shown), columns

    def expressions(self, scope: dict[str, Columns]) -> StoreExpressions:
        def column(node: exp.Column) -> Term:
            known = scope.get(node.table) if node.table else None
            sql_type = known.get(node.name) if known is not None else None
            if known is None or (sql_type is None and node.name not in known):
                raise DiffersError
            if sql_type is None:
                raise DiffersError
            return Term(f"{quoted(node.table)}.{quoted(node.name)}", sql_type)

        def special(node: exp.Expr) -> Term | None:
            if isinstance(node, exp.Window):
                return over_term(write, node)
            found = aggregate_term(write, node)
            if found is not None:
                return found
            return self._subquery(node, write, scope)

        write = StoreExpressions(column, special, clock=self.clock, asked=self.asked)
        return write

    def _subquery(self, node: exp.Expr, write: StoreExpressions, scope: dict[str, Columns]) -> Term | None:
        """A query inside an expression. A scalar one of several rows is an error in both engines."""
        if isinstance(node, exp.Exists):
            inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
            text, _ = self.query(inner, scope)
            return Term(f"EXISTS ({text})", BOOLEAN)
        if isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Subquery):
            value = write.term(node.this)
            text, columns = self.query(node.args["query"].this, scope)
            if len(columns) != 1:
                raise DiffersError
            name, kind = columns[0]
            if kind != told_apart_alike(value).type:
                given = Term(f'"__in".{quoted(name)}', kind)
                kind = common(value, given)
                text = f'SELECT {as_type(given, kind).sql} FROM ({text}) AS "__in"'
                value = as_type(told_apart_alike(Term(value.sql, value.type, value.constant)), kind)
            return Term(f"({value.sql} IN ({text}))", BOOLEAN)
        if isinstance(node, exp.Subquery):
            inner = node.this
            text, columns = self.query(inner, scope)
            if len(columns) != 1:
                raise DiffersError
            return Term(f"({text})", columns[0][1])
        return None

    def _from(self, item: exp.Expr, scope: dict[str, Columns], outer: dict[str, Columns]) -> str:
        made = makes_rows_of(item)
        if made is not None and only_has(item, ("this", "alias")):
            names = [name.name for name in item.args["alias"].columns]
            text, found = rows_of(self.expressions({**outer, **scope}), made, names)
            scope[item.alias] = found
            return f"{'LATERAL ' if isinstance(item, exp.Lateral) else ''}({text}) AS {quoted(item.alias)}"
        alias_node = item.args.get("alias")
        if not only_has(item, ("this", "alias", "expressions")) or (alias_node is not None and alias_node.columns):
            raise DiffersError
        if isinstance(item, exp.Subquery):
            text, columns = self.query(item.this, outer)
            scope[item.alias] = dict(columns)
            return f"({text}) AS {quoted(item.alias)}"
        if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Subquery):
            # what stands in front is seen as well
            text, columns = self.query(item.this.this, {**outer, **scope})
            scope[item.alias] = dict(columns)
            return f"LATERAL ({text}) AS {quoted(item.alias)}"
        if isinstance(item, exp.Values):
            return self._values(item, scope)
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier) and item.name in self.relations:
            alias = item.alias or item.name
            scope[alias] = self.relations[item.name]
            return f"{quoted(item.name)} AS {quoted(alias)}"
        raise DiffersError

    def _values(self, item: exp.Values, scope: dict[str, Columns]) -> str:
        write = self.expressions({})
        rows = [[write.term(cell) for cell in row.expressions] for row in item.expressions]
        types = [common_of([row[place] for row in rows]) for place in range(len(rows[0]))]
        names = [f"col{place}" for place in range(1, len(types) + 1)]
        lines = []
        for row in rows:
            cells = [_cell(cell, sql_type) for cell, sql_type in zip(row, types, strict=True)]
            lines.append(f"({', '.join(cells)})")
        scope[item.alias] = dict(zip(names, types, strict=True))
        listed = ", ".join(map(quoted, names))
        return f"(VALUES {', '.join(lines)}) AS {quoted(item.alias)} ({listed})"

    def _join(self, join: exp.Join, scope: dict[str, Columns], outer: dict[str, Columns]) -> str:
        words = _JOINS.get((join.side.upper(), join.kind.upper()))
        if words is None or not only_has(join, ("this", "kind", "side", "on", "method")):
            raise DiffersError
        source = self._from(join.this, scope, outer)
        on = join.args.get("on")
        if join.method and join.method != ONCE:
            words = _asof(join, words)
        if (on is None) != (words == "CROSS JOIN"):
            raise DiffersError
        return f" {words} {source}" + (f" ON {self.expressions(scope).condition(on)}" if on is not None else "")

    def _group(self, query: exp.Select, write: StoreExpressions) -> str:
        group = query.args.get("group")
        if group is None:
            return ""
        if not only_has(group, ("expressions",)):
            raise DiffersError
        return f" GROUP BY {', '.join(_group_entry(entry, write) for entry in group.expressions)}"

    def _tail(self, query: exp.Expr, write: StoreExpressions, shown: dict[str, Term]) -> str:
        text = ""
        order = query.args.get("order")
        terms = [(term, _value(term, write, shown)) for term in order.expressions] if order is not None else []
        texts = [ordered_text(value, term) for term, value in terms if not orders_nothing(value)]
        if texts:
            text += f" ORDER BY {', '.join(texts)}"
        for name, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
            clause = query.args.get(name)
            if clause is not None:
                text += f" {word} {int(clause.expression.this)}"
        return text

    def _set(self, query: exp.SetOperation, outer: dict[str, Columns]) -> tuple[str, list[tuple[str, SqlType | None]]]:
        if not only_has(query, ("this", "expression", "distinct", "order", "limit", "offset")):
            raise DiffersError
        left, columns = self.query(query.this, outer)
        right, others = self.query(query.expression, outer)
        # A column of NULLs alone takes the type of the other side.
        types = [
            of_both(one, two) if one and two else one or two for (_, one), (_, two) in zip(columns, others, strict=True)
        ]
        if any(found is None and one != two for found, (_, one), (_, two) in zip(types, columns, others, strict=True)):
            raise DiffersError
        left, right = _widened(left, columns, types), _widened(right, others, types)
        columns = [(name, sql_type) for (name, _), sql_type in zip(columns, types, strict=True)]
        for name, sql_type in columns:
            term = Term(name, sql_type)
            if query.args.get("distinct") or not isinstance(query, exp.Union):
                _blamed(told_apart_alike, term, column(name))
            elif term.known == UNKNOWN:  # of each side Spark may have found another one
                raise DiffersError
        word = _SETS[type(query)] + ("" if query.args.get("distinct") else " ALL")
        shown = {name: Term(quoted(name), sql_type) for name, sql_type in columns}
        return f"({left}) {word} ({right})" + self._tail(query, self.expressions({}), shown), columns


def _widened(text: str, columns: list[tuple[str, SqlType | None]], types: list[SqlType | None]) -> str:
    """A side of a set operation in the types that it has in all."""
    if [sql_type for _, sql_type in columns] == types:
        return text
    items = []
    for (name, own), sql_type in zip(columns, types, strict=True):
        value = Term(f"{quoted(_SIDE)}.{quoted(name)}", own)
        items.append(f"{_cell(value, sql_type)} AS {quoted(name)}")
    return f"SELECT {', '.join(items)} FROM ({text}) AS {quoted(_SIDE)}"


def _asof(join: exp.Join, words: str) -> str:
    """A join with the last row that meets one comparison, of those that meet the equalities beside it."""
    from penstock.plan.joins import conjuncts_of

    on = join.args.get("on")
    parts = conjuncts_of(on) if on is not None else []
    compared = [part for part in parts if isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE)]
    equal = [part for part in parts if isinstance(part, exp.EQ)]
    if join.method != "ASOF" or words not in ("JOIN", "LEFT JOIN") or len(compared) != 1:
        raise DiffersError
    if len(compared) + len(equal) != len(parts):
        raise DiffersError
    return f"ASOF {words}"


def _group_entry(entry: exp.Expr, write: StoreExpressions) -> str:
    """A key of a GROUP BY, or several sets of them."""
    words = next((word for kind, word in _GROUPS.items() if isinstance(entry, kind)), None)
    if words is not None:
        if not only_has(entry, ("expressions",)):
            raise DiffersError
        return f"{words} ({', '.join(_group_entry(inner, write) for inner in entry.expressions)})"
    if isinstance(entry, exp.Paren):
        return f"({_group_entry(entry.this, write)})"
    key = write.term(entry)
    if _blamed(told_apart_alike, key, entry).constant is not None:
        raise DiffersError
    return key.sql


def _cell(cell: Term, sql_type: SqlType | None) -> str:
    return as_type(cell, sql_type).sql if sql_type is not None else cell.sql


def _value(term: exp.Ordered, write: StoreExpressions, shown: dict[str, Term]) -> Term:
    """What an ORDER BY goes by."""
    inner = term.this
    found = shown.get(inner.name) if isinstance(inner, exp.Column) and not inner.table else None
    return found if found is not None else write.term(inner)


def ordered_text(value: Term, term: exp.Ordered) -> str:
    """A term of an ORDER BY, with the place of NULLs written out: the engines differ in what they take it to be."""
    if not only_has(term, ("this", "desc", "nulls_first")):
        raise DiffersError
    direction = "DESC" if term.args.get("desc") else "ASC"
    return f"{_in_order(value, term).sql} {direction} NULLS {'FIRST' if term.args.get('nulls_first') else 'LAST'}"


def _in_order(value: Term, term: exp.Ordered) -> Term:
    """The value, where the store may order by it: as the user asks, or so that nothing is left open."""
    return in_some_order(value) if settles(term) else _blamed(placed, value, term.this)


def _blamed(check: Callable[[Term], Term], term: Term, node: exp.Expr) -> Term:
    """The term, if it passes; the error of one that does not names the node that it is of."""
    try:
        return check(term)
    except DiffersError as error:
        error.node = error.node or node
        raise
