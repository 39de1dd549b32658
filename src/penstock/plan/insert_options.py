"""The options of the job of an INSERT: its own, and what CREATE SINK has said of the jobs that write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.model import SinkDefinition
from penstock.options import resolve_insert_options

if TYPE_CHECKING:
    from penstock.options.resolved import ResolvedViewOptions
    from penstock.plan.session import Session
    from penstock.sql.statements import Insert


def insert_options(statement: Insert, session: Session) -> ResolvedViewOptions:
    """The options of the job of an INSERT. Those of a stream or table that is written to are for reading it, and those
    of a sink with a query for the job of that."""
    target = session.catalog.find(statement.target)
    sink = target.options if isinstance(target, SinkDefinition) and target.query is None else None
    return resolve_insert_options(statement.options, statement.target, session.settings, sink)
