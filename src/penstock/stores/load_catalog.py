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
from penstock.errors import CatalogError, OptionError, PenstockError
from penstock.options import resolve_setting
from penstock.plan.analyze import analyze
from penstock.plan.session import Session
from penstock.secrets import Secret
from penstock.sql.script import parse_statement
from penstock.sql.statements import OptionValue
from penstock.stores.private_files import RESTORE, shown

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.stores.catalog_store import CatalogStore, StoredObject


def load_session(store: CatalogStore) -> Session:
    """A session with the objects, settings and secrets of a store.

    What cannot be defined again is STATE_PATH_UNUSABLE: the error names the object and the file, its detail the cause.
    """
    session = Session(secrets=MappingProxyType(store.secrets()))
    for item in store.objects():
        try:
            session = _define(session, item)
        except (PenstockError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise _unreadable(f"{item.kind} {item.name}", store.database, error) from None
        if item.key not in session.catalog:
            raise _unreadable(f"{item.kind} {item.name}", store.database, None)
    try:
        return replace(session, settings=typed_settings(store.settings()))
    except OptionError as error:
        raise _unreadable("the settings", store.database, error) from None


def _unreadable(what: str, database: Path, cause: Exception | None) -> CatalogError:
    """The messages of our own errors hold no secret; of another error only its type is told."""
    detail, hint = "its text defines something else", RESTORE
    if isinstance(cause, PenstockError):
        detail = f"{cause.condition}: {cause.message}"
        if cause.condition == "UNKNOWN_CONNECTOR":
            hint = "register the connector before the catalog is opened, as docs/custom-connectors.md shows"
    elif cause is not None:
        detail = type(cause).__name__
    return CatalogError(
        "STATE_PATH_UNUSABLE", f"{what} in {shown(database)} cannot be read back", hint=hint, detail=detail
    )


def _define(session: Session, item: StoredObject) -> Session:
    if item.kind == "dimension":
        catalog, _ = session.catalog.put(read_dimension(item.name, item.text))
        return session.with_catalog(catalog)
    then = replace(session, settings=typed_settings(item.settings))
    return analyze(parse_statement(item.text), then).session


def typed_settings(settings: Mapping[str, str]) -> Mapping[str, object]:
    """Stored settings as the typed values they had."""
    return MappingProxyType(
        dict(resolve_setting(key, OptionValue("text", Secret(text))) for key, text in settings.items())
    )
