"""The client of a schema registry, over the HTTP routes that Confluent's registry documents.

A schema never changes under its number, so each is asked for once in a process. The certificate of an https registry is
checked, nobody is followed to another address, and an answer may not be larger than a schema can be. Messages name the
host of a registry and what it said, never how we log in.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from http.client import HTTPConnection, HTTPException
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from penstock.connectors.http_client import ForbiddenAddress, open_socket
from penstock.errors import NotYetError, OptionError, RuntimeFailure
from penstock.frozen import frozen

Reference = tuple[str, str, int]  # by which name a schema asks for another one, its subject and version
_TIMEOUT_S: Final = 10.0
_TRIES: Final = 3
_WAIT_S: Final = 0.3
_LARGEST: Final = 1 << 20
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json"
_PASSING: Final = frozenset({408, 425, 429})
_NOT_FOUND: Final = 404
_CONFLICT: Final = frozenset({409, 422})
_ABSENT_S: Final = 30.0  # how long a number that the registry did not know is not asked for again
_TOLD: Final = 300


@frozen
class RegistryAccess:
    """Where a registry is, and how we log in."""

    secure: bool
    host: str
    port: int
    path: str
    headers: Mapping[str, str] = field(hash=False, repr=False)

    @property
    def origin(self) -> str:
        """The registry as a message may name it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.secure else ''}://{host}:{self.port}"


class SchemaRegistry:
    """One registry; its schemas are kept as long as the process lives."""

    def __init__(self, access: RegistryAccess) -> None:
        self._access = access
        self._lock = Lock()
        self._schemas: dict[int, str] = {}
        self._absent: dict[int, float] = {}
        self._versions: dict[tuple[str, int], tuple[int, str]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._learned: dict[str, set[int]] = {}

    def by_id(self, number: int) -> str | None:
        """The schema of a number; None where there is none."""
        with self._lock:
            found, absent = self._schemas.get(number), self._absent.get(number, 0.0)
        if found is not None or time.monotonic() < absent:
            return found
        answer = self._ask("GET", f"/schemas/ids/{number}")
        with self._lock:
            if answer is None:
                self._absent[number] = time.monotonic() + _ABSENT_S
                return None
            return self._schemas.setdefault(number, self._schema(answer))

    def versions(self, subject: str) -> Sequence[tuple[int, str]]:
        """The schemas of a subject with their numbers, the newest last; none where there is no such subject."""
        place = f"/subjects/{quote(subject, safe='')}/versions"
        listed = self._ask("GET", place)
        if not isinstance(listed, list):
            return ()
        found: list[tuple[int, str]] = []
        for version in sorted(int(one) for one in listed):
            kept = self._versions.get((subject, version))
            if kept is None:
                answer = self._ask("GET", f"{place}/{version}")
                if answer is None:
                    continue  # it was deleted just now
                kept = (self._number(answer), self._schema(answer))
                with self._lock:
                    self._versions[subject, version] = kept
                    self._schemas.setdefault(*kept)
            found.append(kept)
        return found

    def register(self, subject: str, text: str, kind: str = "AVRO", references: Sequence[Reference] = ()) -> int:
        """The number of a schema, which is put into the subject where it is not there yet."""
        with self._lock:
            known = self._numbers.get((subject, text))
        if known is not None:
            return known
        body = _body(text, kind, references)
        answer = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body, about=subject)
        if answer is None:
            raise self._refused(f"knows no subject {subject} to put a schema into")
        number = self._number(answer)
        with self._lock:
            self._numbers[subject, text] = number
        return number

    def version_of(self, subject: str, text: str, kind: str, references: Sequence[Reference] = ()) -> int:
        """Which version of its subject a schema is that was registered."""
        answer = self._ask("POST", f"/subjects/{quote(subject, safe='')}", _body(text, kind, references), about=subject)
        if not isinstance(answer, dict) or not isinstance(answer.get("version"), int):
            raise self._refused(f"does not tell the version of the schema that it took for subject {subject}")
        return int(answer["version"])

    def learned(self, scope: str) -> Sequence[int]:
        """The numbers that records of a scope had although its subjects do not list them."""
        with self._lock:
            return sorted(self._learned.get(scope, ()))

    def learn(self, scope: str, number: int) -> None:
        """Remember such a number as long as the process lives."""
        with self._lock:
            self._learned.setdefault(scope, set()).add(number)

    def forget_absent(self) -> None:
        """Ask for numbers again that were not there."""
        with self._lock:
            self._absent.clear()

    # one request

    def _ask(self, method: str, place: str, body: object = None, about: str = "") -> Any:
        """The answer to a request, as JSON; None where what is asked for is not there."""
        reason = ""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_WAIT_S * attempt)
            try:
                status, answer = self._exchange(method, place, body)
            except (OSError, HTTPException) as error:
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise self._refused(f"has no certificate to be trusted ({error.verify_message})") from None
                reason = "does not answer in time" if isinstance(error, TimeoutError) else "cannot be reached"
                continue
            except ForbiddenAddress as error:
                raise self._refused(str(error)) from None
            if status < 300:
                return answer
            if status == _NOT_FOUND:
                return None
            if status in _CONFLICT and about:
                raise self._refused(f"does not take the schema for subject {about}: {_said(answer)}")
            if status < 500 and status not in _PASSING:
                raise self._refused(f"answers with {status}: {_said(answer)}")
            reason = f"answers with {status}"
        raise RuntimeFailure(
            "REGISTRY_UNAVAILABLE",
            f"the schema registry {self._access.origin} {reason}",
            hint="look at the registry and at schema_registry.url; a job that runs tries again by itself",
        )

    def _exchange(self, method: str, place: str, body: object) -> tuple[int, Any]:
        access = self._access
        connection = HTTPConnection(access.host, access.port, timeout=_TIMEOUT_S)
        connection.sock = open_socket(access.host, access.port, secure=access.secure, timeout_s=_TIMEOUT_S)
        try:
            headers = {"Accept": _ACCEPT, **access.headers}
            sent = None if body is None else json.dumps(body).encode()
            if sent is not None:
                headers["Content-Type"] = _ACCEPT
            connection.request(method, access.path + place, sent, headers)
            response = connection.getresponse()
            told = response.read(_LARGEST + 1)
        finally:
            connection.close()
        if len(told) > _LARGEST:
            raise self._refused(f"sends more than {_LARGEST} bytes")
        try:
            return response.status, json.loads(told)
        except ValueError:
            if response.status < 300:
                raise self._refused("does not answer in JSON, so it is no schema registry") from None
            return response.status, None

    def _schema(self, answer: Any) -> str:
        kind = answer.get("schemaType", "AVRO") if isinstance(answer, dict) else None
        if kind is None or not isinstance(answer.get("schema"), str):
            raise self._refused("answers without a schema")
        if kind != "AVRO" or answer.get("references"):
            # Kept as it is: only records that have this schema are in the way.
            return json.dumps(f"{kind} schema" if kind != "AVRO" else "schema that refers to others")
        return str(answer["schema"])

    def _number(self, answer: Any) -> int:
        if not isinstance(answer, dict) or not isinstance(answer.get("id"), int):
            raise self._refused("answers without the number of a schema")
        return int(answer["id"])

    def _refused(self, reason: str) -> RuntimeFailure:
        return RuntimeFailure(
            "REGISTRY_REFUSED",
            f"the schema registry {self._access.origin} {reason}",
            hint="look at schema_registry.url, the login and the schema, then RESUME JOB",
        )


_clients: Final[dict[tuple[object, ...], SchemaRegistry]] = {}
_clients_lock: Final = Lock()


def registry_of(options: Mapping[str, object], reveal: Callable[[object], object]) -> SchemaRegistry:
    """The registry that options name; the same one for the same address and login."""
    access = registry_access(options, reveal)
    key = (access.origin, access.path, *sorted(access.headers.items()))
    with _clients_lock:
        return _clients.setdefault(key, SchemaRegistry(access))


def look_again() -> None:
    """Somebody says that schemas are there which were not."""
    with _clients_lock:
        clients = list(_clients.values())
    for client in clients:
        client.forget_absent()


def registry_access(options: Mapping[str, object], reveal: Callable[[object], object]) -> RegistryAccess:
    """How the registry is reached that options name."""

    def read(name: str) -> str | None:
        value = options.get(f"schema_registry.{name}")
        return None if value is None else str(reveal(value))

    url = read("url")
    if url is None:
        raise OptionError(
            "MISSING_OPTION",
            "records with the number of their schema need the option schema_registry.url",
            hint="add schema_registry.url = 'http://…', the address of the schema registry",
        )
    wanted = read("credentials")
    if wanted == "SASL_INHERIT":
        raise NotYetError(
            "QUERY_NOT_YET",
            "schema_registry.credentials = 'SASL_INHERIT' is not there yet",
            hint="give schema_registry.username and schema_registry.password",
        )
    place = urlsplit(url.strip().rstrip("/"))
    try:
        port = place.port
    except ValueError:
        port = -1
    if place.scheme not in ("http", "https") or not place.hostname or port == -1 or place.query or place.fragment:
        raise OptionError("INVALID_OPTION", "schema_registry.url is no address of a registry", hint="http://host:8081")
    login = read("user_info")
    if login is None and read("username") is not None:
        login = f"{read('username')}:{read('password') or ''}"
    written = None if place.username is None else f"{unquote(place.username)}:{unquote(place.password or '')}"
    if wanted == "URL" and (written is None or login is not None):
        raise OptionError(
            "CONFLICTING_OPTIONS" if login is not None else "MISSING_OPTION",
            "schema_registry.credentials = 'URL' takes user and password from schema_registry.url",
            hint="write http://user:password@host there and no other login, or leave schema_registry.credentials out",
        )
    if wanted == "USER_INFO" and login is None:
        raise OptionError(
            "MISSING_OPTION",
            "schema_registry.credentials = 'USER_INFO' needs the option schema_registry.user_info",
            hint="add schema_registry.user_info = 'user:password', as a reference",
        )
    login = login or written
    headers: dict[str, str] = {}
    token = read("token")
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    elif login is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    secure = place.scheme == "https"
    return RegistryAccess(secure, place.hostname, port or (443 if secure else 80), place.path, headers)


def _body(text: str, kind: str, references: Sequence[Reference]) -> dict[str, object]:
    body: dict[str, object] = {"schema": text, "schemaType": kind}
    if references:
        body["references"] = [{"name": name, "subject": at, "version": version} for name, at, version in references]
    return body


def _said(answer: Any) -> str:
    told = answer.get("message") if isinstance(answer, dict) else None
    return " ".join(str(told).split())[:_TOLD] if told else "no reason given"
