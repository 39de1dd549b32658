"""Two sinks of one plain file are refused, however its path is spelt; whatever else shares a path is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock import PenstockError


def test_a_plain_file_belongs_to_one_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    with penstock.connect("state") as db:
        db.execute("CREATE SINK one (a INT) WITH (connector = 'single_file', path = 'rows.json')")
        for path in ("rows.json", f"{tmp_path}/rows.json", f"file://{tmp_path}/rows.json", "link/rows.json"):
            with pytest.raises(PenstockError) as raised:
                db.execute(f"CREATE SINK two (a INT) WITH (connector = 'file', single_file = true, path = '{path}')")
            assert raised.value.condition == "INVALID_OPTION"
            assert raised.value.message.startswith(f"sink one writes to {tmp_path}/rows.json already")
        db.execute("CREATE SINK IF NOT EXISTS one (a INT) WITH (connector = 'single_file', path = 'rows.json')")
        db.execute("CREATE TABLE read_back (a INT) WITH (connector = 'file', path = 'rows.json')")
        db.execute("CREATE SINK other (a INT) WITH (connector = 'single_file', path = 'other.json')")
        db.execute("CREATE SINK directory (a INT) WITH (connector = 'file', path = 'rows')")
        db.execute("CREATE SINK again (a INT) WITH (connector = 'file', path = 'rows')")
        db.execute("DROP SINK one")
        db.execute("CREATE SINK two (a INT) WITH (connector = 'single_file', path = 'rows.json')")
