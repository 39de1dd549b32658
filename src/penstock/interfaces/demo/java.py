"""A Java for the demo: the one that is there, one that apt installs, or the command to type."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

from penstock.spark.java import OLDEST, JavaFound, find_java, remedy

# The second is what a distribution has that is too new for the first.
_PACKAGES: Final = (f"openjdk-{OLDEST}-jre-headless", "default-jre-headless")


def have_java(*, install: bool) -> bool:
    """Whether Spark has a Java to run on, after installing one where that was asked for and can be done."""
    found = find_java()
    if isinstance(found, JavaFound):
        return True
    sys.stdout.write(f"{found.problem}\n")
    root = _as_root() if install else None
    if root is not None:
        for package in _PACKAGES:
            if _install([*root, "apt-get"], package) and isinstance(find_java(), JavaFound):
                return True
    sys.stderr.write(f"no Java for Spark; install one and try again:\n  {remedy()}\n")
    return False


def _as_root() -> list[str] | None:
    """What to put in front of apt-get; None where it cannot be used without asking for a password."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None or _run(["sudo", "-n", "true"]) != 0:
        return None
    return ["sudo", "-n"]


def _install(apt: list[str], package: str) -> bool:
    sys.stdout.write(f"installing {package} with apt-get …\n")
    sys.stdout.flush()
    return _run([*apt, "update", "-q"]) == 0 and _run([*apt, "install", "-y", "-q", package]) == 0


def _run(command: list[str]) -> int:
    # Its own output only matters when it fails, and then the command to type says more.
    done = subprocess.run(  # noqa: S603 - fixed words, nothing of the user's
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env={**os.environ, **_NO_QUESTIONS}
    )
    return done.returncode


_NO_QUESTIONS: Final = {"DEBIAN_FRONTEND": "noninteractive"}
