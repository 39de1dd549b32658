"""Where a node stands in the user's text.

The parser leaves `line`, `col`, `start` and `end` (of the whole script, `end` included) in a node's `meta`; a call
or a list also has `stop`, the place of its closing bracket. All of it survives copies and takes no part in equality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import Span

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token


def token_span(first: Token, last: Token | None = None) -> Span:
    """The span from one token to another."""
    return Span(first.line, first.col, (last or first).end - first.start + 1, first.start)


def own_span(node: exp.Expr) -> Span | None:
    """The span of the node's own word alone: of a function call its name, of a column the last part of its name."""
    meta = node.meta
    if "start" not in meta:
        return None
    return Span(meta["line"], meta["col"], meta["end"] - meta["start"] + 1, meta["start"])


def span_of(node: exp.Expr) -> Span | None:
    """The whole stretch of a node, with everything in it; None for a node that no text stands behind."""
    first: Span | None = None
    end = -1
    for part in node.walk():
        end = max(end, part.meta.get("stop", -1) + 1)
        span = own_span(part)
        if span is None:
            continue
        end = max(end, span.end)
        if first is None or span.start < first.start:
            first = span
    return first and Span(first.line, first.column, end - first.start, first.start)
