"""The topics of a relation, and how its brokers are reached: its options, for Kafka's Java client and for librdkafka.

Spark reads and writes with the one, we ask and commit with the other, and they spell security differently. What a user
writes for either is turned into both. Values are revealed here, handed to a client, and never kept or printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.connectors.secret_values import revealed
from penstock.errors import OptionError
from penstock.frozen import frozen
from penstock.options.brokers import BROKERS
from penstock.options.schemas.kafka_client import CLIENT

if TYPE_CHECKING:
    from penstock.catalog.model import SinkDefinition, SourceDefinition

_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_JAAS_PART: Final = re.compile(r'(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')
# What only librdkafka knows, what Spark sets by itself, and what is taken and changes nothing.
_NOT_FOR_JAVA_TEXT: Final = """
    sasl.username sasl.password ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.key.location ssl.key.pem enable.ssl.certificate.verification receive.message.max.bytes transaction.id.prefix
    socket.keepalive.enable auto.offset.reset
"""
_NOT_FOR_JAVA: Final = frozenset(_NOT_FOR_JAVA_TEXT.split()) | CLIENT.idle.keys()
# What librdkafka has another name for.
_JAVA_NAMES: Final = {
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "message.max.bytes": "max.request.size",
}
_FOR_LIBRDKAFKA_TEXT: Final = """
    security.protocol sasl.mechanism sasl.username sasl.password client.id client.rack client.dns.lookup
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.key.location ssl.key.pem
    ssl.key.password ssl.endpoint.identification.algorithm enable.ssl.certificate.verification socket.keepalive.enable
    reconnect.backoff.ms reconnect.backoff.max.ms connections.max.idle.ms metadata.max.age.ms receive.message.max.bytes
    socket.connection.setup.timeout.ms
"""
FOR_LIBRDKAFKA: Final = frozenset(_FOR_LIBRDKAFKA_TEXT.split())
_PEM_NAMES: Final = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}


@frozen
class KafkaAccess:
    """The brokers of a relation, and its client properties by their own names, revealed."""

    servers: str
    properties: Mapping[str, str] = field(hash=False)

    def java(self) -> dict[str, str]:
        """The properties as Kafka's Java client has them, without the brokers."""
        given = self.properties
        named = {own: value for own, value in given.items() if own not in _NOT_FOR_JAVA and own not in _JAVA_NAMES}
        found = {**{java: given[own] for own, java in _JAVA_NAMES.items() if own in given}, **named}
        if "sasl.username" in given and "sasl.jaas.config" not in found:
            module = _SCRAM if given.get("sasl.mechanism", "").startswith("SCRAM") else _PLAIN
            user, password = _quoted(given["sasl.username"]), _quoted(given.get("sasl.password", ""))
            found["sasl.jaas.config"] = f"{module} required username={user} password={password};"
        if "ssl.ca.location" in given:
            found.setdefault("ssl.truststore.type", "PEM")
            found.setdefault("ssl.truststore.location", given["ssl.ca.location"])
        if "ssl.ca.pem" in given:
            found.setdefault("ssl.truststore.type", "PEM")
            found.setdefault("ssl.truststore.certificates", given["ssl.ca.pem"])
        certificate, key = _pem(given, "ssl.certificate"), _pem(given, "ssl.key")
        if certificate is not None and key is not None:
            found.setdefault("ssl.keystore.type", "PEM")
            found.setdefault("ssl.keystore.certificate.chain", certificate)
            found.setdefault("ssl.keystore.key", key)
        elif certificate is not None or key is not None:
            raise OptionError(
                "MISSING_OPTION",
                "a certificate to log in with needs its key, and a key its certificate",
                hint="give ssl.certificate.location and ssl.key.location",
            )
        return found

    def librdkafka(self) -> dict[str, str | int | float]:
        """The properties as librdkafka has them, brokers included; it keeps its log to itself."""
        given = self.properties
        found: dict[str, str | int | float] = {
            key: value for key, value in given.items() if key in FOR_LIBRDKAFKA and value != ""
        }
        if given.get("ssl.endpoint.identification.algorithm") == "":
            found["ssl.endpoint.identification.algorithm"] = "none"
        for java, own in _PEM_NAMES.items():
            if java in given:
                found.setdefault(own, given[java])
        if given.get("ssl.truststore.type") == "PEM" and "ssl.truststore.location" in given:
            found.setdefault("ssl.ca.location", given["ssl.truststore.location"])
        elif "ssl.truststore.location" in given and not {"ssl.ca.location", "ssl.ca.pem"} & set(found):
            raise OptionError(
                "MISSING_OPTION",
                "ssl.truststore.location names a Java key store, which only Spark can read",
                hint="add kafka.ssl.ca.location = '…' with the same certificates in a PEM file",
            )
        if "ssl.keystore.location" in given:
            found = {**_keystore(given), **found}
        for name, quoted, plain in _JAAS_PART.findall(given.get("sasl.jaas.config", "")):
            found.setdefault(f"sasl.{name}", re.sub(r"\\(.)", r"\1", quoted) if quoted else plain)
        if found.get("connections.max.idle.ms") == "-1":
            found["connections.max.idle.ms"] = 0  # never, as Java's client counts
        # A broker that comes back is found again at once: librdkafka by itself waits longer than we wait for an answer.
        if "reconnect.backoff.ms" not in found:
            found.setdefault("reconnect.backoff.max.ms", 1000)
        return {**found, "bootstrap.servers": self.servers, "log_level": 0}


def access_of(definition: SourceDefinition | SinkDefinition, state_path: Path) -> KafkaAccess:
    """How the brokers of a relation are reached, with every reference read."""
    options = definition.options
    found = {key: str(revealed(value, state_path)) for key, value in options.passthrough.items()}
    login = {
        name: str(revealed(value, state_path))
        for name in ("type", "mechanism", "protocol", "username", "password")
        if (value := options.values.get(f"auth.{name}")) is not None
    }
    if login.get("type") == "sasl" or "username" in login:
        found.setdefault("security.protocol", login.get("protocol", "SASL_SSL"))
        found.setdefault("sasl.mechanism", login.get("mechanism", "PLAIN"))
        for name in ("username", "password"):
            if name in login:
                found.setdefault(f"sasl.{name}", login[name])
    servers = str(revealed(options.values["bootstrap_servers"], state_path)).strip()
    if re.fullmatch(str(BROKERS.pattern), servers) is None:  # a reference is read only now, and never shown
        raise OptionError(
            "INVALID_OPTION",
            f"option bootstrap_servers of {definition.kind} {definition.name} must be {BROKERS.expects}",
            hint="mend the secret, the variable or the file that it refers to",
        )
    return KafkaAccess(",".join(part.strip() for part in servers.split(",")), found)


def _quoted(text: str) -> str:
    r"""A value inside a login configuration.

    >>> print(_quoted('a"b'))
    "a\"b"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _keystore(given: Mapping[str, str]) -> dict[str, str]:
    """The certificate and the key in a key store of Java's client, for librdkafka."""
    kind, place = given.get("ssl.keystore.type", "JKS"), given["ssl.keystore.location"]
    if kind == "PKCS12":
        return {"ssl.keystore.location": place, "ssl.keystore.password": given.get("ssl.keystore.password", "")}
    if kind == "PEM":
        return {"ssl.certificate.location": place, "ssl.key.location": place}
    if {"ssl.certificate.location", "ssl.certificate.pem"} & given.keys():
        return {}
    raise OptionError(
        "MISSING_OPTION",
        "ssl.keystore.location names a Java key store, which only Spark can read",
        hint="make it a PKCS12 file and set ssl.keystore.type, or give ssl.certificate.location and ssl.key.location",
    )


def _pem(given: Mapping[str, str], name: str) -> str | None:
    if f"{name}.pem" in given:
        return given[f"{name}.pem"]
    place = given.get(f"{name}.location")
    if place is None:
        return None
    try:
        return Path(place).read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            "INVALID_OPTION",
            f"the file of {name}.location cannot be read: {type(error).__name__}",
            hint="make it a PEM file that Penstock may read",
        ) from None


def topic_names(definition: SourceDefinition | SinkDefinition) -> tuple[str, ...]:
    """The topics that a relation names; none where it has a pattern."""
    found = definition.options.values.get("topic")
    if found is None:
        return ()
    return tuple(str(name) for name in found) if isinstance(found, tuple) else (str(found),)
