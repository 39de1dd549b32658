"""CREATE SECRET: a name for a value that is kept elsewhere."""

from __future__ import annotations

from penstock.catalog.model import SecretDefinition
from penstock.catalog.text import canonical_text
from penstock.errors import CatalogError, NotYetError
from penstock.secrets import MASK, Reference, Secret, only_references, references
from penstock.sql.statements import CreateSecret


def define_secret(statement: CreateSecret, stored: Secret | None = None) -> SecretDefinition:
    """The definition; `stored` is the value of the secret files when the statement is read back from the catalog."""
    name = statement.name
    if "." in name.text:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"secret {name} has a dot in its name",
            hint="such names are kept for secrets inside options; take another one",
            span=name.span,
        )
    _check_backend(statement)
    value = statement.value if stored is None else stored
    written = value.reveal()
    if not written or (written == MASK and stored is None):
        raise CatalogError(
            "INVALID_DEFINITION",
            f"secret {name} has no value",
            hint="give its value, or a reference such as '${env:PASSWORD}'",
            span=statement.value_span,
        )
    reference = _reference(written)
    return SecretDefinition(
        name=name, reference=reference, value=None if reference else value, text=canonical_text(statement)
    )


def _reference(written: str) -> Reference | None:
    found = references(written)
    return found[0] if len(found) == 1 and only_references(written) else None


def _check_backend(statement: CreateSecret) -> None:
    for option in statement.options:
        if option.key.lower() == "backend" and option.value.reveal().lower() == "meta":
            continue
        raise NotYetError(
            "CLAUSE_NOT_YET",
            f"secret {statement.name} asks for option {option.key}",
            hint="leave it out: values are kept in the state directory, or give a reference such as '${env:X}'",
            span=option.key_span,
        )
