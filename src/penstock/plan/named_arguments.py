"""Arguments that are given by name: `net(rate => 0.2, gross => price)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import ResolutionError, UnsupportedError
from penstock.sql.spans import own_span, span_of

if TYPE_CHECKING:
    from penstock.catalog.model import FunctionDefinition
    from penstock.plan.expressions import ExpressionBinder


def with_arguments_in_place(node: exp.Anonymous, function: FunctionDefinition) -> exp.Anonymous:
    """The call with each named argument at the place of its parameter; the call itself where none is named."""
    written = list(node.expressions)
    first = next((place for place, each in enumerate(written) if isinstance(each, exp.Kwarg)), None)
    if first is None:
        return node
    names = [parameter.name for parameter in function.parameters]
    if not names or None in names:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"the parameters of function {function.name} have no names",
            hint="give the arguments by their places",
            span=span_of(written[first]),
        )
    places = {str(name).casefold(): place for place, name in enumerate(names)}
    given: dict[int, exp.Expr] = dict(enumerate(written[:first]))
    for each in written[first:]:
        if not isinstance(each, exp.Kwarg):
            raise ResolutionError(
                "INVALID_ARGUMENT",
                f"an argument of function {function.name} without a name stands behind one with a name",
                hint="put it in front, or name it, too",
                span=span_of(each),
            )
        place = places.get(each.this.name.casefold())
        if place is None:
            raise ResolutionError(
                "INVALID_ARGUMENT",
                f"function {function.name} has no parameter {each.this.name}",
                hint=f"its parameters are {', '.join(str(name) for name in names)}",
                span=span_of(each),
            )
        if place in given:
            raise ResolutionError(
                "INVALID_ARGUMENT",
                f"argument {names[place]} of function {function.name} is given twice",
                hint="leave one of them out",
                span=span_of(each),
            )
        given[place] = each.expression
    missing = [str(name) for place, name in enumerate(names) if place not in given]
    if missing:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"function {function.name} is called without {', '.join(missing)}",
            hint="each parameter needs an argument",
            span=own_span(node),
        )
    if len(given) > len(names):
        return node  # too many by their places, which is told of any call
    made = node.copy()
    made.set("expressions", [given[place].copy() for place in range(len(names))])
    return made


def refuse_named_argument(_binder: ExpressionBinder, node: exp.Kwarg) -> exp.Expr:
    """A named argument where no function of the user's takes it."""
    raise UnsupportedError(
        "UNSUPPORTED_CLAUSE",
        f"argument {node.this.name} is given by name, which only functions made with CREATE FUNCTION take",
        hint="give the arguments by their places",
        span=span_of(node),
    )
