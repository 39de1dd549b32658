"""Hints in `/*+ … */`: behind SELECT (Flink, Spark), and behind the name of a table that is read (Flink).

A comment that begins with a plus speaks to the planner. OPTIONS says how this one reading goes, STATE_TTL how long
state is kept: both change what a query gives, so they are done or refused. The others choose between ways to the same
rows, which Penstock finds by itself: they are read, and the plan tells that they are not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import NotYetError, OptionError, UnsupportedError
from penstock.secrets import Secret
from penstock.sql.nodes import ReadOption, ReadOptions
from penstock.sql.reading import WORD_TOKENS
from penstock.sql.spans import token_span
from penstock.sql.statements import Option, OptionValue

if TYPE_CHECKING:
    from penstock.errors import Span
    from penstock.sql.reading import Reader

T = TokenType

# What a reading may say of itself, none of it secret: where it begins, and for whom. Whatever else is the table's own.
_OF_A_READING: Final = frozenset(
    {"start", "start_timestamp", "start_offsets", "group_id", "source.offset", "kafka.scan.startup.mode"}
    | {"scan.startup.mode", "scan.startup.timestamp-millis", "scan.startup.specific-offsets", "properties.group.id"}
)
_ADVICE: Final = frozenset(
    {"BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "MERGEJOIN", "SHUFFLE_MERGE", "SHUFFLE_HASH", "NEST_LOOP"}
    | {"SHUFFLE_REPLICATE_NL", "COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE", "LOOKUP", "JOIN"}
    | {"MULTI_JOIN", "SKEW", "NO_BROADCAST_HASH", "NO_SHUFFLE_HASH"}
)
_ADVISED: Final = "advised"  # of a SELECT, in its meta: the names of hints that are not needed
_TTL: Final = "state_ttl"  # the same: how long state is kept, and where that stands
_WITH: Final = "CREATE MATERIALIZED VIEW … WITH (state_ttl = '1 day') AS SELECT … bounds all that a query keeps"


def table_options(p: Reader) -> ReadOptions | None:
    """/*+ OPTIONS('key' = 'value', …) */ behind the name of a table; None where no hint stands there."""
    if not p.at(T.HINT):
        return None
    first = p.current
    p.step()
    if not p.word("OPTIONS"):
        p.fail("OPTIONS", "other hints stand behind SELECT")
    found = p.bracketed(lambda: _read_option(p))
    if not found:
        p.step_back()
        p.fail("an option")
    p.expect_symbol(T.HINT, "*/")
    node = ReadOptions(expressions=list(found)).update_positions(first)
    node.meta["end"] = p.taken.end
    return node


def _read_option(p: Reader) -> ReadOption:
    first = p.current
    key = p.string("the key of an option, in quotes")
    if key.lower() not in _OF_A_READING:
        raise OptionError(
            "INVALID_OPTION",
            f"OPTIONS of a reading cannot give {key}",
            hint="it says where the reading begins: 'scan.startup.mode', 'scan.startup.timestamp-millis', "
            "'scan.startup.specific-offsets', 'properties.group.id'; other options belong into the WITH clause of the "
            "table, and a second table can be created over the same topic",
            span=token_span(first),
        )
    p.expect_symbol(T.EQ, "=")
    at = p.current
    value = p.string("a value, in quotes")
    return ReadOption(this=_literal(key, first), expression=_literal(value, at))


def _literal(text: str, token: Token) -> exp.Literal:
    return exp.Literal.string(text).update_positions(token)


def select_hints(p: Reader) -> dict[str, object]:
    """The hints behind SELECT, as what the meta of its node is to hold."""
    found: dict[str, object] = {}
    advised: list[str] = []
    while p.symbol(T.HINT):
        while not p.symbol(T.HINT):
            token = p.current
            if token.token_type not in WORD_TOKENS:
                p.fail("the name of a hint")
            p.step()
            name = token.text.upper()
            if name == "STATE_TTL":
                found[_TTL] = _state_ttl(p, token)
            elif name in _ADVICE:
                advised.append(name)
                _skip_arguments(p)
            else:
                raise _no_hint(name, token)
            p.symbol(T.COMMA)
    if advised:
        found[_ADVISED] = tuple(advised)
    return found


def _no_hint(name: str, token: Token) -> UnsupportedError:
    if name == "OPTIONS":
        return UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            "OPTIONS stands behind the name of the table that it is about",
            hint="write FROM t /*+ OPTIONS('scan.startup.mode' = 'earliest-offset') */",
            span=token_span(token),
        )
    return UnsupportedError(
        "UNSUPPORTED_CLAUSE",
        f"there is no hint {name}",
        hint="remove it; STATE_TTL is done, and hints that choose how a join is done are read and not needed",
        span=token_span(token),
    )


def _skip_arguments(p: Reader) -> None:
    depth = 0
    while p.current and not p.at(T.HINT):
        if p.at(T.L_PAREN):
            depth += 1
        elif p.at(T.R_PAREN):
            depth -= 1
        elif depth == 0:
            return
        p.step()


def _state_ttl(p: Reader, word: Token) -> tuple[str, Span, Span, frozenset[str]]:
    """('o' = '1d', 'c' = '1d'): the one length of time, where the hint and the length stand, and for which tables."""
    pairs = p.bracketed(lambda: _length(p))
    lengths = {value.text for _, value in pairs}
    if len(lengths) != 1:
        raise NotYetError(
            "CLAUSE_NOT_YET",
            "STATE_TTL with a length of its own for each table is not there yet",
            hint=f"give them the same length; {_WITH}",
            span=token_span(word, p.taken),
        )
    first = pairs[0][1]
    return first.text, token_span(word), token_span(first), frozenset(key.casefold() for key, _ in pairs)


def _length(p: Reader) -> tuple[str, Token]:
    key = p.string("the name of a table, in quotes")
    p.expect_symbol(T.EQ, "=")
    value = p.current
    p.string("a length of time, in quotes")
    return key, value


def advised(select: exp.Select) -> tuple[str, ...]:
    """The hints behind a SELECT that are not needed."""
    found: tuple[str, ...] = select.meta.get(_ADVISED, ())
    return found


def state_ttl(tree: exp.Expr, *, kept: bool) -> Option | None:
    """The option that STATE_TTL in a query means; refused where it would not mean what it says.

    `kept`: the query is that of a materialized view, whose state the view store can forget.
    """
    found: Option | None = None
    for select in tree.find_all(exp.Select):
        if _TTL not in select.meta:
            continue
        text, at, value_at, names = select.meta[_TTL]
        option = Option(_TTL, OptionValue("text", Secret(text)), at, value_at)
        if not kept:
            raise _not_there("in a query that is no materialized view", option)
        if select is not tree or tree.args.get("with_") is not None:
            raise _not_there("inside of a query", option)
        tables = _tables(select)
        if tables is None:
            raise _not_there("over subqueries", option)
        if names != tables:
            raise _not_there("of other tables than all that the query reads", option)
        found = option
    return found


def _tables(select: exp.Select) -> frozenset[str] | None:
    """The names under which a SELECT reads tables; None where it reads anything else."""
    from_ = select.args.get("from_")
    items = [*([from_.this] if from_ is not None else []), *(join.this for join in select.args.get("joins") or ())]
    if not all(isinstance(item, exp.Table) for item in items):
        return None
    return frozenset((item.alias or item.name).casefold() for item in items)


def _not_there(where: str, option: Option) -> NotYetError:
    return NotYetError("CLAUSE_NOT_YET", f"STATE_TTL {where} is not there yet", hint=_WITH, span=option.key_span)
