"""Secrets in options: masked everywhere, references kept, masks refused."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.options import Deferred, hide_option, known_connectors, known_formats, public_option
from penstock.secrets import MASK, Reference, Secret
from penstock.sql.statements import Format, OptionValue
from tests.unit.options.written import options, refusal, resolve, secret

KAFKA = {"connector": "kafka", "topic": "t"}
CANARY = "canary-3f9a1c"


def test_a_secret_value_is_wrapped_and_masked() -> None:
    found = resolve({**KAFKA, "properties.sasl.password": CANARY})
    assert found.values["kafka.sasl.password"] == Secret(CANARY)
    assert found.passthrough["sasl.password"] == Secret(CANARY)
    assert found.shown()["kafka.sasl.password"] == MASK
    assert found.secret_keys == {"kafka.sasl.password"}
    assert CANARY not in repr(found)


@pytest.mark.parametrize(
    ("written", "shown", "references"),
    [
        ("${env:KAFKA_PASSWORD}", "${env:KAFKA_PASSWORD}", (Reference("env", "KAFKA_PASSWORD"),)),
        ("{{ PW }}", "{{ PW }}", (Reference("env", "PW"),)),
        ("${file:/run/pw}", "${file:/run/pw}", (Reference("file", "/run/pw"),)),
        (f"{CANARY}${{env:X}}", MASK, (Reference("env", "X"),)),
        (f"SECRET {CANARY} ${{env:X}}", MASK, (Reference("env", "X"),)),
    ],
)
def test_references_are_kept_as_written(written: str, shown: str, references: tuple[Reference, ...]) -> None:
    found = resolve({**KAFKA, "properties.sasl.password": written})
    kept = found.values["kafka.sasl.password"]
    assert isinstance(kept, Deferred)
    assert (kept.text.reveal(), kept.references) == (written, references)
    assert found.shown()["kafka.sasl.password"] == shown
    assert CANARY not in repr(found)


def test_secret_objects_are_references() -> None:
    found = resolve({**KAFKA, "properties.sasl.password": secret("kafka_pw")})
    kept = found.passthrough["sasl.password"]
    assert isinstance(kept, Deferred)
    assert kept.references == (Reference("secret", "kafka_pw"),)
    assert found.shown()["kafka.sasl.password"] == "SECRET kafka_pw"
    assert found.canonical[2].value.kind == "secret"


def test_a_reference_is_not_checked_for_its_type() -> None:
    found = resolve({**KAFKA, "max_parallelism": "${env:READERS}"})
    assert isinstance(found.values["max_parallelism"], Deferred)
    assert found.shown()["max_parallelism"] == "${env:READERS}"


@pytest.mark.parametrize("key", ["connector", "format", "event_time_field", "type", "primary_key"])
def test_what_the_plan_depends_on_is_written_out(key: str) -> None:
    written = {**KAFKA, key: "${env:X}"}
    error = refusal(written, role="sink" if key == "primary_key" else "source")
    assert error.condition == "INVALID_OPTION"
    assert "written out" in error.message


def test_a_mask_pasted_back_is_refused() -> None:
    error = refusal({**KAFKA, "properties.sasl.password": MASK})
    assert (error.condition, error.span and error.span.column) == ("INVALID_OPTION", 50)
    assert "mask" in error.message
    assert "CREATE SECRET" in str(error.hint)
    assert "${env:" in str(error.hint)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ({"connector": "http"}, "url"),
        ({"connector": "postgres", "table": "t"}, "url"),
        ({"connector": "http", "url": "https://h/x"}, "header.Authorization"),
        (KAFKA, "properties.sasl.jaas.config"),
        (KAFKA, "auth.password"),
        (KAFKA, "schema_registry.token"),
    ],
)
@pytest.mark.parametrize("kind", ["text", "interval"])
def test_a_secret_of_the_wrong_kind_is_not_quoted(
    written: dict[str, object], key: str, kind: Literal["text", "interval"]
) -> None:
    hidden = CANARY if kind == "text" else "271828182845"
    told, _ = _told({**written, key: OptionValue(kind, Secret(hidden))}, "sink", None)
    assert hidden not in told


def test_an_address_of_another_kind_is_not_quoted() -> None:
    error = refusal({"connector": "jdbc", "table-name": "t", "url": f"jdbc:other://u:{CANARY}@h/d"})
    assert error.condition == "INVALID_OPTION"
    assert CANARY not in str(error)


def test_an_address_is_shown_unless_it_carries_more() -> None:
    plain = {"connector": "postgres", "table": "t", "url": "postgresql://h:5432/d"}
    assert resolve(plain).shown()["url"] == "postgresql://h:5432/d"
    for url in (f"postgresql://u:{CANARY}@h/d", f"jdbc:postgresql://h/d?user=u&password={CANARY}"):
        found = resolve({**plain, "url": url})
        assert found.shown()["url"] == MASK
        assert CANARY not in repr(found)
        assert not public_option(options({**plain, "url": url}))(options({"url": url})[0])


@pytest.mark.parametrize(
    ("written", "public"),
    [
        ({**KAFKA}, {"connector", "topic"}),
        (
            {**KAFKA, "properties.sasl.password": "x", "properties.sasl.username": "u"},
            {"connector", "topic", "properties.sasl.username"},
        ),
        ({"connector": "nonsense", "topic": "t", "format": "json"}, {"connector", "format"}),
        ({**KAFKA, "nonsense": "x", "late": "keep"}, {"connector", "topic", "late"}),
        ({"late": "keep", "pasword": "x"}, {"late"}),
        ({"connector": "http", "url": "https://hooks.example.org/T0/B0/zzz"}, {"connector"}),
        ({**KAFKA, "nonsense": "${env:X}"}, {"connector", "topic", "nonsense"}),
        ({**KAFKA, "batch_size": "many"}, {"connector", "topic", "batch_size"}),
    ],
)
def test_which_options_may_be_shown(written: dict[str, object], public: set[str]) -> None:
    given_options = options(written)
    shows, hides = public_option(given_options), hide_option(given_options)
    assert {option.key for option in given_options if shows(option)} == public
    assert all(shows(option) != hides(option) for option in given_options)


SECRET_KEYS = sorted(
    {spec.key for connector in known_connectors() for spec in connector.options if spec.secret}
    | {spec.key for form in known_formats() for spec in form.options if spec.secret}
    | {
        f"properties.{name}"
        for connector in known_connectors()
        if connector.passthrough
        for name in connector.passthrough.secret
    }
)
KNOWN_KEYS = sorted({spec.key for connector in known_connectors() for spec in connector.options if not spec.secret})
CONNECTORS = [*(spec.name for spec in known_connectors()), "pulsar", "nonsense"]


def test_there_are_secret_options_to_try() -> None:
    assert {"auth.password", "password", "properties.sasl.jaas.config", "schema_registry.password"} <= set(SECRET_KEYS)


@given(
    connector=st.sampled_from(CONNECTORS),
    secret_keys=st.lists(st.sampled_from(SECRET_KEYS), min_size=1, max_size=3, unique=True),
    unknown=st.lists(st.from_regex(r"\A[a-z]{1,12}[._-]zz[a-z]{1,8}\Z"), max_size=2, unique=True),
    known=st.dictionaries(
        st.sampled_from(KNOWN_KEYS), st.sampled_from(["1", "true", "x", "5 s", "h:1", "", "-"]), max_size=5
    ),
    role=st.sampled_from(["source", "sink"]),
    around=st.tuples(st.text(max_size=3), st.sampled_from(["", "${env:X}", "'", "=", "\n"])),
    form=st.sampled_from([None, Format("plain", "json"), Format("upsert", "avro"), Format("nonsense", None)]),
)
def test_a_canary_is_in_no_message_repr_or_shown_value(
    connector: str,
    secret_keys: list[str],
    unknown: list[str],
    known: dict[str, str],
    role: str,
    around: tuple[str, str],
    form: Format | None,
) -> None:
    hidden = around[0] + CANARY + around[1]
    written: dict[str, object] = {"connector": connector, **known, **dict.fromkeys([*secret_keys, *unknown], hidden)}
    given_options = options(written)
    shows = public_option(given_options)
    assert not any(shows(option) for option in given_options if CANARY in option.value.reveal())
    assert CANARY not in repr(given_options)
    told, refused = _told(written, role="sink" if role == "sink" else "source", form=form)
    assert CANARY not in told
    assert refused or not unknown


def _told(written: dict[str, object], role: Literal["source", "sink"], form: Format | None) -> tuple[str, bool]:
    """Everything that a resolution says, and whether it was a refusal."""
    try:
        found = resolve(written, role=role, clause=form)
    except PenstockError as error:
        chain = f"{error.__cause__!r}" if error.__cause__ else ""
        return f"{error!s} {error!r} {error.args} {error.message} {error.hint} {error.detail} {chain}", True
    return f"{found!r} {found.shown()} {found.notices}", False
