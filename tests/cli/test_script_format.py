"""Formatting a whole script keeps its meaning and the comments between its statements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.interfaces.script_format import format_script, says_the_same
from penstock.sql.script import parse_script

STATEMENTS = [
    "select a, 'it''s; -- no comment' as b from t",
    'select "odd /* name */" from t where x > 1',
    "create stream s (a int) with (connector = 'topic', partitions = 4)",
    "set dialect = 'flink'",
    "select E'a\\'; -- b' as c",
]
COMMENTS = ["-- one", "--", "/* two */", "/* three\n   lines ; */", "-- it's", "/* -- */"]
BLANKS = [" ", "\n", "\n\n", "\n\n\n", "\t", "\r\n"]

gap = st.lists(st.tuples(st.sampled_from(COMMENTS), st.sampled_from(["\n", "\n\n", "\n  "])), max_size=3)
scripts = st.lists(st.tuples(gap, st.sampled_from(BLANKS), st.sampled_from(STATEMENTS)), min_size=1, max_size=4)


def written(parts: list[tuple[list[tuple[str, str]], str, str]]) -> bytes:
    text = ""
    for comments, blank, statement in parts:
        text += "".join(comment + after for comment, after in comments) + blank + statement + ";"
    return text.encode()


@given(scripts)
def test_formatting_keeps_statements_and_comments_and_is_stable(
    parts: list[tuple[list[tuple[str, str]], str, str]],
) -> None:
    script = written(parts)
    parsed = parse_script(script)
    assert len(parsed) == len(parts)
    once = format_script(script, parsed)
    assert once.lost_comments == ()
    assert says_the_same(once, parsed)
    again = format_script(once.text.encode(), parse_script(once.text))
    assert again.text == once.text
    comments = [comment for part in parts for comment, _ in part[0]]
    position = 0
    for comment in comments:
        position = once.text.index(comment, position) + len(comment)


def test_comments_inside_a_statement_are_reported_with_their_places() -> None:
    script = b"-- kept\nselect a, -- first\n  b /* second */ from t -- kept too\n;\n"
    formatted = format_script(script, parse_script(script))
    assert [(span.line, span.column) for span in formatted.lost_comments] == [(2, 11), (3, 5)]
    assert formatted.text == "-- kept\nSELECT\n  a,\n  b\nFROM t; -- kept too\n"


def test_a_script_of_comments_stays_what_it_is() -> None:
    script = b"-- nothing yet\n\n/* later */\n"
    assert format_script(script, parse_script(script)).text == script.decode()
