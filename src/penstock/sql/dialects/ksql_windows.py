"""ksqlDB's windows: a clause behind the relation, read as a key of the GROUP BY over the event time of the input.

SELECT k, COUNT(*), WINDOWSTART FROM s WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY k
-> SELECT k, COUNT(*), TUMBLE_START(INTERVAL '1' MINUTE) FROM s GROUP BY TUMBLE(INTERVAL '1' MINUTE), k

GRACE PERIOD becomes an argument of the window; RETENTION is read, and the planner says what it means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql.durations import NotADuration, parse_duration
from penstock.sql.nodes import HOP, SESSION, TUMBLE, WindowCall, WindowPart, Within

if TYPE_CHECKING:
    from penstock.sql.queries import QueryGrammar
    from penstock.sql.relations import RelationGrammar

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
        if kind == HOP and "slide" not in found and parser.word("ADVANCE", "BY"):
            found["slide"] = _duration(parser)
        elif "grace" not in found and parser.word("GRACE", "PERIOD"):
            found["grace"] = _duration(parser, least=0)
        elif "retention" not in found and parser.word("RETENTION"):
            found["retention"] = _duration(parser)
        else:
            parser.fail("ADVANCE BY" if kind == HOP and "slide" not in found else ")")
    if kind == HOP and "slide" not in found:
        parser.fail("ADVANCE BY")
    parser.expect_symbol(T.R_PAREN, ")")
    made = WindowCall(kind=kind, **found)
    made.update_positions(first)
    return made


def parse_within(parser: RelationGrammar) -> Within | None:
    """WITHIN 1 HOUR, or WITHIN (1 HOUR, 2 HOURS), before the condition of a join; each with GRACE PERIOD or without."""
    if parser.following.token_type not in {T.NUMBER, T.L_PAREN} or not parser.word("WITHIN"):
        return None
    if parser.symbol(T.L_PAREN):
        before = _duration(parser, least=0)
        parser.expect_symbol(T.COMMA, ",")
        after = _duration(parser, least=0)
        parser.expect_symbol(T.R_PAREN, ")")
    else:
        before = after = _duration(parser, least=0)
    found = Within(before=before, after=after)
    if parser.word("GRACE", "PERIOD"):
        found.set("grace", _duration(parser, least=0))
    return found


def _duration(parser: RelationGrammar, least: int = 1) -> int:
    number, unit = parser.current, parser.following
    if number.token_type != T.NUMBER:
        parser.fail("a number")
    try:
        found = parse_duration(number.text, unit.text)
    except NotADuration:
        parser.fail("a number of DAYS, HOURS, MINUTES, SECONDS or MILLISECONDS")
    if found.months or found.micros < least:
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
