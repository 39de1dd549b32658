"""The shape of a rewrite from another system's function to Spark's, and the pieces rewrites are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from penstock.catalog.function_info import FunctionInfo, Kind
from penstock.errors import ResolutionError
from penstock.frozen import frozen
from penstock.sql.spans import span_of

Arguments = Sequence[exp.Expr]
Builder = Callable[[Arguments, str | None], exp.Expr]
"""Makes the Spark expression from the arguments, for the dialect that is set, if any."""

POSTGRES_LIKE = frozenset({"risingwave", "arroyo"})


@frozen
class ForeignFunction:
    """A function of another system: what the planner knows of it, what makes the Spark expression, where it is from.

    `meaning` is the line of the documentation, in terms of Spark's functions.
    """

    info: FunctionInfo
    build: Builder
    origin: str
    meaning: str


def foreign(
    signature: str,
    build: Builder,
    origin: str,
    meaning: str,
    *,
    kind: Kind = "scalar",
) -> dict[str, ForeignFunction]:
    """The rows of one rewrite; `signature` is a line of `function_table`'s form, with one or more names."""
    arguments, returns, *names = signature.split()
    return {
        info.name: ForeignFunction(info, build, origin, meaning)
        for info in (read_signature(kind, arguments, returns, name) for name in names)
    }


def read_signature(kind: Kind, arguments: str, returns: str, marked: str) -> FunctionInfo:
    """A function as the tables write it: `1..2 STRING ltrim`, with the marks `~ ^ +` behind the name."""
    name = marked.rstrip("~^+")
    marks = marked[len(name) :]
    low, open_range, high = arguments.partition("..")
    return FunctionInfo(
        name=name,
        kind=kind,
        deterministic="~" not in marks,
        min_args=int(low),
        max_args=(int(high) if high else None) if open_range else int(low),
        returns=returns,
        mergeable="+" in marks,
        higher_order="^" in marks,
    )


def call(name: str, *args: exp.Expr) -> exp.Anonymous:
    """A call of a Spark function."""
    return exp.Anonymous(this=name, expressions=list(args))


def text(value: str) -> exp.Literal:
    """A string constant."""
    return exp.Literal.string(value)


def number(value: int) -> exp.Literal:
    """A whole number that is not negative."""
    return exp.Literal(this=str(value), is_string=False)


def grouped(node: exp.Expr) -> exp.Expr:
    """The node in parentheses where an operator in front of or behind it could tear it apart."""
    return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Unary | exp.Between | exp.In) else node


def as_timestamp(node: exp.Expr) -> exp.Expr:
    """The node as TIMESTAMP, for functions of Spark that return its second timestamp type, the one without a zone."""
    return call("timestamp", node)


def constant_text(node: exp.Expr) -> str | None:
    """The value of a string constant."""
    inner = node.unnest()
    return str(inner.this) if isinstance(inner, exp.Literal) and inner.is_string else None


def constant_number(node: exp.Expr) -> int | None:
    """The value of a constant whole number."""
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        below = constant_number(inner.this)
        return None if below is None else -below
    if isinstance(inner, exp.Literal) and not inner.is_string and str(inner.this).isdigit():
        return int(inner.this)
    return None


def word(node: exp.Expr) -> str | None:
    """A bare word or a string constant, as units are written: HOUR, 'hour'."""
    if isinstance(node, exp.Var):
        return node.name
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        return node.name
    return constant_text(node)


def invalid(function: str, problem: str, node: exp.Expr, hint: str) -> ResolutionError:
    """The error for an argument that has no form in Spark."""
    return ResolutionError("INVALID_ARGUMENT", f"{function}: {problem}", hint=hint, span=span_of(node))


def required_text(function: str, what: str, node: exp.Expr) -> str:
    """The value of an argument that must be a string constant."""
    value = constant_text(node)
    if value is None:
        raise invalid(function, f"the {what} must be a string constant", node, f"write the {what} in single quotes")
    return value


def renamed(name: str) -> Builder:
    """The same arguments under Spark's name."""

    def build(args: Arguments, _dialect: str | None) -> exp.Expr:
        return call(name, *args)

    return build
