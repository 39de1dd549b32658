"""What the view store asks of Spark: expressions over its rows that might mean something else in DuckDB.

    SELECT UPPER(a.name || b.name) FROM a JOIN b ON a.id = b.id

The join is the store's, and only Spark knows UPPER to the letter. So the text has a function in that place, which sends
the columns that the expression reads to Spark and gives back what Spark makes of them. The smallest expression is asked
whose type is known before it runs; aggregates, OVER and subqueries inside it are the store's, and become columns.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.plan.decimal_types import spark_type
from penstock.plan.finish_plan import ASKED, Asked
from penstock.plan.from_clause import NAMELESS
from penstock.plan.spark_text import spark_sql
from penstock.plan.store_aggregates import AGGREGATES, GROUPINGS, IN_ORDER, is_list
from penstock.plan.store_terms import UNKNOWN, DiffersError, Term, kept, quoted, store_type
from penstock.plan.trees import aggregate_text, as_written, column, nondeterministic_call, typed
from penstock.types import INT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.plan.store_expressions import StoreExpressions

# Not a value of one row, or nothing to ask: a column is what it is.
_NOT_ASKED: Final = (
    exp.Column, exp.Literal, exp.Null, exp.Star, exp.Query, exp.Subquery, exp.Exists, exp.Window, exp.Filter, exp.Alias,
    exp.Distinct, exp.Ordered, exp.Tuple, exp.Lambda, exp.Interval, exp.IgnoreNulls, exp.RespectNulls,
)  # fmt: skip
# Inside an expression, what the store answers by itself.
_OWN: Final = (exp.Window, exp.Filter, exp.Subquery, exp.Exists)
_OF_ALL: Final = frozenset({"to_json", "transform_values"})
_NAME_DIGITS: Final = 20


class AskedOfSpark:
    """Gathers the expressions of a finish that Spark is asked for, by the names of their functions."""

    def __init__(self) -> None:
        self._found: dict[str, Asked] = {}

    def term(self, write: StoreExpressions, node: exp.Expr) -> Term | None:
        """The call that asks Spark for an expression; None where that cannot be, or not before an outer one is."""
        sql_type = kept(spark_type(node))
        if sql_type is None or not _can_be_asked(node):
            return None
        try:
            store_type(sql_type)
            tree, inputs = _over_inputs(write, node)
            for each in inputs:
                store_type(each.known)
        except DiffersError:
            return None
        text = spark_sql(tree, pretty=False)
        types = tuple(each.known for each in inputs)
        digest = sha256(repr((text, [str(kind) for kind in types], str(sql_type))).encode()).hexdigest()
        name = ASKED + digest[:_NAME_DIGITS]
        called = tuple(dict.fromkeys(call.name for call in tree.find_all(exp.Anonymous)))
        self._found[name] = Asked(name, text, types, sql_type, _words(node), called)
        return Term(f"{quoted(name)}({', '.join(each.sql for each in inputs)})", sql_type)

    def within(self, texts: Iterable[str], functions: tuple[str, ...]) -> tuple[Asked, ...]:
        """Those that the texts call; `functions` are the names that mean functions of the user's."""
        listed = list(texts)
        return tuple(
            Asked(each.name, each.text, each.arguments, each.type, each.words, _named(each.functions, functions))
            for each in self._found.values()
            if any(quoted(each.name) in text for text in listed)
        )


def _named(called: tuple[str, ...], functions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in functions if name in called)


def _can_be_asked(node: exp.Expr) -> bool:
    own = _is_own(node) and not _is_made_of_all(node)
    if isinstance(node, _NOT_ASKED) or own or nondeterministic_call(node) is not None:
        return False
    return not any(isinstance(inner, exp.In) and inner.args.get("query") is not None for inner in node.walk())


def _is_made_of_all(node: exp.Expr) -> bool:
    """JSON_AGG and maps of maps: the store gathers the values, and Spark makes one text or one map of them."""
    return isinstance(node, exp.Anonymous) and node.name in _OF_ALL and is_list(node.expressions[0])


def _is_own(node: exp.Expr) -> bool:
    """Whether the store answers a part of an expression by itself, or nobody does."""
    if isinstance(node, _OWN) or aggregate_text(node) is not None:
        return True
    # A user cannot write names that begin so: they are steps of aggregates.
    called = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return called in {*AGGREGATES, *GROUPINGS, *IN_ORDER} or called.startswith("__")


def _over_inputs(write: StoreExpressions, node: exp.Expr) -> tuple[exp.Expr, list[Term]]:
    """The expression over a0, a1, …, and what these are in the store. A function without an argument would not know
    for how many rows it is asked: it gets a number that it does not read."""
    made = node.copy()
    inputs: list[Term] = []
    names: dict[str, int] = {}
    for part in list(_parts(made, write.whole)):
        term = write.term(part)
        if term.known == UNKNOWN:
            raise DiffersError
        place = names.setdefault(term.sql, len(names))
        if place == len(inputs):
            inputs.append(term)
        part.replace(typed(column(f"a{place}"), term.type))
    return made, inputs or [Term("CAST(0 AS INTEGER)", INT)]


def _parts(node: exp.Expr, whole: list[exp.Expr]) -> Iterator[exp.Expr]:
    """The parts that the store gives: columns of its rows, group keys as they are, and what is not scalar."""
    for child in node.iter_expressions():
        if isinstance(child, exp.Column) or _is_own(child) or child in whole:
            yield child
        else:
            yield from _parts(child, whole)


def _words(node: exp.Expr) -> str:
    text = spark_sql(as_written(node), pretty=False)
    return text.replace("`", "").replace(f"{NAMELESS}.", "").replace("\\u0024", "$")
