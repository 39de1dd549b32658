"""The changes of a view as tables to print, in the form that SUBSCRIBE asks for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.catalog.model import MaterializedViewDefinition
from penstock.connectors.sink import OPERATION
from penstock.options import resolve_subscribe_options
from penstock.sql.statements import SubscribeQuery

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.changes import Change
    from penstock.interfaces.cli.engine_port import EnginePort
    from penstock.options import ChangeForm
    from penstock.plan.script import StatementReport
    from penstock.sql.statements import Subscribe

# The most changes that are printed in one go.
_TOGETHER: Final = 1_000


class Subscription:
    """What a SUBSCRIBE to a view asks for, of one engine."""

    def __init__(self, engine: EnginePort, statement: Subscribe) -> None:
        self._engine = engine
        self._view = statement.target.text
        found = engine.session.catalog.get(statement.target)
        columns = found.columns if isinstance(found, MaterializedViewDefinition) else ()
        self._names = tuple(entry.name for entry in columns)
        options = resolve_subscribe_options(statement.options, statement.target)
        self._form = options.changes
        self.since = statement.since
        if self.since is None and not options.snapshot:
            self.since = engine.newest_change(self._view)

    def changes(self, timeout: float) -> Iterator[list[Change]]:
        """The changes behind the last that were given, in lists that are short and of one batch each; ends after so
        many seconds without one."""
        for together in by_batch(self._engine.subscribe(self._view, self.since, timeout, changes=self._form)):
            yield together
            self.since = together[-1].seq

    def table(self, changes: Sequence[Change]) -> pa.Table:
        """Changes as rows to print."""
        return change_table(changes, self._form, self._names)


class QuerySubscription:
    """What a SUBSCRIBE to a query asks for: the query runs until it is closed."""

    def __init__(self, engine: EnginePort, report: StatementReport) -> None:
        assert isinstance(report.statement, SubscribeQuery)
        self._form = resolve_subscribe_options(report.statement.options, None).changes
        self._open = engine.subscribe_query(report)
        self._since: int | None = None

    def changes(self, timeout: float) -> Iterator[list[Change]]:
        """As those of a view."""
        for together in by_batch(self._open.changes(self._since, timeout)):
            yield together
            self._since = together[-1].seq

    def table(self, changes: Sequence[Change]) -> pa.Table:
        """Changes as rows to print."""
        return change_table(changes, self._form, self._open.columns)

    def drain(self, timeout: float) -> None:
        """Have it read what is there."""
        self._open.drain(timeout)

    def close(self) -> None:
        self._open.close()


def change_table(changes: Sequence[Change], form: ChangeForm | None = None, names: Sequence[str] = ()) -> pa.Table:
    """Changes as rows; `names` are the columns of the view, where it is these that are told."""
    import pyarrow as pa

    seqs = pa.array([change.seq for change in changes], pa.int64())
    if form == "debezium":
        texts = [json.dumps(change.row, ensure_ascii=False, separators=(",", ":")) for change in changes]
        return pa.table({"seq": seqs, "value": pa.array(texts, pa.string())})
    operations = pa.array([change.op for change in changes], pa.string())
    if form is not None:
        rows: list[Any] = [change.row or change.before or {} for change in changes]
        marked = {} if form == "append" else {OPERATION: operations}
        return pa.table({"seq": seqs, **marked, **{name: pa.array([row.get(name) for row in rows]) for name in names}})
    return pa.table(
        {
            "seq": seqs,
            "op": operations,
            "before": pa.array([change.before for change in changes]),
            "row": pa.array([change.row for change in changes]),
            "batch_id": pa.array([change.batch_id for change in changes], pa.int64()),
            "watermark": pa.array([change.watermark for change in changes], pa.timestamp("us", tz="UTC")),
        }
    )


def by_batch(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Changes in lists that are short and of one batch each."""
    held: list[Change] = []
    for change in changes:
        if held and (change.batch_id != held[0].batch_id or len(held) >= _TOGETHER):
            yield held
            held = []
        held.append(change)
    if held:
        yield held
