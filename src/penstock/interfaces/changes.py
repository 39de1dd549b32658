"""Values that come back from calls on a database: the changes of a view, and jobs."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Any, Final, Literal

from penstock.errors import InvalidArgument
from penstock.frozen import frozen
from penstock.options import CHANGE_FORMS
from penstock.runtime.states import JobState

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.options import ChangeForm

Op = Literal["insert", "update", "delete", "upsert"]
_LONGEST: Final = 200


@frozen
class Change:
    """One change of a view.

    `seq` counts the changes of the view from 1; `subscribe(name, since=seq)` goes on behind it. An insert has no
    `before`, a delete no `row`; an update has both, with the same key. `watermark` is the view's after the batch.

    In other forms: of rows that replace each other, `upsert` is the newest row of a key, and a `delete` has nothing but
    the key before it. Of rows that come and go, an update is a delete and an insert with one `seq`. Of Debezium's
    envelopes, `row` is the envelope.
    """

    seq: int
    op: Op
    before: Mapping[str, Any] | None
    row: Mapping[str, Any] | None
    batch_id: int | None
    watermark: datetime | None = None


def checked_since(view: str, since: object, newest: int) -> int:
    """The number of a change to go on behind; InvalidArgument where it is none, or one that is not there yet."""
    try:
        number = index(since)  # type: ignore[arg-type]  # numbers of numpy are numbers, too
    except TypeError:
        number = -1
    if number < 0 or isinstance(since, bool):
        raise InvalidArgument(
            "INVALID_ARGUMENT",
            f"since is the number of a change of view {view}, zero or more, not {since!r}"[:_LONGEST],
            hint="the seq of the last change that was seen; leave it out to begin with the whole view",
        )
    if number > newest:
        raise InvalidArgument(
            "INVALID_ARGUMENT",
            f"view {view} has no change {number} yet: its newest is {newest}",
            hint="where the view was made anew or put back to a checkpoint, begin with the whole view: leave since out",
        )
    return number


def checked_form(form: object) -> ChangeForm | None:
    """The form of changes that is asked for; InvalidArgument where there is no such form."""
    if form is None:
        return None
    found = next((known for known in CHANGE_FORMS if known == form), None)
    if found is None:
        raise InvalidArgument(
            "INVALID_ARGUMENT",
            f"changes cannot be told as {form!r}"[:_LONGEST],
            hint=f"choose one of {', '.join(CHANGE_FORMS)}, or leave it out",
        )
    return found


@frozen
class Job:
    """A job as `SHOW JOBS` tells of it.

    input_rows: rows read since the job was created
    lag: rows that are there and not read yet; None where the source cannot tell
    reads, writes: the relations it reads from, and the one it keeps up to date or appends to
    bounded: whether all its input comes to an end
    batch_rows: rows of the last batch that had any
    max_batch_rows: the most that a batch may have; None where no number bounds it
    """

    name: str
    state: str
    batch_id: int | None = None
    watermark: datetime | None = None
    input_rows: int = 0
    lag: int | None = None
    restarts: int = 0
    error: str | None = None
    reads: tuple[str, ...] = ()
    writes: str | None = None
    bounded: bool = False
    batch_rows: int | None = None
    max_batch_rows: int | None = None

    @property
    def active(self) -> bool:
        """Whether it has work under way, or will have without anybody asking."""
        return JobState(self.state).active
