"""All topics under one directory."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, Self

from penstock.clock import now_us
from penstock.errors import PenstockError, RuntimeFailure
from penstock.stores.private_files import PRIVATE_DIRECTORY, make_private_directory, sync_directory
from penstock.stores.topics.faults import write_failed
from penstock.stores.topics.layout import (
    TOPIC_FILE,
    TopicFile,
    TopicLayout,
    new_topic_file,
    read_topic_file,
    stored_schema,
    topic_directory,
    write_topic_file,
)
from penstock.stores.topics.topic import Topic

if TYPE_CHECKING:
    from penstock.types import SqlType

_DROPPED: Final = ".dropped-"
_SYNC_SECONDS: Final = 1.0


class TopicStore:
    """The topics of a state directory, opened as they are asked for. Any thread may use it."""

    def __init__(self, root: Path, clock: Callable[[], int] = now_us) -> None:
        self.root = root
        self._clock = clock
        self._lock = Lock()
        self._topics: dict[str, Topic] = {}
        self._closing = Event()
        self._syncing: Thread | None = None

    def create(self, name: str, layout: TopicLayout) -> Topic:
        """Make a topic, or open the one that is there.

        Its columns must be the same, else TOPIC_MISMATCH. Retention and fsync follow the new layout; partitions are
        added where the layout has more, and stay where it has fewer.
        """
        with self._lock:
            self._check_open()
            topic = self._opened(name)
            if topic is None:
                self._make(name, layout)
                topic = self._opened(name)
                assert topic is not None
            _check_columns(topic, layout)
            topic.relayout(layout)
            self._sync_at_intervals(topic)
            return topic

    def open(self, name: str) -> Topic:
        """Open a topic that is there."""
        with self._lock:
            self._check_open()
            topic = self._opened(name)
            if topic is None:
                raise RuntimeFailure(
                    "SOURCE_DATA_LOST", f"there is no topic {name}", hint="create the stream again to begin anew"
                )
            self._sync_at_intervals(topic)
            return topic

    def drop(self, name: str) -> None:
        """Remove a topic and its rows; nothing happens where there is none."""
        with self._lock:
            topic = self._topics.pop(name, None)
            if topic is not None:
                topic.close()
            directory = topic_directory(self.root, name)
            if directory.exists():
                # Renamed first, so that a crash leaves no half of a topic under its name.
                dropped = self.root / f"{_DROPPED}{uuid.uuid4().hex}"
                directory.rename(dropped)
                sync_directory(self.root)
                shutil.rmtree(dropped, ignore_errors=True)

    def names(self) -> tuple[str, ...]:
        """The names of all topics, in order."""
        if not self.root.is_dir():
            return ()
        found = (path for path in self.root.iterdir() if (path / TOPIC_FILE).is_file())
        return tuple(sorted(read_topic_file(path).name for path in found if not path.name.startswith(".")))

    def close(self) -> None:
        """Close every topic; closing twice is fine."""
        self._closing.set()
        with self._lock:
            topics, self._topics = self._topics, {}
            thread, self._syncing = self._syncing, None
        if thread is not None:
            thread.join()
        for topic in topics.values():
            topic.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, name: str) -> Topic | None:
        topic = self._topics.get(name)
        if topic is None:
            directory = topic_directory(self.root, name)
            if not (directory / TOPIC_FILE).is_file():
                return None
            file = read_topic_file(directory)
            _check_written(name, file)
            try:
                topic = Topic(directory, file, self._clock)
            except OSError as error:
                raise write_failed(directory, error) from None
            self._topics[name] = topic
        return topic

    def _make(self, name: str, layout: TopicLayout) -> None:
        make_private_directory(self.root)
        for left in self.root.glob(f"{_DROPPED}*"):
            shutil.rmtree(left, ignore_errors=True)
        directory = topic_directory(self.root, name)
        file = new_topic_file(name, layout)
        try:
            directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
            write_topic_file(directory, file)
            sync_directory(self.root)
        except OSError as error:
            raise write_failed(directory, error) from None

    def _sync_at_intervals(self, topic: Topic) -> None:
        if topic.layout.fsync == "interval" and self._syncing is None:
            self._syncing = Thread(target=self._sync_loop, name="penstock-topic-sync", daemon=True)
            self._syncing.start()

    def _sync_loop(self) -> None:
        while not self._closing.wait(_SYNC_SECONDS):
            with self._lock:
                topics = [topic for topic in self._topics.values() if topic.layout.fsync == "interval"]
            for topic in topics:
                try:
                    topic.sync()
                except PenstockError:
                    # The partition has noted the failure and tells whoever appends next.
                    continue

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise RuntimeFailure("DATABASE_CLOSED", "the topics have been closed", hint="open the database again")


def _check_written(name: str, file: TopicFile) -> None:
    if file.name != name:
        raise _mismatch(name, f"its directory holds the topic {file.name}")
    if not stored_schema(file.layout).equals(file.schema):
        raise _mismatch(name, "its rows were written by another version in a way this one does not read")


def _check_columns(topic: Topic, layout: TopicLayout) -> None:
    kept, wanted = topic.layout.columns, layout.columns
    if kept == wanted:
        return
    if kept is None or wanted is None:
        holds, asked = ("bytes", "typed columns") if kept is None else ("typed columns", "bytes")
        raise _mismatch(topic.name, f"it holds {holds}, and the definition asks for {asked}")
    for place, (one, other) in enumerate(zip_longest(kept, wanted), start=1):
        if other is None:
            raise _mismatch(topic.name, f"it has a column {place}, {_shown(one)}, and the definition has not")
        if one is None:
            raise _mismatch(topic.name, f"it has no column {place}, and the definition says {_shown(other)}")
        if one != other:
            raise _mismatch(topic.name, f"column {place} is {_shown(one)}, and the definition says {_shown(other)}")


def _shown(column: tuple[str, SqlType]) -> str:
    return f"{column[0]} {column[1]}"


def _mismatch(name: str, reason: str) -> RuntimeFailure:
    return RuntimeFailure(
        "TOPIC_MISMATCH",
        f"topic {name} does not fit: {reason}",
        hint="name another topic, or drop the stream that holds this one",
    )
