"""Laws of the parser and the formatter, tried on many statements."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.sql.format import format_statement
from penstock.sql.script import Parsed, parse_script, parse_statement
from penstock.sql.statements import CreateSecret, Option, Statement
from penstock.sql.tokens import tokenize
from tests.unit.sql.generated import STATEMENTS

LIST = (Path(__file__).parents[2] / "data" / "statements.sql").read_text(encoding="utf-8")
ALL = parse_script(LIST)
WRITTEN = [LIST[parsed.span.start : parsed.span.end] for parsed in ALL]


def shown(_: Option) -> bool:
    return False


def comes_back(statement: Statement) -> None:
    text = format_statement(statement, shown)
    again = parse_statement(text)
    assert again == statement, text
    assert format_statement(again, shown) == text


@pytest.mark.parametrize("parsed", ALL, ids=[text[:40] for text in WRITTEN])
def test_every_statement_comes_back_from_its_canonical_text(parsed: Parsed) -> None:
    assert parsed.error is None
    assert parsed.statement is not None
    comes_back(parsed.statement)


@given(STATEMENTS)
def test_a_random_statement_comes_back_from_its_canonical_text(text: str) -> None:
    comes_back(parse_statement(text))


@given(STATEMENTS)
def test_keyword_case_and_layout_change_nothing(text: str) -> None:
    """A14: upper, lower, other white space and comments give the same value."""
    tokens = tokenize(text)
    words = [text[token.start : token.end + 1] for token in tokens]
    swapped = [word.swapcase() if not word.startswith(("'", '"', "`")) and word.isascii() else word for word in words]
    other = " /* c */\r\n\t-- d\n".join(swapped)
    assert _folded(format_statement(parse_statement(other))) == _folded(format_statement(parse_statement(text)))


def _folded(text: str) -> str:
    return text.lower()


# mutations


def broken(draw: st.DrawFn, text: str) -> str:
    """The text after a few changes of characters or tokens."""
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            place = draw(st.integers(0, len(text)))
            change = draw(st.sampled_from(["delete", "insert", "cut"]))
            piece = draw(st.one_of(st.sampled_from(list("'\"`();,.#-$[]{}:=\\\x00é💧")), st.text(max_size=2)))
            end = place + draw(st.integers(0, 5)) if change == "cut" else place + (change == "delete")
            text = text[:place] + (piece if change == "insert" else "") + text[end:]
        else:
            words = text.split(" ")
            here, there = draw(st.integers(0, len(words) - 1)), draw(st.integers(0, len(words) - 1))
            change = draw(st.sampled_from(["swap", "delete", "double"]))
            if change == "swap":
                words[here], words[there] = words[there], words[here]
            elif change == "delete":
                del words[here]
            else:
                words.insert(there, words[here])
            text = " ".join(words)
    return text


@st.composite
def broken_scripts(draw: st.DrawFn) -> str:
    """A script of one to three valid statements, broken."""
    statements = draw(st.lists(st.one_of(st.sampled_from(WRITTEN), STATEMENTS), min_size=1, max_size=3))
    return broken(draw, "; ".join(statements))


@given(broken_scripts())
def test_a_broken_script_gives_values_or_errors_of_ours(text: str) -> None:
    for parsed in parse_script(text):
        assert (parsed.statement is None) is not (parsed.error is None)
        if parsed.statement is not None:
            format_statement(parsed.statement)
            if not isinstance(parsed.statement, CreateSecret):
                comes_back(parsed.statement)
        if parsed.error is not None:
            assert isinstance(parsed.error, PenstockError)
            assert parsed.error.condition != "INTERNAL_ERROR", str(parsed.error)
            assert parsed.error.span is not None
            assert 0 <= parsed.error.span.start <= len(text)
        assert len(parsed.source.masked) == len(text)


@given(st.binary(max_size=60))
def test_any_bytes_give_values_or_errors_of_ours(data: bytes) -> None:
    for parsed in parse_script(data):
        assert parsed.error is None or parsed.error.condition != "INTERNAL_ERROR"


# secrets

CANARY = "hunter2canary"

WITH_SECRET = [
    f"CREATE STREAM s (a INT) WITH (connector = 'kafka', password = '{CANARY}', topic = 'x')",
    f"CREATE SOURCE s (a INT) WITH ('properties.sasl.jaas.config' = 'x password=\"{CANARY}\";', topic = 'x') FORMAT PLAIN ENCODE JSON (k = '{CANARY}')",
    f"CREATE SECRET s WITH (backend = 'meta') AS '{CANARY}'",
    f"CREATE SECRET s AS E'\\x41{CANARY}'",
    f"SET 'sasl.password' = '{CANARY}'",
    f"SET token = {CANARY}",
    f"CREATE SINK k WITH (connector = 'jdbc', url = 'pg://u:{CANARY}@h') AS SELECT a FROM t WHERE b = 'x'",
    f"CREATE MATERIALIZED VIEW v WITH (token = '{CANARY}') AS SELECT 1",
    f"INSERT INTO k WITH (token = '{CANARY}') SELECT a FROM t WHERE b = 2",
    f"ALTER TABLE t SET ('password' = '{CANARY}')",
    f"EXPLAIN CREATE STREAM s (a INT) WITH (password = '{CANARY}')",
    f"SHOW REWRITE CREATE STREAM s (a INT) WITH (password = $${CANARY}$$)",
    f"CREATE FUNCTION f(a INT) RETURNS INT LANGUAGE python AS 'm.f' WITH (token = '{CANARY}')",
    f"CREATE STREAM s (a INT) WITH (topic = 'x') -- password = '{CANARY}'",
    f"/* {CANARY} */ SELECT 1",
]


def leaks(parsed: Parsed) -> list[str]:
    """Where the canary shows."""
    places = {
        "masked": parsed.source.masked,
        "repr of the source": repr(parsed.source),
        "error": str(parsed.error),
        "repr of the error": repr(parsed.error),
        "hint": f"{parsed.error and parsed.error.hint} {parsed.error and parsed.error.detail}",
    }
    if parsed.statement is not None:
        places["repr"] = repr(parsed.statement)
        places["text"] = format_statement(parsed.statement)
    return [place for place, text in places.items() if CANARY in text]


@pytest.mark.parametrize("text", WITH_SECRET, ids=[text[:30] for text in WITH_SECRET])
def test_a_secret_shows_nowhere(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        [parsed] = parse_script(text)
    assert parsed.error is None
    assert leaks(parsed) == []
    assert CANARY not in caplog.text


@st.composite
def torn_secrets(draw: st.DrawFn) -> str:
    """A statement with a secret, changed in one place anywhere but in the secret, among others."""
    before, after = draw(st.sampled_from([text for text in WITH_SECRET if "/*" not in text])).split(CANARY, 1)
    part = before if draw(st.booleans()) else after
    place = draw(st.integers(0, len(part)))
    if draw(st.booleans()):
        changed = part[:place] + part[place + 1 :]
    else:
        piece = draw(st.sampled_from([*"'\"`();,.#-=[]", "''", " SELECT ", " AS ", "; ", "x", "1"]))
        changed = part[:place] + piece + part[place:]
    before, after = (changed, after) if part is before else (before, changed)
    others = st.sampled_from(["", "SELECT 1", "SELECT 'a' FROM t WHERE x = 'b'", "CREATE STREAM"])
    return f"{draw(others)}; {before}{CANARY}{after}; {draw(others)}"


@given(torn_secrets())
def test_a_secret_shows_in_no_error(text: str) -> None:
    """Whatever one mistake does to a statement with a secret: as long as it is refused, the secret is shown nowhere."""
    place = text.index(CANARY)
    for parsed in parse_script(text):
        holds = parsed.span.start <= place < parsed.span.end
        if not holds:
            assert CANARY not in f"{parsed.error!r} {parsed.error} {parsed.statement!r}"
        elif parsed.error is not None:
            assert leaks(parsed) == [], text


LOSABLE = [
    *(text for text in WITH_SECRET if "/*" not in text and "--" not in text),
    f"CREATE SINK k WITH (token = '{CANARY}', a = 'b;c') FORMAT PLAIN ENCODE JSON (k = '{CANARY}') AS SELECT 1",
    f"CREATE TABLE t (a INT) WITH ('sasl.jaas.config' = 'use;user:{CANARY}@host', topic = 'x')",
    f"EXECUTE STATEMENT SET BEGIN INSERT INTO k WITH (token = '{CANARY}') SELECT a FROM t; END",
    f"EXPLAIN CREATE SINK k WITH ('a' = 'b', token = '{CANARY}') AS SELECT a FROM t",
]


@st.composite
def lost_signs(draw: st.DrawFn) -> str:
    """A script with secrets that lost some of its equals signs, quotes and commas."""
    text = "; ".join(draw(st.lists(st.sampled_from(LOSABLE), min_size=1, max_size=3)))
    places = [place for place, character in enumerate(text) if character in "='\","]
    lost = draw(st.sets(st.sampled_from(places), min_size=1, max_size=4))
    return "".join(character for place, character in enumerate(text) if place not in lost)


@given(lost_signs())
def test_a_secret_shows_in_no_script_that_lost_signs(text: str) -> None:
    """Two lost quotes can join two statements to one that is valid; only what is refused must show nothing."""
    for parsed in parse_script(text):
        error = parsed.error
        if error is not None:
            assert CANARY not in f"{error} {error!r} {error.hint} {error.detail}", text
            assert CANARY not in parsed.source.masked[parsed.span.start : parsed.span.end], text
