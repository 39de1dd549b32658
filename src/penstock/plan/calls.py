"""Function calls: what a name means, whether it may be used, and what Spark calls it."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.foreign_call import constant_text, grouped
from penstock.catalog.functions import (
    DENIED,
    NOT_YET,
    FunctionInfo,
    aggregate_calls,
    find_function,
    nearest_function,
    return_type,
    spark_call,
)
from penstock.errors import NotYetError, ResolutionError, UnsupportedError
from penstock.plan.check_calls import (
    check_call,
    check_distinct,
    check_grouping,
    check_row,
    check_rows_counted,
    check_schema,
)
from penstock.plan.check_over import called_over, check_not_over_over, check_over, has_over, takes_any_order
from penstock.plan.check_types import check_arguments
from penstock.plan.infer import assignable
from penstock.plan.named_arguments import with_arguments_in_place
from penstock.plan.nested_maps import with_entries, with_maps
from penstock.plan.nested_types import lambda_parameters, nested_call_type
from penstock.plan.ordered_calls import without_order
from penstock.plan.sql_functions import in_place
from penstock.plan.trees import (
    call,
    keep_place,
    mark_aggregate,
    mark_in_parts,
    mark_nondeterministic,
    number,
    type_of,
    typed,
    unmark_aggregate,
    unmark_aggregates,
)
from penstock.sql.fields import field_of
from penstock.sql.format import format_tree
from penstock.sql.spans import own_span, span_of
from penstock.types import DOUBLE, INT, TIMESTAMP, SqlType

if TYPE_CHECKING:
    from penstock.catalog.model import FunctionDefinition
    from penstock.plan.expressions import ExpressionBinder

_BY_SHARES: Final = frozenset({"quantile", "percentile"})  # what such a call gives is an array where its shares are one
_PARTS: Final = frozenset({"date_part", "datepart"})


def bind_call(binder: ExpressionBinder, node: exp.Anonymous) -> exp.Expr:
    """A call of a function: the user's, Spark's or another system's, if it may be used at all."""
    name = node.name
    span = own_span(node)
    _read_fields(node)
    user = binder.user_function(name)
    if user is not None:
        return _user(binder, with_arguments_in_place(node, user), user)
    if name.casefold() == "proctime":
        return mark_nondeterministic(typed(call("current_timestamp"), TIMESTAMP), "PROCTIME")
    if name.casefold() == "now" and not node.expressions:
        # Spark's own NOW is another one when a batch is run again; CURRENT_TIMESTAMP is written down with the batch
        return mark_nondeterministic(typed(exp.CurrentTimestamp(), TIMESTAMP), name)
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
    return _known(binder, node, info)


def _known(binder: ExpressionBinder, node: exp.Anonymous, info: FunctionInfo) -> exp.Expr:
    arguments = list(node.expressions)
    given = sum(len(each.expressions) if isinstance(each, exp.Distinct) else 1 for each in arguments)
    _check_count(node, info, given if info.takes(given) else len(arguments))
    if info.kind == "window" and not has_over(node):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"{node.name} is computed over rows in an order, and there is no OVER",
            hint=f"write {node.name}(…) OVER (PARTITION BY … ORDER BY …)",
            span=own_span(node),
        )
    if info.kind == "aggregate":
        plain = without_order(node)
        return _aggregate(binder, plain, info if plain is node else find_function(plain.name) or info)
    check_distinct(node)
    check_grouping(node, grouped=binder.grouped)
    if info.higher_order:
        arguments = [arguments[0], *(_as_lambda(argument) for argument in arguments[1:])]
    bound = _bound_arguments(binder, node.name.lower(), arguments)
    if node.name.lower() in _PARTS and str(constant_text(bound[0])).lower() == "epoch":
        bound[1] = as_moment(bound[1])
    check_arguments(node.name, bound, arguments)
    check_schema(node, bound)
    check_row(node, bound)
    types = [type_of(argument) for argument in bound]
    found = return_type(info, types) or nested_call_type(node.name.lower(), bound)
    result = typed(spark_call(node.name, bound, dialect=binder.dialect), found)
    return result if info.repeatable(len(arguments)) else mark_nondeterministic(result, node.name)


def as_moment(value: exp.Expr) -> exp.Expr:
    """An interval as the moment that comes so long after 1970, for functions that take moments; else the value."""
    kind = type_of(value)
    if kind is None or kind.name != "INTERVAL":
        return value
    moment = exp.Add(this=call("timestamp_seconds", number(0)), expression=grouped(value))
    return typed(exp.Paren(this=moment), TIMESTAMP)


def _bound_arguments(binder: ExpressionBinder, name: str, arguments: list[exp.Expr]) -> list[exp.Expr]:
    """The arguments; the parameters of a lambda have the types that those before it give them."""
    bound: list[exp.Expr] = []
    for place, argument in enumerate(arguments):
        if isinstance(argument, exp.Lambda):
            types = lambda_parameters(name, bound, place)
            bound.append(keep_place(binder.bind_lambda(argument, types), argument))
        else:
            bound.append(binder.bind(argument))
    return bound


def _aggregate(binder: ExpressionBinder, node: exp.Anonymous, info: FunctionInfo) -> exp.Expr:
    _check_place(binder, node)
    check_rows_counted(node, binder.scope.names())
    binder.aggregate_depth += 1
    try:
        bound = [binder.bind(argument) for argument in node.expressions]
    finally:
        binder.aggregate_depth -= 1
    check_arguments(node.name, bound, node.expressions)
    check_call(node, bound)
    # An order inside changes nothing about the type of what is aggregated.
    several = [part for each in bound for part in (each.expressions if isinstance(each, exp.Distinct) else [each])]
    types = [type_of(argument.this if isinstance(argument, exp.Order) else argument) for argument in several]
    if info.returns in _BY_SHARES and types[1:2] == [None] and _is_array(several[1]):
        types[1] = SqlType("ARRAY", elements=(DOUBLE,))  # 0.5 is a decimal of as many digits as it needs
    entries = with_entries(node, bound)
    made = spark_call(node.name, entries or bound, dialect=binder.dialect)
    result = typed(with_maps(made) if entries else made, return_type(info, types))
    return mark_aggregate(result, format_tree(node))


def _is_array(node: exp.Expr) -> bool:
    return isinstance(node, exp.Array) or (isinstance(node, exp.Anonymous) and node.name.lower() == "array")


def _check_place(binder: ExpressionBinder, node: exp.Anonymous) -> None:
    if not binder.aggregates_allowed or binder.aggregate_depth > 0:
        where = "inside another aggregate" if binder.aggregate_depth > 0 else "here"
        raise ResolutionError(
            "MISPLACED_AGGREGATE",
            f"aggregate {node.name} cannot stand {where}",
            hint="use HAVING for conditions on aggregates, or aggregate in a subquery first",
            span=own_span(node),
        )


def _user(binder: ExpressionBinder, node: exp.Anonymous, user: FunctionDefinition) -> exp.Expr:
    """A call of the user's function. Spark has no Python aggregates on streams, and none beside others anywhere: the
    rows of the group are collected, and the function gets them all.
    """
    written = list(node.expressions)
    counted = user.parameters or user.expression is not None
    if counted and len(user.parameters) != len(written):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {user.name} takes {len(user.parameters)} arguments, not {len(written)}",
            span=own_span(node),
        )
    first = written[0] if written else None
    whole = "with DISTINCT" if isinstance(first, exp.Distinct) else "with *" if isinstance(first, exp.Star) else None
    what = "without arguments" if not written and user.expression is None else whole
    if what is not None:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {user.name} is called {what}",
            hint="give it the columns it works on",
            span=own_span(node),
        )
    if user.expression is not None:
        return in_place(binder, node, user, _user_arguments(binder, node, user))
    if not user.aggregate:
        return typed(call(user.name.text, *_user_arguments(binder, node, user)), user.returns)
    _check_place(binder, node)
    binder.aggregate_depth += 1
    try:
        bound = _user_arguments(binder, node, user)
    finally:
        binder.aggregate_depth -= 1
    named = [part for place, value in enumerate(bound) for part in (exp.Literal.string(f"a{place}"), value)]
    rows = call("collect_list", call("named_struct", *named))
    made = typed(call(user.name.text, rows), user.returns)
    return mark_aggregate(mark_in_parts(made) if user.merges else made, format_tree(node))


def _user_arguments(binder: ExpressionBinder, node: exp.Anonymous, user: FunctionDefinition) -> list[exp.Expr]:
    """The arguments, each of the type that the function declares for it."""
    bound = [binder.bind(argument) for argument in node.expressions]
    for place, parameter in enumerate(user.parameters):
        found = type_of(bound[place])
        if found == parameter.type:
            continue
        if not assignable(found, parameter.type):
            raise ResolutionError(
                "TYPE_MISMATCH",
                f"argument {place + 1} of function {user.name} is {parameter.type}, not {found}",
                hint="CAST it",
                span=span_of(node.expressions[place]),
            )
        kind = exp.DataType.build(parameter.type.spark(), dialect="spark")
        bound[place] = typed(exp.Cast(this=bound[place], to=kind), parameter.type)
    return bound


def bind_over(binder: ExpressionBinder, node: exp.Window) -> exp.Expr:
    """A function with OVER; whether a stream can have it is decided by who planned the SELECT."""
    if binder.aggregate_depth or not binder.aggregates_allowed:
        raise ResolutionError(
            "MISPLACED_AGGREGATE",
            "a window function cannot stand here",
            hint="compute it in a subquery and filter outside, or use QUALIFY",
            span=span_of(node),
        )
    check_not_over_over(node)
    inner = node.this
    _refuse_user_over(binder, inner)
    # SUM(COUNT(*)) OVER (…) sums the counts of the groups: the outer call sees groups, and the inner one rows.
    called = called_over(node)
    of_groups = called is not None and any(
        call is not called and binder.aggregates(call) for call in called.find_all(exp.Anonymous)
    )
    sums = called is not None and binder.aggregates(called)  # LAG(COUNT(*)) only looks at other groups
    depth, binder.aggregate_depth = binder.aggregate_depth, -1 if of_groups and sums else 0
    function = binder.bind(inner)
    binder.aggregate_depth = 0
    if of_groups:
        _unmark_outer(function)
    else:
        unmark_aggregates(function)
    arguments: dict[str, object] = {}
    for key, value in node.args.items():
        if key == "this" or value is None:
            continue
        if isinstance(value, list):
            arguments[key] = [binder.bind(item) for item in value]
        elif isinstance(value, exp.Expr):
            arguments[key] = binder.bind(value)
        else:
            arguments[key] = value
    binder.aggregate_depth = depth
    if takes_any_order(node):
        # what knows more adds columns, so that it is always the same one: see penstock.plan.finish_orders
        arguments["order"] = exp.Order(expressions=[exp.Ordered(this=typed(number(1), INT), nulls_first=True)])
    places = _under_over(function) if sums else [function]
    made = [_with_over(each, arguments) for each in places]
    for bound in made:
        check_over(bound, node)
    binder.over.append(node)
    if places == [function]:
        return made[0]
    for each, bound in zip(places, made, strict=True):
        each.replace(bound)
    return function


def _unmark_outer(function: exp.Expr) -> None:
    """Takes the mark of what OVER stands behind, with what stands in between, and leaves those of its arguments."""
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        unmark_aggregate(function)
        function = function.this
    unmark_aggregate(function)


def _under_over(function: exp.Expr) -> list[exp.Expr]:
    """What OVER stands behind: the function, or the aggregates in what Spark has in its place, such as to_json(…)."""
    calls = aggregate_calls(function) if isinstance(function, exp.Anonymous | exp.Coalesce) else []
    filtered = [call.parent if isinstance(call.parent, exp.Filter) else call for call in calls]
    if not filtered or any(each is function for each in filtered):
        return [function]
    within = {id(node) for each in filtered for node in each.walk() if node is not each}
    return [each for each in filtered if id(each) not in within]  # the others are those of groups


def _with_over(function: exp.Expr, arguments: dict[str, object]) -> exp.Window:
    made = exp.Window(**arguments).copy()
    made.set("this", function.copy())
    typed(made, type_of(function))
    return made


def _refuse_user_over(binder: ExpressionBinder, inner: exp.Expr) -> None:
    called = inner.find(exp.Anonymous) if isinstance(inner, exp.Anonymous | exp.Filter) else None
    if called is not None and binder.user_function(called.name) is not None:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            f"function {called.name} with OVER is not there yet",
            hint="group by the columns of PARTITION BY instead",
            span=span_of(inner),
        )


def _as_lambda(argument: exp.Expr) -> exp.Expr:
    """`x -> 1`, which reads like a path into JSON, is a lambda where a function takes one."""
    name = argument.args.get("this")
    if isinstance(argument, exp.JSONExtract) and isinstance(name, exp.Column) and name.args.get("table") is None:
        return exp.Lambda(this=argument.expression.copy(), expressions=[name.this.copy()])
    return argument


def _read_fields(node: exp.Anonymous) -> None:
    """`UPPER(address->city)`, which reads like a lambda, is a field of a struct where a function takes none."""
    info = find_function(node.name)
    for argument in node.expressions[:1] if info is not None and info.higher_order else node.expressions:
        names = _named_fields(argument)
        if names is not None:
            read: exp.Expr = exp.Column(this=names[0].copy())
            read = reduce(field_of, [name.copy() for name in names[1:]], read)
            argument.replace(keep_place(read, argument))


def _named_fields(argument: exp.Expr) -> list[exp.Expr] | None:
    """The names in `a -> b`, `a -> b.c`; None where it is a lambda that computes something."""
    if not isinstance(argument, exp.Lambda) or len(argument.expressions) != 1:
        return None
    names: list[exp.Expr] = []
    body = argument.this
    while isinstance(body, exp.Dot) and isinstance(body.expression, exp.Identifier):
        names.insert(0, body.expression)
        body = body.this
    return [argument.expressions[0], *body.parts, *names] if isinstance(body, exp.Column) else None


def _check_count(node: exp.Anonymous, info: FunctionInfo, count: int) -> None:
    if not info.takes(count):
        raise ResolutionError(
            "INVALID_ARGUMENT", f"function {node.name} takes {info.arguments()}, not {count}", span=own_span(node)
        )
