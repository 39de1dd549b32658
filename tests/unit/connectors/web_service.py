"""A real web service in a thread, for the tests of the HTTP sink: it does what it is told and remembers what it got."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Got:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]


@dataclass
class Answer:
    """What the service answers with."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    drop: bool = False
    body: bytes = b"ok"


@dataclass
class Service:
    """The requests so far, and how the next ones are answered: in turn, then with 200."""

    url: str = ""
    got: list[Got] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    by_path: Callable[[str], Answer | None] = lambda _: None

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.got]


@contextmanager
def web_service() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            service.got.append(Got(self.command, self.path, headers, body))
            answer = service.by_path(self.path) or (service.answers.pop(0) if service.answers else Answer())
            time.sleep(answer.wait_s)
            if answer.drop:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_PUT = do_PATCH = _answer  # noqa: N815  the names that the server calls

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
