"""Cutting scripts into statements, and the limits that keep a hostile text short."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.errors import PenstockError
from penstock.sql.lexical import MAX_DEPTH, MAX_STATEMENT, MAX_STATEMENTS, split
from penstock.sql.script import parse_script, parse_statement


def cut(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in split(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ;; \n ; -- nothing;\n /* ; */ ", []),
        ("SELECT 1", ["SELECT 1"]),
        ("\ufeffSELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';''; '; SELECT 2", ["SELECT ';''; '", "SELECT 2"]),
        ('SELECT ";"; SELECT `;`', ['SELECT ";"', "SELECT `;`"]),
        ("SELECT $$;'$$; SELECT $t$;$$;$t$", ["SELECT $$;'$$", "SELECT $t$;$$;$t$"]),
        (r"SELECT E'\';'; SELECT 2", [r"SELECT E'\';'", "SELECT 2"]),
        (r"SELECT '\'; SELECT 2", [r"SELECT '\'", "SELECT 2"]),
        ("SELECT 1 -- a; b\n; SELECT 2 /* ; */", ["SELECT 1 -- a; b", "SELECT 2 /* ; */"]),
        ("-- first\r\nSELECT 1;\r\nSELECT 2;\r\n", ["SELECT 1", "SELECT 2"]),
        ("SELECT /* -- ' */ 1; SELECT 2", ["SELECT /* -- ' */ 1", "SELECT 2"]),
    ],
)
def test_statements_end_at_semicolons(text: str, expected: list[str]) -> None:
    """A9, A13: semicolons in strings, names and comments do not count."""
    assert cut(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
        "execute /* c */ statement set begin insert into a select 1; end",
        "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
        "EXPLAIN EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END",
    ],
)
def test_a_statement_set_is_one_statement(text: str) -> None:
    assert cut(f"SELECT 1; {text}; SELECT 2") == ["SELECT 1", text, "SELECT 2"]
    parse_statement(text)


def test_a_statement_set_without_end_swallows_nothing() -> None:
    found = parse_script("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; SELECT 2")
    assert [parsed.kind for parsed in found] == ["STATEMENT SET", "SELECT"]
    assert found[0].error is not None
    assert found[0].error.message == "expected ; or END, found the end of the statement"
    assert found[1].error is None


def only_error(text: str | bytes) -> PenstockError:
    [parsed] = parse_script(text)
    assert parsed.error is not None
    return parsed.error


@pytest.mark.parametrize(
    ("text", "condition", "place"),
    [
        ("SELECT 'abc", "SYNTAX_ERROR", (1, 8)),
        ("SELECT\n  `abc", "SYNTAX_ERROR", (2, 3)),
        ('SELECT "abc', "SYNTAX_ERROR", (1, 8)),
        ("SELECT $$abc", "SYNTAX_ERROR", (1, 8)),
        ("SELECT 1 /* abc", "SYNTAX_ERROR", (1, 10)),
        ("SELECT (1", "SYNTAX_ERROR", (1, 8)),
        ("SELECT 1)", "SYNTAX_ERROR", (1, 9)),
        ("SELECT (1]", "SYNTAX_ERROR", (1, 10)),
        ("SELECT a # b", "SYNTAX_ERROR", (1, 10)),
        ("SELECT '\x00'", "INVALID_CHARACTER", (1, 9)),
        (b"SELECT '\xff'", "INVALID_CHARACTER", (1, 9)),
        ("SELECT '\ud800'", "INVALID_CHARACTER", (1, 9)),
        ("SELECT 1 /*+ BROADCAST(a) */", "SYNTAX_ERROR", (1, 10)),
        ("SELECT\n/*+ \u200b */ 1", "SYNTAX_ERROR", (2, 5)),
        ("SELECT * FROM t /*+ OPTIONS('a' = 'b') */", "INVALID_OPTION", (1, 29)),
        ("SELECT 1 /*+ abc", "SYNTAX_ERROR", (1, 10)),
        ("SELECT \u200b1", "SYNTAX_ERROR", (1, 8)),
        ("SELECT 1a", "SYNTAX_ERROR", (1, 9)),
        ('SELECT ""', "SYNTAX_ERROR", (1, 8)),
        ("SELECT X'abc'", "SYNTAX_ERROR", (1, 8)),
        (r"SELECT E'\0'", "INVALID_CHARACTER", (1, 8)),
    ],
)
def test_text_that_cannot_be_cut_or_read(text: str | bytes, condition: str, place: tuple[int, int]) -> None:
    """A9, A10: the error stands where the trouble begins."""
    error = only_error(text)
    assert error.condition == condition
    assert error.span is not None
    assert (error.span.line, error.span.column) == place


def test_a_hash_is_refused_by_name() -> None:
    """A9: the comment of another language is no silent mis-parse, and JSON paths keep their operator."""
    assert only_error("SELECT 1 # one").message == "# does not begin a comment"
    assert only_error("SELECT 1 # one").hint == "use -- or /* */"
    parse_statement("SELECT a #> 'b', a #>> 'c', '#' FROM t -- # fine\n")


def test_after_an_error_the_script_goes_on() -> None:
    found = parse_script("SELECT (1; SELECT 2; SELEC; SELECT '\x00'; SELECT 3")
    assert [parsed.error is None for parsed in found] == [False, True, False, False, True]


HOSTILE = {
    "nested brackets": ("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, "STATEMENT_TOO_DEEP"),
    "open brackets": ("SELECT " + "(" * 10_000, "STATEMENT_TOO_DEEP"),
    "nested types": ("CREATE TABLE t (a " + "ARRAY<" * 10_000 + "INT" + ">" * 10_000 + ")", "STATEMENT_TOO_DEEP"),
    "array of array": ("CREATE TABLE t (a INT" + "[]" * 10_000 + ")", "STATEMENT_TOO_DEEP"),
    "sum": ("SELECT " + "+".join(["1"] * 10_000), "STATEMENT_TOO_DEEP"),
    "sum of 400": ("SELECT " + "+".join(["1"] * 400), "STATEMENT_TOO_DEEP"),
    "not": ("SELECT " + "NOT " * 10_000 + "a", "STATEMENT_TOO_DEEP"),
    "not, 1900": ("SELECT " + "NOT " * 1_900 + "a", "STATEMENT_TOO_DEEP"),
    "minus": ("SELECT " + "- " * 10_000 + "a", "STATEMENT_TOO_DEEP"),
    "case": ("SELECT " + "CASE WHEN a THEN " * 1_000 + "1" + " END" * 1_000, "STATEMENT_TOO_DEEP"),
    "union": (" UNION ALL ".join(["SELECT 1"] * 10_000), "STATEMENT_TOO_DEEP"),
    "joins": ("SELECT * FROM a" + " JOIN b ON TRUE" * 10_000, "STATEMENT_TOO_DEEP"),
    "casts": ("SELECT a" + "::INT" * 10_000, "STATEMENT_TOO_DEEP"),
    "paths": ("SELECT a" + "->'b'" * 10_000, "STATEMENT_TOO_DEEP"),
    "subqueries": ("SELECT * FROM " + "(SELECT * FROM " * 500 + "t" + ") x" * 500, "STATEMENT_TOO_DEEP"),
    "many values": ("SELECT " + "1," * 400_000 + "1", "STATEMENT_TOO_LONG"),
    "10 MB name": ("SELECT " + "a" * 10_000_000, "STATEMENT_TOO_LONG"),
    "10 MB brackets": ("()" * 5_000_000, "STATEMENT_TOO_LONG"),
    "10 MB strings": ("SELECT " + "'a'," * 2_500_000, "STATEMENT_TOO_LONG"),
    "10 MB of other letters": ("SELECT " + "é, " * 3_300_000, "STATEMENT_TOO_LONG"),
    "10 MB string without an end": ("SELECT '" + "a" * 10_000_000, "SYNTAX_ERROR"),
    "10 MB comment without an end": ("/*" + "a" * 10_000_000, "SYNTAX_ERROR"),
    "10 MB of NUL": ("\x00" * 10_000_000, "STATEMENT_TOO_LONG"),
    "10 MB that is no UTF-8": ("\udcff" * 10_000_000, "STATEMENT_TOO_LONG"),
    "backslashes": ("SELECT E'" + "\\" * 500_000, "SYNTAX_ERROR"),
    "quotes": ("SELECT " + "'" * 500_001, "SYNTAX_ERROR"),
    "words": ("abc " * 250_000, "STATEMENT_TOO_LONG"),
    "too many statements": ("SELECT;" * (MAX_STATEMENTS + 5), "STATEMENT_TOO_LONG"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused_soon(name: str) -> None:
    """10,000 brackets, 10 MB and their like: an error of ours, and no time for coffee."""
    text, condition = HOSTILE[name]
    started = time.process_time()
    found = parse_script(text)
    took = time.process_time() - started
    assert found[-1].error is not None
    assert found[-1].error.condition == condition
    assert len(found[-1].source.masked) == len(text)
    # The aim is one second for one statement; a busy machine gets some room, a quadratic step does not.
    assert took < (20 if len(found) == 1 else 60)


@pytest.mark.parametrize("text", [" " * 10_000_000, ";" * 10_000_000, "--" * 5_000_000, "-" * 10_000_000 + "\n;"])
def test_nothing_at_length_is_nothing(text: str) -> None:
    started = time.process_time()
    assert parse_script(text) == []
    assert time.process_time() - started < 20


def test_statements_at_the_limit_are_read() -> None:
    deep = MAX_DEPTH - 2
    parse_statement("SELECT " + "(" * deep + "1" + ")" * deep)
    parse_statement("SELECT * FROM " + "(SELECT * FROM " * 60 + "t" + ") x" * 60)
    parse_statement("SELECT " + "SUBSTRING(" * 60 + "a" + ", 1)" * 60)
    parse_statement("SELECT " + " OR ".join(f"a = {i}" for i in range(250)))
    assert parse_script("SELECT '" + "a" * (MAX_STATEMENT - 20) + "'")[0].error is None


def test_threads_parse_side_by_side_and_leave_no_trace() -> None:
    """The parser needs more frames than Python grants; the limit of the process is as before when all are done."""
    before = sys.getrecursionlimit()
    deep = "SELECT " + "(" * 90 + "1" + ")" * 90
    texts = [deep, "SELECT " + "NOT " * 1_900 + "a", "SELECT 1"] * 20
    with ThreadPoolExecutor(8) as pool:
        found = [[parsed] for [parsed] in pool.map(parse_script, texts)]
    assert [parsed.error is None for [parsed] in found] == [True, False, True] * 20
    assert sys.getrecursionlimit() == before
