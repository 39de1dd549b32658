"""Operations: jobs, watermarks, subscriptions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.errors import ResolutionError
from penstock.secrets import Secret
from penstock.sql.dialects import materialize
from penstock.sql.grammar.options import key, value
from penstock.sql.parser import PenstockParser
from penstock.sql.spans import token_span
from penstock.sql.statements import (
    AdvanceWatermark,
    ControlJob,
    Name,
    Option,
    OptionValue,
    Query,
    RetryDeadLetters,
    Subscribe,
    SubscribeQuery,
)

T = TokenType
# What Materialize says of the times between which changes are told, and in which order.
_TIMES_OF_SUBSCRIBE: Final = {
    ("AS", "OF"): (
        "changes have numbers here: SUBSCRIBE TO view SINCE n goes on behind one; its rows of then are not kept, a job "
        "can be put back to a checkpoint"
    ),
    ("UP", "TO"): "leave it out, and stop reading at the change you want: each has its number and its batch",
    ("WITHIN",): "leave it out: changes come in the order of their batches; sort those of one batch as you read them",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def control(p: PenstockParser) -> ControlJob:
    """PAUSE | RESUME | RESTART | STOP [JOB] name [WITH DRAIN]"""
    action = p.any_word("PAUSE", "RESUME", "RESTART", "STOP")
    if action is None:
        p.fail("PAUSE, RESUME, RESTART or STOP")
    if p.ahead("JOB") and not p.at(T.IDENTIFIER):
        p.step()
    name = job_name(p)
    first = p.current
    if p.word("FROM", "SAVEPOINT") or p.word("WITH", "SAVEPOINT"):
        p.not_yet("savepoints are not there yet", "use STOP JOB … WITH DRAIN, and RESUME", first, "STATEMENT_NOT_YET")
    drain = action == "STOP" and p.word("WITH", "DRAIN")
    return ControlJob(action=action, name=name, drain=drain)  # type: ignore[arg-type]


def job_name(p: PenstockParser) -> Name:
    """The name of a job, quoted as a name or as text"""
    token = p.current
    if token.token_type == T.STRING:
        p.step()
        return Name(token.text, True, token_span(token))
    if not token:
        p.fail("the name of a job", 'SHOW JOBS lists them; quote one that is called "job" itself')
    return p.name("the name of a job")


def advance(p: PenstockParser) -> AdvanceWatermark:
    """ADVANCE WATERMARK FOR stream TO TIMESTAMP '…'"""
    p.expect("ADVANCE", "WATERMARK", "FOR")
    stream = p.name("the name of a stream")
    p.expect("TO")
    p.word("TIMESTAMP")
    token = p.current
    text = p.string("TIMESTAMP '…'")
    try:
        when = datetime.fromisoformat(text.strip())
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        micros = (when - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise ResolutionError(
            "INVALID_ARGUMENT",
            "this is no point in time",
            hint="write TIMESTAMP '2024-01-31 12:00:00', in UTC",
            span=token_span(token),
        ) from None
    return AdvanceWatermark(stream=stream, timestamp_us=micros)


def retry(p: PenstockParser) -> RetryDeadLetters:
    """RETRY DEAD LETTERS [FOR job] [WHERE condition over the columns of penstock.dead_letters]"""
    p.expect("RETRY", "DEAD", "LETTERS")
    job = job_name(p) if p.word("FOR") else None
    first = p.current
    if not p.word("WHERE"):
        return RetryDeadLetters(job=job)
    tree = exp.Select(
        expressions=[exp.column(name) for name in ("job", "stream", "partition", "offset")],
        from_=exp.From(this=exp.table_("dead_letters", db="penstock")),
        where=exp.Where(this=p.an_expression()),
    )
    return RetryDeadLetters(job=job, chosen=Query(tree, span=p.since(first)))


def subscribe(p: PenstockParser) -> Subscribe | SubscribeQuery:
    """SUBSCRIBE [TO] view | (query) [ENVELOPE UPSERT | DEBEZIUM (KEY (…))] [WITH (changes = …)] [SINCE n]; a query that
    nobody keeps has no changes of before to go on behind."""
    p.expect("SUBSCRIBE")
    p.word("TO")
    if p.current.token_type == T.L_PAREN:
        query = p.query()
        found = _subscribe_options(p)
        if p.ahead("SINCE"):
            p.fail(
                "the end of the statement",
                "a query has the changes that come while it is subscribed to; keep it as a "
                "materialized view to go on behind one of them",
            )
        return SubscribeQuery(query=query, options=found)
    target = p.name("the name of a view")
    found = _subscribe_options(p)
    since = None
    if p.word("SINCE"):
        if p.current.token_type != T.NUMBER or not p.current.text.isdecimal() or len(p.current.text) > 18:
            p.fail("a whole number")
        since = int(p.current.text)
        p.step()
    return Subscribe(target=target, options=found, since=since)


def _subscribe_options(p: PenstockParser) -> tuple[Option, ...]:
    """ENVELOPE … and WITH (…), one or both; Materialize's clauses of times, which stand behind them, are refused."""
    found: tuple[Option, ...] = ()
    while p.ahead("ENVELOPE") or p.ahead("WITH"):
        found += _envelope(p) if p.ahead("ENVELOPE") else _subscribe_with(p)
    for words, hint in _TIMES_OF_SUBSCRIBE.items():
        if p.ahead(*words):
            materialize.refuse(f"SUBSCRIBE … {' '.join(words)}", hint, p.current)
    return found


def _subscribe_with(p: PenstockParser) -> tuple[Option, ...]:
    """WITH (changes = …, SNAPSHOT, PROGRESS = false); Materialize needs no = and no value where it is true."""
    p.expect("WITH")
    return tuple(found for found in p.bracketed(lambda: _subscribe_option(p)) if found is not None)


def _subscribe_option(p: PenstockParser) -> Option | None:
    first = p.current
    name = key(p)
    span = p.since(first)  # of a switch without a value it stands for that, too
    switch = name.lower() in ("snapshot", "progress")
    if not switch or p.at(T.EQ):
        p.expect_symbol(T.EQ, "=")
    at = p.current
    given, place = OptionValue("boolean", Secret("true")), span
    if not (switch and at.token_type in (T.COMMA, T.R_PAREN)):
        given = value(p)
        place = p.since(at)
    if name.lower() != "progress":
        return Option(name, given, span, place)
    if given.reveal().lower() != "false":
        materialize.refuse(
            "SUBSCRIBE … WITH (PROGRESS)",
            "each change has the watermark of its batch; between changes penstock.watermarks has that of the job",
            first,
        )
    return None


def _envelope(p: PenstockParser) -> tuple[Option, ...]:
    """Materialize's way to ask for a form of changes: ENVELOPE UPSERT (KEY (a, b)), ENVELOPE DEBEZIUM (KEY (a, b))"""
    first = p.current
    if not p.word("ENVELOPE"):
        return ()
    form = p.any_word("UPSERT", "DEBEZIUM")
    if form is None:
        p.fail("UPSERT or DEBEZIUM")
    key: tuple[Name, ...] = ()
    if p.symbol(T.L_PAREN):
        p.expect("KEY")
        key = p.bracketed(lambda: p.name("a column of the key"))
        p.expect_symbol(T.R_PAREN, ")")
    span = p.since(first)
    given = {"changes": form.lower(), **({"key": ", ".join(name.text for name in key)} if key else {})}
    return tuple(Option(name, OptionValue("text", Secret(text)), span, span) for name, text in given.items())
