"""Why a query is refused that neither Spark nor the view store keeps up to date: as the one tells that got further.

Spark by itself has no ranking of a stream that never ends, say, and the view store has; so where that one refuses a
query with a ranking, for what else is in it, the ranking is not to blame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import NotYetError, UnsupportedError
from penstock.plan.emission import KEEP_IT
from penstock.plan.finish_orders import NotFinishableError
from penstock.sql.format import format_tree
from penstock.sql.nodes import SystemTime
from penstock.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

_OF_EMIT: Final = "UNSUPPORTED_CLAUSE"  # where the answer changes, nothing is final: that says less than Spark's reason
# Why the view store does not answer a query: as it is planned for that, or as it is cut into stages.
Reason = NotFinishableError | NotYetError | UnsupportedError


def why_not(
    error: NotYetError, reasons: Sequence[Reason], tree: exp.Query, *, stored: bool = False
) -> NotYetError | UnsupportedError:
    """The error to tell: `error` is Spark's, `reasons` are those of the view store; `stored`: the query is that of a
    materialized view, so nobody is told to make it one."""
    planned = next((each for each in reasons if not isinstance(each, NotFinishableError)), None)
    if planned is not None and planned.condition != _OF_EMIT:
        return planned
    found = [each for each in reasons if isinstance(each, NotFinishableError)]
    blamed = next((each for each in found if each.span is not None), None)
    versioned = tree.find(SystemTime)
    if versioned is not None and found:
        error.condition = "VERSIONED_JOIN"
        why = blamed or found[0]
        what = f"a join as of {format_tree(versioned.this)} is not there yet in this query"
        error.message = str(why) if why is blamed else f"{what}: {why}"
        error.span = why.span or span_of(versioned) or error.span
        error.hint = why.hint
        return error
    if blamed is not None:
        error.message, error.span = str(blamed), blamed.span
    told = [str(each.hint) if each is blamed else f"{each}: {each.hint}" for each in found]
    advised = error.hint != KEEP_IT or not stored or not told
    if advised and error.hint is not None and not any(error.hint in each for each in told):
        told.append(error.hint)
    error.hint = "; or ".join(dict.fromkeys(told))
    return error
