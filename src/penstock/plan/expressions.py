"""From a written expression to a bound one: names resolved, functions allow-listed, types known where we can.

The bound tree is Spark's: what reaches Spark is generated from it and from nothing else. A kind of node that is not
on our list is refused, so that syntax we never thought of cannot slip through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sqlglot import exp

from penstock.catalog.foreign_json import WHOLE_ROW
from penstock.catalog.functions import (
    aggregate_calls,
    date_part,
    find_function,
)
from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.calls import as_moment, bind_call, bind_over
from penstock.plan.check_patterns import check_pattern
from penstock.plan.check_types import check_condition, check_types, text_as_number, with_numbers
from penstock.plan.infer import infer
from penstock.plan.moving_clock import with_moments
from penstock.plan.named_arguments import refuse_named_argument
from penstock.plan.nested_types import named_fields
from penstock.plan.quantified import bind_of_array, bind_quantified, is_of_array, is_quantified
from penstock.plan.scope import Resolved, Scope, no_field, struct_field
from penstock.plan.spark_blocks import outputs
from penstock.plan.trees import (
    aggregate_text,
    call,
    has_aggregate,
    keep_place,
    mark_aggregate,
    mark_nondeterministic,
    number,
    type_of,
    typed,
    unmark_aggregate,
    unmark_aggregates,
    whole_number,
)
from penstock.plan.window_calls import WindowBinding, bind_window, bind_window_field, window_reference
from penstock.sql.format import format_tree
from penstock.sql.nodes import WindowCall, WindowPart
from penstock.sql.spans import span_of
from penstock.sql.typenames import sql_type
from penstock.types import BOOLEAN, INT, STRING

if TYPE_CHECKING:
    from penstock.catalog.model import FunctionDefinition
    from penstock.types import SqlType

# Nodes that mean the same in Spark and only need their parts bound.
_PLAIN: Final = (
    exp.Literal, exp.HexString, exp.Null, exp.Boolean, exp.Interval, exp.Var, exp.Star,
    exp.Paren, exp.Not, exp.Neg, exp.BitwiseNot, exp.And, exp.Or, exp.Xor,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseLeftShift, exp.BitwiseRightShift,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape,
    exp.Case, exp.If, exp.Trim, exp.Substring, exp.StrPosition, exp.Overlay, exp.Ceil, exp.Floor,
    exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.AtTimeZone,
    exp.Array, exp.Map, exp.VarMap, exp.Tuple, exp.PropertyEQ, exp.Alias,
    exp.Distinct, exp.Order, exp.Ordered, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup,
    exp.WindowSpec, exp.DataType,
    exp.Coalesce, exp.Any, exp.All,
)  # fmt: skip


_JSON: Final = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)


@dataclass(slots=True)
class ExpressionBinder:
    """Binds the expressions of one SELECT.

    `window` is set once the GROUP BY has one, so that TUMBLE_START and `window.start` find it. `subquery` binds a
    query inside an expression; who makes the binder decides what it may read.
    """

    scope: Scope
    user_function: Callable[[str], FunctionDefinition | None]
    subquery: Callable[[exp.Expr, Scope], exp.Expr]
    dialect: str | None = None
    truncating_division: bool = False
    window: WindowBinding | None = None
    read: Callable[[Resolved], None] | None = None
    warn: Callable[[str], None] | None = None
    aggregates_allowed: bool = True
    grouped: bool = False
    over: list[exp.Window] = field(default_factory=list)
    aggregate_depth: int = 0

    def bind(self, node: exp.Expr) -> exp.Expr:
        """The bound tree of an expression."""
        bound = with_moments(self._bind(node))
        check_types(bound, node)
        check_pattern(bound, node)
        read = text_as_number(bound)
        if read is not None and self.warn is not None:
            self.warn(read)
        kind = with_numbers(bound)
        if kind is not None:
            typed(bound, kind)
        return keep_place(bound, node)

    def _bind(self, node: exp.Expr) -> exp.Expr:
        if is_quantified(node):
            return bind_quantified(self, node)
        if is_of_array(node):
            return bind_of_array(self, node)
        if isinstance(node, exp.Query) or (isinstance(node, exp.Exists | exp.In) and _holds_query(node)):
            return self._subquery(node)
        for kinds, bind in _BINDERS:
            if isinstance(node, kinds):
                return bind(self, node)
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f"the expression {type(node).__name__} has no meaning here",
            hint="docs/sql/queries.md says what a query can hold",
            span=span_of(node),
        )

    def aggregates(self, node: exp.Anonymous) -> bool:
        """Whether a call, not bound so far, is that of an aggregate."""
        user = self.user_function(node.name)
        if user is not None:
            return user.aggregate
        info = find_function(node.name)
        return info is not None and info.kind == "aggregate"

    def for_body(self, scope: Scope) -> ExpressionBinder:
        """A binder for the body of a function in SQL, which sees its parameters and nothing else."""
        return ExpressionBinder(
            scope,
            self.user_function,
            _no_query_in_function,
            dialect=self.dialect,
            truncating_division=self.truncating_division,
            aggregates_allowed=False,
        )

    def bind_parts(self, node: exp.Expr) -> exp.Expr:
        arguments: dict[str, object] = {}
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                arguments[key] = self.bind(value)
            elif isinstance(value, list):
                arguments[key] = [self.bind(item) if isinstance(item, exp.Expr) else item for item in value]
            else:
                arguments[key] = value
        bound = type(node)(**arguments)
        if isinstance(node, exp.CurrentTimestamp | exp.Localtimestamp | exp.CurrentDate):
            clock = "CURRENT_DATE" if isinstance(node, exp.CurrentDate) else "CURRENT_TIMESTAMP"
            mark_nondeterministic(bound, clock)
        if isinstance(bound, exp.Div) and _integers(bound):
            if self.truncating_division:
                bound = exp.IntDiv(this=bound.this, expression=bound.expression)
            elif self.warn is not None:
                self.warn(
                    "integers divide to a fraction; SET dialect to flink, arroyo or risingwave to drop it as they do"
                )
        if isinstance(bound, exp.WithinGroup) and has_aggregate(bound.this):
            unmark_aggregates(bound)
            mark_aggregate(bound, format_tree(node))
        if isinstance(bound, exp.IgnoreNulls | exp.RespectNulls) and aggregate_text(bound.this) is not None:
            unmark_aggregate(bound.this)  # what it takes may be aggregates of groups, as in LAST_VALUE(MAX(v))
            mark_aggregate(bound, format_tree(node))
        return typed(bound, infer(bound))

    def bind_column(self, node: exp.Column) -> exp.Expr:
        if isinstance(node.this, exp.Star):
            raise ResolutionError(
                "INVALID_ARGUMENT", "* can stand in a SELECT list or in COUNT(*) only", span=span_of(node)
            )
        found = self.scope.find(node)
        if found is None and self.window is not None:
            bound = window_reference(node, self.window)
            if bound is not None:
                return bound
        found = self.scope.resolve(node)
        if self.read is not None:
            self.read(found)
        return found.tree

    def bind_dot(self, node: exp.Dot) -> exp.Expr:
        base = self.bind(node.this)
        if not isinstance(node.expression, exp.Identifier):
            raise UnsupportedError(
                "UNSUPPORTED_CLAUSE",
                "a call behind a dot has no meaning here",
                hint="functions have plain names, without a schema in front",
                span=span_of(node),
            )
        if isinstance(node.this, WindowCall):
            return bind_window_field(self, node, base)
        kind = type_of(base)
        found = struct_field(kind, node.expression)
        if kind is not None and kind.name == "MAP":
            return typed(
                exp.Dot(this=base, expression=exp.Identifier(this=node.expression.name, quoted=True)), kind.elements[1]
            )
        if (
            found is None and kind is not None and kind.name != "ARRAY"
        ):  # of an array of structs, Spark takes that of each
            raise no_field(format_tree(node.this), kind, node.expression, "expression")
        name = found.name if found is not None else node.expression.name
        bound = exp.Dot(this=base, expression=exp.Identifier(this=name, quoted=True))
        return typed(bound, found.type if found is not None else None)

    def bind_cast(self, node: exp.Cast | exp.TryCast) -> exp.Expr:
        target = sql_type(node.args["to"])
        inner = self.bind(node.this)
        kind = exp.DataType.build(target.spark(), dialect="spark")
        safe = isinstance(node, exp.TryCast)
        bound = exp.TryCast(this=inner, to=kind, safe=True) if safe else exp.Cast(this=inner, to=kind)
        return typed(bound, target)

    def bind_json(self, node: exp.Expr) -> exp.Expr:
        """`data -> 'a'`, `data ->> 'a'` and `data #>> '{a,b}'`: a path into JSON text."""
        path = node.args["expression"]
        if not isinstance(path, exp.Literal):
            raise ResolutionError(
                "INVALID_ARGUMENT",
                "the path into a JSON value must be constant",
                hint="write data ->> 'name', data -> 0 or data #>> '{a,b}'",
                span=span_of(path),
            )
        whole = isinstance(node, exp.JSONBExtract | exp.JSONBExtractScalar)
        return typed(
            call("get_json_object", self.bind(node.this), exp.Literal.string(_json_path(path, whole=whole))), STRING
        )

    def bind_filter(self, node: exp.Filter) -> exp.Expr:
        """FILTER (WHERE …) belongs to the aggregate itself, also where ours is written with another around it."""
        written = node.this
        bound = self.bind(written)
        if aggregate_text(bound) is None:
            raise ResolutionError("MISPLACED_AGGREGATE", "FILTER stands behind aggregates only", span=span_of(written))
        self.aggregate_depth += 1
        condition = self.bind(node.expression.this)
        self.aggregate_depth -= 1
        check_condition(condition, "FILTER (WHERE …)")
        calls = [bound] if isinstance(bound, exp.WithinGroup) else aggregate_calls(bound) or [bound]
        for inner in calls:
            filtered = exp.Filter(this=unmark_aggregates(inner.copy()), expression=exp.Where(this=condition.copy()))
            if inner is bound:
                bound = typed(filtered, type_of(inner))
            else:
                inner.replace(filtered)
        return mark_aggregate(bound, format_tree(node))

    def bind_element(self, node: exp.Bracket) -> exp.Expr:
        """`a[1]` is the first element, as in standard SQL, `m['k']` the value of a key; what is not there is NULL."""
        if len(node.expressions) != 1:
            raise ResolutionError("INVALID_ARGUMENT", "[ ] takes one place or key", span=span_of(node))
        if isinstance(node.expressions[0], exp.Slice):
            return self._slice(node, node.expressions[0])
        container, key = self.bind(node.this), self.bind(node.expressions[0])
        kind = type_of(container)
        if kind is not None and kind.name not in ("ARRAY", "MAP"):
            raise ResolutionError("TYPE_MISMATCH", f"{kind} has no elements to take with [ ]", span=span_of(node))
        element = kind.elements[-1] if kind is not None and kind.elements else None
        if kind is not None and kind.name == "ARRAY":
            # `get` counts from 0 and is NULL for every place that is not there; `element_at` fails for place 0
            constant = whole_number(key)
            if constant is not None:
                place = number(constant - 1)
            else:
                place = exp.Sub(this=exp.Paren(this=key), expression=number(1))
            return typed(call("get", container, place), element)
        return typed(call("try_element_at", container, key), element)

    def _slice(self, node: exp.Bracket, places: exp.Slice) -> exp.Expr:
        """`a[2:3]`: the elements from one place to another, both included, as in PostgreSQL."""
        ends = [places.this, places.expression]
        first, last = (None if end is None else whole_number(end) for end in ends)
        array = self.bind(node.this)
        if any(end is not None and place is None for end, place in zip(ends, (first, last), strict=True)):
            bound = [None if end is None else self.bind(end) for end in ends]
            return typed(_computed_slice(array, *bound), type_of(array))
        begin = max(first or 1, 1)
        # of NULL the size is -1
        whole = call("greatest", call("size", array.copy()), number(0))
        length = whole if last is None else number(max(last - begin + 1, 0))
        return typed(call("slice", array, number(begin), length), type_of(array))

    def bind_similar(self, node: exp.SimilarTo) -> exp.Expr:
        """`x SIMILAR TO 'a%|b_'`: a regular expression over the whole text, with % and _ as in LIKE."""
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise NotYetError(
                "CLAUSE_NOT_YET",
                "SIMILAR TO with a computed pattern is not there yet",
                hint="write the pattern out, or use RLIKE",
                span=span_of(pattern),
            )
        regex = exp.Literal.string(similar_to_regex(str(pattern.this)))
        return typed(call("rlike", self.bind(node.this), regex), BOOLEAN)

    def refuse_caret(self, node: exp.BitwiseXor) -> exp.Expr:
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            "^ is a power in some systems and an exclusive or in others",
            hint="write POWER(a, b), or (a | b) - (a & b)",
            span=span_of(node),
        )

    def bind_extract(self, node: exp.Extract) -> exp.Expr:
        unit = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
        value = self.bind(node.expression)
        if unit.upper() == "EPOCH":
            value = as_moment(value)
        found = date_part("EXTRACT", unit, value, self.dialect, node)
        return typed(found, None if unit.upper() in ("EPOCH", "SECOND", "MILLISECOND", "MICROSECOND") else INT)

    def bind_struct(self, node: exp.Struct) -> exp.Expr:
        """`STRUCT(a, b AS x)`: each field is written with the name that it has, which Spark finds by itself only where
        the columns have theirs."""
        bound = exp.Struct(expressions=named_fields([self.bind(part) for part in node.expressions]))
        bound.meta[WHOLE_ROW] = node.meta.get(WHOLE_ROW)
        return typed(bound, infer(bound))

    def bind_name(self, node: exp.Identifier) -> exp.Expr:
        """A name by itself: that of a parameter, inside a lambda."""
        return typed(node.copy(), self.scope.locals.get(node.name))

    def bind_lambda(self, node: exp.Lambda, types: Sequence[SqlType | None] = ()) -> exp.Expr:
        names = [parameter.name for parameter in node.expressions]
        outer = self.scope
        self.scope = Scope(leaves=outer.leaves, outer=outer.outer, merged=outer.merged, locals={**outer.locals})
        self.scope.locals.update(dict.fromkeys(names))
        self.scope.locals.update(zip(names, types, strict=False))
        try:
            body = self.bind(node.this)
        finally:
            self.scope = outer
        parameters = [exp.Identifier(this=name, quoted=True) for name in names]
        return exp.Lambda(this=body, expressions=parameters)

    def _subquery(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.In):
            needle = self.bind(node.this)
            query = self.subquery(node.args["query"], self.scope)
            found = len(outputs(query.this))
            if found != 1:
                raise ResolutionError(
                    "INVALID_ARGUMENT",
                    f"one value is looked for among the {found} columns of a subquery",
                    hint="select one column, or write (a, b) IN (SELECT x, y …)",
                    span=span_of(node),
                )
            return exp.In(this=needle, query=query)
        if isinstance(node, exp.Exists):
            return exp.Exists(this=self.subquery(node.this, self.scope))
        query = self.subquery(node, self.scope)
        found = len(outputs(query.this))
        if found != 1 and isinstance(query, exp.Subquery):
            raise ResolutionError(
                "INVALID_ARGUMENT",
                f"a subquery that stands for a value has {found} columns",
                hint="select one, and write a subquery for each of the others, or join them",
                span=span_of(node),
            )
        return query


def _computed_slice(array: exp.Expr, first: exp.Expr | None, last: exp.Expr | None) -> exp.Expr:
    """A slice between places that are known with the row; where one is NULL there is none."""
    one, none = number(1), number(0)
    begin = one if first is None else _at_least(first, one)
    end = call("size", array.copy()) if last is None else last
    length = exp.Add(this=exp.Sub(this=exp.Paren(this=end), expression=begin.copy()), expression=one.copy())
    return call("slice", array, _as_int(begin), _as_int(_at_least(length, none)))


def _at_least(value: exp.Expr, least: exp.Expr) -> exp.Expr:
    # `greatest` would leave NULL out
    return call("if", exp.LT(this=value, expression=least.copy()), least.copy(), value.copy())


def _as_int(value: exp.Expr) -> exp.Expr:
    return typed(exp.Cast(this=value, to=exp.DataType.build("INT", dialect="spark")), INT)


def _json_path(path: exp.Literal, *, whole: bool) -> str:
    """A path in the form Spark reads: `a` is $['a'], `0` is $[0], `{a,0}` is $['a'][0], and `$.a.b` stays."""
    text = str(path.this)
    if path.is_string and text.startswith("$"):
        return text
    steps = [step.strip().strip('"') for step in text.strip("{}").split(",")] if whole else [text]
    named = path.is_string and not whole
    return "$" + "".join(f"[{step}]" if step.isdigit() and not named else f"['{step}']" for step in steps)


def similar_to_regex(pattern: str) -> str:
    """The regular expression of a SIMILAR TO pattern.

    >>> similar_to_regex("a.b|%c_")
    '^(?:a[.]b|.*c.)$'
    """
    wild = {"%": ".*", "_": ".", ".": "[.]", "^": "[\\^]", "$": "[$]", "\\": "\\\\"}
    return "^(?:" + "".join(wild.get(char, char) for char in pattern) + ")$"


def _integers(node: exp.Div) -> bool:
    left, right = type_of(node.this), type_of(node.expression)
    return left is not None and right is not None and left.integral and right.integral


def _holds_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or node.args.get("query") is not None


def _no_query_in_function(tree: exp.Expr, scope: Scope) -> exp.Expr:
    del scope
    raise NotYetError(
        "CLAUSE_NOT_YET",
        "a query inside of a function is not there yet",
        hint="give the function what the query finds as an argument, or make a view",
        span=span_of(tree),
    )


# The first row that fits decides.
_Bind: TypeAlias = Callable[[ExpressionBinder, Any], exp.Expr]
_BINDERS: Final[tuple[tuple[Any, _Bind], ...]] = (
    (exp.Column, ExpressionBinder.bind_column),
    (exp.Window, bind_over),
    (exp.Anonymous, bind_call),
    ((WindowCall, WindowPart), bind_window),
    ((exp.Cast, exp.TryCast), ExpressionBinder.bind_cast),
    (exp.Lambda, ExpressionBinder.bind_lambda),
    (_JSON, ExpressionBinder.bind_json),
    (exp.Filter, ExpressionBinder.bind_filter),
    (exp.Bracket, ExpressionBinder.bind_element),
    (exp.Extract, ExpressionBinder.bind_extract),
    (exp.Dot, ExpressionBinder.bind_dot),
    (exp.Struct, ExpressionBinder.bind_struct),
    (exp.Identifier, ExpressionBinder.bind_name),
    (exp.SimilarTo, ExpressionBinder.bind_similar),
    (exp.BitwiseXor, ExpressionBinder.refuse_caret),
    (exp.Kwarg, refuse_named_argument),
    (_PLAIN, ExpressionBinder.bind_parts),
)
