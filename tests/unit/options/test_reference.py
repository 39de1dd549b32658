"""The option reference is written from the schemas, and every option of every schema is well formed."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.options import SETTINGS, ConnectorSpec, OptionSpec, known_connectors, known_formats
from penstock.options.jobs import INSERT_OPTIONS, VIEW_OPTIONS
from penstock.options.keys import normalise
from penstock.options.matching import key_table
from penstock.options.reference import reference
from penstock.options.settings import default_settings
from penstock.options.subscriptions import SUBSCRIBE_OPTIONS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "options.md"


def every_option() -> list[OptionSpec]:
    found = [*SETTINGS, *VIEW_OPTIONS, *INSERT_OPTIONS, *SUBSCRIBE_OPTIONS]
    for connector in known_connectors():
        found += connector.options
        found += [member for family in connector.families for member in family.members]
    for form in known_formats():
        found += form.options
    return found


def test_the_page_and_the_schemas_agree() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "write it anew: python -m penstock.options.reference > docs/reference/options.md"
    )


def test_the_page_names_everything() -> None:
    page = reference()
    for spec in every_option():
        assert f"{spec.key}`" in page
        assert all(f"`{alias.key}`" in page for alias in spec.spellings()[1:])


def test_options_that_may_hold_a_secret_are_declared_so() -> None:
    words = {"password", "token", "secret", "credential", "pem"}
    harmless = {"schema_registry.credentials"}
    for spec in every_option():
        if words & set(normalise(spec.key).split("_")) and spec.key not in harmless:
            assert spec.secret, spec.key
    for connector in known_connectors():
        for name in connector.passthrough.allowed if connector.passthrough else ():
            if words & set(name.split(".")) and name not in harmless:
                assert connector.passthrough is not None
                assert name in connector.passthrough.secret, name


@pytest.mark.parametrize("connector", known_connectors(), ids=lambda spec: spec.name)
def test_no_spelling_means_two_things(connector: ConnectorSpec) -> None:
    meaning: dict[str, str] = {}
    for spec in connector.options:
        for alias in spec.spellings():
            other = meaning.setdefault(normalise(alias.key), spec.key)
            assert other == spec.key, f"{alias.key} means {other} and {spec.key}"
    for form in (spec for spec in known_formats() if spec.name in connector.formats):
        for option in form.options:
            found = key_table(connector, form).find(option.key)
            assert found is not None
            assert found.slot == option.key, f"{option.key} of {form.name} is hidden by {found.slot}"


def test_defaults_and_settings_fit() -> None:
    settings = default_settings()
    for spec in every_option():
        if spec.setting is not None:
            assert spec.setting in settings
        if spec.default is not None:
            assert spec.kind.read(spec.kind.write(spec.default)) == spec.default, spec.key
