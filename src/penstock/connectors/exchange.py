"""What a job and the process that reads a connector for it tell each other: small files beside the state.

The process is Spark's, and Spark passes on no more than offsets. So the engine leaves there what the connector is set
up with (for its owner only: secrets are in it) and how far batches are committed, and the process leaves there how far
it has looked. Everything is gone when the database is closed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from penstock.connectors.connector import Connector, ConnectorConfig
from penstock.frozen import frozen

if TYPE_CHECKING:
    from penstock.connectors.source import ScanRequest

_FOLDER: Final = "reading"
_LONGEST: Final = 60


@frozen
class Look:
    """What the reader saw when it looked last.

    looked_us: when it began to look. caught_up: whether it found the end of what was there. ended: whether there will
    be no more. positions: the next row of each partition.
    """

    looked_us: int
    caught_up: bool
    ended: bool
    positions: Mapping[int, int]


@frozen
class Exchange:
    """The files of one scan of one run of a job."""

    stem: str

    @classmethod
    def of(cls, request: ScanRequest) -> Exchange:
        """The exchange of a scan; its folder is made where it is missing."""
        folder = request.state_path / _FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        parts = (request.job, request.id, str(request.run))
        return cls(str(folder / ".".join(map(_file_name, parts))))

    def set_up(self, name: str, connector: type[Connector], config: ConnectorConfig, partitions: int) -> None:
        """Leave what the reader needs to make connectors."""
        from pyspark import cloudpickle

        packed = cloudpickle.dumps(
            (  # type: ignore[no-untyped-call]
                connector,
                dict(config),
                config.stream,
            )
        )
        text = json.dumps(
            {
                "name": name,
                "path": [entry or os.getcwd() for entry in sys.path],  # noqa: PTH109  as Python itself has it
                "partitions": partitions,
                "packed": base64.b64encode(packed).decode(),
            }
        )
        _write(self._file("setup"), text)

    def setup(self) -> Setup:
        """What was left; modules are found where the program that left it finds them."""
        kept = json.loads(self._file("setup").read_text(encoding="utf-8"))
        sys.path.extend(entry for entry in kept["path"] if entry not in sys.path)
        cls, options, stream = pickle.loads(base64.b64decode(kept["packed"]))  # noqa: S301  written by ourselves
        return Setup(kept["name"], cls, options, stream, kept["partitions"])

    def write_look(self, look: Look) -> None:
        kept = {"at": look.looked_us, "caught_up": look.caught_up, "ended": look.ended}
        _write(self._file("look"), json.dumps({**kept, "p": {str(key): end for key, end in look.positions.items()}}))

    def look(self) -> Look | None:
        """What the reader saw, None before it has looked."""
        kept = self._read("look")
        if kept is None:
            return None
        positions = {int(partition): int(end) for partition, end in kept["p"].items()}
        return Look(int(kept["at"]), bool(kept["caught_up"]), bool(kept["ended"]), positions)

    def write_committed(self, offset: str) -> None:
        """Everything up to this offset of Spark's log is committed."""
        _write(self._file("committed"), offset)

    def committed(self) -> Mapping[str, Any] | None:
        return self._read("committed")

    def ask_to_leave(self) -> None:
        """The run ends: connectors are to be shut down, since Spark kills the process that holds them."""
        _write(self._file("leave"), "")

    def asked_to_leave(self) -> bool:
        return self._file("leave").exists()

    def has_left(self) -> bool:
        return self._file("left").exists()

    def leave(self) -> None:
        """Connectors are shut down."""
        _write(self._file("left"), "")

    def _read(self, kind: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._file(kind).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return found

    def _file(self, kind: str) -> Path:
        return Path(f"{self.stem}.{kind}")


@frozen
class Setup:
    """What a reader makes connectors of."""

    name: str
    connector: type[Connector]
    options: Mapping[str, Any]
    stream: str
    partitions: int

    def config(self, partition: int) -> ConnectorConfig:
        return ConnectorConfig(self.options, stream=self.stream, partition=partition)


def clear_exchanges(state_path: Path) -> None:
    """The database is opened or closed: nobody reads."""
    shutil.rmtree(state_path / _FOLDER, ignore_errors=True)


def _file_name(part: str) -> str:
    """A name as part of a file's; a long one keeps its beginning and a digest of the whole."""
    quoted = quote(part, safe="")
    if len(quoted) <= _LONGEST:
        return quoted
    return f"{quoted[:_LONGEST]}~{hashlib.blake2b(part.encode(), digest_size=8).hexdigest()}"


def _write(path: Path, text: str) -> None:
    """Whole or not at all; it need not survive a power cut."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)
