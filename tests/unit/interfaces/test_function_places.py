"""CREATE FUNCTION in a database that others may use: code comes from the allowed paths, or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import penstock
from penstock import PenstockError
from penstock.sql.statements import Name

CODE = "def f(v: int) -> int:\n    return v\n"


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for functions, with one outside beside it; both are on the search path of Python."""
    inside, outside = tmp_path / "functions", tmp_path / "elsewhere"
    for folder, name in ((inside, "kept_inside"), (outside, "kept_outside")):
        package = folder / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "code.py").write_text(CODE)
        (folder / "plain.py").write_text(CODE)
    (inside / "way_out.py").symlink_to(outside / "plain.py")
    (outside / "noisy.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n{CODE}")
    monkeypatch.setattr(sys, "path", [*sys.path, str(inside), str(outside)])
    return inside


def create(db: penstock.Database, body: str) -> str | None:
    """The condition with which a function is refused."""
    try:
        db.execute(f"CREATE OR REPLACE FUNCTION f(v BIGINT) RETURNS BIGINT AS {body}")
    except PenstockError as error:
        return error.condition
    return None


def test_code_comes_from_the_allowed_paths(allowed: Path, tmp_path: Path) -> None:
    with penstock.connect(tmp_path / "home", allowed_paths=[allowed]) as db:
        assert create(db, f"'{allowed}/plain.py:f'") is None
        assert create(db, "'kept_inside.code:f'") is None
        for body in (
            f"'{allowed.parent}/elsewhere/plain.py:f'",
            f"'{allowed}/../elsewhere/plain.py:f'",
            f"'{allowed}/way_out.py:f'",
            "'kept_outside.code:f'",
            "'noisy:f'",
            "'os:system'",
            "'sys:exit'",
            "'nowhere:f'",
            "$$\ndef f(v):\n    return v\n$$",
        ):
            assert create(db, body) == "PATH_NOT_ALLOWED", body
        assert not (tmp_path / "ran").exists(), "what is refused is not run"
        with pytest.raises(PenstockError, match="cannot be changed by a statement"):
            db.execute("SET allowed_paths = '/'")
        db.register_function("own", lambda v: v, ["BIGINT"], int)  # the program itself is free
        assert {name for name, *_ in db.sql("SHOW FUNCTIONS").rows()} == {"f", "own"}
    with penstock.connect(tmp_path / "home") as db:
        assert create(db, "'kept_outside.code:f'") is None
        assert create(db, "$$\ndef f(v):\n    return v\n$$") is None


def test_a_file_that_was_allowed_once_is_looked_at_again(allowed: Path, tmp_path: Path) -> None:
    with penstock.connect(tmp_path / "home") as db:
        assert create(db, f"'{allowed.parent}/elsewhere/plain.py:f'") is None
    with penstock.connect(tmp_path / "home", allowed_paths=[allowed]) as db:
        found = db._engine.session.catalog.find_function(Name("f"))
        assert found is not None
        with pytest.raises(PenstockError) as raised:
            db._engine.functions.call(found)
        assert raised.value.condition == "PATH_NOT_ALLOWED"
