"""A process killed at any moment of `apply` leaves the old catalog or the new one, with its own secrets."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.secrets import Secret
from penstock.stores.catalog_store import CatalogStore

# Generation n is: stream s whose text, setting and secret all say n, view `v` + n over it, and no other view.
# With a number of steps given, the process kills itself at that call of a function, ours or the system's, in `apply`.
WRITER = """
import itertools, os, signal, sys
from dataclasses import replace
from penstock.catalog.changes import ChangeSetting, PutObject, RemoveObject
from penstock.catalog.model import InlineSecret
from penstock.secrets import Secret
from penstock.stores.catalog_store import CatalogStore
from tests.unit.catalog.samples import relation_key, source, view

steps = int(sys.argv[2])

def count_down(frame, event, argument):
    global steps
    steps -= 1
    if steps == 0:
        os.kill(os.getpid(), signal.SIGKILL)

with CatalogStore.open(sys.argv[1]) as store:
    first = int(store.settings().get("generation", 0)) + 1
    for n in itertools.count(first):
        changes = [
            PutObject(replace(source("s", secrets=(InlineSecret("s.password", Secret(str(n))),)), text=f"text {n}")),
            PutObject(view(f"v{n}", "s")),
            ChangeSetting("generation", str(n)),
        ]
        if n > 1:
            changes.append(RemoveObject(relation_key(f"v{n - 1}")))
        print(n, flush=True)  # about to write generation n: the one before it is durable
        sys.setprofile(count_down if steps else None)
        store.apply(changes)
        sys.setprofile(None)
        if steps:
            print("left", steps, flush=True)
            break
"""

PLENTY = 1_000_000  # more steps than an `apply` has


def write(path: Path, steps: int, timeout: float | None = None) -> list[str]:
    """Write generations until killed, at a step or after `timeout` seconds; the whole lines that were printed."""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(steps)], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline()]
        if timeout is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout)
            process.send_signal(signal.SIGKILL)
        printed += process.stdout.readlines()
        process.wait()
        assert process.returncode == (0 if printed[-1].startswith("left") else -signal.SIGKILL)
    return [line for line in printed if line.endswith("\n")]


def check(path: Path, announced: int) -> int:
    """The generation that is there after generation `announced` was begun, whole."""
    with CatalogStore.open(path) as store:
        generation = int(store.settings().get("generation", 0))
        objects = {item.key.name: item for item in store.objects()}
        secrets = store.secrets()
    assert generation in {announced - 1, announced}
    assert set(objects) == ({"s", f"v{generation}"} if generation else set())
    if generation:
        assert objects["s"].text == f"text {generation}"
        assert objects[f"v{generation}"].depends_on == (objects["s"].key,)
    assert secrets == ({"s.password": Secret(str(generation))} if generation else {})
    return generation


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("CRASH_SEED", random.SystemRandom().randrange(10**6)))
    print(f"replay with CRASH_SEED={seed}")  # noqa: T201
    return random.Random(seed)  # noqa: S311


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_kill_9_at_any_step_leaves_the_old_or_the_new_catalog(tmp_path: Path, chance: random.Random) -> None:
    path = tmp_path / "state"
    begun, left = write(path, PLENTY)
    steps = PLENTY - int(left.split()[1])
    assert check(path, int(begun)) == 1
    outcomes: set[bool] = set()
    # The commit lies near the end, so points are taken from all of it and, for the new catalog, from its last part.
    points = [chance.randint(1, steps) for _ in range(14)] + [steps - chance.randint(1, 12) for _ in range(4)]
    for point in points:
        announced = int(write(path, point)[0])
        outcomes.add(check(path, announced) == announced)
    assert outcomes == {True, False}, "every kill fell on the same side of the commit"


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_kill_9_at_any_time_leaves_the_old_or_the_new_catalog(tmp_path: Path, chance: random.Random) -> None:
    path = tmp_path / "state"
    for _ in range(10):
        printed = write(path, 0, timeout=chance.uniform(0.001, 0.05))
        check(path, int(printed[-1]))
