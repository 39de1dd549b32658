"""Which sets of keys GROUPING SETS, ROLLUP and CUBE stand for, and whether one of them is there twice.

    GROUP BY k, ROLLUP (k)  ->  (k), (k)

Each set gives rows of its own, so that of a set that is there twice every row is, and no key tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from sqlglot import exp

_Set = frozenset[exp.Expr]


def repeats_a_set(group: exp.Expr | None) -> bool:
    """Whether a GROUP BY has one set of keys more than once."""
    seen: set[_Set] = set()
    for parts in product(*(list(_sets(entry)) for entry in group.expressions)) if group is not None else ():
        found = frozenset[exp.Expr]().union(*parts)
        if found in seen:
            return True
        seen.add(found)
    return False


def _sets(entry: exp.Expr) -> Iterator[_Set]:
    """The sets that one entry of a GROUP BY stands for."""
    if isinstance(entry, exp.GroupingSets):
        for inner in entry.expressions:
            yield from _sets(inner)
        return
    if not isinstance(entry, exp.Rollup | exp.Cube):
        yield _keys(entry)
        return
    parts = [_keys(inner) for inner in entry.expressions]
    for count in range(len(parts) + 1):
        chosen = [tuple(parts[:count])] if isinstance(entry, exp.Rollup) else combinations(parts, count)
        yield from (frozenset[exp.Expr]().union(*some) for some in chosen)


def _keys(entry: exp.Expr) -> _Set:
    if isinstance(entry, exp.Tuple):
        return frozenset[exp.Expr]().union(*(_keys(inner) for inner in entry.expressions))
    return _keys(entry.this) if isinstance(entry, exp.Paren) else frozenset({entry})
