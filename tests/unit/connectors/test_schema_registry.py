"""The client of a schema registry, against a server that speaks the documented routes."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from penstock.connectors.schema_registry import SchemaRegistry, registry_access, registry_of
from penstock.errors import PenstockError
from penstock.runtime.backoff import transient
from penstock.secrets import Secret
from tests.schema_registry import RegistryServer, running_registry

ONE, TWO = '{"type": "record", "name": "one", "fields": []}', '{"type": "record", "name": "two", "fields": []}'


def reveal(value: object) -> object:
    return value.reveal() if isinstance(value, Secret) else value


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with running_registry() as found:
        yield found


def client(server: RegistryServer, **options: object) -> SchemaRegistry:
    given = {"schema_registry.url": server.url, **{f"schema_registry.{key}": value for key, value in options.items()}}
    return SchemaRegistry(registry_access(given, reveal))


def test_schemas_by_number_and_subject_are_asked_for_once(server: RegistryServer) -> None:
    one, two = server.put("a/b-value", ONE, 12345), server.put("a/b-value", TWO)
    found = client(server)
    assert [found.versions("a/b-value") for _ in range(2)] == [[(one, ONE), (two, TWO)]] * 2
    assert found.by_id(one) == ONE
    assert server.requests.count("GET /subjects/a%2Fb-value/versions") == 2  # what is new is looked for
    assert len(server.requests) == 4
    assert found.versions("other") == ()
    assert [found.by_id(99) for _ in range(3)] == [None] * 3
    assert server.requests.count("GET /schemas/ids/99") == 1
    server.put(None, ONE.replace("one", "three"), 99)
    found.forget_absent()
    assert "three" in str(found.by_id(99))
    found.learn("topic", 7)
    assert (found.learned("topic"), found.learned("other")) == ([7], [])


def test_a_schema_is_registered_once(server: RegistryServer) -> None:
    found = client(server)
    number = found.register("t-value", ONE)
    assert (found.register("t-value", ONE), server.subject("t-value")) == (number, [ONE])
    assert server.requests == ["POST /subjects/t-value/versions"]
    server.refused.add("t-value")
    with pytest.raises(PenstockError, match="subject t-value: Schema being registered is incompatible") as raised:
        found.register("t-value", TWO)
    assert (raised.value.condition, transient(raised.value)) == ("REGISTRY_REFUSED", False)


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ({"username": "u", "password": Secret("p")}, "Basic dTpw"),
        ({"user_info": Secret("u:p")}, "Basic dTpw"),
        ({"token": Secret("t")}, "Bearer t"),
    ],
)
def test_logging_in(server: RegistryServer, options: dict[str, object], header: str) -> None:
    server.login, number = header, server.put("s", ONE)
    assert client(server, **options).by_id(number) == ONE
    with pytest.raises(PenstockError, match="answers with 401") as raised:
        client(server).by_id(number)
    assert raised.value.condition == "REGISTRY_REFUSED"


@pytest.mark.parametrize("options", [{}, {"schema_registry.credentials": "URL"}])
def test_a_login_in_the_address(options: dict[str, object]) -> None:
    access = registry_access({"schema_registry.url": "http://u:p%40x@host:81/a", **options}, reveal)
    assert access.headers == {"Authorization": "Basic " + base64.b64encode(b"u:p@x").decode()}
    assert access.origin == "http://host:81"


def test_a_registry_that_fails_is_asked_again_and_then_told_of(server: RegistryServer) -> None:
    server.put("s", ONE, 1)
    server.failing = 2
    assert client(server).by_id(1) == ONE
    server.failing = 100
    with pytest.raises(PenstockError, match="answers with 503") as raised:
        client(server).by_id(2)
    assert (raised.value.condition, transient(raised.value)) == ("REGISTRY_UNAVAILABLE", True)


def test_a_registry_that_is_not_there(server: RegistryServer) -> None:
    with running_registry() as gone:
        address = gone.url
    with pytest.raises(PenstockError, match="cannot be reached") as raised:
        registry_of({"schema_registry.url": address}, reveal).by_id(1)
    assert (raised.value.condition, address in raised.value.message) == ("REGISTRY_UNAVAILABLE", True)


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({}, "MISSING_OPTION"),
        ({"url": "ftp://host"}, "INVALID_OPTION"),
        ({"url": "http://host:99999"}, "INVALID_OPTION"),
        ({"url": "http://host", "credentials": "SASL_INHERIT"}, "QUERY_NOT_YET"),
        ({"url": "http://host", "credentials": "URL"}, "MISSING_OPTION"),
        ({"url": "http://u:p@host", "credentials": "URL", "username": "v"}, "CONFLICTING_OPTIONS"),
        ({"url": "http://u:p@host", "credentials": "USER_INFO"}, "MISSING_OPTION"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], condition: str) -> None:
    with pytest.raises(PenstockError) as raised:
        registry_access({f"schema_registry.{key}": value for key, value in options.items()}, reveal)
    assert raised.value.condition == condition


def test_the_machines_own_surroundings_are_never_asked() -> None:
    access = registry_access({"schema_registry.url": "http://169.254.169.254/", "schema_registry.token": "x"}, reveal)
    assert "x" not in repr(access).replace("xx", "")
    with pytest.raises(PenstockError, match="never connected to"):
        SchemaRegistry(access).by_id(1)


def test_what_is_no_avro_schema_is_kept_as_such(server: RegistryServer) -> None:
    found = client(server)
    for answer, text in (
        ({"schema": "syntax", "schemaType": "PROTOBUF"}, '"PROTOBUF schema"'),
        ({"schema": ONE, "references": [{"name": "x"}]}, '"schema that refers to others"'),
        ({"schema": ONE, "schemaType": "AVRO"}, ONE),
    ):
        assert found._schema(answer) == text
    with pytest.raises(PenstockError):
        found._schema([])
