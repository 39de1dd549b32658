"""Values that differ each time, such as RAND() and UUID(), in answers that change.

    SELECT k, RAND() AS luck FROM l QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 3

Spark computes them once for each row of a stream, when that comes, and the store keeps them with the row: so the answer
can be made anew from what is kept. Where a value would be that of several rows, of a group or of a row of a view, there
is nothing to keep it with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.plan.finish_orders import NotFinishableError
from penstock.plan.kept_clock import is_random
from penstock.plan.nodes import Scan
from penstock.plan.relation import Mode
from penstock.plan.spark_blocks import aggregates, relations
from penstock.plan.trees import nondeterministic_name
from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.errors import Span
    from penstock.plan.nodes import Core


def check_random(tree: exp.Expr, known: Mapping[str, Scan | Core]) -> None:
    """Raises NotFinishableError for a value that would not be kept with a row of a stream."""
    places: set[Span] = set()
    for node in tree.walk():
        if not is_random(node):
            continue
        span = span_of(node)
        if span is not None and span not in places and _of_one_row(node, known):
            places.add(span)  # the same call in two places would be two values
            continue
        raise differs(node)


def differs(node: exp.Expr) -> NotFinishableError:
    """The error for a call whose value nothing keeps."""
    name = nondeterministic_name(node)
    hint = f"compute it for the rows of one stream, FROM (SELECT *, {name}() AS x FROM …), or where the view is read"
    if name == "PROCTIME":
        return NotFinishableError(f"{name} differs each time it is computed")
    why = f"{name} differs each time it is computed, and nothing keeps its value here"
    return NotFinishableError(why, hint, span_of(node))


def _of_one_row(node: exp.Expr, known: Mapping[str, Scan | Core]) -> bool:
    """Whether a call is computed for each row of a stream, and for nothing else."""
    block = node.find_ancestor(exp.Select)
    if block is None or aggregates(block) or node.find_ancestor(exp.Window, exp.Select) is not block:
        return False
    below = list(relations(block).values())
    found = known.get(below[0].name) if len(below) == 1 and isinstance(below[0], exp.Table) else None
    if found is None or block.args.get("joins") or block.args.get("laterals"):
        return False
    clause = node
    while clause.parent is not block:
        assert clause.parent is not None
        clause = clause.parent
    changes = isinstance(found, Scan) and found.changes is not Mode.APPEND
    if isinstance(found, Scan) and (found.kind == "materialized view" or (changes and not found.key)):
        return False  # a row that goes is told by all of its values
    return clause in block.expressions or (isinstance(clause, exp.Where) and not changes)
