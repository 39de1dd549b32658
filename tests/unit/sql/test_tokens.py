"""Tokens: which words are keywords, what strings hold, where things stand."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.sql.format import format_tree
from penstock.sql.script import parse_script, parse_statement
from penstock.sql.spans import own_span, span_of
from penstock.sql.statements import Select
from penstock.sql.tokens import tokenize


def tree(text: str) -> exp.Query:
    statement = parse_statement(text)
    assert isinstance(statement, Select)
    return statement.query.tree


def test_ordinary_words_name_columns_unquoted() -> None:
    """B9: timestamp and its like need no quotes, in a query and in a definition."""
    words = "timestamp date key value offset partition user window type name time year day row rows first last end_time"
    words += " interval array map json text string count sum order group left right full table stream source sink job"
    columns = words.split()
    query = tree(f"SELECT {', '.join(columns)} FROM t WHERE timestamp > date AND key = value GROUP BY window, offset")
    assert [item.name for item in query.selects] == columns
    assert all(isinstance(item, exp.Column) for item in query.selects)
    parse_statement(f"CREATE STREAM s ({', '.join(f'{word} INT' for word in columns)}, WATERMARK FOR timestamp)")


@pytest.mark.parametrize("word", ["select", "FROM", "Where", "case", "and", "unnest"])
def test_reserved_words_need_quotes(word: str) -> None:
    [parsed] = parse_script(f"SELECT a AS {word} FROM t")
    assert parsed.error is not None
    assert tree(f'SELECT a AS "{word}" FROM t').selects[0].alias == word


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("''", ""),
        ("'it''s'", "it's"),
        (r"'a\nb\'", "a\\nb\\"),
        (r"E'a\nb\t\'\\\x41\u00e9\U0001F4A7\101'", "a\nb\t'\\Aé💧A"),
        ("e'x''y'", "x'y"),
        ("$$it's $ 5$$", "it's $ 5"),
        ("$tag$a$$b$tag$", "a$$b"),
        ("'TUMBLE(ts, (('", "TUMBLE(ts, (("),
        ("'💧 größe'", "💧 größe"),
        ("'a\r\nb'", "a\r\nb"),
    ],
)
def test_strings(text: str, value: str) -> None:
    """A11: a backslash is an ordinary character, and what stands in a string stays there."""
    [literal] = tree(f"SELECT {text}").selects
    assert isinstance(literal, exp.Literal)
    assert literal.this == value
    assert tree(f"SELECT {format_tree(literal)}").selects == [literal]


def test_names_in_both_kinds_of_quotes() -> None:
    found = tree('SELECT "a ""b""", `c ``d```, "e`f" FROM t').selects
    assert [item.name for item in found] == ['a "b"', "c `d`", "e`f"]


def test_two_words_are_one_keyword_whatever_stands_between() -> None:
    assert tree("SELECT a FROM t GROUP /* by */ \n BY a ORDER -- x\n BY a") == tree(
        "SELECT a FROM t GROUP BY a ORDER BY a"
    )


SCRIPT = "SELECT 1;\r\n\tSELECT '💧' AS größe,\r\n\t\tFOO(a.b, 'x') AS c,\n *\nFROM\tt AS u"


def test_positions_count_in_the_script() -> None:
    """Line feeds end lines, a tab and a character outside the BMP are one column each."""
    second = parse_script(SCRIPT)[1]
    assert isinstance(second.statement, Select)
    assert (second.span.line, second.span.column) == (2, 2)
    assert SCRIPT[second.span.start : second.span.end] == SCRIPT[SCRIPT.index("SELECT '") :]
    query = second.statement.query.tree
    texts = {}
    for node in query.find_all(exp.Literal, exp.Anonymous, exp.Column, exp.Identifier, exp.Star, exp.Table):
        span = own_span(node)
        assert span is not None, node
        line = SCRIPT.split("\n")[span.line - 1]
        assert line[span.column - 1 :].startswith(SCRIPT[span.start : span.end].split("\n", maxsplit=1)[0])
        texts[SCRIPT[span.start : span.end]] = type(node).__name__
    assert {"'💧'", "größe", "FOO", "b", "'x'", "*", "t", "u"} <= set(texts)


def test_the_span_of_a_node_covers_all_of_it() -> None:
    text = "SELECT a, COALESCE(x.y, 1 + (b), 'z') FROM t"
    call = tree(text).selects[1]
    span = span_of(call)
    assert span is not None
    assert text[span.start : span.end] == "COALESCE(x.y, 1 + (b), 'z')"
    name = own_span(call)
    assert name is not None
    assert text[name.start : name.end] == "COALESCE"
    assert span_of(exp.column("x")) is None


def test_positions_survive_a_copy_and_do_not_matter_for_equality() -> None:
    first, second = tree("SELECT a FROM t"), tree("SELECT   a\nFROM t")
    assert first == second
    assert span_of(second.copy()) == span_of(second) != span_of(first)


def test_tokens_of_sqlglot_are_made_of_ours() -> None:
    tokens = tokenize("a\n <=> 'b'", 0)
    assert [(token.text, token.line, token.col, token.start, token.end) for token in tokens] == [
        ("a", 1, 1, 0, 0),
        ("<=>", 2, 2, 3, 5),
        ("b", 2, 6, 7, 9),
    ]
