"""What a web service said when it refused a request, as a message may show it: short, on one line, without secrets."""

from __future__ import annotations

import html
import json
from collections.abc import Collection, Iterator
from http.client import HTTPMessage
from typing import Final
from urllib.parse import quote, unquote

from penstock.secrets import MASK

_LONGEST: Final = 200
_SECRET_LENGTH: Final = 8  # a shorter part of an address is a word such as `api`, and no password


def shown_answer(body: bytes, headers: HTTPMessage, secrets: Collection[str]) -> str:
    """The beginning of an answer's body; nothing where it holds nothing that can be read.

    >>> shown_answer(b'{"error":\\n "no hook\\x1b canary"}', HTTPMessage(), ["canary"])
    '{"error": "no hook ********"}'
    """
    try:
        text = body.decode(headers.get_content_charset("utf-8"), "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    for secret in sorted({form for each in secrets for form in _forms(each)}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def parts_of_address(target: str) -> Iterator[str]:
    """What of the path and the query of an address may be a secret, which a service may repeat by itself.

    >>> list(parts_of_address("/api/T0123456789?key=abcdefgh&n=1"))
    ['/api/T0123456789?key=abcdefgh&n=1', 'T0123456789', 'abcdefgh']
    """
    path, _, query = target.partition("?")
    if len(target) > 1:
        yield target
    for part in (*path.split("/"), *(pair.partition("=")[2] for pair in query.split("&"))):
        if len(part) >= _SECRET_LENGTH:
            yield part


def _forms(secret: str) -> Iterator[str]:
    """A secret as it may stand in JSON, in HTML or in an address."""
    for plain in (secret, unquote(secret)):
        if plain:
            yield plain
            yield json.dumps(plain)[1:-1]
            yield json.dumps(plain)[1:-1].replace("/", "\\/")
            yield html.escape(plain)
            yield quote(plain, safe="")
