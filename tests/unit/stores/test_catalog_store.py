"""The catalog on disk: what is kept, in which order, for whom, and what a crash leaves (H10, H16)."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.catalog.changes import ChangeSetting, PutObject, RemoveObject, changes_between
from penstock.catalog.model import InlineSecret, ObjectKey
from penstock.catalog.snapshot import Catalog
from penstock.errors import InternalError, PenstockError
from penstock.secrets import Secret
from penstock.sql.statements import Name
from penstock.stores.catalog_store import CatalogStore
from penstock.stores.migrate import Migration, known_migrations, migrate
from penstock.types import BIGINT
from tests.unit.catalog.samples import function, relation_key, secret, source, view

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CANARY = "canary-7f3a-hunter2"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def store(path: Path) -> Iterator[CatalogStore]:
    with CatalogStore.open(path, clock=lambda: NOON) as opened:
        yield opened


def names(store: CatalogStore) -> list[str]:
    return [item.key.name for item in store.objects()]


def test_objects_come_back_as_they_were_put(store: CatalogStore, path: Path) -> None:
    needed = source("s", temporary=True)
    store.apply([PutObject(needed, {"dialect": "flink"}), PutObject(view("v", "s")), PutObject(function("f"))])
    store.close()
    with CatalogStore.open(path) as again:
        first, second, third = again.objects()
    assert (first.key, first.kind, first.temporary, first.text) == (needed.object_key, "stream", True, needed.text)
    assert first.settings == {"dialect": "flink"}
    assert (first.created_at, first.changed_at) == (NOON, NOON)
    assert (second.depends_on, second.settings) == ((needed.object_key,), {})
    assert (third.key, third.kind) == (ObjectKey("function", "f"), "function")


def test_whether_a_name_was_quoted_is_kept(store: CatalogStore) -> None:
    store.apply([PutObject(source("S", quoted=True)), PutObject(source("s", quoted=True)), PutObject(source("t"))])
    assert [(item.name.text, item.name.quoted) for item in store.objects()] == [("S", True), ("s", True), ("t", False)]


def test_a_replaced_object_keeps_its_place_and_birth(store: CatalogStore, path: Path) -> None:
    store.apply([PutObject(source("a")), PutObject(source("b"))])
    store.close()
    later = datetime(2026, 2, 1, tzinfo=UTC)
    with CatalogStore.open(path, clock=lambda: later) as again:
        again.apply([PutObject(replace(source("a"), text="CREATE STREAM a (x INT)"))])
        first, _ = again.objects()
    assert (first.text, first.created_at, first.changed_at) == ("CREATE STREAM a (x INT)", NOON, later)


def test_positions_are_never_used_twice(store: CatalogStore) -> None:
    store.apply([PutObject(source("a")), PutObject(source("b"))])
    last = store.objects()[-1].position
    store.apply([RemoveObject(relation_key("b"))])
    store.apply([PutObject(source("c"))])
    assert store.objects()[-1].position > last


def test_load_order_follows_needs_also_where_a_replaced_object_needs_a_younger_one(store: CatalogStore) -> None:
    store.apply([PutObject(view("old")), PutObject(source("young"))])
    store.apply([PutObject(view("old", "young"))])
    assert names(store) == ["young", "old"]


def test_one_apply_may_drop_create_and_set(store: CatalogStore) -> None:
    before = Catalog().put(source("s"))[0].put(view("v", "s"))[0]
    store.apply(changes_between(Catalog(), before))
    after = before.drop(Name("s"), "STREAM", cascade=True)[0].put(source("t"))[0].put(view("v", "t"))[0]
    store.apply([*changes_between(before, after), ChangeSetting("dialect", "flink"), ChangeSetting("late", "drop")])
    assert names(store) == ["t", "v"]
    assert store.settings() == {"dialect": "flink", "late": "drop"}
    store.apply([ChangeSetting("dialect", None), ChangeSetting("late", "keep")])
    assert store.settings() == {"late": "keep"}


def test_a_change_that_would_leave_something_hanging_is_not_made(store: CatalogStore) -> None:
    store.apply([PutObject(source("s")), PutObject(view("v", "s"))])
    with pytest.raises(InternalError):
        store.apply([ChangeSetting("late", "drop"), RemoveObject(relation_key("s"))])
    with pytest.raises(InternalError):
        store.apply([PutObject(source("t")), PutObject(view("w", "gone"))])
    assert (names(store), store.settings()) == (["s", "v"], {})


def test_h16_only_the_owner_can_read_any_of_the_files(store: CatalogStore, path: Path) -> None:
    inline = (InlineSecret("s.password", Secret(CANARY)),)
    store.apply([PutObject(source("s", secrets=inline))])
    found = {item.relative_to(path.parent).as_posix(): stat.S_IMODE(item.stat().st_mode) for item in path.rglob("*")}
    assert {"state/catalog.db", "state/catalog.db-wal", "state/catalog.db-shm", "state/secrets"} <= set(found)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {name: mode for name, mode in found.items() if mode != 0o600} == {"state/secrets": 0o700}


def test_a_database_that_others_could_read_is_made_private(path: Path) -> None:
    path.mkdir()
    (path / "catalog.db").touch(0o644)
    with CatalogStore.open(path):
        assert stat.S_IMODE((path / "catalog.db").stat().st_mode) == 0o600


def test_a_directory_that_others_can_write_to_is_a_concern(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)
    with CatalogStore.open(path) as opened:
        assert opened.concerns == (f"{path} can be written to by other users; make it private with chmod 700",)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777


def test_every_commit_is_forced_to_disk(store: CatalogStore) -> None:
    pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    found = [store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert found == ["wal", 2, 1, 5000]


def test_no_secret_is_in_any_database_file_or_message(store: CatalogStore, path: Path) -> None:
    inline = source("s", secrets=(InlineSecret("s.password", Secret(CANARY)),))
    store.apply([PutObject(inline), PutObject(secret("p", CANARY + "-named"))])
    assert CANARY not in repr(inline) + repr(store.objects()) + repr(store.secrets())
    store.close()
    contents = {item.name: item.read_bytes() for item in path.rglob("*") if item.is_file()}
    holders = {name for name, content in contents.items() if CANARY.encode() in content}
    assert holders == {"s%2Epassword.1", "p.2"}


def test_secret_values_are_kept_replaced_and_removed(store: CatalogStore, path: Path) -> None:
    def files() -> list[str]:
        return sorted(item.name for item in (path / "secrets").iterdir())

    store.apply([PutObject(source("s", secrets=(InlineSecret("s.password", Secret("one")),)))])
    assert store.secrets() == {"s.password": Secret("one")}
    store.apply([PutObject(source("s", secrets=(InlineSecret("s.password", None),), a=BIGINT))])
    assert (store.secrets(), files()) == ({"s.password": Secret("one")}, ["s%2Epassword.1"])
    store.apply([PutObject(source("s", secrets=(InlineSecret("s.password", Secret("two")),)))])
    assert (store.secrets(), files()) == ({"s.password": Secret("two")}, ["s%2Epassword.2"])
    store.apply([PutObject(source("s"))])
    assert (store.secrets(), files()) == ({}, [])
    store.apply([PutObject(secret("p", "three"))])
    store.apply([RemoveObject(ObjectKey("secret", "p"))])
    assert (store.secrets(), files()) == ({}, [])


def test_what_a_crash_left_among_the_secrets_is_removed_when_opened(store: CatalogStore, path: Path) -> None:
    store.apply([PutObject(secret("p", "value"))])
    store.close()
    for left in ("p.2", "q.1", "q.9.77.partial"):
        (path / "secrets" / left).write_text("stale")
    with CatalogStore.open(path) as again:
        assert again.secrets() == {"p": Secret("value")}
    assert [item.name for item in (path / "secrets").iterdir()] == ["p.1"]


def test_a_failed_change_leaves_the_secret_in_force(store: CatalogStore) -> None:
    store.apply([PutObject(secret("p", "old"))])
    with pytest.raises(InternalError):
        store.apply([PutObject(secret("p", "new")), PutObject(view("v", "gone"))])
    assert store.secrets() == {"p": Secret("old")}


def test_the_database_says_which_versions_wrote_it(store: CatalogStore) -> None:
    versions = store.versions()
    assert versions["schema_version"] == str(len(known_migrations()))
    assert set(versions) == {"schema_version", "penstock_version", "sqlglot_version"}


def test_a_database_of_a_newer_version_is_refused(store: CatalogStore, path: Path) -> None:
    store.apply([PutObject(source("s"))])
    store.close()
    with sqlite3.connect(path / "catalog.db") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    connection.close()
    with pytest.raises(PenstockError) as error:
        CatalogStore.open(path)
    assert error.value.condition == "STATE_PATH_UNUSABLE"
    assert "layout 99" in error.value.message


def test_migrations_run_in_order_one_transaction_each(tmp_path: Path) -> None:
    def first(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE one (x)")

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE two (x)")
        raise RuntimeError

    def second(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO one VALUES (2)")

    connection = sqlite3.connect(tmp_path / "some.db", isolation_level=None)
    with pytest.raises(RuntimeError):
        migrate(connection, {}, (Migration(1, first), Migration(2, broken)))
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables == {"meta", "one"}
    assert migrate(connection, {"penstock_version": "1"}, (Migration(1, first), Migration(2, second))) == 2
    assert migrate(connection, {"penstock_version": "2"}, (Migration(1, first), Migration(2, second))) == 2
    assert connection.execute("SELECT * FROM one").fetchall() == [(2,)]
    assert dict(connection.execute("SELECT key, value FROM meta")) == {"schema_version": "2", "penstock_version": "2"}
    connection.close()


@pytest.mark.parametrize("content", [b"this is no database at all, only text" * 50, None])
def test_what_is_not_our_database_is_refused_and_left_alone(path: Path, content: bytes | None) -> None:
    path.mkdir(mode=0o700)
    database = path / "catalog.db"
    if content is None:
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE theirs (x)")
        connection.close()
        content = database.read_bytes()[:100]
    else:
        database.write_bytes(content)
    with pytest.raises(PenstockError) as error:
        CatalogStore.open(path)
    assert error.value.condition == "STATE_PATH_UNUSABLE"
    assert database.read_bytes()[40:80] == content[40:80]


def test_h10_a_path_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "below", Path("/proc/nothing")):
        with pytest.raises(PenstockError) as error:
            CatalogStore.open(place)
        assert error.value.condition == "STATE_PATH_UNUSABLE"
        assert str(place) in error.value.message


def test_h10_a_catalog_that_another_process_holds_is_a_clear_error(store: CatalogStore, path: Path) -> None:
    store._connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path / "catalog.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(PenstockError) as error:
            store.apply([PutObject(source("s"))])
    finally:
        other.close()
    assert error.value.condition == "STATE_PATH_UNUSABLE"
    assert "locked" in error.value.message
    store.apply([PutObject(source("s"))])
    assert names(store) == ["s"]


def test_a_link_in_place_of_the_database_is_refused(path: Path, tmp_path: Path) -> None:
    path.mkdir(mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    (path / "catalog.db").symlink_to(elsewhere)
    with pytest.raises(PenstockError) as error:
        CatalogStore.open(path)
    assert error.value.condition == "STATE_PATH_UNUSABLE"
    assert elsewhere.read_bytes() == b""
