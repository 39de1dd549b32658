"""What statements about jobs, event time, settings and the catalog do to a session: most only name what is there."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.model import MaterializedViewDefinition, SinkDefinition, SourceDefinition
from penstock.errors import OptionError, ResolutionError
from penstock.options import resolve_setting, setting_key, setting_notice
from penstock.options.settings import CONNECT_ONLY
from penstock.plan.analysis import Analysis, by_statement
from penstock.plan.queries import plan_output
from penstock.plan.session import Session
from penstock.sql import statements as s


@by_statement.register
def _explain_watermark(statement: s.ExplainWatermark, session: Session) -> Analysis:
    _check_job(statement.name, session)
    return Analysis(session)


@by_statement.register(s.Show)
def _show(statement: s.Show, session: Session) -> Analysis:
    del statement
    return Analysis(session)


@by_statement.register
def _show_create(statement: s.ShowCreate, session: Session) -> Analysis:
    if statement.kind in ("FUNCTION", "SECRET"):
        find: Callable[[s.Name], object] = (
            session.catalog.find_function if statement.kind == "FUNCTION" else session.catalog.get_secret
        )
        if find(statement.name) is None:
            raise ResolutionError(
                "UNKNOWN_FUNCTION", f"there is no function {statement.name} of yours", span=statement.name.span
            )
        return Analysis(session)
    if statement.kind == "CONNECTION":
        session.catalog.get_connection(statement.name)
        return Analysis(session)
    if session.catalog.find_system(statement.name.text) is not None:
        raise ResolutionError(
            "WRONG_OBJECT_KIND",
            f"{statement.name} is a system table, which no statement makes",
            hint=f"DESCRIBE {statement.name} shows its columns",
            span=statement.name.span,
        )
    return _named(statement.name, session)


@by_statement.register
def _describe(statement: s.Describe, session: Session) -> Analysis:
    return _named(statement.name, session)


def _named(name: s.Name, session: Session) -> Analysis:
    if session.catalog.find_system(name.text) is None and not session.lenient:
        session.catalog.get(name)
    return Analysis(session)


# jobs, event time, settings


@by_statement.register
def _control(statement: s.ControlJob, session: Session) -> Analysis:
    if statement.if_exists and not any(job.casefold() == statement.name.text.casefold() for job in session.jobs):
        return Analysis(session, notices=(f'there is no job "{statement.name}" to drop',))
    _check_job(statement.name, session)
    if statement.action != "DROP":
        return Analysis(session)
    owner = session.catalog.find(statement.name)
    if isinstance(owner, MaterializedViewDefinition | SinkDefinition) and owner.query is not None:
        raise ResolutionError(
            "WRONG_OBJECT_KIND",
            f"job {owner.name} is that of {owner.kind} {owner.name}, and goes with it",
            hint=f"DROP {owner.kind.upper()} {owner.name}, or STOP JOB {owner.name} to keep what is there",
            span=statement.name.span,
        )
    return Analysis(session.without_job(statement.name.text))


@by_statement.register
def _retry(statement: s.RetryDeadLetters, session: Session) -> Analysis:
    if statement.job is not None:
        _check_job(statement.job, session)
    if statement.chosen is None:
        return Analysis(session)
    return Analysis(session, (plan_output(session, statement.chosen, "result"),))


def _check_job(name: s.Name, session: Session) -> None:
    from penstock.plan.scope import nearest

    if session.lenient or any(job.casefold() == name.text.casefold() for job in session.jobs):
        return
    near = nearest(name.text, list(session.jobs))
    raise ResolutionError(
        "UNKNOWN_JOB",
        f'there is no job "{name}"',
        hint=f'did you mean "{near}"?'
        if near
        else "a view's job has the view's name, that of INSERT INTO k is insert_k",
        span=name.span,
    )


@by_statement.register
def _advance(statement: s.AdvanceWatermark, session: Session) -> Analysis:
    found = session.catalog.find(statement.stream)
    if found is None:
        if session.lenient:
            return Analysis(session)
        found = session.catalog.get(statement.stream)
    if not isinstance(found, SourceDefinition) or found.bounded:
        kind = "bounded table" if isinstance(found, SourceDefinition) else found.kind
        raise ResolutionError(
            "WRONG_OBJECT_KIND",
            f'"{found.name}" is a {kind}, and only a stream has a watermark of its own',
            hint="name the stream that the job reads",
            span=statement.stream.span,
        )
    return Analysis(session)


@by_statement.register
def _set(statement: s.SetSetting, session: Session) -> Analysis:
    key, value = resolve_setting(statement.key, statement.value, statement.key_span, statement.value_span)
    if key in CONNECT_ONLY:
        raise OptionError(
            "INVALID_SETTING",
            f"setting {key} cannot be changed by a statement",
            hint=f"give it when the database is opened: connect({key} = …)",
            span=statement.key_span,
        )
    notice = setting_notice(statement.key, statement.value)
    return Analysis(session.with_setting(key, value), notices=(notice,) if notice else ())


@by_statement.register
def _reset(statement: s.ResetSetting, session: Session) -> Analysis:
    key = setting_key(statement.key, statement.key_span) if statement.key is not None else None
    return Analysis(session.without_setting(key))
