"""Named points in the code where a test can make the process crash, fail or wait.

A point costs one look at an empty table when nothing is set. The environment variable PENSTOCK_FAILPOINTS sets them
for a whole process, `name=action` separated by semicolons; `enabled` sets one inside a test. The actions:

    crash        the process ends at once with exit code 137, as after kill -9
    error        FailpointError is raised
    sleep(250)   250 milliseconds pass
    …@3          any of these, at the third hit only
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "PENSTOCK_FAILPOINTS"
NAMES: Final = (
    "catalog.before_write",
    "catalog.after_write",
    "batch.entry",
    "batch.after_action",
    "view.before_write",
    "view.before_commit",
    "view.after_commit",
    "sink.before_write",
    "sink.before_commit",
    "sink.after_write",
    "watermark.before_set",
    "batch.exit",
    "source.latest_offset",
    "topic.before_end",
    "file_sink.before_rename",
    "file_sink.before_append",
    "file_sink.after_append",
    "dimension.before_write",
    "dimension.before_announce",
    "job.before_files",
    "job.before_facts",
)

_CRASHED: Final = 137
_ACTION: Final = re.compile(r"(?P<verb>crash|error|sleep\((?P<ms>[0-9]{1,7})\))(?:@(?P<nth>[1-9][0-9]{0,8}))?")


class FailpointError(RuntimeError):
    """What the action `error` raises: a failure of no kind that the code expects."""


@dataclass(slots=True)
class _Armed:
    verb: str
    sleep_ms: int
    nth: int | None
    hits: int = 0


def hit(name: str) -> None:
    """Do what is set for this point, which is nothing as a rule."""
    if _armed and (armed := _armed.get(name)) is not None:
        _act(name, armed)


def _act(name: str, armed: _Armed) -> None:
    with _counting:
        armed.hits += 1
        if armed.nth is not None and armed.hits != armed.nth:
            return
    if armed.verb == "crash":
        os._exit(_CRASHED)
    if armed.verb == "error":
        raise FailpointError(f"failpoint {name}")
    time.sleep(armed.sleep_ms / 1_000)


@contextmanager
def enabled(name: str, action: str) -> Iterator[None]:
    """Set one point for the time of a with block, in this process."""
    before = _armed.get(_known(name))
    _armed[name] = _read_action(action)
    try:
        yield
    finally:
        if before is None:
            _armed.pop(name, None)
        else:
            _armed[name] = before


def _known(name: str) -> str:
    if name not in NAMES:
        raise ValueError(f"no failpoint is called {name!r}; there are {', '.join(NAMES)}")
    return name


def _read_action(text: str) -> _Armed:
    found = _ACTION.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"no action of a failpoint: {text!r}; write crash, error or sleep(ms), with @n for the nth hit"
        )
    nth = found["nth"]
    return _Armed(found["verb"].partition("(")[0], int(found["ms"] or 0), int(nth) if nth else None)


def _read(text: str) -> dict[str, _Armed]:
    armed: dict[str, _Armed] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, action = entry.partition("=")
        if not equals:
            raise ValueError(f"no failpoint: {entry!r}; write name=action")
        armed[_known(name.strip())] = _read_action(action)
    return armed


_counting = threading.Lock()
_armed: dict[str, _Armed] = _read(os.environ.get(VARIABLE, ""))
