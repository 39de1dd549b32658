"""Regular expressions, written out, that Java surely cannot read, told where they stand instead of when a job runs.

Java's patterns are not Python's, so nothing is compiled here: brackets are paired and quantifiers have something in
front of them. Where that takes more than a look, as in classes inside classes and patterns with comments, Java decides.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from penstock.catalog.foreign_call import constant_text
from penstock.errors import ResolutionError
from penstock.sql.spans import span_of

# The functions of Spark's whose second argument is a pattern.
_MATCHING: Final = frozenset({
    "regexp", "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_instr", "regexp_like", "regexp_replace",
    "regexp_substr", "rlike", "split",
})  # fmt: skip
# With (?x) what stands behind a # is a comment; and \c\Q is a control character to one reading, a quotation to another.
_JAVAS: Final = re.compile(r"\(\?[a-zA-Z]*x|\\c\\")
_QUANTIFIERS: Final = "*+?"
_LONGEST: Final = 60


def check_pattern(bound: exp.Expr, written: exp.Expr) -> None:
    """Raise INVALID_ARGUMENT at a pattern that no text could be matched with."""
    if isinstance(bound, exp.RegexpLike):
        pattern, place = bound.expression, written.args.get("expression")
    elif isinstance(bound, exp.Anonymous) and bound.name.lower() in _MATCHING and len(bound.expressions) > 1:
        pattern, place = bound.expressions[1], next(iter(written.expressions[1:]), None)
    else:
        return
    constant = constant_text(pattern)
    fault = pattern_fault(constant) if constant is not None else None
    if constant is None or fault is None:
        return
    shown = constant if len(constant) <= _LONGEST else f"{constant[:_LONGEST]}…"
    raise ResolutionError(
        "INVALID_ARGUMENT",
        f"{shown} is no regular expression: {fault}",
        hint=r"write a \ in front of a character that stands for itself, or look for a text with CONTAINS or LIKE",
        span=span_of(written if place is None else place),
    )


def pattern_fault(pattern: str) -> str | None:
    r"""What is surely wrong with a pattern of Java's; None where nothing is, or only Java can tell.

    >>> pattern_fault("a(b")
    'a ( is not closed'
    >>> pattern_fault(r"a\(b|[(]|\Q(\E") is None
    True
    """
    if _JAVAS.search(pattern):
        return None
    place, opened, begins = 0, 0, True
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            end = _escaped(pattern, place)
            if end is None:
                return "there is nothing behind its last \\"
            # An empty quotation is nothing, so that a quantifier behind it may have nothing in front of it.
            place, begins = end, False
            continue
        if character in _QUANTIFIERS and begins:
            return f"there is nothing in front of {character} that it could repeat"
        if character == "[":
            after = _behind_class(pattern, place)
            if isinstance(after, str):
                return after
            if after is None:
                return None
            place, begins = after, False
            continue
        if character == ")" and opened == 0:
            return "a ) closes nothing"
        opened += {"(": 1, ")": -1}.get(character, 0)
        begins = character == "|" or (character == "(" and pattern[place + 1 : place + 2] != "?")
        place += 1
    return "a ( is not closed" if opened else None


def _escaped(pattern: str, place: int) -> int | None:
    r"""Where the pattern goes on behind an escape: `\(`, `\cA`, `\Q…\E`; None where it ends inside."""
    kind = pattern[place + 1 : place + 2]
    if not kind:
        return None
    if kind == "Q":
        end = pattern.find("\\E", place + 2)
        return len(pattern) if end < 0 else end + 2
    return place + (3 if kind == "c" else 2)


def _behind_class(pattern: str, place: int) -> int | str | None:
    """Where a class of characters ends, or what is wrong with it; None where a look does not tell."""
    place += 2 if pattern[place + 1 : place + 2] == "^" else 1
    first, plain = place, True
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            end = _escaped(pattern, place)
            if end is None:
                return "there is nothing behind its last \\"
            place = end
            continue
        if character == "]":
            return place + 1 if plain and place > first else None
        # A class in a class has a ] of its own, and && puts two together.
        plain = plain and character != "[" and not pattern.startswith("&&", place)
        place += 1
    return "a [ is not closed"
