"""Secrets written into a WITH clause: taken out of the statement before anything keeps or prints it.

An option such as `password = 'hunter2'` of the relation `s` becomes `password = SECRET "s.password"`. The part before
the dot says whose it is; names with a dot are kept for this, so they never meet those of CREATE SECRET.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from penstock.errors import ResolutionError
from penstock.options.resolved import PassedValue, ResolvedOptions
from penstock.options.values import Deferred, deferred
from penstock.secrets import Reference, Secret, only_references
from penstock.sql.statements import CreateRelation, CreateSink, Name, Option, OptionValue

Created = TypeVar("Created", CreateRelation, CreateSink)


def extract_secrets(statement: Created, resolved: ResolvedOptions) -> tuple[Created, dict[str, Secret]]:
    """The statement with canonical options and references in place of secret values, and the values by their names.

    A value that is only a reference already stays as it is. RisingWave's FORMAT clause is part of the options then.
    """
    found: dict[str, Secret] = {}

    def taken_out(option: Option) -> Option:
        value = option.value
        public = option.key not in resolved.secret_keys
        if public or value.kind == "secret" or only_references(value.reveal()):
            return option
        name = f"{statement.name}.{option.key}"
        found[name] = value.text
        return replace(option, value=OptionValue("secret", Secret(name)))

    options = tuple(taken_out(option) for option in resolved.canonical)
    return replace(statement, options=options, format=None), found


def used_secrets(options: tuple[Option, ...]) -> Iterator[Name]:
    """The names behind SECRET among the options, with their places."""
    for option in options:
        if option.value.kind == "secret":
            yield Name(option.value.reveal(), span=option.value_span)


def owned(relation: str, secret: str) -> bool:
    """Whether a secret was written into the options of a relation."""
    return secret.startswith(f"{relation}.")


def rename_secrets(options: tuple[Option, ...], old: str, new: str) -> tuple[Option, ...]:
    """The options with the references to the relation's own secrets under another relation name."""
    return tuple(_moved(option, old, new) for option in options)


def renamed_options(options: ResolvedOptions, old: str, new: str) -> ResolvedOptions:
    """The resolved options with the references to the relation's own secrets under another relation name."""

    def moved(value: object) -> object:
        if not isinstance(value, Deferred) or not any(_own(reference, old) for reference in value.references):
            return value
        (reference,) = value.references
        return deferred(OptionValue("secret", Secret(new + reference.name[len(old) :])))

    passed = {key: moved(value) for key, value in options.passthrough.items()}
    return replace(
        options,
        values=MappingProxyType({key: moved(value) for key, value in options.values.items()}),
        canonical=rename_secrets(options.canonical, old, new),
        passthrough=MappingProxyType({key: value for key, value in passed.items() if isinstance(value, PassedValue)}),
    )


def _own(reference: Reference, relation: str) -> bool:
    return reference.kind == "secret" and owned(relation, reference.name)


def _moved(option: Option, old: str, new: str) -> Option:
    name = option.value.reveal()
    if option.value.kind != "secret" or not owned(old, name):
        return option
    return replace(option, value=OptionValue("secret", Secret(new + name[len(old) :])))


def check_owner(relation: str, name: Name, values: Mapping[str, Secret]) -> Secret | None:
    """The value of a relation's own secret, None where it is not at hand; another relation's secret is refused."""
    if not owned(relation, name.text):
        raise ResolutionError(
            "UNKNOWN_SECRET",
            f"secret {name} belongs to the options of another relation",
            hint="create a secret with CREATE SECRET and use it in both",
            span=name.span,
        )
    return values.get(name.text)
