"""Small makers of Spark trees, and the types that bound trees carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.types import SqlType

_Found = TypeVar("_Found", bound=exp.Expr)
_LONGEST = 19  # digits of the largest 64-bit number; Python itself refuses to read numbers of thousands of digits
_TYPE = "penstock_type"
_AGGREGATE = "penstock_aggregate"
_NONDETERMINISTIC = "penstock_nondeterministic"
_IN_PARTS = "penstock_in_parts"
_STANDS_FOR = "penstock_stands_for"
_SETTLES = "penstock_settles"


def typed(node: exp.Expr, sql_type: SqlType | None) -> exp.Expr:
    """The node, marked with the type its value has (None: unknown, Spark decides)."""
    node.meta[_TYPE] = sql_type
    return node


def type_of(node: exp.Expr) -> SqlType | None:
    """The type a bound node was marked with."""
    found: SqlType | None = node.meta.get(_TYPE)
    return found


def mark_aggregate(node: exp.Expr, text: str) -> exp.Expr:
    """The node, marked as an aggregate; `text` is what the user wrote."""
    node.meta[_AGGREGATE] = text
    return node


def unmark_aggregates(tree: exp.Expr) -> exp.Expr:
    """The tree without marks: it stands inside a larger aggregate or under OVER."""
    for node in own_nodes(tree):
        node.meta.pop(_AGGREGATE, None)
    return tree


def unmark_aggregate(node: exp.Expr) -> exp.Expr:
    """The node without its own mark: it stands under OVER, over aggregates that keep theirs."""
    node.meta.pop(_AGGREGATE, None)
    return node


def aggregate_text(node: exp.Expr) -> str | None:
    """What the user wrote, if the node is an aggregate."""
    found: str | None = node.meta.get(_AGGREGATE)
    return found


def mark_in_parts(node: exp.Expr) -> exp.Expr:
    """The node, marked as an aggregate of the user's whose results merge."""
    node.meta[_IN_PARTS] = True
    return node


def in_parts(node: exp.Expr) -> bool:
    """Whether the node is an aggregate of the user's whose results merge."""
    return bool(node.meta.get(_IN_PARTS))


def settling(term: exp.Ordered) -> exp.Ordered:
    """The term of an order, marked as one that the user did not write: it only leaves nothing open."""
    term.meta[_SETTLES] = True
    return term


def settles(term: exp.Ordered) -> bool:
    """Whether a term of an order only leaves nothing open, so that any order of its values will do."""
    return bool(term.meta.get(_SETTLES))


def mark_nondeterministic(node: exp.Expr, name: str) -> exp.Expr:
    """The node, marked as a call whose value differs from time to time."""
    node.meta[_NONDETERMINISTIC] = name
    return node


def stand_in(node: exp.Expr, value: exp.Expr) -> exp.Expr:
    """The node, which reads a value that is computed elsewhere, marked with how the user wrote that."""
    node.meta[_STANDS_FOR] = as_written(value)
    return node


def as_written(tree: exp.Expr) -> exp.Expr:
    """A copy of the tree with what the user wrote in the place of columns that only read it."""
    made: exp.Expr = tree.transform(lambda node: node.meta[_STANDS_FOR].copy() if _STANDS_FOR in node.meta else node)
    return made


def inside_out(tree: exp.Expr, *kinds: type[_Found]) -> list[_Found]:
    """The nodes of these kinds, each behind those inside it: where one is replaced by what is made of a copy of it,
    nothing of what was done inside is lost."""
    return list(reversed(list(tree.find_all(*kinds))))


def own_nodes(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a tree without those of subqueries inside it."""
    return tree.walk(prune=lambda node: isinstance(node, exp.Subquery))


def has_aggregate(tree: exp.Expr) -> bool:
    """Whether a bound tree aggregates."""
    return any(aggregate_text(node) is not None for node in own_nodes(tree))


def nondeterministic_call(node: exp.Expr) -> exp.Expr | None:
    """The first call inside a bound tree whose value differs from time to time."""
    for inner in node.walk():
        if inner.meta.get(_NONDETERMINISTIC):
            return inner
    return None


def nondeterministic_name(node: exp.Expr) -> str:
    """The name of a call that `nondeterministic_call` found."""
    return str(node.meta[_NONDETERMINISTIC])


def keep_place(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    """`new`, with the place in the user's text that `old` came from."""
    if "start" not in new.meta:
        span = span_of(old)
        if span is not None:
            new.meta.update(line=span.line, col=span.column, start=span.start, end=span.end - 1)
    return new


def identifier(name: str) -> exp.Identifier:
    """A name in generated text, quoted unless it is plain: a user's name must never be read as a keyword."""
    return exp.Identifier(this=name, quoted=True)


def column(name: str, qualifier: str | None = None) -> exp.Column:
    """A column reference in generated text."""
    table = identifier(qualifier) if qualifier is not None else None
    return exp.Column(this=identifier(name), table=table) if table else exp.Column(this=identifier(name))


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A function call in generated text; the name is ours or allow-listed."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def dot(base: exp.Expr, name: str) -> exp.Dot:
    """A field of a struct."""
    return exp.Dot(this=base, expression=identifier(name))


def aliased(expression: exp.Expr, name: str) -> exp.Alias:
    """An expression with an output name."""
    return exp.Alias(this=expression, alias=identifier(name))


def number(value: int) -> exp.Expr:
    """A whole number, also a negative one."""
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


def whole_number(node: exp.Expr | None) -> int | None:
    """The value of a literal that is a whole number; None for anything else, and for one beyond 64 bits."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    text = str(node.this)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST else None


def signed_number(node: exp.Expr | None) -> int | None:
    """The value of a whole number that is written out, with a sign or without."""
    if isinstance(node, exp.Neg):
        value = whole_number(node.this)
        return None if value is None else -value
    return whole_number(node)


def subquery(query: exp.Query, alias: str) -> exp.Subquery:
    """A query as a relation of a FROM clause."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=identifier(alias)))


def select(columns: list[exp.Expr], source: exp.Expr, **clauses: Any) -> exp.Select:
    """SELECT columns FROM source, with further clauses as sqlglot names them."""
    return exp.Select(expressions=columns, from_=exp.From(this=source), **clauses)
