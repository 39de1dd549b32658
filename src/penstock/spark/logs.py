"""Where Spark writes: a log of bounded size, and a file for what its processes print past the log."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_LARGEST_OUTPUT: Final = 16 * 1024**2

# Levels: what Spark warns of in ordinary work, and we know of, is left out.
_LOG4J2: Final = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 16MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.checker.name = org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
logger.checker.level = error
logger.kafka.name = org.apache.kafka
logger.kafka.level = error
logger.resolve.name = org.apache.spark.sql.execution.streaming.runtime.ResolveWriteToStream
logger.resolve.level = error
"""


def write_logging(configuration: Path, directory: Path) -> None:
    """Write log4j's configuration: `spark.log` in the directory, 16 MB at most, three older ones kept."""
    # log4j reads `$` and `\\` in a value as its own.
    log = str((directory / "spark.log").absolute()).replace("\\", "\\\\").replace("$", "$$")
    # A file of properties is read as ISO 8859-1, whatever is written into it.
    configuration.write_text(_LOG4J2.format(log=_java_escapes(log)), "ascii")


def _java_escapes(text: str) -> str:
    r"""The text with what is not ASCII as Java writes it.

    >>> print(_java_escapes("ü 𝄞"))
    \u00fc \ud834\udd1e
    """
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[place : place + 2]) for place in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def open_output(directory: Path) -> int:
    """A descriptor for `spark.out`, where the standard output and error of Spark's processes go."""
    path = directory / "spark.out"
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > _LARGEST_OUTPUT:
            path.replace(path.with_name("spark.out.1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
