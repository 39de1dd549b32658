"""How errors look: one line, the place, the hint, and no way round the mask."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from penstock.errors import (
    CatalogError,
    NotYetError,
    PenstockError,
    ResolutionError,
    ScriptError,
    Span,
    UnsupportedError,
)
from penstock.interfaces.render import (
    LINE_LIMIT,
    plain,
    render_error,
    render_notice,
    render_summary,
    render_trace,
    snippet,
    wants_color,
)


@dataclass(frozen=True)
class Text:
    masked: str


def unknown_column(span: Span | None) -> PenstockError:
    return ResolutionError("UNKNOWN_COLUMN", 'no column "prise" in trades', hint='did you mean "price"?', span=span)


def test_error_has_the_line_the_caret_and_the_hint() -> None:
    script = "CREATE STREAM t (a INT);\nSELECT prise FROM trades"
    assert render_error(unknown_column(Span(2, 8, 5)), Text(script), "a.sql").splitlines() == [
        'error[UNKNOWN_COLUMN] a.sql:2:8: no column "prise" in trades',
        "  2 | SELECT prise FROM trades",
        "    |        ^^^^^",
        '  hint: did you mean "price"?',
    ]


def test_error_without_a_place_has_no_snippet() -> None:
    error = CatalogError("STATE_PATH_UNUSABLE", "cannot use the state directory")
    assert (
        render_error(error, Text("SELECT 1"), "a.sql")
        == "error[STATE_PATH_UNUSABLE] a.sql: cannot use the state directory"
    )
    assert render_error(error, None, None) == "error[STATE_PATH_UNUSABLE]: cannot use the state directory"


def test_error_tells_never_from_not_yet() -> None:
    never = render_error(UnsupportedError("MATCH_RECOGNIZE", "no row patterns"), None, "a.sql")
    not_yet = render_error(
        NotYetError("UPDATING_JOIN", "no updating joins", detail="the result changes"), None, "a.sql"
    )
    assert never.splitlines()[1] == "  support: this can never work here"
    assert not_yet.splitlines()[1:] == [
        "  detail: the result changes",
        "  support: this is not there yet, a later version will run it",
    ]
    assert "support" not in render_error(unknown_column(None), None, "a.sql")


def test_a_long_detail_goes_over_several_lines() -> None:
    error = ResolutionError("UNKNOWN_COLUMN", "no", detail=", ".join(f"column_{n}" for n in range(60)))
    lines = render_error(error, None, "a.sql").splitlines()
    assert lines[1].startswith("  detail: column_0, ")
    assert len(lines) > 5
    assert max(map(len, lines)) < LINE_LIMIT + 12


def test_a_detail_of_several_lines_keeps_them() -> None:
    error = ResolutionError("UNKNOWN_COLUMN", "no", detail="the first\nthe second\n\tthe third")
    lines = render_error(error, None, "a.sql").splitlines()
    assert lines[1:] == ["  detail: the first", "    the second", "            the third"]


def test_colours_are_there_only_when_asked_for() -> None:
    error = unknown_column(Span(1, 1, 1))
    bare = render_error(error, Text("x"), "a.sql")
    colored = render_error(error, Text("x"), "a.sql", color=True)
    assert "\x1b" not in bare
    assert colored.startswith("\x1b[31m\x1b[1merror[UNKNOWN_COLUMN]")


@pytest.mark.parametrize(
    ("line", "span", "expected"),
    [
        ("\tSELECT\tx", Span(1, 9, 1), " " * 12 + "^"),  # tabs reach to the next stop of four
        ("SELECT '日本語', x", Span(1, 15, 1), " " * 17 + "^"),  # wide characters take two columns
        ("SELECT 日本", Span(1, 8, 2), "       ^^^^"),
        ("SELECT e\N{COMBINING ACUTE ACCENT}, x", Span(1, 12, 1), "          ^"),
        ("SELECT", Span(1, 7, 0), "      ^"),  # behind the end
        ("SELECT", Span(1, 99, 5), "      ^"),
        ("SELECT a", Span(1, 8, 500), "       ^"),  # a span that runs on to the next line
        ("SELECT a", Span(7, 1, 1), "^"),  # a line that is not there
    ],
)
def test_caret_stands_under_its_place(line: str, span: Span, expected: str) -> None:
    assert snippet(line, span)[1] == expected


def test_windows_line_ends_are_no_part_of_the_line() -> None:
    assert snippet("SELECT 1;\r\nSELECT x\r\n", Span(2, 8, 1)) == ("SELECT x", "       ^")


def test_a_long_line_is_cut_around_the_caret() -> None:
    line = "SELECT " + "a, " * 5000 + "wrong" + ", b" * 5000
    shown, carets = snippet(line, Span(1, line.index("wrong") + 1, 5))
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= LINE_LIMIT
    assert shown[carets.index("^") :].startswith("wrong")
    assert carets.count("^") == 5


def test_a_line_cut_on_the_right_keeps_its_beginning() -> None:
    shown, carets = snippet("SELECT x" + " + x" * 200, Span(1, 8, 1))
    assert shown.startswith("SELECT x + x")
    assert shown.endswith("…")
    assert carets == "       ^"


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=300),
    st.integers(1, 320),
    st.integers(0, 400),
)
def test_any_line_and_any_span_give_a_snippet_of_limited_width(line: str, column: int, length: int) -> None:
    shown, carets = snippet(line, Span(1, column, length))
    assert cell_len(shown) <= LINE_LIMIT + 2
    assert set(carets) <= {" ", "^"}
    assert "^" in carets
    assert not any(ord(char) < 32 or ord(char) == 127 for char in shown)


def test_no_text_reaches_the_terminal_as_a_command() -> None:
    """A pasted script cannot colour, move or retitle the reader's terminal, nor turn the line round."""
    evil = "\x1b]0;owned\x07 \u202e x"
    error = ScriptError("SYNTAX_ERROR", f"expected a name, found {evil}", hint=evil, detail=evil, span=Span(1, 1, 1))
    shown = render_error(error, Text(evil), evil) + render_notice(evil, evil, None)
    assert not any(char in shown for char in "\x1b\x07\u202e")


def test_ordinary_text_is_left_alone() -> None:
    assert plain("Größe 日本 שלום — ok") == "Größe 日本 שלום — ok"


def test_a_trace_has_no_text_of_inner_errors() -> None:
    try:
        try:
            raise ValueError("password = canary-4711")
        except ValueError as inner:
            raise unknown_column(None) from inner
    except PenstockError as error:
        trace = render_trace(error)
    assert "canary-4711" not in trace.replace('raise ValueError("password = canary-4711")', "")
    assert "penstock.errors.ResolutionError" in trace
    assert "builtins.ValueError" in trace


@pytest.mark.parametrize(
    ("statements", "errors", "text"),
    [(0, 0, "0 statements, 0 errors"), (1, 1, "1 statement, 1 error"), (12, 2, "12 statements, 2 errors")],
)
def test_summary(statements: int, errors: int, text: str) -> None:
    assert render_summary(statements, errors) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "variables", "colors"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_who_wants_colours(
    terminal: bool,
    variables: dict[str, str],
    colors: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wants_color(Terminal() if terminal else io.StringIO()) is colors
