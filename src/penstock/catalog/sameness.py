"""Whether two definitions are the same thing, so that running a script again changes nothing."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.model import Definition, MaterializedViewDefinition, SinkDefinition, SourceDefinition


def same_definition(one: Definition, other: Definition) -> bool:
    """Whether two definitions mean the same; the order of their options says nothing."""
    return _plain(one) == _plain(other)


def _plain(definition: Definition) -> Definition:
    # STREAM and TABLE are two words for one thing.
    if isinstance(definition, SourceDefinition):
        kind = "table" if definition.kind == "stream" else definition.kind
        return replace(definition, kind=kind, options=replace(definition.options, canonical=(), notices=()))
    if isinstance(definition, SinkDefinition):
        word = "table" if definition.created_as == "stream" else definition.created_as
        return replace(definition, created_as=word, options=replace(definition.options, canonical=(), notices=()))
    if isinstance(definition, MaterializedViewDefinition):
        return replace(definition, options=replace(definition.options, canonical=(), notices=()))
    return definition
