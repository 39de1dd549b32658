"""A schema registry for tests: the documented routes over HTTP on loopback, in the memory of the test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote


class RegistryServer:
    """Subjects with versions, numbers of schemas, and what the tests want it to do wrong."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []
        self.login: str | None = None  # the Authorization header that is asked for
        self.refused: set[str] = set()  # subjects that take no new version
        self.failing = 0  # how many requests are answered with 503
        self._lock = Lock()
        self._numbers: dict[str, int] = {}
        self._subjects: dict[str, list[int]] = {}
        self.references: dict[str, list[dict[str, Any]]] = {}  # by the text of the schema that has them

    def put(self, subject: str | None, schema: str, number: int | None = None) -> int:
        """Register a schema; without a subject it has a number only."""
        with self._lock:
            given = self._numbers.get(schema) or number or max(self._numbers.values(), default=0) + 1
            self._numbers[schema] = given
            if subject is not None and given not in self._subjects.setdefault(subject, []):
                self._subjects[subject].append(given)
            return given

    def subject(self, name: str) -> list[str]:
        """The schemas of a subject."""
        texts = {number: text for text, number in self._numbers.items()}
        return [texts[number] for number in self._subjects.get(name, [])]

    def answer(self, method: str, path: str, body: Any, login: str | None) -> tuple[int, Any]:
        self.requests.append(f"{method} {path}")
        if self.login is not None and login != self.login:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        if self.failing > 0:
            self.failing -= 1
            return 503, {"error_code": 50003, "message": "Service unavailable"}
        texts = {number: text for text, number in self._numbers.items()}
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            text = texts.get(int(found[1]))
            return (200, {"schema": text}) if text else (404, {"error_code": 40403, "message": "Schema not found"})
        if method == "POST" and (found := re.fullmatch(r"/subjects/([^/]+)", path)):
            return self._looked_up(unquote(found[1]), body["schema"])
        found = re.fullmatch(r"/subjects/([^/]+)/versions(?:/(\d+|latest))?", path)
        if found is None:
            return 404, {"error_code": 404, "message": "Not found"}
        subject, version = unquote(found[1]), found[2]
        if method == "POST":
            if subject in self.refused:
                return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
            return self._registered(subject, body)
        numbers = self._subjects.get(subject)
        if numbers is None:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        if version is None:
            return 200, list(range(1, len(numbers) + 1))
        place = len(numbers) if version == "latest" else int(version)
        if not 1 <= place <= len(numbers):
            return 404, {"error_code": 40402, "message": "Version not found."}
        number = numbers[place - 1]
        return 200, {"subject": subject, "version": place, "id": number, "schema": texts[number]}

    def _looked_up(self, subject: str, schema: str) -> tuple[int, Any]:
        """Which version of a subject a schema is."""
        number, known = self._numbers.get(schema, 0), self._subjects.get(subject, [])
        if number not in known:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 200, {"subject": subject, "version": known.index(number) + 1, "id": number, "schema": schema}

    def _registered(self, subject: str, body: Any) -> tuple[int, Any]:
        for reference in body.get("references", []):
            if not 1 <= reference["version"] <= len(self._subjects.get(reference["subject"], [])):
                return 422, {"error_code": 42201, "message": f"Invalid schema: no reference {reference}"}
            self.references.setdefault(body["schema"], []).append(reference)
        return 200, {"id": self.put(subject, body["schema"])}


@contextmanager
def running_registry() -> Iterator[RegistryServer]:
    """A registry that answers until the test is over."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, found = registry.answer(self.command, self.path, body, self.headers.get("Authorization"))
            told = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
            """Nothing: a test prints no log of a server."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)
