"""How our own producer is tuned: properties of Kafka's Java client in the words of librdkafka.

Spark's tasks write with the Java client, which takes them as they are. Exactly once, and rows with a timestamp, are
written by librdkafka: what it has no word for is refused there, before the first row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.errors import OptionError
from penstock.options.values import Deferred

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.catalog.model import SinkDefinition

_SAME_TEXT: Final = """
    linger.ms batch.size compression.type acks delivery.timeout.ms request.timeout.ms retries retry.backoff.ms
    retry.backoff.max.ms max.in.flight.requests.per.connection message.max.bytes
"""
_SAME: Final = frozenset(_SAME_TEXT.split())
_NAMES: Final = {
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
_TIMEOUT: Final = "transaction.timeout.ms"
_TIMEOUT_MS: Final = 60_000
_IDEMPOTENT: Final = "enable.idempotence"
# What only the Java client knows that Spark's tasks write with.
_JAVA_ONLY_TEXT: Final = """
    max.block.ms socket.connection.setup.timeout.max.ms ssl.protocol ssl.enabled.protocols ssl.cipher.suites
    ssl.provider ssl.keymanager.algorithm ssl.trustmanager.algorithm
"""
_JAVA_ONLY: Final = frozenset(_JAVA_ONLY_TEXT.split())
_MOST_IN_FLIGHT: Final = 5  # of an idempotent producer


def check_tuning(definition: SinkDefinition, *, exact: bool) -> None:
    """Refuse what our own producer cannot keep to."""
    given = {key: value for key, value in definition.options.passthrough.items() if not isinstance(value, Deferred)}
    kind = "that is exactly once" if exact else "whose rows have a timestamp"
    for key in sorted(_JAVA_ONLY & definition.options.passthrough.keys()):
        raise OptionError(
            "INVALID_OPTION",
            f"option kafka.{key} of sink {definition.name} is for Kafka's Java client, which writes no sink {kind}",
            hint="leave it out",
        )
    against = _against_idempotence({key: str(value) for key, value in given.items()})
    if against is not None and (exact or str(given.get(_IDEMPOTENT)) == "true"):
        raise OptionError(
            "CONFLICTING_OPTIONS",
            f"option kafka.{against} = '{given[against]}' of sink {definition.name} lets records be lost or come twice",
            hint=f"leave it out, or {'delivery' if exact else 'kafka.' + _IDEMPOTENT}",
        )


def producer_tuning(properties: Mapping[str, str], *, exact: bool) -> dict[str, Any]:
    """The properties of a relation that tune a producer, as librdkafka has them.

    >>> producer_tuning({"compression.type": "zstd", "compression.zstd.level": "9", "acks": "1"}, exact=False)
    {'compression.type': 'zstd', 'acks': '1', 'compression.level': '9', 'enable.idempotence': False}
    """
    found: dict[str, Any] = {_NAMES[key]: value for key, value in properties.items() if key in _NAMES}
    found |= {key: value for key, value in properties.items() if key in _SAME}
    level = properties.get(f"compression.{properties.get('compression.type')}.level")
    if level is not None:
        found["compression.level"] = level
    if "buffer.memory" in properties:
        found["queue.buffering.max.kbytes"] = max(1, int(properties["buffer.memory"]) // 1024)
    if exact:
        found[_TIMEOUT] = properties.get(_TIMEOUT, _TIMEOUT_MS)
    else:
        # As the Java client does: where what is asked for allows it, nothing comes twice.
        found[_IDEMPOTENT] = _against_idempotence(properties) is None
    return found


def _against_idempotence(properties: Mapping[str, str]) -> str | None:
    """The property that an idempotent producer cannot have."""
    if properties.get(_IDEMPOTENT) == "false":
        return _IDEMPOTENT
    if properties.get("acks", "all") != "all":
        return "acks"
    if properties.get("retries") == "0":
        return "retries"
    in_flight = "max.in.flight.requests.per.connection"
    return in_flight if int(properties.get(in_flight, "1")) > _MOST_IN_FLIGHT else None
