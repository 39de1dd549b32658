"""Whether two definitions are the same thing, so that running a script again changes nothing."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

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
        # What the statement left to settings is as it was when the view was created, whatever they are now.
        options = definition.options
        own = {key: value for key, value in options.values.items() if key in options.given}
        made = replace(options, values=MappingProxyType(own), from_settings=frozenset(), canonical=(), notices=())
        return replace(definition, options=made)
    return definition
