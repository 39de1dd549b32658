"""Before a run begins: what it reads may have begun anew, and then Spark's log has to say so.

The batch that says so reads nothing, and the one behind it begins there. It takes the place of a batch that was planned
and has not run: what that one was to read is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.registry import source_of
from penstock.connectors.source import OutsideSource
from penstock.spark.offset_log import committed, latest_batch, plan_ends, read_offsets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.runtime.job_spec import JobSpec
    from penstock.spark.checked_scan import CheckedScan
    from penstock.stores.views import ViewStore


def begin_anew(spec: JobSpec, scans: Sequence[CheckedScan], checkpoint: Path, store: ViewStore) -> None:
    """Let a job go on at the start of what was made anew, where it is to skip what is lost."""
    last, entry = latest_batch(checkpoint), store.ledger(spec.name)
    done = last is not None and committed(checkpoint) == last
    repeated = last is not None and not done and entry is not None and entry.batch_id == last
    logged = () if last is None else read_offsets(checkpoint, last).sources
    ends: dict[int, str] = {}
    found: list[tuple[OutsideSource, CheckedScan]] = []
    place = 0
    for scan in scans:
        source = source_of(scan.definition.options.connector)
        if not isinstance(source, OutsideSource):
            place += 1
            continue
        text = logged[place] if place < len(logged) else None
        end = source.begun_anew(scan.request, text, repeated=repeated)
        if end is not None:
            ends[place] = end
            found.append((source, scan))
        place += source.width
    if last is None or not ends:
        return
    plan_ends(checkpoint, last + 1 if done else last, ends)
    for source, scan in found:
        source.took_anew(scan.request)
