"""What all tests share: the hypothesis profiles, how their JVMs run, and that they can be interrupted."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import settings

# A JVM that lives for a minute spends most of it compiling: the quick compiler alone halves the time of the suites.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# What a shell starts in the background ignores Ctrl-C, and tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Deadlines measure the machine, not the code; a failure prints the command that replays it. A change is judged by the
# same examples each time it is tried; new ones are looked for with HYPOTHESIS_PROFILE=random or long.
settings.register_profile("same", max_examples=100, deadline=None, print_blob=True, derandomize=True)
settings.register_profile("random", max_examples=150, deadline=None, print_blob=True)
settings.register_profile("long", max_examples=5000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# A JVM costs seconds and a gigabyte: tests that start one are marked, and run in processes of their own.
_MAY_START_SPARK: Final = ("spark", "kafka", "chaos", "slow", "bench", "soak")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """What a test is given may start Spark as well."""
    before = _spark_runs()
    yield
    _check_spark(item, before=before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = _spark_runs()
    yield
    _check_spark(item, before=before)


def _check_spark(item: pytest.Item, *, before: bool) -> None:
    if not before and _spark_runs() and not any(item.get_closest_marker(name) for name in _MAY_START_SPARK):
        pytest.fail("a test without the marker `spark` has started Spark")


def _spark_runs() -> bool:
    session = sys.modules.get("penstock.spark.session")
    return session is not None and bool(session.session_running())
