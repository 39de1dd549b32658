"""The HTTP sink: a web service is sent the rows of each batch, at least once.

A batch is cut into requests of `rows_per_request` rows. Each carries an `Idempotency-Key` of the job, the batch, the
part and its content: a request that is sent again, after an error or after a crash, has the same key, so a service that
keeps keys takes every row once. The key of another job, or of a job that was created anew, is another one.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from penstock.connectors.http_answers import parts_of_address
from penstock.connectors.http_client import Endpoint, HttpClient
from penstock.connectors.option_values import integer, microseconds, text
from penstock.connectors.secret_values import revealed
from penstock.connectors.sink import record_values
from penstock.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext
    from penstock.stores.topics.store import TopicStore

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_CONTENT_TYPES: Final = {"json": "application/json", "csv": "text/csv; charset=utf-8"}
_OURS: Final = frozenset({"content-length", "content-type", "host", "idempotency-key", "transfer-encoding"})
_PUBLIC: Final = ("Content-Type", "User-Agent")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BACKOFF_US: Final = 500_000
_TIMEOUT_US: Final = 10_000_000


class HttpSink:
    """Sends rows to web services."""

    takes_frame = False
    exactly_once = False

    def prepare(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing is needed."""

    def forget(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing was made."""

    def check(self, context: SinkContext) -> None:
        endpoint_of(context.definition, context.state_path)

    def reach(self, context: SinkContext) -> None:
        with HttpClient(endpoint_of(context.definition, context.state_path)) as client:
            client.reach()

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int | None) -> None:
        if rows.num_rows == 0:
            return
        options = context.definition.options
        records = [record or b"" for record in record_values(rows, context).to_pylist()]
        batch = _batch_key(context, batch_id)
        with HttpClient(endpoint_of(context.definition, context.state_path)) as client:
            for part, body in enumerate(bodies(records, options.format, integer(options.values, "rows_per_request"))):
                client.send(body, {IDEMPOTENCY_KEY: f"{batch}-{part}-{hashlib.sha256(body).hexdigest()[:16]}"})


def _batch_key(context: SinkContext, batch_id: int | None) -> str:
    """What is the same whenever a batch is written; rows without a batch are written once, whoever asks."""
    return f"{quote(context.producer, safe='@')}-{uuid.uuid4().hex if batch_id is None else batch_id}"


def bodies(records: list[bytes], format_: str | None, rows_per_request: int | None) -> Iterator[bytes]:
    """What the requests of a batch hold: a record each, or several as a JSON array or as lines.

    >>> list(bodies([b'{"a":1}', b'{"a":2}', b'{"a":3}'], "json", 2))
    [b'[{"a":1},{"a":2}]', b'[{"a":3}]']
    """
    size = rows_per_request or 1
    for first in range(0, len(records), size):
        part = records[first : first + size]
        if format_ == "json" and size > 1:
            yield b"[" + b",".join(part) + b"]"
        else:
            yield b"\n".join(part)


def endpoint_of(definition: SinkDefinition, state_path: Path) -> Endpoint:
    """Where to send to and how, with every secret read; refused by name where an option cannot be used."""
    values = definition.options.values
    address = str(revealed(values["url"], state_path))
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or not _printable(address):
        raise OptionError(
            "INVALID_OPTION",
            f"option url of sink {definition.name} must be an address that begins with http:// or https://",
        )
    path = parts.path or "/"
    target = f"{path}?{parts.query}" if parts.query else path
    headers = _headers(definition, state_path, parts.username, parts.password)
    return Endpoint(
        sink=str(definition.name),
        secure=parts.scheme == "https",
        host=parts.hostname,
        port=port or (443 if parts.scheme == "https" else 80),
        target=target,
        method=text(values, "method") or "POST",
        headers=headers,
        timeout_s=(microseconds(values, "timeout") or _TIMEOUT_US) / 1e6,
        retries=5 if (retries := integer(values, "max_retries")) is None else retries,
        backoff_s=(microseconds(values, "backoff") or _BACKOFF_US) / 1e6,
        secrets=(*parts_of_address(target), *_given_secrets(definition, state_path, parts.password), *_sent(headers)),
    )


def _given_secrets(definition: SinkDefinition, state_path: Path, url_password: str | None) -> Iterator[str]:
    values = definition.options.values
    for key in ("password", "token"):
        if key in values:
            yield str(revealed(values[key], state_path))
    if url_password:
        yield unquote(url_password)


def _sent(headers: Mapping[str, str]) -> Iterator[str]:
    """What headers of the user hold; a service may repeat what an Authorization header says without its first word."""
    for name, value in headers.items():
        if name not in _PUBLIC:
            yield value
            if name == "Authorization":
                yield value.partition(" ")[2]


def _headers(
    definition: SinkDefinition, state_path: Path, url_user: str | None, url_password: str | None
) -> Mapping[str, str]:
    values = definition.options.values
    content_type = _CONTENT_TYPES.get(str(definition.options.format), "application/octet-stream")
    found = dict(zip(_PUBLIC, (content_type, "penstock"), strict=True))

    def secret(key: str) -> str | None:
        value = values.get(key)
        return None if value is None else str(revealed(value, state_path))

    user, password = secret("username"), secret("password")
    if user is None and url_user is not None:
        user, password = unquote(url_user), unquote(url_password or "")
    token = secret("token")
    if user is not None and token is not None:
        raise OptionError(
            "CONFLICTING_OPTIONS",
            f"sink {definition.name} has a user, and option token beside it",
            hint="a request has one Authorization header; keep one of them",
        )
    if user is not None:
        found["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()
    if token is not None:
        found["Authorization"] = f"Bearer {token}"
    for pair in (secret("headers") or "").split(","):
        name, _, value = pair.partition(":")
        if pair:
            found[_checked_name(name.strip(), "headers", definition)] = value.strip()
    for key in values:
        if key.startswith("header."):
            found[_checked_name(key.removeprefix("header."), key, definition)] = secret(key) or ""
    for name, value in found.items():
        if not _printable(value):
            raise OptionError(
                "INVALID_OPTION",
                f"header {name} of sink {definition.name} holds a character that no header can",
                hint="headers are one line of printable ASCII",
            )
    return found


def _checked_name(name: str, key: str, definition: SinkDefinition) -> str:
    if not _NAME.fullmatch(name):
        raise OptionError(
            "INVALID_OPTION",
            f"option {key} of sink {definition.name} must be headers such as 'X-Team:data, X-Stage:test'",
        )
    if name.lower() in _OURS:
        raise OptionError(
            "INVALID_OPTION", f"option {key} of sink {definition.name} sets {name}, which Penstock sets itself"
        )
    return name


def _printable(value: str) -> bool:
    return value.isascii() and value.isprintable()
