"""Whether two definitions are the same thing, so that running a script again changes nothing."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.model import Definition, MaterializedViewDefinition, SinkDefinition, SourceDefinition


def same_definition(one: Definition, other: Definition) -> bool:
    """Whether two definitions mean the same; the order of their options says nothing."""
    return _plain(one) == _plain(other)


def _plain(definition: Definition) -> Definition:
    if isinstance(definition, SourceDefinition | SinkDefinition):
        options = definition.options
        return replace(definition, options=replace(options, canonical=(), notices=()))
    if isinstance(definition, MaterializedViewDefinition):
        return replace(definition, options=replace(definition.options, canonical=(), notices=()))
    return definition
