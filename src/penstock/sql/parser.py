"""The parser: our grammar on sqlglot's machinery, one statement at a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

from penstock.errors import InternalError, PenstockError, Span
from penstock.sql.lexical import too_deep
from penstock.sql.queries import QueryGrammar
from penstock.sql.reading import SyntaxFailure, syntax_error
from penstock.sql.spans import token_span

R = TypeVar("R")

# Frames the parser may use. A bracket costs some twenty of them, an operator of the same rank none.
_FRAMES: Final = 8_000

# How deep a finished tree may be. A chain of operators leans to one side and is as deep as it is long; whoever walks
# the tree with a function that calls itself must not run out of frames.
MAX_TREE: Final = 300


class _Deep:
    """Room for a recursive parser: a higher limit of frames while any thread is parsing.

    The limit belongs to the whole process, so the first thread in raises it and the last one out restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, _FRAMES))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setrecursionlimit(self._before)


_DEEP: Final = _Deep()


class PenstockParser(QueryGrammar):
    """The grammar of Penstock. Statements are read by `penstock.sql.grammar`, queries and expressions by its bases."""

    def run(self, rule: Callable[[PenstockParser], R], end: Span, shown: Callable[[Token], str]) -> R:
        """Applies a rule to all tokens loaded; every failure becomes an error of ours.

        `end` is where the statement ends, for what is missing there; `shown` is how a token may be quoted.
        """
        self.shown = shown
        try:
            with _DEEP:
                found = rule(self)
                self.end()
        except SyntaxFailure as failure:
            raise syntax_error(failure, end, shown) from None
        except PenstockError:
            raise
        except RecursionError:
            raise too_deep(self._here(end)) from None
        except SqlglotError:
            raise syntax_error(SyntaxFailure(None, self._curr or None), end, shown) from None
        except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # A rule of sqlglot met a tree it did not expect. Its message may quote the text: only its kind is told.
            raise InternalError(f"the parser failed ({type(error).__name__})") from None
        return found

    def _here(self, end: Span) -> Span:
        return token_span(self._curr) if self._curr else end


def finish(tree: exp.Expr) -> None:
    """Gives columns and tables the positions of their parts, and refuses a tree too deep to walk."""
    stack: list[tuple[exp.Expr, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_TREE:
            found = next((n.meta for n, _ in [(node, 0), *stack] if "start" in n.meta), None)
            span = Span(found["line"], found["col"], 1, found["start"]) if found else Span(1, 1, 0)
            raise too_deep(span)
        if isinstance(node, exp.Column | exp.Table) and "start" not in node.meta and isinstance(node.this, exp.Expr):
            node.update_positions(node.this)
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                stack.append((value, depth + 1))
            elif isinstance(value, list):
                stack.extend((item, depth + 1) for item in value if isinstance(item, exp.Expr))
