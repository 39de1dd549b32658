"""I15: the HTTP sink against a real web service: retries within bounds, keys, secrets, redirects, refusals."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors.http import HttpSink, endpoint_of
from penstock.connectors.http_client import HttpClient, _forbidden
from penstock.connectors.secret_values import forget_secrets, use_secrets
from penstock.connectors.sink import SinkContext
from penstock.errors import OptionError, PenstockError
from penstock.formats import encode_rows
from penstock.runtime.backoff import transient
from penstock.secrets import Secret
from penstock.stores.topics import TopicStore
from tests.unit.connectors.declared import sink
from tests.unit.connectors.web_service import Answer, Service, web_service

ROWS = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", "y", None]})
CANARY = "canary-8842"
QUICK = "backoff = '10 ms', timeout = '2 s'"


@pytest.fixture
def service() -> Iterator[Service]:
    with web_service() as found:
        yield found


def context(url: str, options: str, path: Path, *, producer: str = "j@1") -> SinkContext:
    definition = sink(f"CREATE SINK k (a INT, b STRING) WITH (connector = 'http', url = '{url}', {options})")
    values = definition.options.values
    use_secrets(path, lambda name: next(item.value or Secret("") for item in definition.secrets if item.name == name))
    return SinkContext(
        "j",
        producer,
        definition,
        TopicStore(path),
        encode=lambda rows: encode_rows(rows, definition.options.format or "json", values),
        state_path=path,
    )


@pytest.fixture(autouse=True)
def _forget(tmp_path: Path) -> Iterator[None]:
    yield
    forget_secrets(tmp_path)


def refusal(asked: SinkContext, batch_id: int | None = 1) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        HttpSink().write(ROWS, asked, batch_id)
    return raised.value


def test_each_row_is_a_request_with_a_key_of_its_own(service: Service, tmp_path: Path) -> None:
    asked = context(f"{service.url}/in?x=1", QUICK, tmp_path)
    HttpSink().write(ROWS, asked, 7)
    assert [json.loads(body) for body in service.bodies] == ROWS.to_pylist()
    assert {(each.method, each.path, each.headers["content-type"]) for each in service.got} == {
        ("POST", "/in?x=1", "application/json")
    }
    keys = [each.key for each in service.got]
    assert [key.rsplit("-", 1)[0] for key in keys] == ["j@1-7-0", "j@1-7-1", "j@1-7-2"]
    HttpSink().write(ROWS, asked, 7)
    assert [each.key for each in service.got[3:]] == keys
    HttpSink().write(ROWS, asked, 8)
    HttpSink().write(ROWS, context(service.url, QUICK, tmp_path, producer="j@2"), 7)
    HttpSink().write(ROWS, asked, None)
    HttpSink().write(ROWS, asked, None)
    assert len({each.key for each in service.got}) == 15
    HttpSink().write(ROWS.slice(0, 0), asked, 9)
    assert len(service.got) == 18


def test_rows_go_together_in_arrays_lines_and_other_methods(service: Service, tmp_path: Path) -> None:
    HttpSink().write(ROWS, context(service.url, f"rows_per_request = 2, method = 'PUT', {QUICK}", tmp_path), 1)
    assert [json.loads(body) for body in service.bodies] == [ROWS.to_pylist()[:2], ROWS.to_pylist()[2:]]
    assert {(each.method, each.path) for each in service.got} == {("PUT", "/")}
    service.got.clear()
    HttpSink().write(ROWS, context(service.url, f"rows_per_request = 5, format = 'csv', {QUICK}", tmp_path), 1)
    assert service.bodies == [b"1,x\n2,y\n3,"]
    assert service.got[0].headers["content-type"] == "text/csv; charset=utf-8"


def test_what_may_pass_is_tried_again_with_the_same_key(service: Service, tmp_path: Path) -> None:
    service.answers = [
        Answer(500),
        Answer(503, {"Retry-After": "0"}),
        Answer(drop=True),
        Answer(429),
        Answer(200),
        Answer(wait_s=6.0),
    ]
    began = time.monotonic()
    HttpSink().write(ROWS, context(service.url, "backoff = '20 ms', timeout = '2 s'", tmp_path), 1)
    assert [json.loads(each.body)["a"] for each in service.got] == [1, 1, 1, 1, 1, 2, 2, 3]
    assert len({each.key for each in service.got}) == 3
    assert time.monotonic() - began < 30


def test_the_time_is_bounded_and_the_error_passes(service: Service, tmp_path: Path) -> None:
    service.answers = [Answer(502)] * 9
    found = refusal(context(f"{service.url}/{CANARY}", "max_retries = 2, backoff = '5 ms'", tmp_path))
    assert found.condition == "SINK_UNAVAILABLE"
    assert found.message == f"sink k: {service.url} answers with 502, after 3 tries"
    assert len(service.got) == 3
    assert transient(found)
    service.answers = [Answer(wait_s=60)] * 2
    began = time.monotonic()
    found = refusal(context(service.url, "max_retries = 1, backoff = '5 ms', timeout = '200 ms'", tmp_path))
    assert found.message.endswith("does not answer in time, after 2 tries")
    assert time.monotonic() - began < 30


def test_an_answer_that_drips_is_cut_off(tmp_path: Path) -> None:
    """A byte now and then keeps a socket alive, and must not keep the job."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        import threading

        def drip() -> None:
            taken, _ = listening.accept()
            with taken:
                try:
                    for letter in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000:
                        taken.sendall(bytes([letter]))
                        time.sleep(0.05)
                except OSError:
                    return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        began = time.monotonic()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        found = refusal(context(url, "max_retries = 0, timeout = '300 ms'", tmp_path))
        assert found.message.endswith("does not answer in time, after 1 try")
        assert time.monotonic() - began < 30
        thread.join(60)


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    found = refusal(context(f"http://127.0.0.1:{port}", "max_retries = 1, backoff = '5 ms'", tmp_path))
    assert found.condition == "SINK_UNAVAILABLE"
    assert found.message == f"sink k: http://127.0.0.1:{port} refuses connections, after 2 tries"


def test_whoever_creates_a_sink_is_told_soon_that_nobody_is_there(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connecting is tried for some seconds, whatever a request may take; a name that nobody answers for included."""

    def reached(url: str, options: str) -> tuple[PenstockError, float]:
        began = time.monotonic()
        endpoint = endpoint_of(context(url, options, tmp_path).definition, tmp_path)
        with pytest.raises(PenstockError) as raised, HttpClient(endpoint) as client:
            client.reach(within_s=1.0)
        return raised.value, time.monotonic() - began

    HttpSink().reach(context(service.url, QUICK, tmp_path))
    assert service.got == []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    found, took = reached(f"http://127.0.0.1:{port}/{CANARY}", "timeout = '60 s', max_retries = 100")
    assert found.condition == "SINK_UNAVAILABLE"
    assert found.message.startswith(f"sink k: http://127.0.0.1:{port} refuses connections, after ")
    assert took < 10
    assert transient(found)

    def slow(*_: object, **__: object) -> list[object]:
        time.sleep(8)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    found, took = reached("http://nowhere.invalid", "timeout = '60 s'")
    assert found.message == "sink k: http://nowhere.invalid:80 cannot be reached in time, after 1 try"
    assert took < 6


@pytest.mark.parametrize("status", [400, 401, 404, 410, 422, 302, 303])
def test_what_lasts_is_not_tried_again(service: Service, tmp_path: Path, status: int) -> None:
    service.answers = [Answer(status, {"Location": "/elsewhere"})]
    found = refusal(context(service.url, QUICK, tmp_path))
    assert found.condition == "SINK_REFUSED"
    assert f"answers with {status}" in found.message
    assert len(service.got) == 1
    assert not transient(found)


def test_a_refusal_shows_what_the_service_said(service: Service, tmp_path: Path) -> None:
    service.answers = [Answer(422, body=b'{"error":\r\n  "field \xc3\xa4 is \x1b[31mmissing"}')]
    found = refusal(context(f"{service.url}/{CANARY}", QUICK, tmp_path))
    assert found.message == f'sink k: {service.url} answers with 422: {{"error": "field ä is [31mmissing"}}'
    for body, told in ((b"", "400"), (b"\0\n", "400"), (b"x" * 999, "400: " + "x" * 200 + "…")):
        service.answers = [Answer(400, body=body)]
        assert refusal(context(service.url, QUICK, tmp_path)).message.endswith(f" answers with {told}")
    service.answers = [Answer(400, {"Content-Type": "text/plain; charset=latin-1"}, body=b"k\xe4se")]
    assert refusal(context(service.url, QUICK, tmp_path)).message.endswith(" 400: käse")
    service.answers = [Answer(400, {"Content-Type": "text/plain; charset=none-such"}, body=b"words")]
    assert refusal(context(service.url, QUICK, tmp_path)).message.endswith(" 400: words")


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("/in/tail-8842", "method = 'POST'", ["no hook at /in/tail-8842", "no hook tail-8842", r"at \/in\/tail-8842"]),
        ("/in?sig=tail-8842", "method = 'POST'", ["bad signature tail-8842"]),
        ("/", "token = 'tail-8842'", ["token tail-8842 is unknown", "Authorization: Bearer tail-8842"]),
        ("/", "username = 'u', password = 'tail-<8842'", ["u:tail-<8842", "u:tail-&lt;8842", "tail-%3C8842"]),
        ("/", "'header.X-Key' = 'tail-8842'", ["X-Key tail-8842 is unknown"]),
        ("/", "headers = 'X-Key: tail-8842'", ["X-Key tail-8842 is unknown"]),
    ],
)
def test_a_service_that_repeats_secrets_gives_none_away(
    service: Service, tmp_path: Path, path: str, options: str, said: list[str]
) -> None:
    for words in said:
        service.answers = [Answer(403, body=words.encode())]
        found = refusal(context(service.url + path, f"{options}, {QUICK}", tmp_path))
        assert "********" in found.message
        assert "tail" not in found.message
        assert "8842" not in found.message


def test_redirects_stay_on_the_host(service: Service, tmp_path: Path) -> None:
    service.by_path = lambda path: Answer(308, {"Location": "/there?y=2"}) if path == "/here" else None
    HttpSink().write(ROWS.slice(0, 1), context(f"{service.url}/here", f"token = '{CANARY}', {QUICK}", tmp_path), 1)
    assert [(each.method, each.path, each.body) for each in service.got] == [
        ("POST", "/here", b'{"a":1,"b":"x"}'),
        ("POST", "/there?y=2", b'{"a":1,"b":"x"}'),
    ]
    with web_service() as other:
        service.by_path = lambda _: Answer(307, {"Location": f"{other.url}/steal"})
        found = refusal(context(f"{service.url}/here", f"token = '{CANARY}', {QUICK}", tmp_path))
        assert found.condition == "SINK_REFUSED"
        assert found.message.endswith("sends requests on to another host")
        assert other.got == []
    service.by_path = lambda _: Answer(307, {"Location": "/here"})
    assert "more than 5 times" in refusal(context(f"{service.url}/here", QUICK, tmp_path)).message


def test_credentials_come_by_reference_and_show_nowhere(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", CANARY)
    (tmp_path / "team").write_text(f"{CANARY}-team\n")
    options = (
        "token = '${env:HOOK_TOKEN}', headers = 'X-Stage: test, X-More: 1:2', "
        f"'header.X-Team' = '${{file:{tmp_path / 'team'}}}', {QUICK}"
    )
    asked = context(f"{service.url}/hooks/{CANARY}", options, tmp_path)
    HttpSink().write(ROWS.slice(0, 1), asked, 1)
    headers = service.got[0].headers
    assert headers["authorization"] == f"Bearer {CANARY}"
    assert {name: value for name, value in headers.items() if name.startswith("x-")} == {
        "x-stage": "test",
        "x-more": "1:2",
        "x-team": f"{CANARY}-team",
    }
    service.answers = [Answer(403)]
    found = refusal(asked)
    shown = (str(found), repr(asked.definition), asked.definition.text, repr(endpoint_of(asked.definition, tmp_path)))
    assert CANARY not in "".join(shown[:3])
    assert f"Bearer {CANARY}" not in shown[3]
    basic = context(service.url, f"username = 'u', password = '{CANARY}', {QUICK}", tmp_path)
    HttpSink().write(ROWS.slice(0, 1), basic, 1)
    assert base64.b64decode(service.got[-1].headers["authorization"].split()[1]).decode() == f"u:{CANARY}"
    inside = context(service.url.replace("//", f"//u:{CANARY}@"), QUICK, tmp_path)
    HttpSink().write(ROWS.slice(0, 1), inside, 1)
    assert service.got[-1].headers["authorization"] == service.got[-2].headers["authorization"]
    service.answers = [Answer(403)]
    assert CANARY not in str(refusal(inside))


def test_options_that_cannot_be_used_are_refused_before_any_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    monkeypatch.setenv("NO_URL", "ftp://x")
    monkeypatch.setenv("TWO_LINES", "a\r\nX: y")
    for url, options, words in (
        ("http://h", "token = '${env:NOT_THERE}'", "NOT_THERE is not set"),
        ("http://h", "token = '${file:/does/not/exist}'", "cannot be read: FileNotFoundError"),
        ("${env:NO_URL}", "method = 'POST'", "must be an address"),
        ("http://h:99999", "method = 'POST'", "must be an address"),
        ("http://h", "headers = 'Host: x'", "which Penstock sets itself"),
        ("http://h", "headers = 'no colon here'", "must be headers such as"),
        ("http://h", "token = '${env:TWO_LINES}'", "no header can"),
        ("http://u:p@h", "token = 't'", "has a user, and option token beside it"),
    ):
        with pytest.raises(OptionError, match=words):
            HttpSink().check(context(url, options, tmp_path))


@pytest.mark.parametrize(
    ("address", "forbidden"),
    [
        ("169.254.169.254", True),
        ("::ffff:169.254.1.1", True),
        ("fe80::1%eth0", True),
        ("fd00:ec2::254", True),
        ("100.100.100.200", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("::1", False),
    ],
)
def test_surroundings_of_the_machine_are_never_connected_to(address: str, *, forbidden: bool) -> None:
    assert _forbidden(address) is forbidden


def test_a_metadata_address_is_refused_unasked(tmp_path: Path) -> None:
    asked = context("http://169.254.169.254/latest", "timeout = '1 s'", tmp_path)
    found = refusal(asked)
    assert found.condition == "SINK_REFUSED"
    assert "never connected to" in found.message
    assert "RESUME JOB" in (found.hint or "")
    with pytest.raises(PenstockError, match="SINK_REFUSED") as created:
        HttpSink().reach(asked)
    assert created.value.hint == "look at option url of sink k and at the service, then try again", (
        "there is no job yet"
    )


def test_certificates_are_checked(tmp_path: Path) -> None:
    """A service that speaks TLS with a certificate nobody signed is refused at once."""
    import shutil
    import ssl
    import subprocess
    import threading

    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            taken, _ = listening.accept()
            try:
                secure.wrap_socket(taken, server_side=True).close()
            except OSError:
                taken.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        found = refusal(context(f"https://127.0.0.1:{listening.getsockname()[1]}", QUICK, tmp_path))
        thread.join(60)
    assert found.condition == "SINK_REFUSED"
    assert "no certificate to be trusted" in found.message


def test_a_connection_is_kept_between_requests(service: Service, tmp_path: Path) -> None:
    with HttpClient(endpoint_of(context(service.url, QUICK, tmp_path).definition, tmp_path)) as client:
        client.send(b"1", {})
        first = client._connection
        client.send(b"2", {})
        assert client._connection is first is not None
