"""The values of the catalog's secrets, for connectors that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.secret_values import read_reference
from penstock.errors import ResolutionError
from penstock.secrets import Secret
from penstock.sql.statements import Name

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine


def secret_of(engine: Engine, name: str) -> Secret:
    """The value of a secret of CREATE SECRET, or of one that was written into options."""
    found = engine.session.catalog.find_secret(Name(name))
    if found is not None and found.reference is not None:
        return Secret(read_reference(found.reference, engine.home.roots))
    kept = engine.home.catalog.secrets().get(name)
    if kept is None:
        raise ResolutionError("UNKNOWN_SECRET", f"there is no secret {name}", hint="CREATE SECRET … AS '…'")
    return kept
