"""From a written expression to a bound one: names resolved, functions allow-listed, types known where we can.

The bound tree is Spark's: what reaches Spark is generated from it and from nothing else. A kind of node that is not
on our list is refused, so that syntax we never thought of cannot slip through.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.functions import (
    DENIED,
    NOT_YET,
    FunctionInfo,
    aggregate_calls,
    date_part,
    find_function,
    nearest_function,
    return_type,
    spark_call,
)
from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.infer import infer
from penstock.plan.scope import Resolved, Scope, window_bound
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
    unmark_aggregates,
)
from penstock.plan.windows import WindowSpec, duration_words, window_spec
from penstock.sql.format import format_tree
from penstock.sql.nodes import WindowCall, WindowPart
from penstock.sql.spans import own_span, span_of
from penstock.sql.typenames import sql_type
from penstock.types import INT, STRING, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.catalog.model import FunctionDefinition
    from penstock.errors import Span

# Nodes that mean the same in Spark and only need their parts bound.
_PLAIN: Final = (
    exp.Literal, exp.Null, exp.Boolean, exp.Interval, exp.Var, exp.Identifier, exp.Star,
    exp.Paren, exp.Not, exp.Neg, exp.BitwiseNot, exp.And, exp.Or, exp.Xor,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.SimilarTo, exp.Escape,
    exp.Case, exp.If, exp.Trim, exp.Substring, exp.StrPosition, exp.Overlay, exp.Ceil, exp.Floor,
    exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.AtTimeZone,
    exp.Array, exp.Map, exp.VarMap, exp.Struct, exp.Tuple, exp.PropertyEQ, exp.Alias,
    exp.Distinct, exp.Order, exp.Ordered, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup,
    exp.WindowSpec, exp.DataType,
    exp.Coalesce, exp.Any, exp.All,
)  # fmt: skip


_JSON: Final = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)


@dataclass(slots=True)
class WindowBinding:
    """The window of a grouped SELECT: its value, its tree in Spark, and how the user wrote it."""

    spec: WindowSpec
    tree: exp.Expr
    written: WindowCall | None = None
    end: exp.Expr | None = None


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
    aggregates_allowed: bool = True
    grouped: bool = False
    over: list[exp.Window] = field(default_factory=list)
    _depth_in_aggregate: int = 0

    def bind(self, node: exp.Expr) -> exp.Expr:
        """The bound tree of an expression."""
        bound = self._bind(node)
        return keep_place(bound, node)

    def _bind(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Window):
            return self._over(node)
        if isinstance(node, exp.Anonymous):
            return self._call(node)
        if isinstance(node, WindowCall | WindowPart):
            return self._window(node)
        if isinstance(node, exp.Cast | exp.TryCast):
            return self._cast(node)
        if isinstance(node, exp.Lambda):
            return self._lambda(node)
        if isinstance(node, _JSON):
            return self._json(node)
        if isinstance(node, exp.Filter):
            return self._filter(node)
        if isinstance(node, exp.Bracket):
            return self._element(node)
        if isinstance(node, exp.Extract):
            return self._extract(node)
        if isinstance(node, exp.Dot):
            return self._dot(node)
        if isinstance(node, exp.Query) or (isinstance(node, exp.Exists | exp.In) and _holds_query(node)):
            return self._subquery(node)
        if isinstance(node, _PLAIN):
            return self._parts(node)
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f"the expression {type(node).__name__} has no meaning here",
            hint="see docs/sql/queries.md for the expressions that can be used",
            span=span_of(node),
        )

    def _parts(self, node: exp.Expr) -> exp.Expr:
        arguments: dict[str, object] = {}
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                arguments[key] = self.bind(value)
            elif isinstance(value, list):
                arguments[key] = [self.bind(item) if isinstance(item, exp.Expr) else item for item in value]
            else:
                arguments[key] = value
        bound = type(node)(**arguments)
        if isinstance(node, exp.Literal | exp.Identifier | exp.Var):
            return typed(bound, infer(bound))
        if isinstance(bound, exp.Div) and self.truncating_division and _integers(bound):
            bound = exp.IntDiv(this=bound.this, expression=bound.expression)
        if isinstance(bound, exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls) and has_aggregate(bound.this):
            unmark_aggregates(bound)
            mark_aggregate(bound, format_tree(node))
        return typed(bound, infer(bound))

    def _column(self, node: exp.Column) -> exp.Expr:
        if isinstance(node.this, exp.Star):
            raise ResolutionError(
                "INVALID_ARGUMENT", "* can stand in a SELECT list or in COUNT(*) only", span=span_of(node)
            )
        found = self.scope.find(node)
        if found is None and self.window is not None:
            bound = _window_reference(node, self.window)
            if bound is not None:
                return bound
        found = self.scope.resolve(node)
        if self.read is not None:
            self.read(found)
        return found.tree

    def _dot(self, node: exp.Dot) -> exp.Expr:
        base = self.bind(node.this)
        if not isinstance(node.expression, exp.Identifier):
            raise UnsupportedError(
                "UNSUPPORTED_CLAUSE",
                "a call behind a dot has no meaning here",
                hint="functions have plain names, without a schema in front",
                span=span_of(node),
            )
        return typed(exp.Dot(this=base, expression=exp.Identifier(this=node.expression.name, quoted=True)), None)

    def _cast(self, node: exp.Cast | exp.TryCast) -> exp.Expr:
        target = sql_type(node.args["to"])
        inner = self.bind(node.this)
        kind = exp.DataType.build(target.spark(), dialect="spark")
        safe = isinstance(node, exp.TryCast)
        bound = exp.TryCast(this=inner, to=kind, safe=True) if safe else exp.Cast(this=inner, to=kind)
        return typed(bound, target)

    def _json(self, node: exp.Expr) -> exp.Expr:
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
        return typed(call("get_json_object", self.bind(node.this), exp.Literal.string(_json_path(path, whole=whole))), STRING)

    def _filter(self, node: exp.Filter) -> exp.Expr:
        """FILTER (WHERE …) belongs to the aggregate itself, also where ours is written with another around it."""
        written = node.this
        bound = self.bind(written)
        if aggregate_text(bound) is None:
            raise ResolutionError(
                "MISPLACED_AGGREGATE", "FILTER stands behind aggregates only", span=span_of(written)
            )
        self._depth_in_aggregate += 1
        condition = self.bind(node.expression.this)
        self._depth_in_aggregate -= 1
        calls = [bound] if isinstance(bound, exp.WithinGroup) else aggregate_calls(bound) or [bound]
        for inner in calls:
            filtered = exp.Filter(this=unmark_aggregates(inner.copy()), expression=exp.Where(this=condition.copy()))
            if inner is bound:
                bound = typed(filtered, type_of(inner))
            else:
                inner.replace(filtered)
        return mark_aggregate(bound, format_tree(node))

    def _element(self, node: exp.Bracket) -> exp.Expr:
        """`a[1]` is the first element, as in standard SQL; what is not there is NULL. `m['k']` is the value of a key."""
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
            raise NotYetError(
                "CLAUSE_NOT_YET",
                "slices of arrays are not there yet",
                hint="use slice(array, start, length)",
                span=span_of(node),
            )
        container, key = self.bind(node.this), self.bind(node.expressions[0])
        kind = type_of(container)
        if kind is not None and kind.name not in ("ARRAY", "MAP"):
            raise ResolutionError(
                "TYPE_MISMATCH", f"{kind} has no elements to take with [ ]", span=span_of(node)
            )
        element = kind.elements[-1] if kind is not None and kind.elements else None
        return typed(call("try_element_at", container, key), element)

    def _extract(self, node: exp.Extract) -> exp.Expr:
        unit = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
        found = date_part("EXTRACT", unit, self.bind(node.expression), self.dialect, node)
        return typed(found, None if unit.upper() in ("EPOCH", "SECOND", "MILLISECOND", "MICROSECOND") else INT)

    def _lambda(self, node: exp.Lambda) -> exp.Expr:
        names = [parameter.name for parameter in node.expressions]
        outer = self.scope
        self.scope = Scope(leaves=outer.leaves, outer=outer.outer, merged=outer.merged, locals={**outer.locals})
        self.scope.locals.update(dict.fromkeys(names))
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
            return exp.In(this=needle, query=query)
        if isinstance(node, exp.Exists):
            return exp.Exists(this=self.subquery(node.this, self.scope))
        return self.subquery(node, self.scope)

    # functions

    def _call(self, node: exp.Anonymous) -> exp.Expr:
        name = node.name
        span = own_span(node)
        user = self.user_function(name)
        if user is not None:
            return self._user_call(node, user)
        if name.casefold() == "proctime":
            return mark_nondeterministic(typed(call("current_timestamp"), TIMESTAMP), "PROCTIME")
        if name.lower() in DENIED:
            raise UnsupportedError(
                "FUNCTION_DENIED",
                f"function {name} is not available: {DENIED[name.lower()]}",
                hint="a query may use only functions of its rows",
                span=span,
            )
        if name.lower() in NOT_YET:
            raise NotYetError("CLAUSE_NOT_YET", f"function {name} is not there yet", hint=NOT_YET[name.lower()], span=span)
        info = find_function(name)
        if info is None:
            near = nearest_function(name)
            hint = f"did you mean {near}?" if near else "see docs/sql/functions.md, or register one with CREATE FUNCTION"
            raise ResolutionError("UNKNOWN_FUNCTION", f"there is no function {name}", hint=hint, span=span)
        return self._known_call(node, info)

    def _known_call(self, node: exp.Anonymous, info: FunctionInfo) -> exp.Expr:
        arguments = list(node.expressions)
        _check_count(node, info, len(arguments))
        if info.kind == "aggregate":
            return self._aggregate_call(node, info)
        bound = [self.bind(argument) for argument in arguments]
        types = [type_of(argument) for argument in bound]
        result = typed(spark_call(node.name, bound, dialect=self.dialect), return_type(info, types))
        return result if info.repeatable(len(arguments)) else mark_nondeterministic(result, node.name)

    def _aggregate_call(self, node: exp.Anonymous, info: FunctionInfo) -> exp.Expr:
        if not self.aggregates_allowed or self._depth_in_aggregate:
            where = "inside another aggregate" if self._depth_in_aggregate else "here"
            raise ResolutionError(
                "MISPLACED_AGGREGATE",
                f"aggregate {node.name} cannot stand {where}",
                hint="use HAVING for conditions on aggregates, or aggregate in a subquery first",
                span=own_span(node),
            )
        self._depth_in_aggregate += 1
        try:
            bound = [self.bind(argument) for argument in node.expressions]
        finally:
            self._depth_in_aggregate -= 1
        types = [type_of(argument) for argument in bound]
        result = typed(spark_call(node.name, bound, dialect=self.dialect), return_type(info, types))
        return mark_aggregate(result, format_tree(node))

    def _user_call(self, node: exp.Anonymous, user: FunctionDefinition) -> exp.Expr:
        if user.parameters and len(user.parameters) != len(node.expressions):
            raise ResolutionError(
                "INVALID_ARGUMENT",
                f"function {user.name} takes {len(user.parameters)} arguments, not {len(node.expressions)}",
                span=own_span(node),
            )
        if user.aggregate:
            self._depth_in_aggregate += 1
        bound = [self.bind(argument) for argument in node.expressions]
        if user.aggregate:
            self._depth_in_aggregate -= 1
        result: exp.Expr = typed(call(user.name.text, *bound), user.returns)
        return mark_aggregate(result, format_tree(node)) if user.aggregate else result

    def _over(self, node: exp.Window) -> exp.Expr:
        if self._depth_in_aggregate or not self.aggregates_allowed:
            raise ResolutionError(
                "MISPLACED_AGGREGATE",
                "a window function cannot stand here",
                hint="compute it in a subquery and filter outside, or use QUALIFY",
                span=span_of(node),
            )
        inner = node.this
        depth, self._depth_in_aggregate = self._depth_in_aggregate, 0
        function = self.bind(inner)
        unmark_aggregates(function)
        arguments: dict[str, object] = {"this": function}
        for key, value in node.args.items():
            if key == "this" or value is None:
                continue
            if isinstance(value, list):
                arguments[key] = [self.bind(item) for item in value]
            elif isinstance(value, exp.Expr):
                arguments[key] = self.bind(value)
            else:
                arguments[key] = value
        self._depth_in_aggregate = depth
        bound = exp.Window(**arguments)
        self.over.append(node)
        bound.meta["penstock_over"] = format_tree(node)
        return typed(bound, type_of(function))

    # windows of time

    def _window(self, node: WindowCall | WindowPart) -> exp.Expr:
        written = node.this if isinstance(node, WindowPart) else node
        span = span_of(node)
        spec = window_spec(written, span)
        if self.window is None:
            return self._scalar_window(node, written, spec)
        self._check_same(written, spec, span)
        if isinstance(node, WindowCall):
            return typed(self.window.tree.copy(), None)
        if node.part == "proctime":
            raise _processing_time(span)
        part = "time" if node.part == "rowtime" else node.part
        return typed(window_bound(self.window.tree.copy(), part, self.window.end), TIMESTAMP)

    def _check_same(self, written: WindowCall, spec: WindowSpec, span: Span | None) -> None:
        window = self.window
        if window is None or window.written is None:
            return
        same_time = True
        time, group_time = written.args.get("time"), window.written.args.get("time")
        if time is not None and group_time is not None:
            same_time = self.bind(time) == self.bind(group_time)
        if spec != window.spec or not same_time:
            raise ResolutionError(
                "WINDOW_MISMATCH",
                f"{_written(written, spec)} does not match the window of the GROUP BY, {_written(window.written, window.spec)}",
                hint="give the helper the same time column and the same durations as the GROUP BY",
                span=span,
            )

    def _scalar_window(self, node: WindowCall | WindowPart, written: WindowCall, spec: WindowSpec) -> exp.Expr:
        """TUMBLE as a plain function of a row: floor to the size, NULL for NULL."""
        span = span_of(node)
        time = written.args.get("time")
        if self.grouped and not self._depth_in_aggregate:
            raise ResolutionError(
                "WINDOW_MISMATCH",
                f"{_written(written, spec)} is not in the GROUP BY",
                hint=f"add it: GROUP BY …, {_written(written, spec)}",
                span=span,
            )
        if spec.kind != "TUMBLE" or time is None:
            raise ResolutionError(
                "INVALID_WINDOW",
                f"{spec} can stand in a GROUP BY or in the FROM clause only",
                hint=f"add it to the GROUP BY: GROUP BY {_written(written, spec)}",
                span=span,
            )
        micros = call("unix_micros", self.bind(time))
        shifted = exp.Sub(this=micros.copy(), expression=number(spec.offset_us)) if spec.offset_us else micros.copy()
        start = call("timestamp_micros", exp.Sub(this=micros, expression=call("pmod", shifted, number(spec.size_us))))
        size = exp.Interval(this=exp.Literal.string(str(spec.size_us)), unit=exp.var("MICROSECOND"))
        end = exp.Paren(this=exp.Add(this=start.copy(), expression=size))
        if isinstance(node, WindowCall):
            return call("named_struct", exp.Literal.string("start"), start, exp.Literal.string("end"), end)
        if node.part == "start":
            return typed(start, TIMESTAMP)
        if node.part == "end":
            return typed(end, TIMESTAMP)
        raise ResolutionError(
            "WINDOW_MISMATCH", f"{spec.kind}_{node.part.upper()} needs a window in the GROUP BY", span=span
        )


def _written(call_node: WindowCall, spec: WindowSpec) -> str:
    """A window as the user would write it, for messages."""
    time = call_node.args.get("time")
    durations = {
        "TUMBLE": [spec.size_us], "HOP": [spec.slide_us, spec.size_us],
        "SESSION": [spec.gap_us], "CUMULATE": [spec.step_us, spec.size_us],
    }[spec.kind]  # fmt: skip
    parts = [format_tree(time)] if time is not None else []
    parts += [duration_words(duration) for duration in durations]
    return f"{spec.kind}({', '.join(parts)})"


def _json_path(path: exp.Literal, *, whole: bool) -> str:
    """A path in the form Spark reads: `a` is $['a'], `0` is $[0], `{a,0}` is $['a'][0], and `$.a.b` stays."""
    text = str(path.this)
    if path.is_string and text.startswith("$"):
        return text
    steps = [step.strip().strip('"') for step in text.strip("{}").split(",")] if whole else [text]
    named = path.is_string and not whole
    return "$" + "".join(f"[{step}]" if step.isdigit() and not named else f"['{step}']" for step in steps)


def _window_reference(node: exp.Column, window: WindowBinding) -> exp.Expr | None:
    """`window`, `window.start`, `window_start` … in a SELECT that is grouped by a window function."""
    names = [part.name.casefold() for part in node.parts]
    direct = {"window_start": "start", "window_end": "end", "window_time": "time"}
    if len(names) == 1 and names[0] in direct:
        return typed(window_bound(window.tree.copy(), direct[names[0]], window.end), TIMESTAMP)
    if names[0] != "window":
        return None
    if len(names) == 1:
        return typed(window.tree.copy(), None)
    bounds = {"start": "start", "end": "end", "window_start": "start", "window_end": "end"}
    if len(names) == 2 and names[1] in bounds:
        return typed(window_bound(window.tree.copy(), bounds[names[1]], window.end), TIMESTAMP)
    return None


def _processing_time(span: Span | None) -> NotYetError:
    return NotYetError(
        "PROCESSING_TIME_WINDOW",
        "windows over processing time are not there yet",
        hint="declare an event time with WATERMARK FOR and use its column",
        span=span,
    )


def _integers(node: exp.Div) -> bool:
    left, right = type_of(node.this), type_of(node.expression)
    return left is not None and right is not None and left.integral and right.integral


def _holds_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or node.args.get("query") is not None


def _check_count(node: exp.Anonymous, info: FunctionInfo, count: int) -> None:
    if not info.takes(count):
        raise ResolutionError(
            "INVALID_ARGUMENT", f"function {node.name} takes {info.arguments()}, not {count}", span=own_span(node)
        )
