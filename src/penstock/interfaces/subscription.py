"""The changes of a view, or of a query that nobody keeps, as a program follows them, in one of several forms.

The store has at most one change a key and batch, so every form is merged already: nothing is deleted that was not
there, and nothing is added that is. The forms are those of sinks of changes, and made by the same code.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.sink import OPERATION, RECORD
from penstock.errors import UnsupportedError
from penstock.interfaces.changes import Change
from penstock.plan.job_plan import plan_job
from penstock.plan.subscriptions import changing_query, subscription_key
from penstock.runtime.change_rows import DELETE, INSERT, envelopes, retractions, upserts
from penstock.runtime.ephemeral_view import EphemeralView
from penstock.runtime.job import START_SECONDS
from penstock.runtime.job_control import drain_job, settle_job
from penstock.sql import statements as s
from penstock.stores.arrow_values import instant, python_dicts
from penstock.stores.views import BatchChanges, LoggedChanges

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.options import ChangeForm
    from penstock.plan.logical import LogicalPlan
    from penstock.runtime.engine import Engine
    from penstock.sql.script import Parsed

_TOGETHER: Final = 1_000  # changes that are read at once
_BACKLOG: Final = 86_400.0  # seconds in which a query has read what there is before its changes count
_WAIT: Final = 0.5  # seconds between two looks whether the database is still open, and the job has not failed
_FORGET_EVERY: Final = 20  # readings of changes that nobody else reads, after which they are let go of
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES"})  # words that begin one
_PLACE: Final = "__place"  # the column by which a row tells which change it is of

Tell = Callable[[LoggedChanges], Iterator[Change]]


def follow_changes(
    engine: Engine,
    view: str,
    since: int | None,
    timeout: float | None,
    form: ChangeForm | None = None,
    key: Sequence[str] = (),
    *,
    alone: bool = False,
) -> Iterator[Change]:
    """All rows of a view as inserts, then changes as they come; or those after `since`. Ends after `timeout` seconds
    without a change. `alone`: nobody else reads them, and what was read is let go of."""
    store = engine.home.views
    readings = 0
    if since is None:
        snapshot = store.snapshot(view)
        since, rows = snapshot.seq, snapshot.table.num_rows
        inserted = BatchChanges([INSERT] * rows, snapshot.table, snapshot.table)
        marks = ([since] * rows, [snapshot.batch_id] * rows, [snapshot.watermark_us] * rows)
        yield from told(LoggedChanges(*marks, inserted), form, key)
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        found = store.logged(view, since, limit=_TOGETHER)
        if found.seqs:
            since = found.seqs[-1]
            yield from told(found, form, key)
            readings += 1
            if alone and readings % _FORGET_EVERY == 0:
                store.forget_changes(view, since)
            deadline = None if timeout is None else time.monotonic() + timeout
            continue
        left = None if deadline is None else deadline - time.monotonic()
        if (left is not None and left <= 0) or engine.closed:
            return
        engine.check_job(view)
        store.wait_for(view, since, _WAIT if left is None else min(left, _WAIT))


class QueryChanges:
    """The changes of a query that nobody keeps, from `start` to `close`; without `snapshot` those alone, and not what
    there is when it starts."""

    def __init__(self, engine: Engine, plan: LogicalPlan, form: ChangeForm | None, *, snapshot: bool = True) -> None:
        rows = changing_query(plan)
        self._engine = engine
        self._key = subscription_key(rows, form)
        self._form = form
        self._snapshot = snapshot
        self._since: int | None = None  # the last change of before, where only those from now on are told
        self._view = EphemeralView(engine, plan_job(plan))
        self.columns = rows.columns

    def start(self) -> None:
        """Begin with what is there now."""
        self._view.start(START_SECONDS)
        if not self._snapshot:
            settle_job(self._view.job, self._engine.clock, _BACKLOG)
            self._since = self._engine.home.views.last_seq(self._view.view)

    def drain(self, timeout: float) -> None:
        """Read what is there now and close every window; nothing comes after that."""
        drain_job(self._view.job, self._engine.clock, timeout)

    def changes(self, since: int | None, timeout: float | None) -> Iterator[Change]:
        """As `follow_changes`."""
        since = self._since if since is None else since
        return follow_changes(self._engine, self._view.view, since, timeout, self._form, self._key, alone=True)

    def close(self) -> None:
        """End it, and leave nothing behind."""
        self._view.close()


def is_query(text: str) -> bool:
    """Whether a text that may be the name of a view is a query; no view is called so."""
    words = text.split(maxsplit=1)
    return len(words) > 1 and (words[0].upper() in _QUERIES or words[0].startswith(("(", "--", "/*")))


def subscription_to(parsed: Parsed) -> Parsed:
    """SUBSCRIBE to the query that was written in the place of a name."""
    statement = parsed.statement
    if isinstance(statement, s.Select):
        return replace(parsed, statement=s.SubscribeQuery(query=statement.query), kind="SUBSCRIBE")
    if statement is not None:
        raise UnsupportedError(
            "UNSUPPORTED_STATEMENT", f"subscribe() follows a view or a query, not {parsed.kind}", span=parsed.span
        )
    return parsed


def follow_query(
    engine: Engine, plan: LogicalPlan, timeout: float | None, form: ChangeForm | None, *, snapshot: bool = True
) -> Iterator[Change]:
    """What there is as inserts, then changes as they come, until the loop is left or `timeout` seconds bring none."""
    query = QueryChanges(engine, plan, form, snapshot=snapshot)
    try:
        query.start()
        yield from query.changes(None, timeout)
    finally:
        query.close()


def told(logged: LoggedChanges, form: ChangeForm | None, key: Sequence[str] = ()) -> Iterator[Change]:
    """Changes in one of the forms; None: each with the row before and after."""
    changes = logged.changes
    if form == "debezium":
        for place, record in enumerate(envelopes(changes, _as_they_are, {}).column(RECORD).to_pylist()):
            yield _change(logged, place, changes.operations[place], None, json.loads(record))
        return
    if form is None:
        before, after = python_dicts(changes.before), python_dicts(changes.after)
        for place, op in enumerate(changes.operations):
            old = None if op == INSERT else before[place]
            yield _change(logged, place, op, old, None if op == DELETE else after[place])
        return
    rows = upserts(changes, key, _placed) if form == "upsert" else retractions(changes, _placed)
    # By the order of changes: of one that is two rows, the deletion stands first already.
    order = rows.column(_PLACE).to_pylist()
    operations = rows.column(OPERATION).to_pylist()
    values = python_dicts(rows.drop_columns([OPERATION, _PLACE]))
    for at in sorted(range(len(order)), key=order.__getitem__):
        if operations[at] != DELETE:
            yield _change(logged, order[at], operations[at], None, values[at])
            continue
        gone = values[at]
        if form == "upsert":  # a tombstone has the key, and nothing else
            wanted = {name.casefold() for name in key}
            gone = {name: value for name, value in gone.items() if name.casefold() in wanted}
        yield _change(logged, order[at], DELETE, gone, None)


def _change(logged: LoggedChanges, place: int, op: Any, before: dict[str, Any] | None, row: Any) -> Change:
    batch, mark = logged.batches[place], logged.watermarks[place]
    return Change(logged.seqs[place], op, before, row, batch or 0, instant(mark))


def _as_they_are(rows: pa.Table) -> pa.Table:
    return rows


def _placed(rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    return rows.append_column(_PLACE, pa.array(range(rows.num_rows), pa.int64()))
