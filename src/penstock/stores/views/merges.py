"""How the partial results of a group are merged into one, by what they are partials of."""

from __future__ import annotations

from typing import Final

MERGES: Final = {
    "sum": "sum({})",
    "count": "coalesce(sum({}), 0)",
    "min": "min({})",
    "max": "max({})",
    "list": "flatten(list({}))",
    "set": "list_distinct(flatten(list({})))",
}
