"""Regular expressions that Java cannot read are refused where they are written."""

from __future__ import annotations

import pytest

from penstock.plan.check_patterns import pattern_fault
from tests.unit.plan.analysis import TRADES, last, planned

WRONG = {
    "(": "a ( is not closed",
    "a(b(c)": "a ( is not closed",
    "(?i)(a": "a ( is not closed",
    "(?<name>a": "a ( is not closed",
    r"\\(": "a ( is not closed",
    ")": "a ) closes nothing",
    "(a))": "a ) closes nothing",
    "[a": "a [ is not closed",
    "[": "a [ is not closed",
    "[^": "a [ is not closed",
    r"[a\]": "a [ is not closed",
    "[[a": "a [ is not closed",
    "*": "there is nothing in front of * that it could repeat",
    "+a": "there is nothing in front of + that it could repeat",
    "a|?": "there is nothing in front of ? that it could repeat",
    "(*a)": "there is nothing in front of * that it could repeat",
    "a\\": "there is nothing behind its last \\",
    "[a\\": "there is nothing behind its last \\",
}
# What Java reads, and what takes more than a look.
NOT_SURELY_WRONG = [
    "",
    "a(b)c",
    r"\(",
    r"\)",
    r"\[",
    r"\\",
    "]",
    "}",
    "[(]",
    "[)]",
    "[*+?]",
    r"[\]]",
    "[^(]",
    "[]a]",
    "[^]a]",
    "[a[bc]]",
    "[a-z&&[^aeiou]]",
    r"\Q(\E",
    r"\Q[(*",
    r"[\Q]\E]",
    r"\c(",
    r"\cA",
    r"\c\Q(\E",
    "(?:a)",
    "(?=a)(?!b)(?<=c)(?<!d)(?>e)(?<f>g)",
    "(?i)a",
    "(?i:a)",
    "(?x) a # (",
    "(?ix) a # (",
    "a**",
    "^*",
    "a{2,3}?",
    "(|a)",
    r"\p{L}+",
    r"\x{28}",
]


@pytest.mark.parametrize("pattern", WRONG)
def test_what_is_wrong_with_a_pattern(pattern: str) -> None:
    assert pattern_fault(pattern) == WRONG[pattern]


@pytest.mark.parametrize("pattern", NOT_SURELY_WRONG)
def test_a_pattern_that_is_left_to_java(pattern: str) -> None:
    assert pattern_fault(pattern) is None


@pytest.mark.parametrize(
    ("condition", "place"),
    [
        ("symbol ~ '('", "'('"),
        ("symbol !~ '('", "'('"),
        ("symbol ~* '['", "'['"),
        ("symbol RLIKE '('", "'('"),
        ("REGEXP_LIKE(symbol, '(', 'i')", "'('"),
        ("REGEXP_EXTRACT(symbol, ('a('), 1) = 'x'", "('a(')"),
        ("REGEXP_REPLACE(symbol, '*', 'x') = 'y'", "'*'"),
        ("SPLIT(symbol, '(')[1] = 'x'", "'('"),
        ("symbol SIMILAR TO '('", "symbol SIMILAR TO '('"),
        ("COALESCE(UPPER(symbol) RLIKE ')', FALSE)", "')'"),
    ],
)
def test_a_constant_pattern_is_refused_at_its_place(condition: str, place: str) -> None:
    query = f"SELECT symbol FROM trades WHERE {condition}"
    error = last(query).error
    assert error is not None
    assert error.span is not None
    assert (error.condition, "is no regular expression" in error.message) == ("INVALID_ARGUMENT", True)
    assert (TRADES + query)[error.span.start : error.span.end] == place


@pytest.mark.parametrize(
    "condition",
    [
        r"symbol ~ '\('",
        "symbol RLIKE '[(]'",
        "symbol RLIKE symbol",
        "symbol LIKE '('",
        "SPLIT_PART(symbol, '(', 1) = 'x'",
        "CONTAINS(symbol, '(')",
        "symbol SIMILAR TO 'a%|b_'",
    ],
)
def test_other_patterns_are_planned(condition: str) -> None:
    planned(f"SELECT symbol FROM trades WHERE {condition}")
