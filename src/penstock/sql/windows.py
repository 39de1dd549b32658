"""Windows: every spelling of them, read into the one node of `penstock.sql.nodes`.

TUMBLE(ts, size [, offset])          HOP(ts, slide, size [, offset])        as grouping expressions (Flink)
SESSION(ts, gap)                     CUMULATE(ts, step, size [, offset])
tumble(size), hop(slide, size), session(gap)                                over the input's event time (Arroyo)
TUMBLE(ts, size, GRACE => grace)                                            closed a grace after its end (ksqlDB)
window(ts, size [, slide [, offset]]), session_window(ts, gap)              Spark: the size comes first
TUMBLE(TABLE t, DESCRIPTOR(ts), size)                                       as a relation (Flink), also with names
TUMBLE(t, ts, size)                                                         as a relation (RisingWave)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError, ResolutionError, Span
from penstock.frozen import frozen
from penstock.sql.durations import NotADuration, duration_us, is_interval
from penstock.sql.nodes import CUMULATE, HOP, SESSION, TUMBLE, WindowCall, WindowPart, WindowTable
from penstock.sql.reading import NAME_TOKENS
from penstock.sql.spans import token_span

if TYPE_CHECKING:
    from penstock.sql.call_grammar import CallGrammar
    from penstock.sql.relations import RelationGrammar

T = TokenType

# The durations a kind takes, in the order of its arguments; an offset may follow, but not for sessions.
_DURATIONS: Final = {TUMBLE: ("size",), HOP: ("slide", "size"), SESSION: ("gap",), CUMULATE: ("step", "size")}
_GRACE: Final = "GRACE"
_LABELS: Final = frozenset({"DATA", "TIMECOL", "SIZE", "SLIDE", "GAP", "STEP", "OFFSET"})


@frozen
class _Argument:
    node: exp.Expr
    span: Span
    label: str | None = None


def window_call(parser: CallGrammar, token: Token) -> exp.Expr:
    """A window as an expression; its name and opening bracket are taken."""
    return _call(parser, token, token.text.upper())


def window_part(parser: CallGrammar, token: Token) -> exp.Expr:
    """TUMBLE_START(…) and its like."""
    kind, _, part = token.text.upper().rpartition("_")
    call = _call(parser, token, kind)
    call.update_positions(token)
    call.meta["stop"] = parser.current.end if parser.current else token.end
    return WindowPart(this=call, part=part.lower())


def _call(parser: CallGrammar, token: Token, kind: str) -> WindowCall:
    arguments = _arguments(parser)
    grace = next((argument for argument in arguments if argument.label == _GRACE), None)
    arguments = [argument for argument in arguments if argument is not grace]
    time = None
    if arguments and not is_interval(arguments[0].node):
        time = arguments.pop(0).node
    if kind in {"WINDOW", "SESSION_WINDOW"}:
        if time is None:
            raise _invalid(f"{kind} takes a time column first", token_span(token), kind)
        return _spark(kind, time, arguments, token)
    values = _durations(kind, arguments, token)
    if grace is not None:
        values["grace"] = _constant(grace, "grace", kind)
    return WindowCall(kind=kind, time=time, **values)


def _arguments(parser: CallGrammar) -> list[_Argument]:
    found: list[_Argument] = []
    while parser.current and parser.current.token_type != T.R_PAREN:
        first = parser.current
        label = _GRACE if first.text.upper() == _GRACE and parser.following.token_type == T.FARROW else None
        if label is not None:
            parser.step(2)
        node = parser.an_expression()
        found.append(_Argument(node, parser.since(first), label))
        if not parser.symbol(T.COMMA):
            break
        if parser.at(T.R_PAREN):
            parser.fail("an expression")
    return found


def _spark(kind: str, time: exp.Expr, arguments: list[_Argument], token: Token) -> WindowCall:
    if kind == "SESSION_WINDOW":
        return WindowCall(kind=SESSION, time=time, **_durations(SESSION, arguments, token, kind))
    if not 1 <= len(arguments) <= 3:
        message = "WINDOW takes a time column, a size, and perhaps a slide and an offset"
        raise _invalid(message, token_span(token), kind)
    size = _positive(arguments[0], "size", kind)
    slide = _positive(arguments[1], "slide", kind) if len(arguments) > 1 else size
    offset = (_constant(arguments[2], "offset", kind) or None) if len(arguments) > 2 else None
    if slide == size:
        return WindowCall(kind=TUMBLE, time=time, size=size, offset=offset)
    return WindowCall(kind=HOP, time=time, slide=slide, size=size, offset=offset)


def _durations(kind: str, arguments: list[_Argument], token: Token, shown: str | None = None) -> dict[str, int | None]:
    names = _DURATIONS[kind]
    shown = shown or kind
    labelled = {argument.label.lower(): argument for argument in arguments if argument.label}
    plain = [argument for argument in arguments if not argument.label]
    free = [name for name in (*names, "offset") if name not in labelled]
    labelled |= dict(zip(free, plain, strict=False))
    allowed = names if kind == SESSION else (*names, "offset")
    if len(labelled) < len(arguments) or set(labelled) - set(allowed) or set(names) - set(labelled):
        wanted = " and ".join(f"a {name}" for name in names)
        message = f"{shown} takes {wanted}" + ("" if kind == SESSION else ", and perhaps an offset")
        raise _invalid(message, token_span(token), shown)
    values: dict[str, int | None] = {name: _positive(labelled[name], name, shown) for name in names}
    if "offset" in labelled:
        values["offset"] = _constant(labelled["offset"], "offset", shown) or None
    if kind == CUMULATE and (values["size"] or 0) % (values["step"] or 1):
        raise _invalid("the size of CUMULATE is no multiple of its step", labelled["size"].span, kind)
    return values


def _positive(argument: _Argument, name: str, kind: str) -> int:
    value = _constant(argument, name, kind)
    if value <= 0:
        raise _invalid(f"the {name} of {kind} must be longer than nothing", argument.span, kind)
    return value


def _constant(argument: _Argument, name: str, kind: str) -> int:
    try:
        return duration_us(argument.node)
    except NotADuration as problem:
        raise _invalid(f"the {name} of {kind} cannot be used: {problem}", argument.span, kind) from None


# What to remember about the arguments of a kind, behind the hint they all have.
_ORDER: Final = {
    HOP: "; HOP takes the slide first, then the size",
    CUMULATE: "; CUMULATE takes the step first, then the size",
    "WINDOW": "; WINDOW takes the size first, then the slide",
}


def _invalid(message: str, span: Span, kind: str) -> ResolutionError:
    hint = "a window takes constant intervals such as INTERVAL '5' MINUTE" + _ORDER.get(kind, "")
    return ResolutionError("INVALID_WINDOW", message, hint=hint, span=span)


# windows as relations


def window_table(parser: RelationGrammar) -> WindowTable:
    """TUMBLE(…) in a FROM clause; stands at the name."""
    token = parser.current
    kind = token.text.upper()
    parser.step(2)
    arguments = [_table_argument(parser, 0)]
    while parser.symbol(T.COMMA):
        arguments.append(_table_argument(parser, len(arguments)))
    parser.close()
    data = _take(arguments, "DATA")
    time = _take(arguments, "TIMECOL")
    if data is None or not isinstance(data.node, exp.Table | exp.Subquery):
        raise _invalid(f"{kind} takes a table first", data.span if data else token_span(token), kind)
    if time is not None and isinstance(time.node, exp.Anonymous) and time.node.name.upper() == "PROCTIME":
        raise ResolutionError(
            "INVALID_WINDOW",
            f"{kind} takes DESCRIPTOR(time column) second, and PROCTIME() is no column",
            hint=f"declare one in the stream, seen AS PROCTIME(), or write GROUP BY {kind}(PROCTIME(), …)",
            span=time.span,
        )
    if time is None or not isinstance(time.node, exp.Column):
        raise _invalid(f"{kind} takes DESCRIPTOR(time column) second", time.span if time else token_span(token), kind)
    if arguments and isinstance(arguments[0].node, exp.Column) and kind == SESSION:
        raise NotYetError(
            "DIALECT_NOT_YET",
            "SESSION with a second DESCRIPTOR, as in Feldera, is not there yet",
            hint="write SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), gap)",
            span=arguments[0].span,
        )
    keys = data.node.args.get("partition")
    if keys is not None:
        data.node.set("partition", None)
        if kind != SESSION:
            raise _invalid(f"PARTITION BY belongs to SESSION, not to {kind}", data.span, kind)
    window = WindowCall(kind=kind, time=time.node, keys=keys, **_durations(kind, arguments, token))
    window.update_positions(token)
    window.meta["stop"] = parser.taken.end
    return WindowTable(this=data.node, window=window)


def _take(arguments: list[_Argument], label: str) -> _Argument | None:
    """The argument with the label, or else the first without any."""
    found = next((argument for argument in arguments if argument.label == label), None)
    if found is None and arguments and arguments[0].label is None:
        found = arguments[0]
    if found is not None:
        arguments.remove(found)
    return found


def _table_argument(parser: RelationGrammar, place: int) -> _Argument:
    first = parser.current
    label = None
    if parser.following.token_type == T.FARROW:
        label = first.text.upper()
        if label not in _LABELS:
            parser.fail("DATA, TIMECOL, SIZE, SLIDE, GAP, STEP or OFFSET")
        parser.step(2)
        first = parser.current
    if label == "DATA" or (label is None and place == 0):
        node = _input(parser)
    elif parser.current.text.upper() == "DESCRIPTOR" and parser.following.token_type == T.L_PAREN:
        parser.step(2)
        node = parser.an_expression()
        if parser.current.token_type == T.COMMA:
            parser.fail("one column in DESCRIPTOR")
        parser.close()
    else:
        node = parser.an_expression()
    return _Argument(node, parser.since(first), label)


def _input(parser: RelationGrammar) -> exp.Expr:
    """TABLE t [PARTITION BY k], (SELECT …), TABLE (SELECT …) or a bare name."""
    if parser.current.text.upper() == "TABLE" and parser.following.token_type not in {T.COMMA, T.R_PAREN, T.DOT}:
        parser.step()
    node: exp.Expr = parser.subquery() if parser.current.token_type == T.L_PAREN else parser.read_table()
    if parser.symbol(T.PARTITION_BY):
        wrapped = parser.symbol(T.L_PAREN)
        keys = [_key(parser)]
        while parser.current.token_type == T.COMMA and (wrapped or _key_follows(parser)):
            parser.step()
            keys.append(_key(parser))
        node.set("partition", keys)
        if wrapped:
            parser.close()
    return node


def _key(parser: RelationGrammar) -> exp.Expr:
    key = parser.operand()
    if not isinstance(key, exp.Column):
        parser.fail("a column")
    return key


def _key_follows(parser: RelationGrammar) -> bool:
    """Whether the comma is one between keys: behind one between arguments stands DESCRIPTOR(…) or a label."""
    following, after = parser.following, parser.peek(2)
    return following.token_type in NAME_TOKENS and (
        after is None or after.token_type not in {T.L_PAREN, T.FARROW, T.STRING, T.NUMBER}
    )
