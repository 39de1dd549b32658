"""Failpoints: crash, error, sleep, the nth hit; unknown names are told."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from penstock import failpoints
from penstock.failpoints import NAMES, VARIABLE, FailpointError, enabled, hit
from tests.project import ROOT


def run(setting: str, program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, VARIABLE: setting, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-c", f"from penstock.failpoints import hit\n{program}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_point_that_is_not_set_does_nothing(name: str) -> None:
    assert not failpoints._armed
    hit(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_point_can_be_made_to_fail(name: str) -> None:
    with enabled(name, "error"), pytest.raises(FailpointError, match=name):
        hit(name)
    hit(name)


def test_only_the_point_that_is_set_acts() -> None:
    with enabled("batch.entry", "error"):
        hit("batch.exit")


def test_the_nth_hit_only() -> None:
    with enabled("batch.entry", "error@2"):
        hit("batch.entry")
        with pytest.raises(FailpointError):
            hit("batch.entry")
        hit("batch.entry")


def test_sleep_lets_time_pass() -> None:
    before = time.monotonic()
    with enabled("batch.entry", "sleep(30)"):
        hit("batch.entry")
    assert time.monotonic() - before >= 0.03


def test_an_inner_setting_gives_way_to_the_outer_one() -> None:
    with enabled("batch.entry", "error"):
        with enabled("batch.entry", "sleep(0)"):
            hit("batch.entry")
        with pytest.raises(FailpointError):
            hit("batch.entry")


def test_crash_ends_the_process_at_once() -> None:
    done = run("batch.entry=crash@2", "hit('batch.entry'); print('one', flush=True); hit('batch.entry'); print('two')")
    assert (done.returncode, done.stdout) == (137, "one\n")


def test_the_variable_sets_several_points() -> None:
    program = "hit('batch.entry'); hit('batch.exit')"
    done = run(" batch.exit = error ; batch.entry=sleep(1);", program)
    assert done.returncode == 1
    assert done.stderr.endswith("FailpointError: failpoint batch.exit\n")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("batch.middle=crash", "no failpoint is called 'batch.middle'; there are catalog.before_write, "),
        ("batch.entry=explode", "no action of a failpoint: 'explode'; write crash, error or sleep(ms)"),
        ("batch.entry=crash@0", "no action of a failpoint: 'crash@0'"),
        ("batch.entry=sleep", "no action of a failpoint: 'sleep'"),
        ("batch.entry", "no failpoint: 'batch.entry'; write name=action"),
    ],
)
def test_a_setting_that_says_nothing_is_refused(setting: str, told: str) -> None:
    assert told in run(setting, "pass").stderr


def test_an_unknown_name_or_action_is_refused_in_a_test_too() -> None:
    with pytest.raises(ValueError, match="there are catalog"), enabled("batch.middle", "crash"):
        pass
    with pytest.raises(ValueError, match="no action"), enabled("batch.entry", "boom"):
        pass
