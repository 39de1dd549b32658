"""Functions in SQL: their body stands in the place of each call.

`CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1` makes of `f(a)` the expression `CAST(a AS INT) + 1`, so that whoever
computes the query knows nothing of the function. The body is bound by itself when it is created, where what is wrong
with it is told, and again at each call, over the types of its parameters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.functions import find_function
from penstock.catalog.model import ObjectKey
from penstock.errors import CatalogError, NotYetError, PenstockError, ResolutionError, ScriptError
from penstock.plan.infer import assignable
from penstock.plan.relation import Field
from penstock.plan.scope import Leaf, Scope
from penstock.plan.trees import nondeterministic_call, nondeterministic_name, own_nodes, type_of, typed
from penstock.sql.spans import own_span, span_of
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.catalog.model import FunctionDefinition
    from penstock.catalog.snapshot import Catalog
    from penstock.plan.expressions import ExpressionBinder

MAX_NODES: Final = 20_000  # of one call in place: functions that call functions double with each step
_PLACE: Final = ("line", "col", "start", "end", "stop")


def checked_function(definition: FunctionDefinition, catalog: Catalog, binder: ExpressionBinder) -> FunctionDefinition:
    """A function in SQL, its body bound: with its type where it names none, and the functions that it calls.

    `binder` knows the functions there are.
    """
    body = definition.expression
    assert body is not None, "a function in SQL has a body"
    name = definition.name
    called = list(body.find_all(exp.Anonymous))
    for node in called:
        if node.name.casefold() == name.text.casefold():
            raise CatalogError(
                "INVALID_DEFINITION",
                f"function {name} calls itself",
                hint="a function in SQL is an expression; write a loop in Python",
                span=own_span(node),
            )
        info = find_function(node.name)
        if info is not None and info.kind == "generator" and binder.user_function(node.name) is None:
            raise NotYetError(
                "CLAUSE_NOT_YET",
                f"function {name} makes rows: {node.name} in a function is not there yet",
                hint="return the array, and UNNEST it in the query",
                span=own_span(node),
            )
    bound = _bound_body(binder, definition)
    varies = nondeterministic_call(bound)
    if varies is not None:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            f"function {name} calls {nondeterministic_name(varies)}, whose value differs from call to call: that is "
            "not there yet",
            hint="give it that value as an argument",
            span=span_of(varies) or span_of(body),
        )
    found = type_of(bound)
    returns = definition.returns or found
    if returns is None:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"function {name} does not say what it returns",
            hint="add RETURNS and a type",
            span=name.span,
        )
    if not assignable(found, returns):
        raise ResolutionError(
            "TYPE_MISMATCH",
            f"the body of function {name} is {found}, and it returns {returns}",
            hint="CAST the body, or change RETURNS",
            span=span_of(body),
        )
    used = [catalog.find_function(Name(node.name)) for node in called]
    keys = dict.fromkeys(ObjectKey("function", one.name.text) for one in used if one is not None)
    return replace(definition, returns=returns, depends_on=tuple(keys))


def _bound_body(binder: ExpressionBinder, definition: FunctionDefinition) -> exp.Expr:
    assert definition.expression is not None
    fields = [
        Field(name, parameter.type)
        for place, parameter in enumerate(definition.parameters, start=1)
        for name in (parameter.name, f"${place}")
        if name is not None
    ]
    scope = Scope(leaves=[Leaf(definition.name.text, tuple(fields))])
    return binder.for_body(scope).bind(definition.expression.copy())


def in_place(
    binder: ExpressionBinder, node: exp.Anonymous, function: FunctionDefinition, arguments: Sequence[exp.Expr]
) -> exp.Expr:
    """The body of a function in SQL over bound arguments, each of the type of its parameter."""
    try:
        body = _bound_body(binder, function)
    except PenstockError as error:
        error.message = f"in function {function.name}: {error.message}"
        error.span = own_span(node)  # where it is written is another statement
        raise
    places = {f"${place}": place - 1 for place in range(1, len(arguments) + 1)}
    places |= {each.name: place for place, each in enumerate(function.parameters) if each.name is not None}
    read = [places[each.name] for each in own_nodes(body) if isinstance(each, exp.Column)]
    for place, argument in enumerate(arguments):
        varies = nondeterministic_call(argument) if read.count(place) > 1 else None
        if varies is not None:
            raise ResolutionError(
                "INVALID_ARGUMENT",
                f"argument {place + 1} of function {function.name} is {nondeterministic_name(varies)}, whose value "
                "differs from call to call, and its body reads it several times",
                hint="compute it in a subquery, and call the function outside",
                span=span_of(node.expressions[place]),
            )
    sizes = [sum(1 for _ in argument.walk()) for argument in arguments]
    if sum(sizes[place] for place in read) > MAX_NODES:
        raise ScriptError(
            "STATEMENT_TOO_DEEP",
            f"function {function.name} in place of its call is longer than a statement can be",
            hint="compute what it is called with in a subquery",
            span=own_span(node),
        )
    for inner in body.walk():
        for key in _PLACE:
            inner.meta.pop(key, None)  # a place in the statement that made the function

    def with_argument(inner: exp.Expr) -> exp.Expr:
        if not isinstance(inner, exp.Column):
            return inner
        argument = arguments[places[inner.name]].copy()
        return typed(exp.Paren(this=argument), type_of(argument))

    made: exp.Expr = body.transform(with_argument, copy=False)
    if type_of(body) != function.returns and function.returns is not None:
        kind = exp.DataType.build(function.returns.spark(), dialect="spark")
        return typed(exp.Cast(this=made, to=kind), function.returns)
    return typed(exp.Paren(this=made), function.returns)
