"""The parent of the killed program: starts it, waits for a moment, kills it, and looks at what it left on disk.

Every process that a start leads to (the program, the JVM, Python workers in groups and sessions of their own) carries a
mark in its environment, by which it is found and ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self

from penstock.failpoints import VARIABLE
from penstock.stores.views.store import ViewStore
from tests.chaos.agreement import check_agreement
from tests.chaos.program import read_events
from tests.chaos.workload import JOBS
from tests.project import ROOT

CRASHED: Final = 137
SEED: Final = int(os.environ.get("PENSTOCK_CHAOS_SEED", "4"))
# The JVM lives for seconds: what it compiles well it never runs.
_QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_MARK: Final = "PENSTOCK_CHAOS_RUN"
_PATIENCE: Final = float(os.environ.get("PENSTOCK_CHAOS_PATIENCE", "400"))


class Start:
    """One start of the program."""

    def __init__(self, campaign: Campaign, process: subprocess.Popen[bytes], mark: str) -> None:
        self._campaign = campaign
        self._mark = mark
        self.process = process

    def alive(self) -> list[int]:
        """The processes of this start that are still there."""
        return _marked_processes(self._mark)

    def kill(self, *, all_processes: bool = True) -> None:
        """SIGKILL, to the whole process group and everything started from it, or to the program alone.

        In the second case the JVM has to notice by itself that it is an orphan.
        """
        if all_processes:
            while found := self.alive():
                for process in found:
                    _kill(process)
                self.process.poll()
        else:
            _kill(self.process.pid)
        self.process.wait(30)

    def wait_for(self, happened: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Wait until the events of the campaign show something; fails where the program ends or time runs out."""
        end = time.monotonic() + _PATIENCE
        while not happened(self._campaign.events()):
            code = self.process.poll()
            assert code is None, f"the program has ended with {code} before its time\n{self._campaign.tail()}"
            assert time.monotonic() < end, f"waited for longer than {_PATIENCE:g} s\n{self._campaign.tail()}"
            time.sleep(0.02)

    def wait_for_appends(self, more: int) -> None:
        """Wait until so many more appends were acknowledged."""
        wanted = self._campaign.acknowledged() + more
        self.wait_for(lambda events: appends(events) >= wanted)

    def wait(self) -> int:
        """Wait for the end of the program; its exit code."""
        try:
            return self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end after {_PATIENCE:g} s\n{self._campaign.tail()}") from None

    def wait_until_gone(self, seconds: float = 30.0) -> None:
        """Nothing that the start led to may outlive it for long."""
        end = time.monotonic() + seconds
        while found := self.alive():
            assert time.monotonic() < end, f"processes {found} have outlived the program"
            time.sleep(0.1)


class Campaign:
    """One home, started again and again."""

    worker = "tests.chaos.worker"

    def __init__(self, directory: Path, seed: int, jobs: Sequence[str] = tuple(JOBS), pause: float = 0.1) -> None:
        self.home = directory / "home"
        self.log = directory / "log"
        self.log.mkdir(parents=True)
        self.seed = seed
        self.jobs = tuple(jobs)
        self.starts: list[Start] = []
        self.later = 0  # by how many hits a crash is put off
        self._pause = pause
        self._kept: dict[str, int | None] = {}

    def start(self, mode: str, failpoints: str = "") -> Start:
        """Start the program, with no other step than that."""
        mark = uuid.uuid4().hex
        environment = _marked(mark, **{VARIABLE: failpoints})
        number = len(self.starts) + 1
        arguments = [str(self.home), str(self.log), str(self.seed), str(number), mode]
        arguments += ["--jobs", ",".join(self.jobs), "--pause", str(self._pause)]
        with (self.log / f"output{number}").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", self.worker, *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.starts.append(Start(self, process, mark))
        return self.starts[-1]

    def events(self) -> list[dict[str, Any]]:
        return read_events(self.log / "events")

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.log / "report").read_text(encoding="utf-8"))
        return found

    def acknowledged(self) -> int:
        """How many appends were acknowledged."""
        return appends(self.events())

    def left_on_disk(self) -> dict[str, int | None]:
        """What a dead program has left: the watermark of each job. Ledger, trackers, views and change logs must agree.

        It is read from a copy, so that nothing is mended here.
        """
        with tempfile.TemporaryDirectory() as directory:
            for path in self.home.glob("views.duckdb*"):
                shutil.copy(path, directory)
            if not (Path(directory) / "views.duckdb").exists():
                return {}
            with ViewStore.open(Path(directory)) as store:
                check_agreement(self.home, store, self.jobs)
                kept = {job: store.tracker(job) for job in self.jobs}
        return {job: found[1] for job, found in kept.items() if found is not None}

    def after_death(self) -> None:
        """What must hold whenever the program is dead: what it has left agrees, and time has not gone back.

        It is remembered, and the next start has to begin from exactly there.
        """
        found = self.left_on_disk()
        seen = self._opened()
        if self._kept and seen is not None:
            assert seen == self._kept, "a restart begins with other watermarks than the ones that were kept"
        for job, before in self._kept.items():
            assert not_before(found.get(job), before), f"the watermark of {job} went back: {before} to {found.get(job)}"
        for event in self.events():
            for job, told in event.get("jobs", {}).items():
                if event["event"] in ("settled", "drained"):
                    assert not_before(found.get(job), told["watermark"]), f"{job} told of a watermark it did not keep"
        self._kept = found

    def _opened(self) -> dict[str, int | None] | None:
        """The watermarks that the last start began with; None where it did not get so far."""
        number = len(self.starts)
        for event in self.events():
            if event["event"] == "opened" and event["start"] == number:
                jobs = event["jobs"]
                return {job: jobs[job]["watermark"] for job in self._kept if job in jobs}
        return None

    def tail(self) -> str:
        """The end of what the last start has printed and told, for a message."""
        number = len(self.starts)
        output = (self.log / f"output{number}").read_text(encoding="utf-8", errors="replace")
        events = "\n".join(json.dumps(event) for event in self.events()[-3:])
        return f"seed {self.seed}, start {number}\n{events}\n{output[-3_000:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no process behind."""
        for start in self.starts:
            start.kill()


def appends(events: list[dict[str, Any]]) -> int:
    return sum(event["event"] == "appended" for event in events)


def not_before(later: int | None, earlier: int | None) -> bool:
    return earlier is None or (later is not None and later >= earlier)


def _marked(mark: str, **more: str) -> dict[str, str]:
    """The environment of a program whose processes are to be found by a mark."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        _MARK: mark,
        "JAVA_TOOL_OPTIONS": _QUICK_START,
        **more,
    }


def _marked_processes(mark: str) -> list[int]:
    found = []
    wanted = f"{_MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0") and _running(entry):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _running(entry: Path) -> bool:
    """Whether a process does something: one that is dead and not yet waited for does not."""
    return (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] != "Z"


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
