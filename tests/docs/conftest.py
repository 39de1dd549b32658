"""Pages and examples run in one process, and a registration lasts: what they register is forgotten behind them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.options import known_connectors, unregister_connector


@pytest.fixture(autouse=True)
def _registrations_are_forgotten() -> Iterator[None]:
    before = {spec.name for spec in known_connectors()}
    yield
    for spec in known_connectors():
        if spec.name not in before:
            unregister_connector(spec.name)
