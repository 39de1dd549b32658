"""The catalog on disk, and what its relations need beside it: written together, or not at all."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.changes import Change, PutObject, changes_between
from penstock.catalog.model import SinkDefinition, SourceDefinition
from penstock.connectors.file_plan import check_place, refuse_shared
from penstock.connectors.registry import sink_of, source_of
from penstock.connectors.source import FollowedSource
from penstock.errors import NotYetError, PenstockError
from penstock.failpoints import hit
from penstock.options.resolved import show
from penstock.options.settings import default_settings
from penstock.runtime.topic_partitions import fewer_notice, refuse_wider

if TYPE_CHECKING:
    from penstock.catalog.model import Definition
    from penstock.plan.session import Session
    from penstock.runtime.home import Home


def write_catalog(home: Home, before: Session, after: Session) -> list[str]:
    """Bring the catalog from one session to the next; what there is to tell of it.

    What is refused on the way leaves nothing behind.
    """
    changes = changes_between(before.catalog, after.catalog, _setting_texts(before))
    if not changes:
        return []
    for change in changes:
        _check(home, change, before)
        if isinstance(change, PutObject):
            refuse_shared(change.definition, after.catalog)
    kept = {item.key: item.settings for item in home.catalog.objects()}
    hit("catalog.before_write")
    home.catalog.apply(changes)
    hit("catalog.after_write")
    try:
        for change in changes:
            if isinstance(change, PutObject):
                prepare(home, change.definition)
    except PenstockError:
        undone = changes_between(after.catalog, before.catalog)
        # What would have been replaced is there again as it was, with the settings it was created under.
        home.catalog.apply(
            [
                replace(item, settings=kept[item.definition.object_key]) if isinstance(item, PutObject) else item
                for item in undone
            ]
        )
        raise
    return [
        notice
        for change in changes
        if isinstance(change, PutObject) and (notice := fewer_notice(home, change.definition)) is not None
    ]


def prepare(home: Home, definition: Definition) -> None:
    """Make ready what a relation needs outside the catalog, such as its embedded topic."""
    with suppress(NotYetError):  # a relation of a connector that is not there yet can be declared
        if isinstance(definition, SourceDefinition):
            source_of(definition.options.connector).prepare(definition, home.path, home.topics)
        elif isinstance(definition, SinkDefinition) and definition.columns:
            sink_of(definition.options.connector).prepare(definition, home.path, home.topics)


def _check(home: Home, change: Change, before: Session) -> None:
    """Refuse what cannot work before it is written down."""
    if not isinstance(change, PutObject):
        return
    check_place(change.definition, home.roots)
    refuse_wider(home, change.definition, before.catalog)
    if isinstance(change.definition, SourceDefinition):
        with suppress(NotYetError):
            source = source_of(change.definition.options.connector)
            if isinstance(source, FollowedSource):
                source.check(change.definition, home.path)


def _setting_texts(session: Session) -> dict[str, str]:
    """The settings that are not at their defaults, as they are kept with an object."""
    defaults = default_settings()
    return {
        key: show(value) for key, value in session.settings.items() if value is not None and value != defaults.get(key)
    }
