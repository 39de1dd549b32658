"""The catalog on disk: `catalog.db` of the state directory, a SQLite database.

It holds the canonical, secret-free text of every object, what each is built on, and the settings. A change is one
transaction and is on disk when `apply` returns; a process killed in between leaves what was there before. Values of
secrets are in files of their own: a new value gets a new file, and the transaction says which file counts.
"""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from threading import RLock
from typing import Final, Self

from penstock.catalog.changes import Change, ChangeSetting, PutObject, RemoveObject
from penstock.catalog.dependencies import in_dependency_order
from penstock.catalog.model import (
    Definition,
    InlineSecret,
    ObjectKey,
    SecretDefinition,
    SinkDefinition,
    SourceDefinition,
)
from penstock.errors import InternalError, OptionError
from penstock.frozen import frozen
from penstock.secrets import Secret, carries_credentials
from penstock.sql.statements import Name
from penstock.stores.migrate import migrate, read_meta
from penstock.stores.private_files import damaged, make_private_directory, touch_private, unusable
from penstock.stores.secret_files import SecretFiles

DATABASE: Final = "catalog.db"

# Long enough for another process to finish its transaction, short enough to tell the user that something holds it.
_BUSY_MS: Final = 5_000

Clock = Callable[[], datetime]


@frozen
class StoredObject:
    """A row of the catalog: what is needed to define the object again."""

    key: ObjectKey
    name: Name
    kind: str
    text: str
    temporary: bool
    settings: Mapping[str, str]
    position: int
    created_at: datetime
    changed_at: datetime
    depends_on: tuple[ObjectKey, ...]


def _now() -> datetime:
    return datetime.now(UTC)


class CatalogStore:
    """An open catalog database. Any thread may use it; calls take turns."""

    def __init__(
        self, connection: sqlite3.Connection, state_path: Path, clock: Clock, concerns: tuple[str, ...]
    ) -> None:
        self._connection = connection
        self._lock = RLock()
        self._clock = clock
        self._secrets = SecretFiles(state_path)
        self.state_path = state_path
        self.concerns = concerns

    @classmethod
    def open(cls, state_path: str | Path, clock: Clock = _now) -> Self:
        """Open the catalog of a state directory, and make both where they are missing.

        `concerns` of the result tells what the user should know about who can reach the directory.
        """
        path = Path(state_path).absolute()
        concerns = make_private_directory(path)
        connection: sqlite3.Connection | None = None
        try:
            # SQLite gives its -wal and -shm files the mode of the database, so that one is made private first.
            touch_private(path / DATABASE)
            connection = _connect(path / DATABASE)
            migrate(connection, _software())
        except (OSError, sqlite3.Error) as error:
            if connection is not None:
                connection.close()
            raise unusable(path / DATABASE, error) from None
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        store = cls(connection, path, clock, concerns)
        try:
            store._remove_stale_secrets()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the database; closing twice is fine."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def database(self) -> Path:
        """The file of the catalog."""
        return self.state_path / DATABASE

    # reading

    def versions(self) -> dict[str, str]:
        """The version of the layout, and of the software that last opened the database."""
        with self._read() as connection:
            return read_meta(connection)

    def objects(self) -> tuple[StoredObject, ...]:
        """All objects, each behind what it is built on, otherwise in the order they were created."""
        with self._read() as connection:
            rows = connection.execute("SELECT * FROM objects ORDER BY position").fetchall()
            edges = connection.execute("SELECT object, needs FROM dependencies ORDER BY object, needs").fetchall()
        keys = {row["position"]: ObjectKey(row["space"], row["name"]) for row in rows}
        needs: dict[int, list[ObjectKey]] = {}
        for object_, need in edges:
            if object_ not in keys or need not in keys:
                raise damaged(self.database, "a dependency names an object that is not there")
            needs.setdefault(object_, []).append(keys[need])
        objects = [self._stored(row, tuple(needs.get(row["position"], ()))) for row in rows]
        return tuple(in_dependency_order(objects, lambda item: item.key, lambda item: item.depends_on))

    def _stored(self, row: sqlite3.Row, needs: tuple[ObjectKey, ...]) -> StoredObject:
        try:
            return _stored(row, needs)
        except (ValueError, TypeError):
            raise damaged(self.database, f"the row of {row['kind']} {row['name']} cannot be read") from None

    def settings(self) -> dict[str, str]:
        """The settings that are not at their defaults, by canonical key."""
        with self._read() as connection:
            return dict(connection.execute("SELECT key, value FROM settings ORDER BY key").fetchall())

    def secrets(self) -> dict[str, Secret]:
        """The values of all secrets that are kept here, by name: those of CREATE SECRET and those inside options."""
        with self._read() as connection:
            rows = connection.execute("SELECT name, version FROM secret_values ORDER BY name").fetchall()
            return {name: self._secrets.read(name, version) for name, version in rows}

    # changing

    def apply(self, changes: Iterable[Change]) -> None:
        """Make all the changes or none; they are on disk when this returns."""
        changes = tuple(changes)
        with self._transaction() as connection:
            for change in changes:
                if isinstance(change, RemoveObject):
                    _remove(connection, change.key)
            at = self._clock().astimezone(UTC).isoformat()
            for change in changes:
                if isinstance(change, PutObject):
                    self._put(connection, change, at)
            for change in changes:
                if isinstance(change, PutObject):
                    _put_needs(connection, change.definition)
                elif isinstance(change, ChangeSetting):
                    _change_setting(connection, change)
        self._remove_stale_secrets()

    def _put(self, connection: sqlite3.Connection, change: PutObject, at: str) -> None:
        definition = change.definition
        key = definition.object_key
        _refuse_credentials(change.settings)
        connection.execute(
            "INSERT INTO objects (space, name, quoted, kind, temporary, text, settings, created_at, changed_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, name) DO UPDATE SET quoted = excluded.quoted, "
            "kind = excluded.kind, temporary = excluded.temporary, text = excluded.text, settings = excluded.settings, "
            "changed_at = excluded.changed_at",
            (
                key.space,
                key.name,
                int(definition.name.quoted),
                definition.kind,
                int(definition.temporary),
                definition.text,
                json.dumps(dict(change.settings), sort_keys=True),
                at,
                at,
            ),
        )
        position = _position(connection, key)
        kept = {item.name: item.value for item in _values(definition)}
        for name, version in connection.execute(
            "SELECT name, version FROM secret_values WHERE object = ?", (position,)
        ).fetchall():
            if name not in kept:
                connection.execute("DELETE FROM secret_values WHERE name = ?", (name,))
            elif kept[name] is None or kept[name] == self._secrets.read(name, version):
                del kept[name]
        for name, value in kept.items():
            self._put_secret(connection, position, name, value)

    def _put_secret(self, connection: sqlite3.Connection, position: int, name: str, value: Secret | None) -> None:
        if value is None:
            raise InternalError(f"the value of secret {name} is neither given nor kept")
        # The counter never goes back, so a version removed in this transaction is not written over before it commits.
        (version,) = connection.execute("UPDATE secret_versions SET last = last + 1 RETURNING last").fetchone()
        # The file is on disk before the row that counts it can be; a crash in between leaves a file nobody reads.
        self._secrets.write(name, version, value)
        connection.execute(
            "INSERT INTO secret_values (name, object, version) VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET object = excluded.object, version = excluded.version",
            (name, position, version),
        )

    def _remove_stale_secrets(self) -> None:
        """Remove the secret files that no row counts any more, while nobody else can be writing one."""
        if not self._secrets.directory.is_dir():
            return
        with self._transaction() as connection:
            self._secrets.keep_only(connection.execute("SELECT name, version FROM secret_values").fetchall())

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.IntegrityError):
                    raise InternalError("a change leaves an object without what it is built on") from None
                if isinstance(error, sqlite3.Error):
                    raise unusable(self.database, error) from None
                raise

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """Several reads of one state."""
        with self._lock:
            self._execute("BEGIN")
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise unusable(self.database, error) from None
            finally:
                if self._connection.in_transaction:
                    self._execute("ROLLBACK")

    def _execute(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except sqlite3.Error as error:
            raise unusable(self.database, error) from None


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise OSError(errno.ENOTSUP, "its file system has no shared memory")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def _software() -> dict[str, str]:
    found: dict[str, str] = {}
    for package in ("penstock", "sqlglot"):
        try:
            found[f"{package}_version"] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[f"{package}_version"] = "unknown"
    return found


def _stored(row: sqlite3.Row, needs: tuple[ObjectKey, ...]) -> StoredObject:
    return StoredObject(
        key=ObjectKey(row["space"], row["name"]),
        name=Name(row["name"], bool(row["quoted"])),
        kind=row["kind"],
        text=row["text"],
        temporary=bool(row["temporary"]),
        settings=_settings(row["settings"]),
        position=row["position"],
        created_at=datetime.fromisoformat(row["created_at"]),
        changed_at=datetime.fromisoformat(row["changed_at"]),
        depends_on=needs,
    )


def _settings(text: str) -> dict[str, str]:
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise TypeError("settings are a JSON object of texts")
    return found


def _refuse_credentials(settings: Mapping[str, str]) -> None:
    """Settings are rows, and a row never holds a password."""
    for key, value in settings.items():
        if carries_credentials(value):
            raise OptionError(
                "INVALID_SETTING",
                f"setting {key} has a user, a password or parameters in its address and cannot be kept",
                hint="set the plain address; give the password in the WITH clause of the relation, with SECRET name",
            )


def _values(definition: Definition) -> tuple[InlineSecret, ...]:
    """The secrets whose values are kept with an object."""
    if isinstance(definition, SourceDefinition | SinkDefinition):
        return definition.secrets
    if isinstance(definition, SecretDefinition) and definition.reference is None:
        return (InlineSecret(definition.name.text, definition.value),)
    return ()


def _position(connection: sqlite3.Connection, key: ObjectKey) -> int:
    row = connection.execute(
        "SELECT position FROM objects WHERE space = ? AND name = ?", (key.space, key.name)
    ).fetchone()
    if row is None:
        raise InternalError(f"{key.space} {key.name} is not in the catalog database")
    return int(row[0])


def _remove(connection: sqlite3.Connection, key: ObjectKey) -> None:
    connection.execute("DELETE FROM objects WHERE position = ?", (_position(connection, key),))


def _put_needs(connection: sqlite3.Connection, definition: Definition) -> None:
    position = _position(connection, definition.object_key)
    connection.execute("DELETE FROM dependencies WHERE object = ?", (position,))
    connection.executemany(
        "INSERT INTO dependencies (object, needs) VALUES (?, ?)",
        [(position, _position(connection, need)) for need in dict.fromkeys(definition.depends_on)],
    )


def _change_setting(connection: sqlite3.Connection, change: ChangeSetting) -> None:
    if change.value is None:
        connection.execute("DELETE FROM settings WHERE key = ?", (change.key,))
    else:
        _refuse_credentials({change.key: change.value})
        connection.execute(
            "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (change.key, change.value),
        )
