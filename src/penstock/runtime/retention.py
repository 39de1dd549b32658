"""How long what jobs leave behind is kept: late rows, dead letters, the history of states."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from penstock.options.settings import default_settings
from penstock.stores.views import Kept


def retention_of(settings: Mapping[str, object]) -> Kept:
    """What the settings say, and their defaults where nothing was set; a length of zero is for ever."""
    lengths = {**default_settings(), **settings}
    return Kept(
        late_rows_us=_microseconds(lengths["late_rows_retention"]),
        dead_letters_us=_microseconds(lengths["dead_letters_retention"]),
        job_history_us=_microseconds(lengths["job_history_retention"]),
    )


def _microseconds(length: object) -> int | None:
    return length // timedelta(microseconds=1) or None if isinstance(length, timedelta) else None
