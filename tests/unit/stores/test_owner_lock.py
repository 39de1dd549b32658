"""One owner of a state directory, whatever happens to the owner before."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.errors import CatalogError, RuntimeFailure
from penstock.stores.owner_lock import OwnerLock
from tests.project import ROOT

HOLD = """
import sys, time
from pathlib import Path
from penstock.stores.owner_lock import OwnerLock
lock = OwnerLock(Path(sys.argv[1]))
{more}
print("held", flush=True)
time.sleep(600)
"""


def holder(state: Path, more: str = "") -> subprocess.Popen[str]:
    """Another process that has the lock when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(more=more), str(state)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(timeout=30)
    assert process.stdout is not None
    process.stdout.close()


def files(state: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in state.iterdir()}


def test_the_file_tells_who_holds_it_and_is_private(tmp_path: Path) -> None:
    with OwnerLock(tmp_path / "home") as lock:
        told = json.loads((tmp_path / "home" / "lock").read_text())
        assert told == {"pid": os.getpid(), "host": socket.gethostname(), "since_us": lock.owner.since_us}
        assert abs(lock.owner.since_us - time.time() * 1e6) < 60e6
        assert (tmp_path / "home" / "lock").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_a_second_one_in_this_process_is_refused(tmp_path: Path) -> None:
    with OwnerLock(tmp_path) as first:
        before = files(tmp_path)
        with pytest.raises(RuntimeFailure, match="is in use by this process") as refused:
            OwnerLock(tmp_path)
        assert refused.value.condition == "ENGINE_ALREADY_RUNNING"
        assert str(os.getpid()) in refused.value.message
        assert files(tmp_path) == before
        held = first.held
        with pytest.raises(RuntimeFailure):
            OwnerLock(tmp_path)
    assert (held, first.held) == (True, False)
    OwnerLock(tmp_path).close()


def test_another_path_is_another_lock(tmp_path: Path) -> None:
    with OwnerLock(tmp_path / "a"), OwnerLock(tmp_path / "b"):
        pass


def test_a_link_to_the_directory_is_the_same_directory(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "home")
    with OwnerLock(tmp_path / "home"), pytest.raises(RuntimeFailure, match="in use"):
        OwnerLock(tmp_path / "link")


def test_another_process_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        before = files(tmp_path)
        with pytest.raises(RuntimeFailure) as refused:
            OwnerLock(tmp_path)
        assert refused.value.condition == "ENGINE_ALREADY_RUNNING"
        owner = f"process {process.pid} on {socket.gethostname()}"
        assert refused.value.message == f"{tmp_path} is in use by {owner}"
        assert refused.value.hint == f"stop {owner}, or use another state_path"
        assert files(tmp_path) == before
    finally:
        end(process)


def test_a_stopped_owner_still_owns(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(RuntimeFailure, match=str(process.pid)):
            OwnerLock(tmp_path)
    finally:
        end(process)


def test_death_by_sigkill_frees_it_and_the_old_content_means_nothing(tmp_path: Path) -> None:
    process = holder(tmp_path)
    end(process)
    assert json.loads((tmp_path / "lock").read_text())["pid"] == process.pid
    with OwnerLock(tmp_path):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"{}", b'{"pid": null}', b"[]", b"x" * 10_000])
def test_any_old_content_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lock").write_bytes(content)
    with OwnerLock(tmp_path):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("content", [b"", b'{"pid": 1'])
def test_an_owner_whose_name_cannot_be_read_is_an_owner(tmp_path: Path, content: bytes) -> None:
    with OwnerLock(tmp_path):
        (tmp_path / "lock").write_bytes(content)
        with pytest.raises(RuntimeFailure, match="is in use by another process"):
            OwnerLock(tmp_path)


@pytest.mark.parametrize(
    "start",
    [
        # A program, as the JVM is one; close_fds off, so that only O_CLOEXEC stands between it and the lock.
        "import subprocess; child = subprocess.Popen(['sleep', '600'], close_fds=False, stdout=subprocess.DEVNULL).pid",
        # A copy of ourselves, as multiprocessing and Spark's Python daemon make them.
        # The pipe tells that the copy has begun to run.
        "import os; ready, go = os.pipe(); child = os.fork() or (os.close(1), os.write(go, b'.'), time.sleep(600)); os.read(ready, 1)",
    ],
)
def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path: Path, start: str) -> None:
    process = holder(tmp_path, f"{start}; Path(sys.argv[1], 'child').write_text(str(child))")
    child = int((tmp_path / "child").read_text())
    try:
        with pytest.raises(RuntimeFailure):
            OwnerLock(tmp_path)
        end(process)
        os.kill(child, 0)
        OwnerLock(tmp_path).close()
    finally:
        os.kill(child, signal.SIGKILL)


def test_closing_frees_it_though_a_copy_of_the_open_file_is_somewhere(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path)
    assert lock._descriptor is not None
    copy = os.dup(lock._descriptor)
    try:
        lock.close()
        OwnerLock(tmp_path).close()
    finally:
        os.close(copy)


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path)
    lock.close()
    with OwnerLock(tmp_path):
        lock.close()
        with pytest.raises(RuntimeFailure):
            OwnerLock(tmp_path)


def test_a_refused_one_leaves_no_file_open(tmp_path: Path) -> None:
    with OwnerLock(tmp_path):
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(5):
            with pytest.raises(RuntimeFailure):
                OwnerLock(tmp_path)
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_place_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogError, match="is not a directory"):
        OwnerLock(tmp_path / "file")
    (tmp_path / "lock").mkdir()
    with pytest.raises(CatalogError, match="cannot be used"):
        OwnerLock(tmp_path)


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("text")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(CatalogError, match="cannot be used"):
        OwnerLock(tmp_path)
    assert (tmp_path / "precious").read_text() == "text"
