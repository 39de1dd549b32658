"""The operators of a job that keep rows in Spark, numbered as Spark numbers them: from the result down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.correlation import is_correlation
from penstock.plan.join_times import is_stand_in
from penstock.plan.spark_blocks import (
    aggregate_nodes,
    aggregates,
    group_keys,
    relations,
    selects,
    stream_joins,
    window_key,
)
from penstock.plan.spark_text import spark_sql

if TYPE_CHECKING:
    from collections.abc import Iterator


@frozen
class Kept:
    """One operator. `functions` are the aggregates that the query calls, in its order, each distinct call once;
    `lowest` is the one of windows that no other window stands below; `times` are the time columns of a join's sides."""

    kind: Literal["aggregate", "join", "distinct"]
    windowed: bool = False
    lowest: bool = False
    keyed: bool = True
    functions: tuple[str, ...] = ()
    times: tuple[str, ...] = ()


def kept_state(tree: exp.Expr, *, running: bool) -> tuple[Kept, ...]:
    """What Spark keeps for a tree; `running`: aggregates without a window are kept by it too."""
    return tuple(_kept(tree, running=running))


def _kept(query: exp.Expr, *, running: bool) -> Iterator[Kept]:
    if isinstance(query, exp.SetOperation):
        yield from _kept(query.this, running=running)
        yield from _kept(query.expression, running=running)
    if not isinstance(query, exp.Select):
        return
    if query.args.get("distinct") is not None:
        yield Kept("distinct")
    windowed = window_key(query) is not None
    if windowed or (running and aggregates(query)):
        lowest = not any(window_key(inner) is not None for inner in selects(query)[1:])
        yield Kept("aggregate", windowed, lowest, not _only_window(query), _functions(query))
    for _, time in reversed(stream_joins(query)):
        yield Kept("join", times=tuple(name for _, name in time.columns))
    for below in relations(query).values():
        yield from _kept(below, running=running)


def _only_window(query: exp.Select) -> bool:
    """Whether groups have no key of the user's but a window."""
    return all(key == window_key(query) or is_stand_in(key) for key in group_keys(query))


def _functions(query: exp.Select) -> tuple[str, ...]:
    having = query.args.get("having")
    trees = [*query.expressions, *([having] if having is not None else [])]
    nodes = [node for tree in trees for node in aggregate_nodes(tree)]
    calls = {spark_sql(node, pretty=False): is_correlation(node) for node in nodes}
    return tuple("corr" if pairs else text.partition("(")[0].lower() for text, pairs in calls.items())
