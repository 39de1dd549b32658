"""`penstock.CheckpointCoordinator`: one number for a moment at which every operator has kept its state.

A checkpoint is triggered, by a call or by a thread at an interval. Every operator that takes part keeps its state and
offsets and acknowledges with them; when all have, and not before, the checkpoint is complete and can be recovered
from. In the engine a checkpoint is the boundary of a Spark batch: a backend triggers, completes and keeps it, and
operators of a program's own may take part besides.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, Self

from penstock.clock import Clock, SystemClock
from penstock.errors import InvalidArgument, ResolutionError, RuntimeFailure
from penstock.frozen import frozen

Snapshot = Mapping[str, Any]
CheckpointState = Literal["pending", "completed", "failed"]

_LOG: Final = logging.getLogger(__name__)


@frozen
class CheckpointInfo:
    """One checkpoint as `list_checkpoints` tells it: for each operator, whether it has acknowledged."""

    id: int
    state: CheckpointState
    started_us: int
    completed_us: int | None = None
    operators: Mapping[str, bool] = field(default_factory=dict)
    reason: str | None = None


@frozen
class CheckpointStats:
    """How many checkpoints there were, how many are complete, and how many operators take part."""

    total: int
    completed: int
    failed: int
    participants: int
    last_checkpoint_id: int | None


class CheckpointBackend(Protocol):
    """Where the checkpoints of a job are really made: its Spark batches."""

    def trigger(self) -> int:
        """Ask for a boundary; its number, larger than any before."""
        ...

    def wait(self, checkpoint_id: int, timeout_s: float) -> None:
        """Return when it is complete; TimeoutError, or UNKNOWN_CHECKPOINT."""
        ...

    def recover(self, checkpoint_id: int) -> Mapping[str, Snapshot]:
        """Go back to it, and tell what each operator had kept; UNKNOWN_CHECKPOINT where it is not kept."""
        ...

    def list(self) -> Sequence[CheckpointInfo]:
        """The checkpoints that are kept."""
        ...


@dataclass(slots=True)
class _Checkpoint:
    id: int
    operators: frozenset[str]
    started_us: int
    due: float
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    state: CheckpointState = "pending"
    completed_us: int | None = None
    reason: str | None = None

    @property
    def missing(self) -> list[str]:
        return sorted(self.operators - self.snapshots.keys())

    def info(self) -> CheckpointInfo:
        acknowledged = {operator: operator in self.snapshots for operator in sorted(self.operators)}
        return CheckpointInfo(self.id, self.state, self.started_us, self.completed_us, acknowledged, self.reason)


class CheckpointCoordinator:
    """Triggers checkpoints and knows which of them are complete. Any thread may use it.

    With `checkpoint_interval_seconds` a thread triggers one after each interval, from the first registration on and
    unless one is still pending. The last `retain` complete ones are kept. A checkpoint that is not complete after
    `checkpoint_timeout_seconds`, or that a later one overtakes, has failed.

    >>> with CheckpointCoordinator() as coordinator:
    ...     coordinator.register_participant("kafka_source_0")
    ...     number = coordinator.trigger_checkpoint()
    ...     coordinator.acknowledge_checkpoint("kafka_source_0", number, {"offset": 12345})
    ...     coordinator.wait_for_checkpoint(number, timeout_ms=1000)
    ...     coordinator.recover_from_checkpoint(number)
    True
    {'kafka_source_0': {'offset': 12345}}
    """

    def __init__(
        self,
        checkpoint_interval_seconds: float | None = None,
        *,
        backend: CheckpointBackend | None = None,
        checkpoint_timeout_seconds: float = 600.0,
        retain: int = 10,
        clock: Clock | None = None,
    ) -> None:
        if checkpoint_interval_seconds is not None and checkpoint_interval_seconds <= 0:
            raise InvalidArgument("INVALID_ARGUMENT", "checkpoint_interval_seconds must be more than zero")
        if retain < 1:
            raise InvalidArgument("INVALID_ARGUMENT", "retain must be 1 or more")
        self._backend = backend
        self._interval_s = checkpoint_interval_seconds
        self._timeout_s = checkpoint_timeout_seconds
        self._retain = retain
        self._clock = clock or SystemClock()
        self._changed = threading.Condition()
        self._triggering = threading.Lock()
        self._participants: dict[str, Callable[[int], object] | None] = {}
        self._checkpoints: dict[int, _Checkpoint] = {}
        self._last_id = 0
        self._total = self._completed = self._failed = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        if checkpoint_interval_seconds is not None:
            self._thread = threading.Thread(target=self._run, name="penstock-checkpoints", daemon=True)
            self._thread.start()

    # who takes part

    def register_participant(self, operator_id: str, on_barrier: Callable[[int], object] | None = None) -> None:
        """An operator takes part from the next checkpoint on; `on_barrier` is called with the number of each.

        It acknowledges there or later, from any thread. When it raises, the checkpoint has failed.
        """
        with self._changed:
            if operator_id in self._participants:
                raise ResolutionError("INVALID_ARGUMENT", f"operator {operator_id} is registered already")
            self._participants[operator_id] = on_barrier
            self._changed.notify_all()

    def unregister_participant(self, operator_id: str) -> None:
        """An operator takes part no more; a pending checkpoint that it has not acknowledged has failed."""
        with self._changed:
            if operator_id not in self._participants:
                raise _no_part(operator_id, "in checkpoints")
            del self._participants[operator_id]
            for checkpoint in self._pending():
                if operator_id in checkpoint.missing:
                    self._fail(checkpoint, f"operator {operator_id} has left")

    @property
    def participants(self) -> tuple[str, ...]:
        """The operators that take part."""
        with self._changed:
            return tuple(self._participants)

    # a checkpoint from beginning to end

    def trigger_checkpoint(self) -> int:
        """Begin a checkpoint; its number, larger than any before."""
        # One at a time: numbers are given in the order in which the boundaries are.
        with self._triggering:
            checkpoint, barriers = self._begin()
        for operator_id, on_barrier in barriers.items():
            if on_barrier is None:
                continue
            try:
                on_barrier(checkpoint.id)
            except Exception as error:  # noqa: BLE001  an operator may fail in any way; the checkpoint tells how
                with self._changed:
                    self._fail(checkpoint, f"operator {operator_id}: {type(error).__name__}: {error}")
        return checkpoint.id

    def _begin(self) -> tuple[_Checkpoint, dict[str, Callable[[int], object] | None]]:
        with self._changed:
            self._check_open()
            if self._backend is None and not self._participants:
                raise RuntimeFailure(
                    "JOB_STATE",
                    "no operator takes part in checkpoints yet, so none can complete",
                    hint="call register_participant first",
                )
        number = self._last_id + 1 if self._backend is None else self._backend.trigger()
        with self._changed:
            self._last_id = number
            barriers = dict(self._participants)
            now_us, due = self._clock.now_us(), self._clock.monotonic() + self._timeout_s
            checkpoint = self._checkpoints[number] = _Checkpoint(number, frozenset(barriers), now_us, due)
            self._total += 1
            if not checkpoint.operators:
                self._complete(checkpoint)
            return checkpoint, barriers

    def acknowledge_checkpoint(self, operator_id: str, checkpoint_id: int, snapshot: Snapshot) -> bool:
        """An operator has kept its state: `snapshot` is that state, or says where it is. Whether all have now.

        Only the first acknowledgement of an operator counts.
        """
        with self._changed:
            checkpoint = self._known(checkpoint_id)
            if operator_id not in checkpoint.operators:
                raise _no_part(operator_id, f"in checkpoint {checkpoint_id}")
            if not isinstance(snapshot, Mapping):
                raise ResolutionError(
                    "INVALID_ARGUMENT",
                    f"the snapshot of operator {operator_id} is a {type(snapshot).__name__}",
                    hint="give a dictionary of what the operator keeps",
                )
            if checkpoint.state == "pending":
                # A copy: the state goes on changing where it came from.
                checkpoint.snapshots.setdefault(operator_id, deepcopy(dict(snapshot)))
                if not checkpoint.missing:
                    self._complete(checkpoint)
            return checkpoint.state == "completed"

    def decline_checkpoint(self, operator_id: str, checkpoint_id: int, reason: str) -> None:
        """An operator could not keep its state: the checkpoint has failed, and the one before stays the last."""
        with self._changed:
            checkpoint = self._known(checkpoint_id)
            if operator_id not in checkpoint.operators:
                raise _no_part(operator_id, f"in checkpoint {checkpoint_id}")
            self._fail(checkpoint, f"operator {operator_id}: {reason}")

    def wait_for_checkpoint(self, checkpoint_id: int, timeout_ms: int = 30_000) -> None:
        """Return when the checkpoint is complete. TimeoutError when it is not by then.

        UNKNOWN_CHECKPOINT where there is none of this number, or it has failed.
        """
        until = self._clock.monotonic() + timeout_ms / 1_000
        with self._changed:
            checkpoint = self._checkpoints.get(checkpoint_id)
            if checkpoint is None and self._backend is None:
                raise self._unknown(checkpoint_id)
            while checkpoint is not None and checkpoint.state == "pending":
                left = until - self._clock.monotonic()
                if left <= 0:
                    missing = ", ".join(checkpoint.missing)
                    raise TimeoutError(
                        f"checkpoint {checkpoint_id} is not complete after {timeout_ms} ms; it waits for {missing}"
                    )
                self._changed.wait(left)
            if checkpoint is not None and checkpoint.state == "failed":
                raise self._unknown(checkpoint_id)
        if self._backend is not None:
            self._backend.wait(checkpoint_id, max(until - self._clock.monotonic(), 0.0))

    def recover_from_checkpoint(self, checkpoint_id: int) -> dict[str, Snapshot]:
        """What every operator had kept at this checkpoint; a job goes back to it."""
        with self._changed:
            checkpoint = self._checkpoints.get(checkpoint_id)
            complete = checkpoint is not None and checkpoint.state == "completed"
            failed = checkpoint is not None and not complete
            if failed or (self._backend is None and not complete):
                raise self._unknown(checkpoint_id)
            own: dict[str, Snapshot] = deepcopy(checkpoint.snapshots) if checkpoint is not None else {}
        return own if self._backend is None else {**self._backend.recover(checkpoint_id), **own}

    # what it tells

    @property
    def last_completed_checkpoint(self) -> int | None:
        """The number of the last complete checkpoint."""
        return max((each.id for each in self.list_checkpoints() if each.state == "completed"), default=None)

    def list_checkpoints(self) -> list[CheckpointInfo]:
        """The checkpoints that are pending or kept, and those that failed since, oldest first."""
        kept = {} if self._backend is None else {each.id: each for each in self._backend.list()}
        with self._changed:
            self._expire()
            # Complete here means only that our own operators have acknowledged; a backend knows the rest.
            own = {each.id: each.info() for each in self._checkpoints.values()}
        if self._backend is None:
            return [own[number] for number in sorted(own)]
        told = {number: each for number, each in own.items() if each.state != "completed"}
        return [each for _, each in sorted({**kept, **told}.items())]

    def get_stats(self) -> CheckpointStats:
        """How many there were since this coordinator was made; with a backend, of those it keeps."""
        last = self.last_completed_checkpoint
        with self._changed:
            if self._backend is None:
                return CheckpointStats(self._total, self._completed, self._failed, len(self._participants), last)
            participants = len(self._participants)
        states = [each.state for each in self.list_checkpoints()]
        return CheckpointStats(len(states), states.count("completed"), states.count("failed"), participants, last)

    # the end

    def shutdown(self) -> None:
        """Stop the thread; what is pending has failed. Complete checkpoints can still be recovered from."""
        with self._changed:
            self._closed = True
            for checkpoint in self._pending():
                self._fail(checkpoint, "the coordinator was shut down")
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # inside; the caller holds the lock

    def _complete(self, checkpoint: _Checkpoint) -> None:
        checkpoint.state, checkpoint.completed_us = "completed", self._clock.now_us()
        self._completed += 1
        for other in self._pending():
            if other.id < checkpoint.id:
                self._fail(other, f"checkpoint {checkpoint.id} has overtaken it")
        self._trim()
        self._changed.notify_all()

    def _fail(self, checkpoint: _Checkpoint, reason: str) -> None:
        if checkpoint.state != "pending":
            return
        checkpoint.state, checkpoint.reason = "failed", reason
        checkpoint.snapshots.clear()
        self._failed += 1
        self._trim()
        self._changed.notify_all()

    def _trim(self) -> None:
        """Keep the last complete ones; and as many that failed, to tell why."""
        for state in ("completed", "failed"):
            for number in sorted(self._numbers(state))[: -self._retain]:
                del self._checkpoints[number]

    def _numbers(self, state: str) -> list[int]:
        return [each.id for each in self._checkpoints.values() if each.state == state]

    def _expire(self) -> None:
        now = self._clock.monotonic()
        for checkpoint in self._pending():
            if now >= checkpoint.due:
                self._fail(checkpoint, f"not complete after {self._timeout_s:g} s")

    def _pending(self) -> list[_Checkpoint]:
        return [each for each in self._checkpoints.values() if each.state == "pending"]

    def _known(self, checkpoint_id: int) -> _Checkpoint:
        if checkpoint_id not in self._checkpoints:
            raise self._unknown(checkpoint_id)
        return self._checkpoints[checkpoint_id]

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeFailure("JOB_STATE", "the checkpoint coordinator is shut down", hint="make a new one")

    def _unknown(self, checkpoint_id: int) -> RuntimeFailure:
        found = self._checkpoints.get(checkpoint_id)
        if found is None:
            message = f"there is no checkpoint {checkpoint_id}"
        elif found.state == "failed":
            message = f"checkpoint {checkpoint_id} did not complete: {found.reason}"
        else:
            message = f"checkpoint {checkpoint_id} is not complete: it waits for {', '.join(found.missing)}"
        complete = self._numbers("completed")
        hint = f"the last complete one is {max(complete)}" if complete else "none is complete yet"
        return RuntimeFailure("UNKNOWN_CHECKPOINT", message, hint=hint)

    # the thread

    def _run(self) -> None:
        assert self._interval_s is not None
        while self._wait_for_turn(self._interval_s):
            try:
                self.trigger_checkpoint()
            except Exception as error:  # noqa: BLE001  the next interval tries again
                _LOG.warning("no checkpoint: %s", error)

    def _wait_for_turn(self, interval_s: float) -> bool:
        """Wait until a checkpoint is due; False when there is nothing more to wait for."""
        with self._changed:
            due: float | None = None
            while not self._closed:
                now = self._clock.monotonic()
                if self._backend is None and not self._participants:
                    # A checkpoint that nobody takes part in could never complete.
                    due = None
                elif due is None:
                    due = now + interval_s
                self._expire()
                if due is not None and now >= due:
                    if not self._pending():
                        return True
                    due = now + interval_s
                self._changed.wait(None if due is None else due - now)
            return False


def _no_part(operator_id: str, where: str) -> ResolutionError:
    return ResolutionError(
        "INVALID_ARGUMENT",
        f"operator {operator_id} takes no part {where}",
        hint="register_participant counts from the next checkpoint on",
    )
