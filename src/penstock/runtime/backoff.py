"""When a job that broke is started again: which errors may pass, and how long to wait."""

from __future__ import annotations

import errno
import random
import re
from collections.abc import Callable, Iterator
from typing import Final

from penstock.clock import Clock, SystemClock
from penstock.errors import CONDITIONS, PenstockError
from penstock.failpoints import FailpointError


class Backoff:
    """How long to wait before each new start: longer after each failure, as at first after a healthy stretch.

    The waits are spread a little, so that jobs that broke together do not come back together.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        first_s: float = 0.5,
        factor: float = 2.0,
        longest_s: float = 60.0,
        spread: float = 0.2,
        healthy_s: float = 60.0,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock or SystemClock()
        self._first_s = first_s
        self._factor = factor
        self._longest_s = longest_s
        self._spread = spread
        self._healthy_s = healthy_s
        self._chance = chance
        self._healthy_from: float | None = None
        self.failures = 0

    def next_delay(self) -> float:
        """The job broke now: seconds to wait before the next start."""
        now = self._clock.monotonic()
        if self._healthy_from is not None and now >= self._healthy_from:
            self.failures = 0
        self.failures += 1
        wait = self._first_s
        # Step by step, and no further than needed: a power of a large number of failures would overflow.
        for _ in range(self.failures - 1):
            if wait >= self._longest_s:
                break
            wait *= self._factor
        delay = min(wait, self._longest_s) * (1 - self._spread * self._chance())
        self._healthy_from = now + delay + self._healthy_s
        return delay


# Conditions of ours that stand for something else, which then decides.
_WRAPPERS: Final = frozenset({"SPARK_FAILED", "JOB_FAILED"})
_PASSING_CONDITIONS: Final = frozenset(
    {
        "STORAGE_FULL", "SINK_UNAVAILABLE", "SOURCE_UNAVAILABLE", "PARTITIONS_CHANGED", "REGISTRY_UNAVAILABLE",
        "SCHEMA_CHANGED", "ROWS_CHANGED",
    }
)  # fmt: skip
_PASSING_ERRNO: Final = frozenset(
    {
        errno.EAGAIN, errno.EBUSY, errno.EDQUOT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EINTR, errno.EMFILE,
        errno.ENETDOWN, errno.ENETRESET, errno.ENETUNREACH, errno.ENFILE, errno.ENOBUFS, errno.ENOSPC, errno.ESTALE,
    }
)  # fmt: skip
# By name, so that pyspark and py4j need not be loaded to tell them.
_PASSING_CLASSES: Final = frozenset({"Py4JNetworkError"})
_LASTING_CLASSES: Final = frozenset(
    {
        "AnalysisException", "ArithmeticException", "ArrayIndexOutOfBoundsException", "DateTimeException",
        "IllegalArgumentException", "PySparkTypeError", "PySparkValueError", "SparkUpgradeException",
        "UnsupportedOperationException",
    }
)  # fmt: skip
# What comes through the JVM arrives as text.
_PASSING_TEXT: Final = re.compile(
    r"FailpointError: failpoint|Connection (?:refused|reset)|Broken pipe|No space left on device|Disk quota exceeded"
    r"|Too many open files|timed out|\bTimeoutException\b|\bSocketTimeoutException\b|\bConnectException\b"
    r"|\bUnknownHostException\b|\bNoRouteToHostException\b|\bClosedChannelException\b|\bDisconnectException\b"
    r"|\bBrokerNotAvailableException\b|\bLeaderNotAvailableException\b|\bNotLeaderOrFollowerException\b"
    r"|\bCoordinatorNotAvailableException\b|\bRetriableException\b|\bExecutorLostFailure\b|\bTaskResultLost\b"
    r"|Python worker exited unexpectedly|Python worker failed to connect back"
    # Spark gives no reason when a process beside it is gone, such as the one that answers for a source.
    r"|terminated with exception:\s*(?:null\s*)?SQLSTATE"
)
# The Python process that asks a source where it ends has died; the error itself has no text, only its trace.
_LOST_PROCESS: Final = re.compile(r"EOFException\s+at .{0,400}?\bPythonStreamingSourceRunner\b", re.DOTALL)
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+)\]")


def transient(error: BaseException) -> bool:
    """Whether the error may pass by itself, so that the job is worth starting again.

    What is not known to pass lasts: a job that stops and says why is better than one that fails for ever.
    """
    for link in _chain(error):
        verdict = _verdict(link)
        if verdict is not None:
            return verdict
    return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        # PySpark keeps the cause of a JVM error where Python does not look.
        jvm_cause = getattr(link, "_cause", None)
        if link.__cause__ is None and isinstance(jvm_cause, BaseException):
            link = jvm_cause
        else:
            link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _verdict(error: BaseException) -> bool | None:
    """Whether this error passes; None where it does not tell."""
    if isinstance(error, PenstockError):
        if error.condition not in _WRAPPERS:
            return error.condition in _PASSING_CONDITIONS
        return _verdict_of_text(f"{error.message} {error.detail or ''}")
    if isinstance(error, FailpointError | ConnectionError | TimeoutError):
        return True
    if isinstance(error, OSError):
        return True if error.errno in _PASSING_ERRNO else None
    return _verdict_of_foreign(error)


def _verdict_of_foreign(error: BaseException) -> bool | None:
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _PASSING_CLASSES:
        return True
    if names & _LASTING_CLASSES:
        return False
    trace = getattr(error, "_stackTrace", None)
    if isinstance(trace, str) and _LOST_PROCESS.search(trace):
        return True
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  an error of the JVM asks the JVM for its text, and the JVM may be gone
        return True
    return _verdict_of_text(text)


def _verdict_of_text(text: str) -> bool | None:
    own = [name for name in _CONDITION.findall(text) if name in CONDITIONS and name not in _WRAPPERS]
    if own:
        return all(name in _PASSING_CONDITIONS for name in own)
    return True if _PASSING_TEXT.search(text) else None
