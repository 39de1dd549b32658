"""How the brokers of a relation are reached: its options, for Kafka's Java client and for librdkafka.

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

if TYPE_CHECKING:
    from penstock.catalog.model import SinkDefinition, SourceDefinition

_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_JAAS_PART: Final = re.compile(r'(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')
# What only one of the two clients knows, or what Spark sets by itself.
_NOT_FOR_JAVA_TEXT: Final = """
    sasl.username sasl.password ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.key.location ssl.key.pem enable.ssl.certificate.verification fetch.wait.max.ms fetch.message.max.bytes
    fetch.queue.backoff.ms receive.message.max.bytes message.max.bytes statistics.interval.ms queued.min.messages
    queued.max.messages.kbytes sync.call.timeout transaction.id.prefix sasl.oauthbearer.client.id
    sasl.oauthbearer.client.secret sasl.oauthbearer.scope sasl.oauthbearer.config socket.keepalive.enable
    enable.auto.commit auto.commit.interval.ms auto.offset.reset
"""
_NOT_FOR_JAVA: Final = frozenset(_NOT_FOR_JAVA_TEXT.split())
_FOR_LIBRDKAFKA_TEXT: Final = """
    security.protocol sasl.mechanism sasl.username sasl.password client.id client.rack ssl.ca.location ssl.ca.pem
    ssl.certificate.location ssl.certificate.pem ssl.key.location ssl.key.pem ssl.key.password
    ssl.endpoint.identification.algorithm enable.ssl.certificate.verification sasl.kerberos.service.name
    sasl.kerberos.principal sasl.kerberos.keytab sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.config socket.keepalive.enable
    reconnect.backoff.ms reconnect.backoff.max.ms connections.max.idle.ms metadata.max.age.ms
"""
_FOR_LIBRDKAFKA: Final = frozenset(_FOR_LIBRDKAFKA_TEXT.split())
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
        found = {key: value for key, value in given.items() if key not in _NOT_FOR_JAVA}
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
        return found

    def librdkafka(self) -> dict[str, str | int | float]:
        """The properties as librdkafka has them, brokers included; it keeps its log to itself."""
        given = self.properties
        found: dict[str, str | int | float] = {
            key: value for key, value in given.items() if key in _FOR_LIBRDKAFKA and value != ""
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
        if given.get("ssl.keystore.type") == "PKCS12" and "ssl.keystore.location" in given:
            found["ssl.keystore.location"] = given["ssl.keystore.location"]
            found["ssl.keystore.password"] = given.get("ssl.keystore.password", "")
        for name, quoted, plain in _JAAS_PART.findall(given.get("sasl.jaas.config", "")):
            found.setdefault(f"sasl.{name}", re.sub(r"\\(.)", r"\1", quoted) if quoted else plain)
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
    servers = str(revealed(options.values["bootstrap_servers"], state_path))
    return KafkaAccess(",".join(part.strip() for part in servers.split(",")), found)


def _quoted(text: str) -> str:
    r"""A value inside a login configuration.

    >>> print(_quoted('a"b'))
    "a\"b"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


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
