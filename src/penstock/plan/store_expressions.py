"""Expressions for the view store: DuckDB text for what means the same there as in Spark, and nothing for the rest.

Every rule here was held against both engines over NULLs, NaN, negative and extreme values (tests/spark). A node or
function that is not listed raises DiffersError: the query runs on Spark instead, or Spark is asked for the expression
(store_asked); slower, with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from penstock.plan.finish_plan import CLOCK_CALL, CLOSED_AFTER, CLOSED_UPTO
from penstock.plan.merge_plan import FINISH
from penstock.plan.store_calls import CALLS
from penstock.plan.store_casts import always_fits, cast, temporal_literal
from penstock.plan.store_terms import (
    DiffersError,
    Term,
    as_type,
    common,
    common_of,
    decimal_of,
    is_whole,
    kept,
    quoted,
    text_literal,
    told_apart_alike,
    wider,
)
from penstock.plan.trees import type_of
from penstock.types import BIGINT, BOOLEAN, DOUBLE, INT, INTERVAL, STRING, TIMESTAMP, SqlType

if TYPE_CHECKING:
    from penstock.plan.store_asked import AskedOfSpark

Columns = Callable[[exp.Column], Term]

_NARROW_DIGITS: Final = 18
_COMPARED: Final = frozenset({"STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL",
                              "DATE", "TIMESTAMP", "INTERVAL"})  # fmt: skip
_COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip
_UNITS: Final = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000,
                 "HOUR": 3_600_000_000, "DAY": 86_400_000_000, "WEEK": 604_800_000_000}  # fmt: skip
_EQUAL: Final = frozenset({"=", "<>", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"})
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


# The arguments of nodes that are read here; one that is set and not read would be lost.
_READ: Final = frozenset(
    {"this", "expression", "expressions", "low", "high", "ifs", "default", "true", "false", "table", "is_string", "to",
     "unit", "safe"}
)  # fmt: skip


def only_has(node: exp.Expr, arguments: Collection[str]) -> bool:
    """Whether nothing but these arguments of a node is set."""
    return not any(value for name, value in node.args.items() if name not in arguments)


def interval_us(interval: exp.Expr) -> int:
    """The length of an interval that is written out, in microseconds."""
    amount, unit = interval.this, interval.args.get("unit")
    size = _UNITS.get(unit.name.upper().rstrip("S")) if isinstance(unit, exp.Var) else None
    text = str(amount.this) if isinstance(amount, exp.Literal) else ""
    if size is None or not text.lstrip("-").isdigit():
        raise DiffersError
    return int(text) * size


def interval_months(interval: exp.Expr) -> int | None:
    """The length of an interval of months, quarters or years that is written out; None of any other."""
    amount, unit = interval.this, interval.args.get("unit")
    size = _MONTHS.get(unit.name.upper().rstrip("S")) if isinstance(unit, exp.Var) else None
    text = str(amount.this) if isinstance(amount, exp.Literal) else ""
    return int(text) * size if size is not None and text.isdigit() else None


class StoreExpressions:
    """Writes expressions; `columns` says what a column is, `special` writes what only a query can hold, and `asked`
    what only Spark knows."""

    def __init__(
        self,
        columns: Columns,
        special: Callable[[exp.Expr], Term | None] | None = None,
        *,
        clock: bool = False,
        asked: AskedOfSpark | None = None,
    ) -> None:
        self.columns = columns
        self.special = special
        self.clock = clock
        self.asked = asked
        self.whole: list[exp.Expr] = []  # keys of a GROUP BY: above it there are no columns that they are made of

    def term(self, node: exp.Expr) -> Term:
        """The term of an expression, or DiffersError."""
        try:
            return self._term(node)
        except DiffersError as error:
            found = self.asked.term(self, node) if self.asked is not None else None
            if found is not None:
                return found
            error.node = error.node or node
            raise

    def _term(self, node: exp.Expr) -> Term:
        if self.special is not None:
            found = self.special(node)
            if found is not None:
                return found
        if not isinstance(node, exp.Like) and not only_has(node, _READ):
            raise DiffersError
        for kinds, write in _WRITERS:
            if isinstance(node, kinds):
                return write(self, node)
        raise DiffersError

    def condition(self, node: exp.Expr) -> str:
        """The text of a truth value."""
        term = self.term(node)
        if term.type not in (BOOLEAN, None):
            raise DiffersError
        return term.sql

    def column(self, node: exp.Column) -> Term:
        return self.columns(node)

    def literal(self, node: exp.Literal) -> Term:
        if node.is_string:
            return Term(text_literal(str(node.this)), STRING)
        text = str(node.this)
        if text.isdigit():
            value = int(text) if len(text) <= 19 else 2**63
            if value >= 2**63:
                raise DiffersError
            sql_type = INT if value < 2**31 else BIGINT
            return Term(f"CAST({value} AS {'INTEGER' if sql_type == INT else 'BIGINT'})", sql_type, str(value))
        whole, dot, fraction = text.partition(".")
        if not dot or not (whole + fraction).isdigit():
            if "e" in text.lower():
                return Term(f"CAST('{text}' AS DOUBLE)", DOUBLE)
            raise DiffersError
        digits = (whole.lstrip("0") + fraction) or "0"
        precision = max(len(digits), len(fraction))
        if precision > 18:
            raise DiffersError
        constant = f"{whole or '0'}.{fraction}" if fraction else whole
        return Term(
            f"CAST('{constant}' AS DECIMAL({precision}, {len(fraction)}))",
            SqlType("DECIMAL", (precision, len(fraction))),
            constant,
        )

    def null(self, node: exp.Null) -> Term:
        del node
        return Term("NULL", None)

    def boolean(self, node: exp.Boolean) -> Term:
        return Term("TRUE" if node.this else "FALSE", BOOLEAN)

    def paren(self, node: exp.Paren) -> Term:
        return self.term(node.this)

    def negative(self, node: exp.Neg) -> Term:
        term = self.term(node.this)
        known = term.known
        if known.name not in ("INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL"):
            raise DiffersError
        if term.constant is not None:
            inner = term.sql.replace(term.constant, f"-{term.constant}", 1)
            return Term(inner, known, f"-{term.constant}")
        return as_type(Term(f"(-{term.sql})", None), known)

    def both(self, node: exp.And | exp.Or) -> Term:
        word = "AND" if isinstance(node, exp.And) else "OR"
        return Term(f"({self.condition(node.this)} {word} {self.condition(node.expression)})", BOOLEAN)

    def negation(self, node: exp.Not) -> Term:
        return Term(f"(NOT {self.condition(node.this)})", BOOLEAN)

    def comparison(self, node: exp.Binary) -> Term:
        return self.compared(self.term(node.this), _COMPARISONS[type(node)], self.term(node.expression))

    def compared(self, left: Term, operator: str, right: Term) -> Term:
        """A comparison of two values in the type that Spark compares them in."""
        left, right = _times(left, right)
        sql_type = common(left, right)
        if operator in _EQUAL and left.type == right.type:
            told_apart_alike(left)
        elif sql_type.name not in _COMPARED:
            raise DiffersError
        one, two = as_type(left, sql_type), as_type(right, sql_type)
        return Term(f"({one.sql} {operator} {two.sql})", BOOLEAN)

    def is_(self, node: exp.Is) -> Term:
        other = node.expression
        if isinstance(other, exp.Null):
            return Term(f"({self.term(node.this).sql} IS NULL)", BOOLEAN)
        if isinstance(other, exp.Boolean):
            value = "TRUE" if other.this else "FALSE"
            return Term(f"({self.condition(node.this)} IS NOT DISTINCT FROM {value})", BOOLEAN)
        raise DiffersError

    def between(self, node: exp.Between) -> Term:
        if node.args.get("symmetric"):
            raise DiffersError
        value = self.term(node.this)
        low = self.compared(value, ">=", self.term(node.args["low"]))
        high = self.compared(value, "<=", self.term(node.args["high"]))
        return Term(f"({low.sql} AND {high.sql})", BOOLEAN)

    def one_of(self, node: exp.In) -> Term:
        if node.args.get("query") is not None or not node.expressions:
            raise DiffersError
        value = self.term(node.this)
        options = [self.term(entry) for entry in node.expressions]
        # Spark finds one type for all of them
        sql_type = common_of([value, *(_times(value, option)[1] for option in options)])
        if sql_type is None or sql_type.name not in _COMPARED:
            raise DiffersError
        value = as_type(value, sql_type)
        listed = [as_type(_times(value, option)[1], sql_type).sql for option in options]
        return Term(f"({value.sql} IN ({', '.join(listed)}))", BOOLEAN)

    def like(self, node: exp.Like) -> Term:
        if not only_has(node, {*_READ, "negate"}):
            raise DiffersError
        value, pattern = self.term(node.this), node.expression
        if value.type != STRING or not isinstance(pattern, exp.Literal) or "\\" in str(pattern.this):
            raise DiffersError
        word = "NOT LIKE" if node.args.get("negate") else "LIKE"
        return Term(f"({value.sql} {word} {text_literal(str(pattern.this))})", BOOLEAN)

    def joined_text(self, node: exp.DPipe) -> Term:
        parts = [self.term(node.this), self.term(node.expression)]
        if any(part.type != STRING for part in parts):
            raise DiffersError
        return Term(f"({parts[0].sql} || {parts[1].sql})", STRING)

    def arithmetic(self, node: exp.Add | exp.Sub | exp.Mul) -> Term:
        operator = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}[type(node)]
        if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
            return self.shifted(node)
        left, right = self.term(node.this), self.term(node.expression)
        one, two = left.known, right.known
        if isinstance(node, exp.Sub) and {one.name, two.name} <= {"TIMESTAMP", "DATE"}:
            return Term(f"to_microseconds(epoch_us({left.sql}) - epoch_us({right.sql}))", INTERVAL)
        if not (one.numeric and two.numeric):
            raise DiffersError
        if "DECIMAL" in (one.name, two.name) and not {"DOUBLE", "FLOAT"} & {one.name, two.name}:
            return _decimals(left, operator, right)
        sql_type = common(left, right)
        return _calculated(as_type(left, sql_type), operator, as_type(right, sql_type), sql_type)

    def shifted(self, node: exp.Add | exp.Sub) -> Term:
        """A time plus or minus a constant interval."""
        value = self.term(node.this)
        if value.type != TIMESTAMP:
            raise DiffersError
        operator = "+" if isinstance(node, exp.Add) else "-"
        return Term(f"({value.sql} {operator} to_microseconds({interval_us(node.expression)}))", TIMESTAMP)

    def length(self, node: exp.Interval) -> Term:
        """An interval that is written out, of less than months."""
        return Term(f"to_microseconds({interval_us(node)})", INTERVAL)

    def division(self, node: exp.Div) -> Term:
        left, right = self.term(node.this), self.term(node.expression)
        one, two = left.known, right.known
        if "DECIMAL" in (one.name, two.name) and "DOUBLE" not in (one.name, two.name):
            raise DiffersError
        for side in (one, two):
            if not (is_whole(side) or side.name in ("DOUBLE", "DECIMAL")):
                raise DiffersError
        common(left, right)
        return divided(as_type(left, DOUBLE), as_type(right, DOUBLE))

    def remainder(self, node: exp.Mod) -> Term:
        left, right = self.term(node.this), self.term(node.expression)
        if not (is_whole(left.type) and is_whole(right.type)) or right.constant in (None, "0"):
            raise DiffersError
        sql_type = wider(left.known, right.known)
        return _calculated(as_type(left, sql_type), "%", as_type(right, sql_type), sql_type)

    def case(self, node: exp.Case) -> Term:
        subject = self.term(node.this) if node.this is not None else None
        conditions: list[str] = []
        values: list[Term] = []
        for branch in node.args["ifs"]:
            if subject is not None:
                conditions.append(self.compared(subject, "=", self.term(branch.this)).sql)
            else:
                conditions.append(self.condition(branch.this))
            values.append(self.term(branch.args["true"]))
        default = node.args.get("default")
        values.append(self.term(default) if default is not None else Term("NULL", None))
        return chosen(conditions, values)

    def if_(self, node: exp.If) -> Term:
        default = node.args.get("false")
        otherwise = self.term(default) if default is not None else Term("NULL", None)
        return chosen([self.condition(node.this)], [self.term(node.args["true"]), otherwise])

    def coalesce(self, node: exp.Coalesce) -> Term:
        return CALLS["coalesce"](self, [node.this, *node.expressions])

    def dotted(self, node: exp.Dot) -> Term:
        base = self.term(node.this)
        for part in base.known.fields:
            if part.name == node.expression.name:
                return Term(f"({base.sql}).{quoted(part.name)}", kept(part.type))
        raise DiffersError

    def struct(self, node: exp.Struct) -> Term:
        kind = type_of(node)
        names = [field.name.lower() for field in kind.fields] if kind is not None else []
        if kind is None or len(set(names)) < len(node.expressions):
            raise DiffersError  # DuckDB takes no two fields whose names differ in case alone
        cells: list[str] = []
        for part, field in zip(node.expressions, kind.fields, strict=True):
            value = self.term(part.expression if isinstance(part, exp.PropertyEQ) else part)
            if value.type != field.type:
                raise DiffersError
            cells.append(f"{quoted(field.name)} := {value.sql}")
        return Term(f"struct_pack({', '.join(cells)})", kind)

    def cast_(self, node: exp.Cast) -> Term:
        target = kept(type_of(node))
        if target is None:
            raise DiffersError
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            return temporal_literal(str(node.this.this), target)
        term = self.term(node.this)
        if isinstance(node, exp.TryCast) and not always_fits(term.known, target):
            raise DiffersError  # what does not fit is NULL there, and an error here
        return cast(term, target)

    def call(self, node: exp.Anonymous) -> Term:
        sql_type = type_of(node)
        if node.name.startswith(FINISH) and sql_type is not None:
            return Term(f"{quoted(node.name)}({self.term(node.expressions[0]).sql})", sql_type)
        if node.name in (CLOCK_CALL, CLOSED_AFTER, CLOSED_UPTO):
            return Term(f"{quoted(node.name)}()", TIMESTAMP)
        write = CALLS.get(node.name.lower())
        if write is None:
            raise DiffersError
        return write(self, list(node.expressions))

    def now(self, node: exp.CurrentTimestamp) -> Term:
        if not self.clock or node.this is not None:
            raise DiffersError
        return Term("make_timestamp(epoch_us(now()))", TIMESTAMP)


def chosen(conditions: list[str], values: list[Term]) -> Term:
    """CASE: the value of the first condition that holds, the last value where none does."""
    sql_type = common_of(values)
    if sql_type is None:
        raise DiffersError
    cells = [as_type(value, sql_type).sql for value in values]
    branches = " ".join(f"WHEN {condition} THEN {cell}" for condition, cell in zip(conditions, cells, strict=False))
    return Term(f"(CASE {branches} ELSE {cells[-1]} END)", sql_type)


def divided(left: Term, right: Term) -> Term:
    """A quotient of two DOUBLEs; a division by zero is an error, as in Spark."""
    if right.constant is not None and float(right.constant) != 0:
        return Term(f"({left.sql} / {right.sql})", DOUBLE)
    zero = f"{right.sql} = 0 AND {left.sql} IS NOT NULL"
    return Term(f"(CASE WHEN {zero} THEN error('division by zero') ELSE {left.sql} / {right.sql} END)", DOUBLE)


def _times(left: Term, right: Term) -> tuple[Term, Term]:
    """A string that is written out beside a time is read as one."""
    if left.type is not None and left.type.temporal and right.type == STRING and right.sql.startswith("'"):
        return left, temporal_literal(right.sql[1:-1], left.type)
    if right.type is not None and right.type.temporal and left.type == STRING and left.sql.startswith("'"):
        return temporal_literal(left.sql[1:-1], right.type), right
    return left, right


def _calculated(left: Term, operator: str, right: Term, sql_type: SqlType) -> Term:
    if sql_type.name not in ("INT", "BIGINT", "DOUBLE", "FLOAT", "SMALLINT", "TINYINT"):
        raise DiffersError
    return as_type(Term(f"({left.sql} {operator} {right.sql})", None), sql_type)


def _decimals(left: Term, operator: str, right: Term) -> Term:
    """Exact sums and products of decimals, in the type Spark gives them."""
    (p1, s1), (p2, s2) = decimal_of(left), decimal_of(right)
    if operator == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    else:
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > 38:
        raise DiffersError
    target = SqlType("DECIMAL", (precision, scale))
    if operator == "*":
        # DuckDB multiplies in 64 bits, whatever comes out, where both sides have no more than 18 digits.
        wide = max(p1, _NARROW_DIGITS + 1) if precision > _NARROW_DIGITS else p1
        one, two = as_type(left, SqlType("DECIMAL", (wide, s1))), as_type(right, SqlType("DECIMAL", (p2, s2)))
    else:
        one, two = as_type(left, target), as_type(right, target)
    return as_type(Term(f"({one.sql} {operator} {two.sql})", None), target)


_WRITERS: Final[tuple[tuple[Any, Callable[[StoreExpressions, Any], Term]], ...]] = (
    (exp.Column, StoreExpressions.column),
    (exp.Literal, StoreExpressions.literal),
    (exp.Null, StoreExpressions.null),
    (exp.Boolean, StoreExpressions.boolean),
    (exp.Paren, StoreExpressions.paren),
    (exp.Neg, StoreExpressions.negative),
    ((exp.And, exp.Or), StoreExpressions.both),
    (exp.Not, StoreExpressions.negation),
    (tuple(_COMPARISONS), StoreExpressions.comparison),
    (exp.Is, StoreExpressions.is_),
    (exp.Between, StoreExpressions.between),
    (exp.In, StoreExpressions.one_of),
    (exp.Like, StoreExpressions.like),
    (exp.DPipe, StoreExpressions.joined_text),
    ((exp.Add, exp.Sub, exp.Mul), StoreExpressions.arithmetic),
    (exp.Div, StoreExpressions.division),
    (exp.Mod, StoreExpressions.remainder),
    (exp.Case, StoreExpressions.case),
    (exp.If, StoreExpressions.if_),
    (exp.Coalesce, StoreExpressions.coalesce),
    (exp.Dot, StoreExpressions.dotted),
    (exp.Struct, StoreExpressions.struct),
    (exp.Cast, StoreExpressions.cast_),
    (exp.Anonymous, StoreExpressions.call),
    (exp.CurrentTimestamp, StoreExpressions.now),
    (exp.Interval, StoreExpressions.length),
)
