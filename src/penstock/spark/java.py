"""Which Java Spark will run on, or what to install so that there is one.

Looks where a user would: `JAVA_HOME`, the `PATH`, and the places where packages put it. Needs no Spark, so that
`penstock doctor` can tell what is missing on a machine where nothing works yet.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen

OLDEST: Final = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)(?:[^"]*)"')
_SECONDS_TO_ANSWER: Final = 20

_USUAL_PLACES: Final = (
    "/usr/lib/jvm/*/",
    "/usr/java/*/",
    "/opt/java/*/",
    "/opt/jdk*/",
    "/opt/homebrew/opt/openjdk*/",
    "/usr/local/opt/openjdk*/",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home/",
)


@frozen
class JavaFound:
    """A Java that Spark can use: its home directory and major version."""

    home: Path
    version: int


@frozen
class JavaProblem:
    """Why there is no Java to use, and the command that mends it."""

    problem: str
    remedy: str


def find_java(environment: Mapping[str, str] | None = None) -> JavaFound | JavaProblem:
    """The Java to run Spark on: `JAVA_HOME` if it will do, else the first on the `PATH`, else the newest installed."""
    environment = os.environ if environment is None else environment
    too_old: list[str] = []
    asked = environment.get("JAVA_HOME")
    for home in _candidates(environment):
        version = java_version(home)
        if version is not None and version >= OLDEST:
            return JavaFound(home, version)
        if version is not None:
            too_old.append(f"Java {version} in {home}")
    if too_old:
        problem = f"Spark needs Java {OLDEST} or newer, found {too_old[0]}"
    elif asked:
        problem = f"JAVA_HOME names {asked}, where no Java is, and none is installed elsewhere"
    else:
        problem = f"Spark needs Java {OLDEST} or newer and none is installed"
    return JavaProblem(problem, remedy())


def require_java(environment: Mapping[str, str] | None = None) -> JavaFound:
    """The Java to run Spark on; JAVA_MISSING, with the command that installs one, where there is none."""
    found = find_java(environment)
    if isinstance(found, JavaProblem):
        raise RuntimeFailure("JAVA_MISSING", found.problem, hint=found.remedy)
    return found


def remedy() -> str:
    """What to type to get a Java on this machine."""
    if shutil.which("apt-get"):
        sudo = "" if os.geteuid() == 0 else "sudo "
        return f"{sudo}apt-get install -y openjdk-{OLDEST}-jre-headless"
    if shutil.which("dnf"):
        return f"sudo dnf install -y java-{OLDEST}-openjdk-headless"
    if platform.system() == "Darwin" and shutil.which("brew"):
        return f"brew install openjdk@{OLDEST}"
    return f"install a Java {OLDEST} or newer, for instance Eclipse Temurin, and set JAVA_HOME to where it is"


def java_version(home: Path) -> int | None:
    """The major version of the Java in a home directory; None where none runs.

    The file `release` tells without starting a JVM; where there is none, the program is asked.
    """
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    try:
        written = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', (home / "release").read_text("utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        written = None
    if written is not None:
        return int(written[1])
    try:
        told = subprocess.run(  # noqa: S603 - a program the user has installed, without arguments of theirs
            [program, "-version"], capture_output=True, text=True, timeout=_SECONDS_TO_ANSWER, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    match = _VERSION.search(told.stderr + told.stdout)
    return int(match[1]) if match else None


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    seen: set[Path] = set()
    for home in _homes(environment):
        real = home.resolve()
        if real not in seen:
            seen.add(real)
            yield real


def _homes(environment: Mapping[str, str]) -> Iterator[Path]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    program = shutil.which("java", path=environment.get("PATH", ""))
    if program:
        # `java` on the PATH is a chain of links into bin/ of its home.
        yield Path(program).resolve().parent.parent
    installed = [home for place in _USUAL_PLACES for home in Path("/").glob(place.lstrip("/"))]
    yield from sorted(installed, key=lambda home: (java_version(home) or 0, str(home)), reverse=True)
