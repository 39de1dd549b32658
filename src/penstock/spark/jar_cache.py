"""The jars of connectors on this machine: fetched once, checked each time, kept for every project of the user.

They are fetched by the Ivy inside Spark's wheel, which asks whichever repository the machine is set up for. What
arrives is compared with the pins before it is put into the cache, and again before Spark gets it. A full cache needs no
network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from penstock.errors import RuntimeFailure
from penstock.spark.jar_pins import JAR_SETS, Jar, JarSet, jar_set
from penstock.spark.java import require_java

VARIABLE: Final = "PENSTOCK_CONNECTOR_CACHE"
# A file of settings for Ivy, where the repository that it asks by itself is not the right one.
SETTINGS: Final = "PENSTOCK_IVY_SETTINGS"
_SECONDS_TO_FETCH: Final = 900
_TOLD: Final = 2_000


def cache_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Where jars are kept: `PENSTOCK_CONNECTOR_CACHE`, or `penstock/jars` in the user's cache directory."""
    environment = os.environ if environment is None else environment
    if environment.get(VARIABLE):
        return Path(environment[VARIABLE]).absolute()
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "penstock" / "jars"


class JarCache:
    """The cache in one directory. Two processes may fill it at the same time: one waits for the other."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or cache_directory()

    def installed(self, name: str) -> bool:
        """Whether every jar of a connector is there; what they hold is looked at by `paths`."""
        return not self._missing(jar_set(name))

    def paths(self, name: str) -> list[Path]:
        """The files of a connector, each compared with its pin; CONNECTOR_MISSING or CHECKSUM_MISMATCH otherwise."""
        wanted = jar_set(name)
        if self._missing(wanted):
            raise RuntimeFailure(
                "CONNECTOR_MISSING",
                f"the jars of connector {name} are not installed",
                hint=f"run: penstock connector install {name}",
            )
        for jar in wanted.jars:
            self._check(self.directory / jar.file, jar, f"run: penstock connector install {name}")
        return [self.directory / jar.file for jar in wanted.jars]

    def for_spark(self) -> list[Path]:
        """The files of every connector that is installed and whole, for the class path of Spark."""
        found: list[Path] = []
        for one in JAR_SETS:
            if one.on_spark and not self._wrong(one):
                found += [self._at(jar) for jar in one.jars]
        return found

    def install(self, names: Collection[str], tell: Callable[[str], None]) -> list[str]:
        """Fetch what is missing or not as pinned; the names of the connectors that needed it.

        `tell` gets a line before each connector that takes time.
        """
        sets = [jar_set(name) for name in names]
        fetched: list[str] = []
        for wanted in sets:
            if not self._wrong(wanted):
                continue
            with self._turn():
                wrong = self._wrong(wanted)  # another process may have been quicker
                if wrong:
                    tell(f"installing connector {wanted.name}: {len(wrong)} files into {self.directory}")
                    self._fetch(wanted, wrong)
                    fetched.append(wanted.name)
        return fetched

    def _fetch(self, wanted: JarSet, jars: list[Jar]) -> None:
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=self.directory) as made:
            place = Path(made)
            run_ivy(jars, place)
            for jar in jars:
                arrived = place / "jars" / jar.file
                if not arrived.is_file():
                    raise _failed(wanted.name, f"{jar.file} did not arrive")
                self._check(arrived, jar, "the repository that this machine asks holds another file of this name")
            for jar in jars:
                (place / "jars" / jar.file).replace(self._at(jar))

    def _at(self, jar: Jar) -> Path:
        return self.directory / jar.file

    def _missing(self, wanted: JarSet) -> list[Jar]:
        return [jar for jar in wanted.jars if not self._at(jar).is_file()]

    def _wrong(self, wanted: JarSet) -> list[Jar]:
        return [jar for jar in wanted.jars if not self._at(jar).is_file() or _sha256(self._at(jar)) != jar.sha256]

    def _check(self, path: Path, jar: Jar, hint: str) -> None:
        found = _sha256(path)
        if found != jar.sha256:
            raise RuntimeFailure(
                "CHECKSUM_MISMATCH",
                f"{jar.file} is not the file that is pinned: its SHA-256 is {found}, not {jar.sha256}",
                hint=hint,
            )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        import fcntl

        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = (self.directory / ".lock").open("w")
        except OSError as error:
            raise RuntimeFailure(
                "DOWNLOAD_FAILED",
                f"the cache {self.directory} cannot be written: {(error.strerror or 'error').lower()}",
                hint=f"set {VARIABLE} to a directory that can be",
            ) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def run_ivy(jars: Collection[Jar], place: Path) -> None:
    """Have Ivy put jars into `jars/` of a directory; it keeps nothing elsewhere."""
    wanted = place / "ivy.xml"
    wanted.write_text(ivy_module(jars), "utf-8")
    names = ", ".join(jar.file for jar in jars)
    settings = os.environ.get(SETTINGS)
    command = [
        str(require_java().home / "bin" / "java"), "-cp", str(_ivy_jar()), "org.apache.ivy.Main",
        *(["-settings", settings] if settings else []),
        "-cache", str(place / "cache"), "-ivy", str(wanted), "-types", "jar", "bundle",
        "-retrieve", str(place / "jars" / "[artifact]-[revision].[ext]"),
    ]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS_TO_FETCH, check=False
        )
    except subprocess.TimeoutExpired:
        raise _failed(names, "it took too long") from None
    except OSError as error:
        raise _failed(names, str(error.strerror).lower()) from error
    if done.returncode != 0:
        told = (done.stdout + done.stderr).strip()
        raise _failed(names, "Ivy could not find or fetch all of them", detail=told[-_TOLD:])
    shutil.rmtree(place / "cache", ignore_errors=True)


def ivy_module(jars: Collection[Jar]) -> str:
    """What Ivy is asked for: exactly these, and nothing that they in turn would like."""
    lines = [
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.module)} rev={quoteattr(jar.version)} "
        'transitive="false"/>'
        for jar in jars
    ]
    return (
        '<ivy-module version="2.0"><info organisation="penstock" module="connectors"/>\n<dependencies>\n'
        + "\n".join(lines)
        + "\n</dependencies></ivy-module>\n"
    )


def _ivy_jar() -> Path:
    from importlib.util import find_spec

    found = find_spec("pyspark")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    for place in places:
        for jar in sorted((Path(place) / "jars").glob("ivy-*.jar"), reverse=True):
            return jar
    raise RuntimeFailure(
        "INSTALLATION_UNUSABLE",
        "pyspark has no Ivy, which fetches the jars of connectors",
        hint="install the wheel of pyspark as it is published",
    )


def _failed(what: str, why: str, detail: str | None = None) -> RuntimeFailure:
    return RuntimeFailure(
        "DOWNLOAD_FAILED",
        f"cannot install {what}: {why}",
        hint="look at the network and at how this machine reaches its Maven repository, then try again",
        detail=detail,
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
