"""Our own classes in Spark's JVM: they are compiled once for each version, and kept for the user.

`QuickJson` reads JSON records, `Watch` finds the largest event times. They are compiled by the compiler that Spark
generates code with, so a machine needs nothing but the Java that runs Spark.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from penstock.errors import RuntimeFailure
from penstock.spark.jar_cache import cache_directory
from penstock.spark.java import require_java

_SOURCES: Final = Path(__file__).parent / "java"
_BUILD: Final = _SOURCES / "Build.java"
_CLASSES: Final = (_SOURCES / "QuickJson.java", _SOURCES / "Watch.java")
_SECONDS_TO_BUILD: Final = 300
_TOLD: Final = 2_000


def own_jar(otherwise: Path) -> Path:
    """The jar, made where it is not there yet: in the user's cache, or in a directory where that cannot be written."""
    text = b"".join(source.read_bytes() for source in (_BUILD, *_CLASSES))
    key = hashlib.sha256(text + version("pyspark").encode()).hexdigest()[:16]
    name = f"penstock-{key}.jar"
    places = (cache_directory(), otherwise.absolute())
    for place in places:
        if (place / name).is_file():
            return place / name
    why = ""
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".build-", dir=place) as made:
                jar = Path(made) / name
                _build(jar)
                return jar.replace(place / name)  # whole or not at all
        except OSError as error:
            why = f"{place} cannot be written: {(error.strerror or 'error').lower()}"
    raise _failed(why)


def _build(jar: Path) -> None:
    command = [
        str(require_java().home / "bin" / "java"), "-cp", str(_spark_jars() / "*"),
        "org.codehaus.janino.SimpleCompiler", str(_BUILD), "Build", str(jar), *map(str, _CLASSES),
    ]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS_TO_BUILD, check=False
        )
    except subprocess.TimeoutExpired:
        raise _failed("it took too long") from None
    if done.returncode != 0 or not jar.is_file():
        raise _failed("Java ended with an error", detail=(done.stdout + done.stderr).strip()[-_TOLD:])


def _spark_jars() -> Path:
    found = find_spec("pyspark")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    return Path(places[0] if places else "") / "jars"


def _failed(why: str, detail: str | None = None) -> RuntimeFailure:
    return RuntimeFailure(
        "SPARK_FAILED",
        f"our classes for its JVM could not be compiled: {why}",
        hint="run: penstock doctor",
        detail=detail,
    )
