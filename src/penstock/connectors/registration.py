"""Making a connector of your own known: to statements by its options, and to jobs by its class."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Final

from penstock.connectors.connector import Connector
from penstock.connectors.custom import CustomSource
from penstock.connectors.registry import add_source
from penstock.errors import InvalidArgument, ResolutionError
from penstock.options.models import options_of
from penstock.options.registry import register_connector as register_options
from penstock.options.schema import SOURCE, ConnectorSpec
from penstock.options.schemas.common import STREAM_SOURCE

if TYPE_CHECKING:
    from penstock.options.schema import OptionSpec


_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_SHOWN: Final = 40


def register_connector(name: str, cls: type[Connector], *, replace: bool = False) -> None:
    """Make a connector usable in `CREATE STREAM … WITH (connector = 'name', …)`.

    Register it before a database with such a stream is opened. A name that is taken is refused, unless `replace` is
    set.
    """
    _check_name(name)
    given: object = cls
    if not (isinstance(given, type) and issubclass(given, Connector)):
        raise ResolutionError(
            "INVALID_ARGUMENT", f"connector '{name}' is no class of Connector", hint="derive it from penstock.Connector"
        )
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise ResolutionError(
            "INVALID_ARGUMENT",
            f"connector '{name}' has no {', '.join(missing)}",
            hint="docs/custom-connectors.md says what each method does",
        )
    own = _options(cls)
    spec = ConnectorSpec(
        name=name,
        summary=(inspect.getdoc(cls) or f"connector {name}").splitlines()[0].rstrip("."),
        options=(*own, *STREAM_SOURCE),
        roles=SOURCE,
        bounded=lambda _: cls.bounded,
        available=True,
    )
    register_options(spec, replace=replace)
    add_source(name, CustomSource(name, cls, frozenset(option.key for option in own)))


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"register_connector() takes a text for name, not {type(name).__name__}")
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            "INVALID_ARGUMENT",
            f"register_connector(): name {name[:_SHOWN]!r} is not one that a connector can have",
            hint="letters, digits, _, - and ., a letter first",
        )


def _options(cls: type[Connector]) -> tuple[OptionSpec, ...]:
    declared = cls.options
    return options_of(declared, roles=SOURCE) if isinstance(declared, type) else tuple(declared)
