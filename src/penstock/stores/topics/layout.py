"""What a topic is made of, and the file `topic.json` that says so.

The Arrow schema of the stored record is kept beside the declared columns, so that a reader needs nothing else and a
later version can tell that it would read the bytes differently.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from penstock.frozen import frozen
from penstock.stores.arrow_types import arrow_type
from penstock.stores.private_files import write_private
from penstock.stores.topics.faults import topic_damaged, topic_missing
from penstock.types import BINARY, Field, SqlType

if TYPE_CHECKING:
    import pyarrow as pa

TOPIC_FILE: Final = "topic.json"
TIMESTAMP: Final = "__timestamp"
KEY: Final = "__key"
HEADERS: Final = "__headers"
VALUE: Final = "__value"
PARTITION: Final = "__partition"
OFFSET: Final = "__offset"

_FORMAT: Final = 1
# A file name has at most 255 bytes; a longer name keeps its beginning and a digest of the whole.
_LONGEST_NAME: Final = 200


@frozen
class TopicLayout:
    """How a topic is kept. `columns` None: bytes, a key and a value like a record of Kafka.

    `retention_bytes` is for each partition. `fsync`: 'always' forces rows to disk before they count, 'interval' about
    every second, 'never' leaves it to the operating system.
    """

    columns: tuple[tuple[str, SqlType], ...] | None
    partitions: int = 1
    retention_us: int | None = None
    retention_bytes: int | None = None
    fsync: str = "always"


@frozen
class TopicFile:
    """What `topic.json` holds. `id` tells a topic from another one of the same name that was there before it."""

    name: str
    id: str
    layout: TopicLayout
    schema: pa.Schema


def topic_directory(root: Path, name: str) -> Path:
    """Where the topic of this name is kept.

    >>> topic_directory(Path("topics"), "a/b").name, topic_directory(Path("topics"), "..").name
    ('a%2Fb', '%2E%2E')
    """
    encoded = quote(name, safe="")
    if encoded.startswith("."):
        encoded = encoded.replace(".", "%2E")
    if len(encoded) > _LONGEST_NAME:
        digest = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        encoded = f"{encoded[: _LONGEST_NAME - 40].rstrip('%')}~{digest}"
    return root / encoded


def stored_schema(layout: TopicLayout) -> pa.Schema:
    """The Arrow schema of a stored record: the hidden columns of a record of Kafka, then the columns or the value."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    columns = ((VALUE, BINARY),) if layout.columns is None else layout.columns
    return pa.schema(
        [
            pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC")),
            pa.field(KEY, pa.binary()),
            pa.field(HEADERS, pa.list_(pa.field("element", header))),
            *(pa.field(name, arrow_type(type_)) for name, type_ in columns),
        ]
    )


def new_topic_file(name: str, layout: TopicLayout) -> TopicFile:
    """What a new topic writes down about itself."""
    return TopicFile(name, uuid.uuid4().hex, layout, stored_schema(layout))


def write_topic_file(directory: Path, file: TopicFile) -> None:
    """Write `topic.json`; a crash leaves the old one or the new one."""
    layout = file.layout
    columns = None if layout.columns is None else [[name, _written(type_)] for name, type_ in layout.columns]
    content = {
        "format": _FORMAT,
        "name": file.name,
        "id": file.id,
        "columns": columns,
        "partitions": layout.partitions,
        "retention_us": layout.retention_us,
        "retention_bytes": layout.retention_bytes,
        "fsync": layout.fsync,
        "arrow_schema": base64.b64encode(file.schema.serialize().to_pybytes()).decode("ascii"),
    }
    write_private(directory / TOPIC_FILE, json.dumps(content, indent=1).encode())


def read_topic_file(directory: Path) -> TopicFile:
    """Read `topic.json` of a topic's directory."""
    import pyarrow as pa

    path = directory / TOPIC_FILE
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise topic_missing(directory) from None
    try:
        content = json.loads(text)
        if content["format"] != _FORMAT:
            raise topic_damaged(path, f"format {content['format']} is not known to this version")
        columns = content["columns"]
        layout = TopicLayout(
            None if columns is None else tuple((name, _read_type(type_)) for name, type_ in columns),
            partitions=content["partitions"],
            retention_us=content["retention_us"],
            retention_bytes=content["retention_bytes"],
            fsync=content["fsync"],
        )
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["arrow_schema"])))
        return TopicFile(content["name"], content["id"], layout, schema)
    except (ValueError, KeyError, TypeError, OSError, pa.ArrowException) as error:
        raise topic_damaged(path, str(error).lower()[:200]) from None


def _written(type_: SqlType) -> list[Any]:
    fields = [[field.name, _written(field.type)] for field in type_.fields]
    return [type_.name, list(type_.parameters), [_written(part) for part in type_.elements], fields]


def _read_type(written: list[Any]) -> SqlType:
    name, parameters, elements, fields = written
    return SqlType(
        name,
        tuple(parameters),
        tuple(_read_type(part) for part in elements),
        tuple(Field(part, _read_type(type_)) for part, type_ in fields),
    )
