"""A definition under another name."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.model import Definition, DimensionDefinition, InlineSecret, SinkDefinition, SourceDefinition
from penstock.catalog.secrets import rename_secrets, renamed_options
from penstock.catalog.text import Created, canonical_text
from penstock.errors import InternalError, UnsupportedError
from penstock.sql.statements import CreateRelation, CreateSink, Name


def renamed_definition(definition: Definition, name: Name) -> Definition:
    """The definition with another name, also in its text and in the names of its own secrets."""
    if isinstance(definition, DimensionDefinition):
        raise UnsupportedError(
            "UNSUPPORTED_STATEMENT",
            f"dimension {definition.name} is made by no statement and renamed by none",
            hint="register it under the new name and drop the old one",
            span=name.span,
        )
    text = _renamed_text(definition, name) if definition.text else ""
    if isinstance(definition, SourceDefinition | SinkDefinition) and definition.secrets:
        old = definition.name.text
        secrets = tuple(InlineSecret(name.text + item.name[len(old) :], item.value) for item in definition.secrets)
        options = renamed_options(definition.options, old, name.text)
        return replace(definition, name=name, text=text, secrets=secrets, options=options)
    return replace(definition, name=name, text=text)


def _renamed_text(definition: Definition, name: Name) -> str:
    # Imported here because only ALTER … RENAME needs the parser.
    from penstock.sql.script import parse_statement

    # The text is ours: canonical, and without a secret that reading it back could lose.
    statement = parse_statement(definition.text)
    if not isinstance(statement, Created):
        raise InternalError(f"the stored text of {definition.name} is not a CREATE statement")
    if isinstance(statement, CreateRelation | CreateSink):
        statement = replace(statement, options=rename_secrets(statement.options, definition.name.text, name.text))
    return canonical_text(replace(statement, name=name))
