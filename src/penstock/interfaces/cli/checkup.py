"""What an engine needs of the machine, looked at one by one. Nothing is started and nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from penstock.frozen import frozen

Verdict = Literal["ok", "warn", "fail"]

_GIB: Final = 1024**3
_LITTLE_SPACE: Final = 1 * _GIB
_NO_SPACE: Final = 100 * 1024**2
# What the engine cannot run without, with the oldest version that will do.
_PACKAGES: Final = {"pyspark": (4, 2), "duckdb": (2, 0), "pyarrow": (20, 0), "prompt_toolkit": (3, 0)}


@frozen
class Finding:
    """One line: what was looked at, how it is, and the command that mends it."""

    name: str
    verdict: Verdict
    message: str
    remedy: str | None = None


def check_up(state: Path) -> list[Finding]:
    """Everything, in the order in which it is needed. A check that breaks is a finding, not an error."""
    checks: list[Callable[[], Iterator[Finding]]] = [
        _python,
        _packages,
        _java,
        _jars,
        lambda: _state(state),
        lambda: _kept(state),
        lambda: _space(state),
        _temporary,
        _ports,
        _memory,
    ]
    return [finding for check in checks for finding in _guarded(check)]


def _guarded(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:  # noqa: BLE001 - a machine can be broken in any way, and the others still want telling
        yield Finding(getattr(check, "__name__", "check").strip("_<>"), "fail", f"cannot be checked: {error}")


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", "ok", f"{version} ({sys.executable})")  # an older one cannot even read this file


def _packages() -> Iterator[Finding]:
    for name, oldest in _PACKAGES.items():
        wanted = ".".join(map(str, oldest))
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(name, "fail", "is not installed", f"{sys.executable} -m pip install '{name}>={wanted}'")
            continue
        new_enough = _numbers(version) >= oldest
        remedy = None if new_enough else f"{sys.executable} -m pip install '{name}>={wanted}'"
        message = version if new_enough else f"{version} is older than {wanted}"
        yield Finding(name, "ok" if new_enough else "fail", message, remedy)


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version.

    >>> _numbers("4.2.0.dev1"), _numbers("26")
    ((4, 2), (26, 0))
    """
    found = [int("".join(filter(str.isdigit, part)) or 0) for part in version.split(".")[:2]]
    return (*found, 0)[:2] if len(found) < 2 else tuple(found)


def _java() -> Iterator[Finding]:
    from penstock.spark.java import JavaProblem, find_java

    found = find_java()
    if isinstance(found, JavaProblem):
        yield Finding("java", "fail", found.problem, found.remedy)
    else:
        yield Finding("java", "ok", f"{found.version} ({found.home})")


def _jars() -> Iterator[Finding]:
    """Spark's own jars come with PySpark; an installation that was cut short has none."""
    import importlib.util

    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        return
    jars = Path(found.origin).parent / "jars"
    streaming = list(jars.glob("spark-sql_*.jar"))
    count = len(list(jars.glob("*.jar")))
    if streaming:
        yield Finding("spark jars", "ok", f"{count} in {jars}")
    else:
        remedy = f"{sys.executable} -m pip install --force-reinstall pyspark"
        yield Finding("spark jars", "fail", f"{jars} has no spark-sql jar", remedy)


def _state(path: Path) -> Iterator[Finding]:
    if not path.exists():
        parent = _nearest(path)
        problem = _cannot_be_written(parent)
        if problem is None:
            yield Finding("state path", "ok", f"{path} is made at the first run")
        else:
            remedy = "name a directory of yours with --state"
            yield Finding("state path", "fail", f"{path} cannot be made in {parent}: {problem}", remedy)
        return
    problem = _cannot_be_written(path) if path.is_dir() else None
    if not path.is_dir():
        yield Finding("state path", "fail", f"{path} is not a directory", "name another one with --state")
    elif problem is not None or not os.access(path, os.R_OK | os.X_OK):
        message = f"{path} cannot be written to: {problem or 'permission denied'}"
        yield Finding("state path", "fail", message, f"sudo chown -R $(id -un) {path}, or name another with --state")
    else:
        pid = _owner(path)
        if pid is None:
            yield Finding("state path", "ok", f"{path} can be used")
        else:
            remedy = f"end process {pid}, or name another directory with --state"
            yield Finding("state path", "warn", f"{path} is in use by process {pid}", remedy)


def _kept(path: Path) -> Iterator[Finding]:
    """The databases of a state path that nobody uses, opened for reading only."""
    import sqlite3

    import duckdb

    from penstock.stores.catalog_store import DATABASE
    from penstock.stores.views.database import FILE

    if not path.is_dir() or _owner(path) is not None:
        return
    remedy = "restore the state path from a backup, or name another directory with --state"
    catalog = path / DATABASE
    if catalog.is_file() and catalog.stat().st_size:
        try:
            with contextlib.closing(sqlite3.connect(f"{catalog.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                told = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.Error as error:
            told = str(error)
        if told != "ok":
            yield Finding("catalog", "fail", f"{catalog} is damaged: {' '.join(told.split())}", remedy)
    views = path / FILE
    if views.is_file() and not views.with_name(f"{FILE}.wal").exists():  # it is only read in when it is opened to write
        try:
            duckdb.connect(str(views), read_only=True).close()
        except duckdb.Error as error:
            yield Finding("views", "fail", f"{views} is damaged: {str(error).splitlines()[0]}", remedy)


def _cannot_be_written(directory: Path) -> str | None:
    """Why nothing can be made in a directory; None where it can. Tried, as rights do not tell: not of a full disk or
    one that is read-only, not of /proc, and of nothing to the superuser.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".penstock-doctor-", dir=directory) as made:
            (Path(made) / "written").write_bytes(b"penstock")
    except OSError as error:
        return (error.strerror or type(error).__name__).lower()
    return None


def _owner(path: Path) -> str | None:
    """The process that holds a state path, if one does. The lock is held by us for no longer than the question."""
    import fcntl

    from penstock.stores.owner_lock import NAME

    try:
        with (path / NAME).open(encoding="utf-8") as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return str(json.loads(file.read())["pid"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        return "that its lock file does not name"
    return None


def _nearest(path: Path) -> Path:
    """The directory above that is there."""
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    return parent


def _space(path: Path) -> Iterator[Finding]:
    place = path if path.exists() else _nearest(path)
    free = shutil.disk_usage(place).free
    message = f"{free / _GIB:.1f} GiB free at {place}"
    if free < _NO_SPACE:
        yield Finding("disk", "fail", message, "free some space, or name another disk with --state")
    elif free < _LITTLE_SPACE:
        yield Finding("disk", "warn", message, "free some space: state, topics and views grow")
    else:
        yield Finding("disk", "ok", message)


def _temporary() -> Iterator[Finding]:
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"penstock")
        yield Finding("temporary files", "ok", tempfile.gettempdir())
    except OSError as error:
        remedy = "set TMPDIR to a directory that can be written to"
        yield Finding("temporary files", "fail", f"none can be made: {error.strerror or error}", remedy)


def _ports() -> Iterator[Finding]:
    """Python and the JVM talk over loopback, on ports that the system picks."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            port = server.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                pass
        yield Finding("loopback", "ok", "127.0.0.1 takes connections")
    except OSError as error:
        remedy = "ip link set lo up, or allow connections to 127.0.0.1"
        yield Finding("loopback", "fail", f"127.0.0.1 takes no connection: {error.strerror or error}", remedy)


def _memory() -> Iterator[Finding]:
    """The heap of the driver is 2 GiB unless it is set."""
    if not hasattr(os, "sysconf"):
        return
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    message = f"{total / _GIB:.1f} GiB"
    if total < 3 * _GIB:
        yield Finding("memory", "warn", f"{message} is little for a heap of 2 GiB", "SET driver_memory = '1 GB'")
    else:
        yield Finding("memory", "ok", message)
