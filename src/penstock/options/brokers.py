"""The addresses of Kafka's brokers, as an option and as a setting have them."""

from __future__ import annotations

from typing import Final

from penstock.options.values import Text

_PORT: Final = r"(?:6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})"
# Kafka's clients take the name of a listener in front, as brokers write it. They know no port by themselves: one of
# them would refuse an address without, and the other one wait for a broker that it never asks.
_ADDRESS: Final = rf"(?!https?://)(?:\w+://)?[^\s,;/]+:{_PORT}"

BROKERS: Final = Text(
    pattern=rf"{_ADDRESS}(?:\s*,\s*{_ADDRESS})*",
    expects="addresses with a port each, such as 'host:9092,other:9092'",
)
