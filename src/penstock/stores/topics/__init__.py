"""Embedded topics: a partitioned, append-only log that needs no broker.

    topics/<name>/topic.json                what the topic is made of
                  ends                      how far each partition counts
                  <partition>/<first offset>.segment     frames: checksummed Arrow record batches
                              <first offset>.index       where each frame begins
                              <offset>.producers         which batches are there up to an offset

One process appends (`TopicStore`), any number of processes read (`TopicReader`). What a reader sees is whole and was
forced to disk as the topic's policy says; a crash of the writer loses nothing that was acknowledged.
"""

from __future__ import annotations

from penstock.stores.topics.layout import TopicLayout, topic_directory
from penstock.stores.topics.reader import TopicReader
from penstock.stores.topics.store import TopicStore
from penstock.stores.topics.topic import Appended, Topic

__all__ = ["Appended", "Topic", "TopicLayout", "TopicReader", "TopicStore", "topic_directory"]
