"""The Kafka client properties that may be handed on, and which of them are secret.

A closed list, because some properties of the client name classes to load or commands to run
(`interceptor.classes`, `sasl.login.callback.handler.class`, `sasl.kerberos.kinit.cmd`, …): those are never handed on.

Kerberos and OAuth are not there: the build of librdkafka that we ask the brokers with has no Kerberos, and for OAuth
Kafka's Java client wants addresses to call that are fixed for the whole process, which no statement may say.
"""

from __future__ import annotations

from typing import Final

from penstock.frozen import frozen
from penstock.options.schema import Passthrough
from penstock.options.values import Boolean, Choice, Integer, Kind, Text
from penstock.sql.statements import OptionValue

_LOGIN_MODULES: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
)


@frozen
class JaasConfig(Text):
    """A login configuration with one of Kafka's own login modules: others may be made to load foreign code."""

    name: str = "login configuration"

    def read(self, value: OptionValue) -> object:
        written = str(Text.read(self, value))
        # Two modules in one text would let the second one slip through.
        if not written.lstrip().startswith(_LOGIN_MODULES) or written.rstrip(" ;\n").count("LoginModule") != 1:
            raise ValueError(
                "a login configuration that begins with a login module of Kafka, such as " + _LOGIN_MODULES[0]
            )
        return written


_TEXTS: Final = """
    client.id client.rack client.dns.lookup ssl.protocol ssl.enabled.protocols ssl.cipher.suites ssl.keystore.location
    ssl.truststore.location ssl.provider ssl.keymanager.algorithm ssl.trustmanager.algorithm
    ssl.endpoint.identification.algorithm ssl.ca.location ssl.certificate.location ssl.key.location
    sasl.username transaction.id.prefix
"""
_SECRETS: Final = """
    sasl.password ssl.key.password ssl.keystore.password ssl.truststore.password ssl.keystore.key
    ssl.keystore.certificate.chain ssl.truststore.certificates ssl.ca.pem ssl.certificate.pem ssl.key.pem
"""
_INTEGERS: Final = """
    fetch.min.bytes fetch.max.bytes fetch.max.wait.ms fetch.wait.max.ms fetch.message.max.bytes fetch.queue.backoff.ms
    max.partition.fetch.bytes max.poll.records max.poll.interval.ms session.timeout.ms heartbeat.interval.ms
    request.timeout.ms default.api.timeout.ms connections.max.idle.ms metadata.max.age.ms reconnect.backoff.ms
    reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms socket.connection.setup.timeout.ms
    socket.connection.setup.timeout.max.ms receive.buffer.bytes send.buffer.bytes auto.commit.interval.ms
    message.max.bytes receive.message.max.bytes statistics.interval.ms queued.min.messages queued.max.messages.kbytes
    batch.size linger.ms buffer.memory delivery.timeout.ms max.block.ms max.request.size retries
    max.in.flight.requests.per.connection transaction.timeout.ms compression.gzip.level compression.lz4.level
    compression.zstd.level sync.call.timeout
"""
_BOOLEANS: Final = """
    enable.auto.commit enable.idempotence allow.auto.create.topics check.crcs exclude.internal.topics
    socket.keepalive.enable
"""
SASL_MECHANISM: Final = Choice(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
_CHOICES: Final[dict[str, Kind]] = {
    "security.protocol": Choice(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    "sasl.mechanism": SASL_MECHANISM,
    # A certificate that nobody checks is none, and Kafka's Java client has no such way.
    "enable.ssl.certificate.verification": Choice(("true",)),
    "ssl.keystore.type": Choice(("JKS", "PKCS12", "PEM")),
    "ssl.truststore.type": Choice(("JKS", "PKCS12", "PEM")),
    "acks": Choice(("all", "0", "1"), {"-1": "all"}),
    "compression.type": Choice(("none", "gzip", "snappy", "lz4", "zstd")),
    "auto.offset.reset": Choice(("earliest", "latest", "none")),
}
_OWN_OFFSETS: Final = "a job keeps its own offsets; with commit_offsets = true they are also committed to the group"
_NO_QUEUE: Final = "records are read by Kafka's Java client, which has no such queue"
_IDLE: Final = {
    "enable.auto.commit": _OWN_OFFSETS,
    "auto.commit.interval.ms": _OWN_OFFSETS,
    "fetch.queue.backoff.ms": _NO_QUEUE,
    "queued.min.messages": _NO_QUEUE,
    "queued.max.messages.kbytes": _NO_QUEUE,
    "statistics.interval.ms": "penstock.metrics and penstock.connector_offsets have what is counted",
    "sync.call.timeout": "a question to the brokers waits as long as Penstock does for every one",
}


def _allowed() -> dict[str, Kind]:
    # Kafka counts some of these from -1, so only their being numbers is checked here.
    integer: Kind = Integer(minimum=-1)
    return {
        **dict.fromkeys(_TEXTS.split(), Text(empty=True)),
        **dict.fromkeys(_SECRETS.split(), Text()),
        **dict.fromkeys(_INTEGERS.split(), integer),
        **dict.fromkeys(_BOOLEANS.split(), Boolean()),
        **_CHOICES,
        "sasl.jaas.config": JaasConfig(),
    }


CLIENT: Final = Passthrough(
    canonical="kafka.",
    prefixes=("kafka.", "properties."),
    allowed=_allowed(),
    secret=frozenset(_SECRETS.split()) | {"sasl.jaas.config"},
    summary="properties of the Kafka client",
    idle=_IDLE,
)
