"""What the engine lets go of between batches is what the settings say at that moment."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock.stores.views import Kept

HOUR_US = 3_600_000_000


def test_the_settings_in_force_are_those_of_the_trim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Kept] = []
    with penstock.connect(tmp_path, dead_letters_retention="2 hours") as db:
        monkeypatch.setattr(db._engine.home.views, "maintain", asked.append)
        db._engine._upkeep()
        db.execute("SET late_rows_retention = INTERVAL '1' HOUR; SET job_history_retention = '0 s'")
        db._engine._upkeep()
        shown = {row[0]: row[1] for row in db.sql("SHOW SETTINGS").rows()}
    assert asked[-1] == Kept(late_rows_us=HOUR_US, dead_letters_us=2 * HOUR_US, job_history_us=None)
    assert asked[0].late_rows_us == 90 * 24 * HOUR_US
    assert (shown["late_rows_retention"], shown["dead_letters_retention"]) == ("1 hour", "2 hours")
