"""A16, I6: a connector of somebody else declares its options and has them validated, documented and masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from pydantic import BaseModel, Field, SecretStr

from penstock.errors import OptionError
from penstock.options import (
    ConnectorSpec,
    Draft,
    OptionSpec,
    Problem,
    known_connectors,
    public_option,
    register_connector,
    unregister_connector,
)
from penstock.options.models import options_of
from penstock.options.reference import connector_reference
from penstock.options.schema import SOURCE
from penstock.options.values import Duration, Integer, Text
from tests.unit.options.written import options, refusal, resolve

CANARY = "canary-77aa"


def _check(draft: Draft) -> None:
    if draft.values["sensors"] == 13:
        raise Problem("INVALID_OPTION", "thirteen sensors are too many", hint="take twelve", key="sensors")


WEATHER = ConnectorSpec(
    name="weather",
    summary="readings of weather stations",
    aliases=("meteo",),
    options=(
        OptionSpec("station", Text(), "the station", required=True),
        OptionSpec("api_key", Text(), "the key of the service", secret=True, aliases=("key",)),
        OptionSpec("sensors", Integer(minimum=1), "how many sensors", default=4),
        OptionSpec("every", Duration(), "how often"),
    ),
    roles=SOURCE,
    formats=("json",),
    check=_check,
    available=True,
)


class Ticker(BaseModel):
    """The options of a connector, declared with pydantic."""

    symbol: str = Field(description="the symbol", min_length=1)
    depth: int = Field(default=5, ge=1, description="levels of the book")
    side: Literal["buy", "sell"] = "buy"
    token: SecretStr | None = Field(default=None, description="the key of the exchange")


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register_connector(WEATHER)
    register_connector(
        ConnectorSpec(
            "ticker", "prices of an exchange", options_of(Ticker, aliases={"symbol": ("pair",)}), roles=SOURCE
        )
    )
    yield
    unregister_connector("weather")
    unregister_connector("ticker")


def test_a16_options_are_validated() -> None:
    found = resolve({"connector": "Meteo", "Station": "EDDB", "every": "10 min", "api-key": CANARY})
    assert (found.connector, found.available, found.values["sensors"]) == ("weather", True, 4)
    assert refusal({"connector": "weather"}).condition == "MISSING_OPTION"
    assert refusal({"connector": "weather", "station": "x", "sensors": "0"}).condition == "INVALID_OPTION"
    error = refusal({"connector": "weather", "station": "x", "sensor": "1"})
    assert "sensors" in str(error.hint)
    error = refusal({"connector": "weather", "station": "x", "sensors": 13})
    assert (error.message, error.span and error.span.line) == ("thirteen sensors are too many", 3)


def test_a16_secret_options_are_masked() -> None:
    written = {"connector": "weather", "station": "x", "key": CANARY}
    found = resolve(written)
    assert CANARY not in f"{found!r}{found.shown()}"
    assert not public_option(options(written))(options(written)[2])
    assert "mask" in refusal({**written, "key": "********"}).message


def test_a16_options_are_documented() -> None:
    page = connector_reference(WEATHER)
    assert "## Connector `weather`" in page
    assert "| `station` | text | required | the station |" in page
    assert "(secret)" in page
    assert "`meteo`" in page
    assert "Available." in page


def test_a16_a_name_is_taken_once() -> None:
    assert "weather" in {spec.name for spec in known_connectors()}
    with pytest.raises(OptionError, match="OBJECT_EXISTS"):
        register_connector(WEATHER)
    with pytest.raises(OptionError, match="kafka"):
        register_connector(ConnectorSpec("mine", "mine", (), aliases=("kafka",)))
    assert "mine" not in {spec.name for spec in known_connectors()}
    register_connector(WEATHER, replace=True)


def test_a16_pydantic_models_declare_options() -> None:
    found = resolve({"connector": "ticker", "pair": "EURUSD", "depth": "7", "token": CANARY})
    assert (found.values["symbol"], found.values["depth"], found.values["side"]) == ("EURUSD", 7, "buy")
    assert CANARY not in f"{found!r}{found.shown()}"
    assert refusal({"connector": "ticker"}).condition == "MISSING_OPTION"
    for written in ({"depth": "0"}, {"depth": CANARY}, {"side": CANARY}):
        error = refusal({"connector": "ticker", "symbol": "x", **written})
        assert (error.condition, error.span and error.span.column) == ("INVALID_OPTION", 50)


def test_a16_a_pydantic_refusal_never_quotes_a_secret() -> None:
    class Strict(BaseModel):
        pin: SecretStr = Field(max_length=4)

    register_connector(ConnectorSpec("strict", "strict", options_of(Strict), roles=SOURCE))
    try:
        error = refusal({"connector": "strict", "pin": CANARY})
    finally:
        unregister_connector("strict")
    assert error.condition == "INVALID_OPTION"
    assert CANARY not in f"{error}{error.detail}{error.hint}"
