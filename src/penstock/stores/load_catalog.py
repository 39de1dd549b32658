"""The catalog that a store holds: every object defined again from its text.

Definitions are not stored, only statements; so a newer version that understands more reads what an older one wrote.
Each object is defined under the settings that were in force when it was created: a later `SET` does not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from penstock.catalog.dimensions import read_dimension
from penstock.options import resolve_setting
from penstock.plan.analyze import analyze
from penstock.plan.session import Session
from penstock.secrets import Secret
from penstock.sql.script import parse_statement
from penstock.sql.statements import OptionValue

if TYPE_CHECKING:
    from penstock.stores.catalog_store import CatalogStore, StoredObject


def load_session(store: CatalogStore) -> Session:
    """A session with the objects, settings and secrets of a store."""
    session = Session(secrets=MappingProxyType(store.secrets()))
    for item in store.objects():
        session = _define(session, item)
    return replace(session, settings=_typed(store.settings()))


def _define(session: Session, item: StoredObject) -> Session:
    if item.kind == "dimension":
        catalog, _ = session.catalog.put(read_dimension(item.name, item.text))
        return session.with_catalog(catalog)
    then = replace(session, settings=_typed(item.settings))
    return analyze(parse_statement(item.text), then).session


def _typed(settings: Mapping[str, str]) -> Mapping[str, object]:
    return MappingProxyType(
        dict(resolve_setting(key, OptionValue("text", Secret(text))) for key, text in settings.items())
    )
