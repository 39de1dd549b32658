"""The name of a statement, from its first words alone."""

from __future__ import annotations

from penstock.sql.lexical import first_words

_OBJECTS = ("STREAM", "TABLE", "SOURCE", "SINK", "VIEW", "FUNCTION", "AGGREGATE", "SECRET", "JOB", "CONNECTION")
_SINGLE = frozenset({"INSERT", "SELECT", "SET", "RESET", "EXPLAIN", "DESCRIBE", "SUBSCRIBE", "SHOW"})
_REFUSED = frozenset({"DELETE", "UPDATE", "MERGE", "TRUNCATE", "GRANT", "REVOKE", "COPY", "CALL", "USE", "BEGIN"})


def kind_of(text: str, start: int, end: int) -> str:
    """The kind of a statement: 'CREATE STREAM', 'SELECT' …, 'UNKNOWN' when the first words do not tell."""
    words = first_words(text, start, end, 8)
    if not words:
        return "SELECT" if text.startswith("(", start) else "UNKNOWN"
    first = words[0]
    if first in {"WITH", "VALUES", "TABLE"}:
        return "SELECT"
    if first == "DESC":
        return "DESCRIBE"
    if first in {"CREATE", "DROP", "ALTER"}:
        return _object(first, words[1:])
    if first in {"PAUSE", "RESUME", "RESTART", "STOP"}:
        return f"{first} JOB"
    if words[:2] == ["ADVANCE", "WATERMARK"]:
        return "ADVANCE WATERMARK"
    if words[:2] == ["SHOW", "REWRITE"] or words[:2] == ["SHOW", "CREATE"]:
        return " ".join(words[:2])
    if words[:3] == ["EXECUTE", "STATEMENT", "SET"] or words[:3] == ["BEGIN", "STATEMENT", "SET"]:
        return "STATEMENT SET"
    if words[:2] == ["EXECUTE", "INSERT"]:
        return "INSERT"
    return first if first in _SINGLE or first in _REFUSED else "UNKNOWN"


def _object(verb: str, words: list[str]) -> str:
    while words and words[0] in {"OR", "REPLACE", "REFRESH", "ALTER", "TEMPORARY", "TEMP", "SYSTEM"}:
        words = words[1:]
    if words[:1] == ["MATERIALIZED"] and len(words) > 1 and words[1] in {"VIEW", "TABLE"}:
        return f"{verb} MATERIALIZED VIEW"
    if words[:2] == ["STREAMING", "TABLE"]:
        return f"{verb} STREAMING TABLE"
    return f"{verb} {words[0]}" if words and words[0] in _OBJECTS else "UNKNOWN"
