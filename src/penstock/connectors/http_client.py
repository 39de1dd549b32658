"""Sending requests to one web service until it takes them, within a bounded time.

Answers that may be better the next time (408, 425, 429, 5xx), lost connections and timeouts are tried again; the waits
double and are spread a little, and `Retry-After` is followed up to half a minute. Everything else is final. The
certificate of an https service is always checked, redirects are followed on the same host only, and addresses that
belong to the machine's own surroundings (link-local ones, such as the metadata service of a cloud) are never connected
to. Messages name the host, and neither path nor query: in a webhook these are the password. What a service says when it
refuses rows is shown without them.
"""

from __future__ import annotations

import ipaddress
import math
import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from queue import Empty, SimpleQueue
from threading import Event, Thread, Timer
from types import TracebackType
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

from penstock.connectors.http_answers import shown_answer
from penstock.errors import RuntimeFailure
from penstock.frozen import frozen

_PASSING: Final = frozenset({408, 425, 429})
_SAME_METHOD: Final = frozenset({307, 308})
_REDIRECTS: Final = 5
_LONGEST_WAIT_S: Final = 30.0
_REACH_S: Final = 10.0  # how long somebody who creates a sink waits for a service that is not there
_SPREAD: Final = 0.2
_READ_BYTES: Final = 65_536
_FORBIDDEN: Final = tuple(
    map(ipaddress.ip_network, ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32"))
)


@frozen
class Endpoint:
    """A web service and how it is spoken to; `secrets` are never shown, also where the service repeats them."""

    sink: str
    secure: bool
    host: str
    port: int
    target: str
    method: str
    headers: Mapping[str, str] = field(hash=False, repr=False)
    timeout_s: float
    retries: int
    backoff_s: float
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def origin(self) -> str:
        """The service as a message may name it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.secure else ''}://{host}:{self.port}"


class _Passing(Exception):
    """An attempt that failed and may succeed the next time; `wait_s` is what the service asks for."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        self.reason = reason
        self.wait_s = wait_s
        super().__init__(reason)


class HttpClient:
    """Sends requests one after the other, over one connection where the service keeps it open."""

    def __init__(self, endpoint: Endpoint, *, refused_hint: str | None = None) -> None:
        self._endpoint = endpoint
        again = f"the job of sink {endpoint.sink} sends the same rows again"
        self._refused_hint = refused_hint or f"mend the service or the options, then RESUME JOB; {again}"
        self._connection: HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def send(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Send one request; returns when the service has taken it.

        SINK_UNAVAILABLE when the last try failed too, SINK_REFUSED where trying again is of no use.
        """
        self._try(
            lambda: self._attempt(body, {**self._endpoint.headers, **headers}),
            hint="look at the service; a job that runs tries again by itself, and SHOW JOBS tells how often it has",
        )

    def reach(self, within_s: float = _REACH_S) -> None:
        """Connect and send nothing; SINK_UNAVAILABLE where nobody is there within the time."""
        end = time.monotonic() + within_s
        hint = f"look at option url of sink {self._endpoint.sink} and at the service, then try again"

        def connect() -> None:
            # In a thread of its own: looking a name up can take longer than anybody waits, and cannot be cut off.
            answers: SimpleQueue[Exception | None] = SimpleQueue()

            def ask() -> None:
                try:
                    with HttpClient(self._endpoint, refused_hint=hint) as another:
                        another._connected()
                except Exception as error:  # noqa: BLE001  raised where it is waited for
                    answers.put(error)
                else:
                    answers.put(None)

            Thread(target=ask, name="penstock-http-reach", daemon=True).start()
            try:
                error = answers.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                raise _Passing("cannot be reached in time") from None
            if error is not None:
                raise error

        self._try(connect, until=end, hint=hint)

    def _try(self, action: Callable[[], None], *, hint: str, until: float = math.inf) -> None:
        """Do it until it works, as often as the endpoint says and not beyond a moment."""
        endpoint = self._endpoint
        wait_s = endpoint.backoff_s
        for attempt in range(1, endpoint.retries + 2):
            try:
                action()
                return
            except _Passing as failed:
                self._close()
                asked = wait_s if failed.wait_s is None else max(wait_s, failed.wait_s)
                waits_s = min(asked, _LONGEST_WAIT_S) * (1 - _SPREAD * random.random())  # noqa: S311  no secret
                if attempt > endpoint.retries or time.monotonic() + waits_s >= until:
                    tries = "1 try" if attempt == 1 else f"{attempt} tries"
                    raise RuntimeFailure(
                        "SINK_UNAVAILABLE",
                        f"sink {endpoint.sink}: {endpoint.origin} {failed.reason}, after {tries}",
                        hint=hint,
                    ) from None
                time.sleep(waits_s)
                wait_s *= 2

    def _attempt(self, body: bytes, headers: Mapping[str, str]) -> None:
        target = self._endpoint.target
        for _ in range(_REDIRECTS + 1):
            response, said = self._exchange(target, body, headers)
            if response.status not in _SAME_METHOD:
                return self._judge(response, said)
            target = self._redirected(target, response.headers.get("Location"))
        raise self._refused(f"sends requests on more than {_REDIRECTS} times")

    def _exchange(self, target: str, body: bytes, headers: Mapping[str, str]) -> tuple[HTTPResponse, bytes]:
        """One request, its answer and the beginning of the body, cut off when it takes too long in all."""
        connection = self._connected()
        opened = connection.sock
        assert opened is not None
        too_late = Event()
        late = Timer(self._endpoint.timeout_s, _shut, [opened, too_late])
        late.daemon = True
        late.start()
        try:
            connection.request(self._endpoint.method, target, body, dict(headers))
            response = connection.getresponse()
            said = response.read(_READ_BYTES)
        except (OSError, HTTPException) as error:
            timed_out = isinstance(error, TimeoutError) or too_late.is_set()
            raise _Passing("does not answer in time" if timed_out else _words(error)) from None
        finally:
            late.cancel()
        if not response.isclosed() or response.will_close:
            self._close()
        return response, said

    def _judge(self, response: HTTPResponse, said: bytes) -> None:
        status = response.status
        if 200 <= status < 300:
            return
        if status in _PASSING or status >= 500:
            raise _Passing(f"answers with {status}", _seconds(response.headers.get("Retry-After")))
        if 300 <= status < 400:
            raise self._refused(f"answers with {status} and wants another address")
        shown = shown_answer(said, response.headers, self._endpoint.secrets)
        raise self._refused(f"answers with {status}{f': {shown}' if shown else ''}")

    def _redirected(self, target: str, location: str | None) -> str:
        endpoint = self._endpoint
        there = urlsplit(urljoin(f"{endpoint.origin}{target}", location or ""))
        secure = there.scheme == "https"
        try:
            port = there.port or (443 if secure else 80)
        except ValueError:
            port = -1
        if location is None or (there.scheme, there.hostname, port) != (
            "https" if endpoint.secure else "http",
            endpoint.host.lower(),
            endpoint.port,
        ):
            raise self._refused("sends requests on to another host")
        return f"{there.path or '/'}?{there.query}" if there.query else there.path or "/"

    def _connected(self) -> HTTPConnection:
        if self._connection is None:
            endpoint = self._endpoint
            connection = HTTPConnection(endpoint.host, endpoint.port, timeout=endpoint.timeout_s)
            try:
                connection.sock = self._socket()
            except ssl.SSLCertVerificationError as error:
                raise self._refused(f"has no certificate to be trusted ({error.verify_message})") from None
            except OSError as error:
                timed_out = isinstance(error, TimeoutError)
                raise _Passing("cannot be reached in time" if timed_out else _words(error)) from None
            self._connection = connection
        return self._connection

    def _socket(self) -> socket.socket:
        endpoint = self._endpoint
        try:
            return open_socket(endpoint.host, endpoint.port, secure=endpoint.secure, timeout_s=endpoint.timeout_s)
        except ForbiddenAddress as error:
            raise self._refused(str(error)) from None

    def _refused(self, reason: str) -> RuntimeFailure:
        self._close()
        return RuntimeFailure(
            "SINK_REFUSED",
            f"sink {self._endpoint.sink}: {self._endpoint.origin} {reason}",
            hint=self._refused_hint,
        )

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class ForbiddenAddress(Exception):
    """A name leads to the machine's own surroundings."""


def open_socket(host: str, port: int, *, secure: bool, timeout_s: float) -> socket.socket:
    """A connection to a service; ForbiddenAddress where its name leads to what is never connected to."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, place in found:
        if _forbidden(str(place[0])):
            raise ForbiddenAddress("is an address of the machine's own surroundings, which is never connected to")
    # By the addresses that were looked at, so that none other can come in their place.
    error: OSError | None = None
    for *_, place in found:
        try:
            opened = socket.create_connection((str(place[0]), port), timeout_s)
        except OSError as failed:
            error = failed
            continue
        if not secure:
            return opened
        try:
            return ssl.create_default_context().wrap_socket(opened, server_hostname=host)
        except BaseException:
            opened.close()
            raise
    raise error or OSError("no address")


def _shut(opened: socket.socket, too_late: Event) -> None:
    """End a connection from outside: whoever reads from it wakes up, and finds the reason told before."""
    too_late.set()
    try:
        opened.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _forbidden(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return any((mapped or found) in network for network in _FORBIDDEN)


def _seconds(retry_after: str | None) -> float | None:
    """The wait that a service asks for in seconds; as a date it is not followed."""
    return float(retry_after) if retry_after is not None and retry_after.strip().isdigit() else None


def _words(error: BaseException) -> str:
    """An error of the network without addresses in it."""
    if isinstance(error, socket.gaierror):
        return "is not known by name"
    if isinstance(error, ConnectionRefusedError):
        return "refuses connections"
    return f"breaks off ({type(error).__name__})"
