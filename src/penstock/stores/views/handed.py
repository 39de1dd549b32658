"""How far the changes of a view that nobody sees have been handed to the sink of its job.

A batch of the job hands on what has changed behind the batch before it: what it has brought itself, and what views
below have changed in between. It is written down in the transaction that brings the batch into the view, so a batch
that is run again hands on the same changes, whatever has changed below meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.frozen import frozen
from penstock.stores.views import records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

# Among the facts of a job: the last batch that its view has, which may not be in the ledger yet.
STAGED: Final = "staged"
_HANDED: Final = "handed"


@frozen
class Handed:
    """The changes that the last batch has handed on are those behind `since` up to `upto`."""

    batch: int
    since: int
    upto: int

    def facts(self, view: str) -> dict[str, Any]:
        """For the facts of the job."""
        return {STAGED: self.batch, _HANDED: [view, self.since, self.upto]}


NOTHING_HANDED: Final = Handed(-1, 0, 0)


def all_handed(reader: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, Handed]]:
    """What is written down, with the view of each."""
    for job in records.known_jobs(reader):
        found = _handed(records.read_facts(reader, job))
        if found is not None:
            yield found


def _handed(facts: Mapping[str, Any]) -> tuple[str, Handed] | None:
    if _HANDED not in facts:
        return None
    view, since, upto = facts[_HANDED]
    return str(view), Handed(int(facts[STAGED]), int(since), int(upto))
