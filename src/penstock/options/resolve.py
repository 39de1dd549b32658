"""Options of sources and sinks: from the WITH clause (and RisingWave's FORMAT clause) to `ResolvedOptions`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from penstock.errors import OptionError, Span
from penstock.frozen import frozen
from penstock.options.choosing import choose_formats, find_connector, other_connector, rewrite_types
from penstock.options.encoding import clause_options, encode_options
from penstock.options.foreign import refuse_foreign_database, refuse_foreign_options
from penstock.options.matching import KeyTable, key_table
from penstock.options.problems import unknown_options
from penstock.options.reading import Given, defaults, read_options
from penstock.options.registry_use import check_registry
from penstock.options.resolved import PassedValue, ResolvedOptions
from penstock.options.schema import Changes, ConnectorSpec, Draft, FormatSpec, OptionSpec, Problem, Role
from penstock.options.schema_needs import check_schema
from penstock.options.settings import default_settings
from penstock.options.values import Deferred
from penstock.secrets import Secret
from penstock.sql.statements import Format, Name, Option

_STATEMENTS: Final[Mapping[Role, str]] = {"source": "SOURCE", "sink": "SINK", "lookup": "TABLE"}


@frozen
class _Request:
    """What the statement asks for."""

    role: Literal["source", "sink"]
    strict: bool
    relation: Name
    span: Span
    settings: Mapping[str, object]


def resolve_options(
    options: tuple[Option, ...],
    *,
    role: Literal["source", "sink"],
    relation: Name,
    format: Format | None = None,  # noqa: A002 -- the word of the SQL clause
    with_span: Span,
    default_connector: str = "topic",
    settings: Mapping[str, object] | None = None,
    strict_role: bool = False,
) -> ResolvedOptions:
    """Check and type the options of a relation; raises an error of our tree at the key or value concerned.

    Args:
        options: the WITH clause.
        role: what the statement asks for: 'sink' for CREATE SINK, 'source' for the others. CREATE STREAM and CREATE
            TABLE become sinks by `type = 'sink'` or by a connector that can only be written.
        relation: the name of the relation, for messages.
        format: RisingWave's FORMAT clause.
        with_span: where to point when something is missing.
        default_connector: the connector of a statement that names none and gives no key of Kafka.
        settings: the settings in force, by canonical key; the defaults of the registry when not given.
        strict_role: whether the statement's word leaves no choice (CREATE SOURCE).

    """
    request = _Request(role, strict_role, relation, with_span, {**default_settings(), **(settings or {})})
    chosen = find_connector((*options, *clause_options(format)), default_connector, with_span)
    connector = chosen.spec
    refuse_foreign_database(options, connector.name)
    written = choose_formats(rewrite_types(chosen.options), connector)
    table = key_table(connector, written.value, written.key, job=role == "sink")
    name = written.value.name if written.value else None
    readings = read_options((*written.options, *encode_options(format, name, table)), table)
    if readings.unknown:
        refuse_foreign_options(readings.unknown, connector.name, table)
        hint = None if chosen.named else other_connector(readings.unknown)
        raise unknown_options(readings.unknown, table, f"connector '{connector.name}'", hint)
    return _Resolution(request, connector, written.value, written.key, table, readings.given).result()


@frozen
class _Resolution:
    """One resolution under way: everything is known and typed, what remains are roles, defaults and checks."""

    request: _Request
    connector: ConnectorSpec
    format: FormatSpec | None
    key_format: FormatSpec | None
    table: KeyTable
    given: Mapping[str, Given]

    def result(self) -> ResolvedOptions:
        role, roles = self._roles()
        self._check_roles(role, roles)
        specs = {key: spec for key, spec in self.table.slots.items() if spec.roles & roles}
        values, from_settings = defaults(specs, self.given, self.request.settings)
        given = frozenset(self.given)
        draft = Draft(self.connector.name, role, MappingProxyType(values), given, self.request.settings)
        self._require(specs)
        try:
            self.connector.check(draft)
            formats = [each.name if each else None for each in (self.format, self.key_format)]
            check_registry(draft, *formats)
            check_schema(draft, *formats)
        except Problem as problem:
            raise self._error(problem) from None
        values.update(self.connector.derive(draft))
        return ResolvedOptions(
            connector=self.connector.name,
            format=self.format.name if self.format else None,
            role=role,
            roles=roles,
            values=MappingProxyType({**values, "connector": self.connector.name}),
            given=given,
            from_settings=from_settings,
            canonical=tuple(reading.canonical() for reading in self.given.values()),
            secret_keys=frozenset(key for key, reading in self.given.items() if reading.secret),
            passthrough=MappingProxyType(self._passthrough()),
            bounded=role != "sink" and self.connector.bounded(draft),
            changes=self._changes(role),
            available=self.connector.available and (self.format is None or self.format.available),
            event_time_field=self._text("event_time_field"),
            watermark_field=self._text("watermark_field"),
            notices=(*self.connector.notices(draft), *self._idle()),
        )

    def _idle(self) -> tuple[str, ...]:
        """What to tell of options that are taken and change nothing."""
        specs = {key: reading.match.spec for key, reading in self.given.items()}
        return tuple(f"option {key} changes nothing here: {spec.idle}" for key, spec in specs.items() if spec.idle)

    def _roles(self) -> tuple[Role, frozenset[Role]]:
        request, connector = self.request, self.connector
        named = self.given.get("type")
        wanted: Role = request.role
        if named is not None:
            wanted = _role(named.typed)
            if wanted != request.role and (request.strict or request.role == "sink"):
                raise OptionError(
                    "INVALID_OPTION",
                    f"'{request.relation}' is created as a {request.role}, and type says {wanted}",
                    hint=f"leave out type, or write CREATE {_STATEMENTS[wanted]}",
                    span=named.option.value_span,
                )
        elif wanted == "source" and "source" not in connector.roles and not request.strict:
            wanted = "sink"
        if wanted not in connector.roles:
            raise self._wrong_role(wanted, named)
        fixed = named is not None or request.strict or request.role == "sink"
        return wanted, frozenset({wanted}) if fixed else connector.roles

    def _wrong_role(self, wanted: Role, named: Given | None) -> OptionError:
        can = " or ".join(
            {"source": "read", "sink": "written", "lookup": "looked up"}[role] for role in sorted(self.connector.roles)
        )
        where = named or self.given.get("connector")
        return OptionError(
            "WRONG_OBJECT_KIND",
            f"connector '{self.connector.name}' cannot be a {wanted}",
            hint=f"it can only be {can}",
            span=where.option.value_span if where else self.request.span,
        )

    def _check_roles(self, role: Role, roles: frozenset[Role]) -> None:
        for reading in self.given.values():
            spec = reading.match.spec
            if not spec.roles & roles:
                kinds = " and ".join(f"{kind}s" for kind in sorted(spec.roles))
                raise OptionError(
                    "INVALID_OPTION",
                    f"option {reading.option.key} is for {kinds}, and '{self.request.relation}' is a {role}",
                    hint="leave it out",
                    span=reading.option.key_span,
                )

    def _require(self, specs: Mapping[str, OptionSpec]) -> None:
        missing = [key for key, spec in specs.items() if spec.required and key not in self.given]
        if missing:
            word = "options" if len(missing) > 1 else "option"
            raise OptionError(
                "MISSING_OPTION",
                f"connector '{self.connector.name}' needs the {word} {', '.join(missing)}",
                hint="add " + ", ".join(f"{key} = '…'" for key in missing),
                span=self.request.span,
            )

    def _error(self, problem: Problem) -> OptionError:
        about = self.given.get(problem.key) if problem.key else None
        return OptionError(
            problem.condition,
            problem.message,
            hint=problem.hint,
            span=about.option.key_span if about else self.request.span,
        )

    def _changes(self, role: Role) -> Changes:
        named = self.given.get("changes")
        if named is not None and named.typed in ("append", "upsert", "retract"):
            return _as_changes(named.typed)
        if self.format is not None and self.format.changes is not None:
            return self.format.changes
        return self.connector.sink_changes if role == "sink" else self.connector.changes

    def _passthrough(self) -> dict[str, PassedValue]:
        passed: dict[str, PassedValue] = {}
        for reading in self.given.values():
            if reading.match.passed is None:
                continue
            typed = reading.typed
            passed[reading.match.passed] = (
                typed if isinstance(typed, Deferred | Secret) else reading.match.spec.kind.write(typed).reveal()
            )
        return passed

    def _text(self, key: str) -> str | None:
        reading = self.given.get(key)
        return reading.typed if reading is not None and isinstance(reading.typed, str) else None


def _role(typed: object) -> Role:
    if typed == "sink":
        return "sink"
    return "lookup" if typed == "lookup" else "source"


def _as_changes(typed: object) -> Changes:
    if typed == "upsert":
        return "upsert"
    return "retract" if typed == "retract" else "append"
