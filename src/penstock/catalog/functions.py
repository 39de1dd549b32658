"""Every function a query may call: what it is, what it returns, and how it is written for Spark.

Nothing reaches Spark that is not listed here. A name is one of Spark's (`function_table`), a name of another system
that we write for Spark (`foreign_functions`), refused for good (`DENIED`), or planned (`NOT_YET`); any other is
unknown. A test holds the list against all functions of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from sqlglot import exp

from penstock.catalog import function_table as table
from penstock.catalog.foreign_call import read_signature
from penstock.catalog.foreign_functions import FOREIGN, NOT_YET
from penstock.catalog.foreign_time import date_part
from penstock.catalog.function_info import FunctionInfo, Kind
from penstock.catalog.return_types import apply_rule
from penstock.errors import InternalError
from penstock.types import SqlType

__all__ = [
    "DENIED",
    "NOT_YET",
    "OPERATORS",
    "FunctionInfo",
    "Kind",
    "aggregate_calls",
    "date_part",
    "find_function",
    "is_sparks",
    "known_functions",
    "nearest_function",
    "return_type",
    "spark_call",
]

DENIED: Mapping[str, str] = MappingProxyType(table.DENIED)
OPERATORS = table.OPERATORS


_SECTIONS: tuple[tuple[Kind, str], ...] = (
    ("scalar", table.SCALARS),
    ("aggregate", table.AGGREGATES),
    ("window", table.WINDOW_FUNCTIONS),
    ("generator", table.GENERATORS),
    ("special", table.SPECIAL),
)


def _rows() -> Iterator[tuple[str, tuple[Kind, str, str, str]]]:
    for kind, text in _SECTIONS:
        for line in filter(None, text.splitlines()):
            arguments, returns, *names = line.split()
            for name in names:
                yield name.rstrip("~^+"), (kind, arguments, returns, name)


# A query calls a handful of functions: each is made when it is first asked for.
_ROWS = dict(_rows())


@cache
def _native(name: str) -> FunctionInfo | None:
    """Spark's function of this name, in lower case."""
    row = _ROWS.get(name)
    return read_signature(*row) if row else None


def find_function(name: str) -> FunctionInfo | None:
    """The function called `name`, in any case; None where it is unknown, denied or not there yet.

    >>> find_function("SUM").kind, find_function("reflect")
    ('aggregate', None)
    """
    key = name.lower()
    foreign = FOREIGN.get(key)
    return foreign.info if foreign is not None else _native(key)


def is_sparks(name: str) -> bool:
    """Whether a name means Spark's own function, whatever other systems call by it."""
    return name.lower() in _ROWS and name.lower() not in FOREIGN


def known_functions() -> list[str]:
    """The names of all functions a query may call, in lower case and sorted."""
    return sorted({*_ROWS, *FOREIGN})


def nearest_function(name: str) -> str | None:
    """The name a user most likely meant, or None when nothing is near.

    >>> nearest_function("cuont"), nearest_function("qqqqqq")
    ('count', None)
    """
    import difflib

    near = difflib.get_close_matches(name.lower(), known_functions(), n=1, cutoff=0.7)
    return near[0] if near else None


def return_type(info: FunctionInfo, argument_types: Sequence[SqlType | None]) -> SqlType | None:
    """The type a call returns, None where only Spark can tell.

    >>> str(return_type(find_function("count"), [None]))
    'BIGINT'
    """
    return apply_rule(info.returns, argument_types)


def spark_call(name: str, args: Sequence[exp.Expr], *, dialect: str | None = None) -> exp.Expr:
    """The call as a tree that Spark understands; it takes `args` over.

    A function of Spark keeps its name. A function of another system is written with Spark's; one that cannot be, such
    as a pattern that is no constant, raises INVALID_ARGUMENT. `dialect` ('flink', 'arroyo', 'risingwave') settles
    names that mean something else there than in Spark. The caller has found the function and counted its arguments.
    """
    key = name.lower()
    foreign = FOREIGN.get(key)
    if foreign is not None:
        return foreign.build(args, dialect)
    if key not in _ROWS:
        raise InternalError(f"function {name} reached Spark's text without being known")
    return exp.Anonymous(this=key, expressions=list(args))


def aggregate_calls(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregates inside what `spark_call` made of one: FILTER and OVER belong to them, not to what wraps them.

    >>> [found.sql("spark") for found in aggregate_calls(spark_call("sum0", [exp.column("x")]))]
    ['SUM(x)']
    """
    found: list[exp.Expr] = []
    for node in tree.find_all(exp.Anonymous):
        info = _native(node.name.lower())
        if info is not None and info.kind == "aggregate":
            within = node.parent
            found.append(within if isinstance(within, exp.WithinGroup) else node)
    return found
