"""Which errors may pass, and how long to wait for it."""

from __future__ import annotations

import errno
import socket

import pytest

from penstock.clock import ManualClock
from penstock.errors import (
    CONDITIONS,
    CatalogError,
    InternalError,
    JobFailed,
    OptionError,
    PenstockError,
    ResolutionError,
    RuntimeFailure,
)
from penstock.failpoints import FailpointError
from penstock.runtime.backoff import Backoff, transient


# Named as pyspark and py4j name theirs.
class AnalysisException(Exception):
    pass


class ParseException(AnalysisException):
    pass


class StreamingQueryException(Exception):
    pass


class Py4JNetworkError(Exception):
    pass


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ConnectionRefusedError("the JVM is gone")


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "connection refused"),
        ConnectionResetError(),
        BrokenPipeError(),
        TimeoutError("no answer"),
        socket.gaierror(errno.EAGAIN, "try again"),
        OSError(errno.ENOSPC, "no space left on device"),
        OSError(errno.EMFILE, "too many open files"),
        RuntimeFailure("STORAGE_FULL", "no space left for view v"),
        Py4JNetworkError("Answer from Java side is empty"),
        Unprintable(),
        FailpointError("failpoint batch.entry"),
        StreamingQueryException("[STREAM_FAILED] … penstock.failpoints.FailpointError: failpoint batch.exit"),
        StreamingQueryException("[STREAM_FAILED] … org.apache.kafka.common.errors.TimeoutException: Timed out"),
        StreamingQueryException("java.net.ConnectException: Connection refused"),
        StreamingQueryException("java.io.IOException: No space left on device"),
        StreamingQueryException("[STREAM_FAILED] … penstock.errors.RuntimeFailure: [STORAGE_FULL] no space for v"),
        StreamingQueryException("org.apache.kafka.common.errors.BrokerNotAvailableException"),
        RuntimeFailure("SPARK_FAILED", "Spark stopped: Connection reset by peer"),
        RuntimeFailure("SPARK_FAILED", "Spark stopped", detail="java.net.SocketTimeoutException: Read timed out"),
        caused(RuntimeFailure("SPARK_FAILED", "Spark stopped"), ConnectionResetError()),
        caused(JobFailed("j", "job j has stopped"), caused(RuntimeError("in between"), TimeoutError())),
    ],
    ids=repr,
)
def test_what_may_pass(error: BaseException) -> None:
    assert transient(error)


@pytest.mark.parametrize(
    "error",
    [
        ResolutionError("UNKNOWN_COLUMN", "no column x"),
        OptionError("INVALID_OPTION", "no"),
        CatalogError("STATE_PATH_UNUSABLE", "no"),
        RuntimeFailure("STATE_INCOMPATIBLE", "no"),
        RuntimeFailure("CHECKPOINT_DAMAGED", "no"),
        RuntimeFailure("BAD_RECORD", "no"),
        RuntimeFailure("LATE_ROW", "no"),
        RuntimeFailure("SOURCE_DATA_LOST", "no"),
        InternalError("no"),
        AnalysisException("cannot resolve x; Connection refused"),
        ParseException("no"),
        StreamingQueryException("[STREAM_FAILED] … [DIVIDE_BY_ZERO] Division by zero"),
        StreamingQueryException("penstock.errors.RuntimeFailure: [BAD_RECORD] row 7; Connection reset"),
        StreamingQueryException("[STORAGE_FULL] no space, then [CHECKPOINT_DAMAGED] offsets/7"),
        RuntimeFailure("SPARK_FAILED", "Spark stopped: [STREAM_FAILED] [CAST_INVALID_INPUT]"),
        JobFailed("j", "[SOURCE_DATA_LOST] rows 5 to 7 of t are gone"),
        caused(RuntimeFailure("BAD_RECORD", "row 7"), ConnectionResetError()),
        caused(RuntimeFailure("SPARK_FAILED", "no"), AnalysisException("no")),
        FileNotFoundError(errno.ENOENT, "gone"),
        ZeroDivisionError(),
        KeyError("x"),
        AssertionError(),
    ],
    ids=repr,
)
def test_what_lasts(error: BaseException) -> None:
    assert not transient(error)


PASSING = {
    "STORAGE_FULL", "SINK_UNAVAILABLE", "SOURCE_UNAVAILABLE", "PARTITIONS_CHANGED", "REGISTRY_UNAVAILABLE",
    "SCHEMA_CHANGED", "ROWS_CHANGED",
}  # fmt: skip


@pytest.mark.parametrize("condition", sorted(set(CONDITIONS) - PASSING))
def test_of_our_own_conditions_few_pass(condition: str) -> None:
    assert not transient(PenstockError(condition, "no"))


def test_errors_that_came_from_each_other_are_walked_once() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert not transient(one)


def test_a_suppressed_context_does_not_count() -> None:
    error = RuntimeError("told")
    error.__context__ = ConnectionResetError()
    assert transient(error)
    error.__suppress_context__ = True
    assert not transient(error)


def test_real_errors_of_pyspark_are_known_by_their_names() -> None:
    errors = pytest.importorskip("pyspark.errors")
    py4j = pytest.importorskip("py4j.protocol")
    assert transient(py4j.Py4JNetworkError("gone"))
    assert not transient(errors.AnalysisException("Connection refused"))
    assert not transient(errors.ParseException("Connection refused"))
    assert transient(errors.StreamingQueryException("Connection refused"))


class _JvmError(Exception):
    """An error as PySpark hands it on: the cause and the trace are where Python does not look."""

    def __init__(self, text: str, trace: str = "", cause: BaseException | None = None) -> None:
        super().__init__(text)
        self._stackTrace = trace
        self._cause = cause


def test_a_lost_source_process_passes_though_spark_gives_no_reason() -> None:
    runner = "java.io.EOFException\n\tat java.io.DataInputStream.readInt\n\tat x.PythonStreamingSourceRunner.latest"
    assert transient(_JvmError("[STREAM_FAILED] the query ended", cause=_JvmError("", runner)))
    assert not transient(_JvmError("[STREAM_FAILED] the query ended", cause=_JvmError("", "java.lang.Error\n\tat x.Y")))


def test_waits_grow_to_the_longest_and_stay_there() -> None:
    backoff = Backoff(first_s=1, factor=2, longest_s=10, chance=lambda: 0.0)
    assert [backoff.next_delay() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    assert backoff.failures == 6


def test_thousands_of_failures_do_not_overflow() -> None:
    backoff = Backoff(chance=lambda: 0.0)
    assert [backoff.next_delay() for _ in range(3000)][-1] == 60.0


def test_waits_are_spread() -> None:
    assert Backoff(first_s=1, spread=0.25, chance=lambda: 1.0).next_delay() == 0.75
    waits = {Backoff(first_s=1, spread=0.25).next_delay() for _ in range(20)}
    assert len(waits) > 1
    assert all(0.75 <= wait <= 1 for wait in waits)


def test_a_healthy_stretch_begins_anew_and_a_short_one_does_not() -> None:
    clock = ManualClock()
    backoff = Backoff(clock, first_s=1, healthy_s=60, chance=lambda: 0.0)
    assert [backoff.next_delay(), backoff.next_delay()] == [1, 2]
    clock.advance(seconds=2 + 59.9)
    assert backoff.next_delay() == 4
    clock.advance(seconds=4 + 60)
    assert backoff.next_delay() == 1
    assert backoff.next_delay() == 2
