"""ksqlDB's windows: a clause behind the relation, read as a key of the GROUP BY over the event time of the input.

SELECT k, COUNT(*), WINDOWSTART FROM s WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY k
-> SELECT k, COUNT(*), TUMBLE_START(INTERVAL '1' MINUTE) FROM s GROUP BY TUMBLE(INTERVAL '1' MINUTE), k
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql.dialects.ksqldb import refuse
from penstock.sql.durations import NotADuration, parse_duration
from penstock.sql.nodes import HOP, SESSION, TUMBLE, WindowCall, WindowPart

if TYPE_CHECKING:
    from penstock.sql.queries import QueryGrammar

T = TokenType
_KINDS: Final = {"TUMBLING": TUMBLE, "HOPPING": HOP, "SESSION": SESSION}
_PARTS: Final = {"WINDOWSTART": "start", "WINDOWEND": "end"}
CLAUSE: Final = "penstock_window"


def window_ahead(parser: QueryGrammar) -> bool:
    """Whether WINDOW TUMBLING (…), HOPPING (…) or SESSION (…) begins here."""
    bracket = parser.peek(2)
    kind = parser.following.text.upper()
    return kind in _KINDS and bracket is not None and bracket.token_type == T.L_PAREN


def parse_window(parser: QueryGrammar) -> WindowCall:
    """The window of such a clause."""
    parser.expect("WINDOW")
    first = parser.current
    kind = _KINDS[first.text.upper()]
    parser.expect(first.text)
    parser.expect_symbol(T.L_PAREN, "(")
    found: dict[str, int] = {}
    if kind == SESSION:
        found["gap"] = _duration(parser)
    else:
        parser.expect("SIZE")
        found["size"] = _duration(parser)
    while parser.symbol(T.COMMA):
        token = parser.current
        if kind == HOP and "slide" not in found and parser.word("ADVANCE", "BY"):
            found["slide"] = _duration(parser)
        elif token.text.upper() in ("GRACE", "RETENTION"):
            words = "GRACE PERIOD" if token.text.upper() == "GRACE" else "RETENTION"
            hint = "give the delay in the WATERMARK of the stream" if words == "GRACE PERIOD" else "leave it out"
            refuse(f"{words} of a window", hint, token)
        else:
            parser.fail("ADVANCE BY" if kind == HOP else ")")
    if kind == HOP and "slide" not in found:
        parser.fail("ADVANCE BY")
    parser.expect_symbol(T.R_PAREN, ")")
    made = WindowCall(kind=kind, **found)
    made.update_positions(first)
    return made


def _duration(parser: QueryGrammar) -> int:
    number, unit = parser.current, parser.following
    if number.token_type != T.NUMBER:
        parser.fail("a number")
    try:
        found = parse_duration(number.text, unit.text)
    except NotADuration:
        parser.fail("a number of DAYS, HOURS, MINUTES, SECONDS or MILLISECONDS")
    if found.months or found.micros <= 0:
        parser.fail("a number of DAYS, HOURS, MINUTES, SECONDS or MILLISECONDS")
    parser.symbol(T.NUMBER)
    parser.expect(unit.text)
    return found.micros


def as_group(select: exp.Select, window: WindowCall) -> None:
    """Puts the window into the GROUP BY of its SELECT, and its bounds where they are named."""
    group = select.args.get("group")
    if group is None:
        group = exp.Group(expressions=[])
        select.set("group", group)
    group.set("expressions", [window, *group.expressions])
    for part in [*select.expressions, *filter(None, (select.args.get("having"), select.args.get("order")))]:
        for node in list(part.find_all(exp.Column)):
            name = _PARTS.get(node.name.upper()) if not node.table else None
            if name is None:
                continue
            bound: exp.Expr = WindowPart(this=window.copy(), part=name)
            bound.meta.update(node.meta)
            if node.parent is select:
                bound = exp.alias_(bound, node.name)
            node.replace(bound)
