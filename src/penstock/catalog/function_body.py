"""Where the Python behind a user's function is: what the text after AS says."""

from __future__ import annotations

import re
from typing import Final, Literal

from penstock.frozen import frozen

# A program registers the function itself; the catalog only knows its name and types.
REGISTERED: Final = "<registered>"

_MODULE: Final = re.compile(r"((?:[A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*)[.:]([A-Za-z_]\w*)")
_FILE: Final = re.compile(r"(\S[^\n]*\.py):([A-Za-z_]\w*)")

BodyKind = Literal["registered", "module", "file", "source"]


@frozen
class FunctionBody:
    """`place` is a module, a file or source text; `attribute` the name in it."""

    kind: BodyKind
    place: str
    attribute: str


def read_body(body: str, name: str) -> FunctionBody:
    """What the body of a function means; `name` is what source text defines.

    >>> read_body("shop.text.label", "f")
    FunctionBody(kind='module', place='shop.text', attribute='label')
    >>> read_body("udfs/text.py:label", "f").kind
    'file'
    """
    text = body.strip()
    if text == REGISTERED:
        return FunctionBody("registered", "", name)
    file = _FILE.fullmatch(text)
    if file is not None:
        return FunctionBody("file", file[1], file[2])
    module = _MODULE.fullmatch(text)
    if module is not None:
        return FunctionBody("module", module[1], module[2])
    return FunctionBody("source", body, name)
