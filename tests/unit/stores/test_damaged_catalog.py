"""H10: a damaged catalog is told as such, by name, and nothing that is not ours is touched."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from penstock.catalog.changes import ChangeSetting, PutObject, changes_between
from penstock.catalog.snapshot import Catalog
from penstock.errors import OptionError, PenstockError
from penstock.plan.script import analyze_script
from penstock.secrets import Secret
from penstock.stores.catalog_store import CatalogStore
from penstock.stores.load_catalog import load_session
from tests.unit.catalog.samples import secret, source

CANARY = "canary-90bd"
SCRIPT = f"CREATE STREAM s (a INT) WITH (connector = 'kafka', topic = 't', kafka.sasl.password = '{CANARY}')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    analysis = analyze_script(SCRIPT)[-1].analysis
    assert analysis is not None
    with CatalogStore.open(state) as store:
        store.apply(changes_between(Catalog(), analysis.session.catalog))
    return state


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path / "catalog.db", isolation_level=None)
    connection.execute(statement)
    connection.close()


def refusal(path: Path | str) -> PenstockError:
    with pytest.raises(PenstockError) as error, CatalogStore.open(path) as store:
        load_session(store)
    assert error.value.condition == "STATE_PATH_UNUSABLE"
    assert CANARY not in f"{error.value}{error.value.detail}"
    return error.value


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = 'abc' WHERE key = 'schema_version'",
        "UPDATE meta SET value = '-1' WHERE key = 'schema_version'",
        "UPDATE meta SET value = '0' WHERE key = 'schema_version'",
        "DELETE FROM meta WHERE key = 'schema_version'",
        "DROP TABLE settings",
        "UPDATE objects SET settings = '['",
        "UPDATE objects SET settings = '[1]'",
        "UPDATE objects SET created_at = 'yesterday'",
        "UPDATE objects SET text = CAST(X'ff' AS TEXT)",
    ],
)
def test_a_damaged_database_is_told_as_such(path: Path, statement: str) -> None:
    change(path, statement)
    error = refusal(path)
    assert "damaged" in error.message
    assert "restore a copy" in str(error.hint)


def test_what_is_no_database_is_told_as_such(path: Path) -> None:
    for left in path.glob("catalog.db*"):
        left.write_bytes(b"no database " * 100)
    error = refusal(path)
    assert "not a Penstock catalog" in error.message
    assert "restore a copy" in str(error.hint)


@pytest.mark.parametrize(
    "text", ["garbage", "SELECT 1", "CREATE STREAM other (a INT)", f"CREATE STREAM s ''{CANARY}''"]
)
def test_a_damaged_object_is_named_with_its_file(path: Path, text: str) -> None:
    change(path, f"UPDATE objects SET text = '{text}'")
    error = refusal(path)
    assert error.message == f"stream s in {path / 'catalog.db'} cannot be read back"
    assert error.detail
    assert error.span is None


def test_an_object_of_a_connector_that_is_not_registered_says_what_to_do(path: Path) -> None:
    change(path, "UPDATE objects SET text = 'CREATE STREAM s (a INT) WITH (connector = ''weather'')'")
    error = refusal(path)
    assert "UNKNOWN_CONNECTOR" in str(error.detail)
    assert "register" in str(error.hint)


def test_damaged_settings_are_told_as_such(path: Path) -> None:
    change(path, "INSERT INTO settings (key, value) VALUES ('nonsense', '1')")
    assert "settings" in refusal(path).message


@pytest.mark.parametrize("place", ["a\0b", "\ud800"])
def test_a_path_that_no_file_can_have_is_a_clear_error(tmp_path: Path, place: str) -> None:
    error = refusal(tmp_path / place)
    assert "\0" not in error.message
    assert "state_path" in str(error.hint)


def test_what_others_put_among_the_secrets_stays(path: Path, tmp_path: Path) -> None:
    secrets = path / "secrets"
    (secrets / "stray").mkdir()
    (secrets / "q.7").mkdir()
    strays = ("README", "notes.txt", ".gitkeep", "Backup.1", "p.0")
    for name in strays:
        (secrets / name).write_text("mine")
    (tmp_path / "elsewhere").touch()
    (secrets / "link.1").symlink_to(tmp_path / "elsewhere")
    (secrets / "left%2Ebehind.3").write_text("stale")
    with CatalogStore.open(path) as store:
        store.apply([PutObject(secret("p", "value"))])
        assert store.secrets()["p"] == Secret("value")
    names = {item.name for item in secrets.iterdir()}
    assert names >= {"stray", "q.7", "link.1", *strays}
    assert "left%2Ebehind.3" not in names


def test_h16_no_row_of_a_setting_holds_a_password(path: Path) -> None:
    address = f"u:{CANARY}@b:9092"
    with CatalogStore.open(path) as store:
        for change_ in (
            ChangeSetting("kafka.bootstrap_servers", address),
            PutObject(source("t"), {"kafka.bootstrap_servers": address}),
        ):
            with pytest.raises(OptionError) as error:
                store.apply([change_])
            assert error.value.condition == "INVALID_SETTING"
            assert CANARY not in str(error.value)
        assert store.settings() == {}
