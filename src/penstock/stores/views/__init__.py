"""The store of views: rows, changes, ledger, tracker and what else jobs keep, in one DuckDB database."""

from __future__ import annotations

from penstock.stores.views.change_log import BatchChanges, LoggedChanges
from penstock.stores.views.deliveries import Commit
from penstock.stores.views.model import (
    Answer,
    BatchCommit,
    CommitResult,
    JobTransition,
    Kept,
    LedgerEntry,
    PartitionOffset,
    SeenVersion,
    Snapshot,
    StoredChange,
    ViewSpec,
)
from penstock.stores.views.store import ViewStore

__all__ = [
    "Answer",
    "BatchChanges",
    "BatchCommit",
    "Commit",
    "CommitResult",
    "JobTransition",
    "Kept",
    "LedgerEntry",
    "LoggedChanges",
    "PartitionOffset",
    "SeenVersion",
    "Snapshot",
    "StoredChange",
    "ViewSpec",
    "ViewStore",
]
