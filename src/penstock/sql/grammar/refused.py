"""Statements we know and do not have: those that come later, those of other systems, those that never can."""

from __future__ import annotations

from typing import Final, NoReturn

from penstock.errors import NotYetError, UnsupportedError
from penstock.sql.dialects import ksqldb
from penstock.sql.parser import PenstockParser
from penstock.sql.reading import SYSTEM_SCHEMA
from penstock.sql.spans import token_span

# First word -> what to do instead. They change or lock rows, or belong to a server with users and transactions.
_NEVER: Final = {
    "DELETE": "rows of a stream are never changed; filter them in a view",
    "UPDATE": "rows of a stream are never changed; compute the new value in a view",
    "MERGE": "use a materialized view with a key; it merges by itself",
    "TRUNCATE": "drop the object and create it again",
    "GRANT": "access is a matter of the file system and the service",
    "REVOKE": "access is a matter of the file system and the service",
    "COMMIT": "each statement stands by itself",
    "ROLLBACK": "each statement stands by itself",
    "BEGIN": "each statement stands by itself; a statement set is EXECUTE STATEMENT SET BEGIN … END",
    "START": "each statement stands by itself",
    "CALL": "there are no procedures",
    "USE": "there is one catalog",
    "LOCK": "each statement stands by itself",
    "CACHE": "use a materialized view",
    "UNCACHE": "use a materialized view",
    "LOAD": "use CREATE TABLE … WITH (connector = 'file')",
    "ANALYZE": "nothing is to be analyzed",
    "VACUUM": "nothing is to be vacuumed",
    "ADD": "install Python modules into the environment",
    "UNLOAD": "nothing is loaded",
}

_KEPT: Final = (
    "system tables can only be read; late_rows_retention and dead_letters_retention say how long rows are kept"
)

_LATER: Final = {
    "COPY": "use INSERT INTO with a sink over files",
    "REFRESH": "a view is kept up to date by its job",
    "DECLARE": "use SUBSCRIBE TO view",
    "FETCH": "use SUBSCRIBE TO view",
    "CANCEL": "use STOP JOB name",
    "PLAN": "drop the view and create it again",
    "COMMENT": "give the comment in CREATE",
    "FLUSH": "results are committed with each batch",
    "WAIT": "use db.settle() in Python",
    "ANALYSE": "nothing is to be analyzed",
    "PREPARE": "run the statement itself",
}

# CREATE and what follows -> what to do instead.
_CREATE_LATER: Final = {
    "SUBSCRIPTION": "use SUBSCRIBE TO view",
    "INDEX": "views are indexed by their key",
    "DATABASE": "there is one catalog",
    "SCHEMA": "there is one catalog",
    "CATALOG": "there is one catalog",
    "CONTINUOUS": "use CREATE MATERIALIZED VIEW",
    "MODEL": "register a function in Python",
    "TYPE": "use STRUCT<…> in the column",
    "PROCEDURE": "there are no procedures",
}


def refused(p: PenstockParser) -> bool:
    """Refuses a statement by its first word; False when the word is none of these."""
    token = p.current
    word = token.text.upper()
    if word in {"TERMINATE", "PRINT"}:
        instead = "use STOP JOB name" if word == "TERMINATE" else "use SELECT … EMIT CHANGES"
        ksqldb.refuse(word, instead, token)
    if p.ahead("COMPILE", "PLAN") or p.ahead("COMPILE", "AND", "EXECUTE") or p.ahead("EXECUTE", "PLAN"):
        p.not_yet(f"{word} PLAN is not there yet", "run the INSERT itself", token, "STATEMENT_NOT_YET")
    if word in _NEVER:
        hint = _KEPT if word in {"DELETE", "TRUNCATE"} and _of_the_system(p) else _NEVER[word]
        raise UnsupportedError(
            "UNSUPPORTED_STATEMENT", f"{word} has no meaning here", hint=hint, span=token_span(token)
        )
    if word in _LATER:
        shown = {"PLAN": "PLAN ALTER", "CANCEL": "CANCEL JOBS"}.get(word, word)
        raise NotYetError("STATEMENT_NOT_YET", f"{shown} is not there yet", hint=_LATER[word], span=token_span(token))
    return False


def _of_the_system(p: PenstockParser) -> bool:
    """DELETE FROM penstock.…, TRUNCATE TABLE penstock.…"""
    return any(p.peek_text(place, SYSTEM_SCHEMA.upper()) and p.peek_text(place + 1, ".") for place in (1, 2))


def refuse_create(p: PenstockParser) -> NoReturn:
    """Refuses the rest of a CREATE whose kind is none of ours."""
    token = p.current
    word = token.text.upper() if token else ""
    if word in _CREATE_LATER:
        raise NotYetError(
            "STATEMENT_NOT_YET", f"CREATE {word} is not there yet", hint=_CREATE_LATER[word], span=token_span(token)
        )
    p.fail("STREAM, TABLE, SOURCE, SINK, VIEW, MATERIALIZED VIEW, FUNCTION, SECRET or CONNECTION")
