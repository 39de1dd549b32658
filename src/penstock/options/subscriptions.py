"""The options of SUBSCRIBE: in which form the changes of a view are told."""

from __future__ import annotations

from typing import Final, Literal, get_args

from penstock.frozen import frozen
from penstock.options.matching import KeyTable
from penstock.options.problems import unknown_options
from penstock.options.reading import read_options
from penstock.options.schema import OptionSpec
from penstock.options.values import Boolean, Choice, Names
from penstock.sql.statements import Name, Option

ChangeForm = Literal["append", "upsert", "retract", "debezium"]
CHANGE_FORMS: Final[tuple[ChangeForm, ...]] = get_args(ChangeForm)

SUBSCRIBE_OPTIONS: Final = (
    OptionSpec(
        "changes",
        Choice(CHANGE_FORMS, {"append-only": "append"}),
        "how changes are told: rows that are only added, the newest row of a key or its deletion, rows that come and "
        "rows that go, or Debezium's envelopes; each change with the row before and after when not given",
        literal=True,
    ),
    OptionSpec(
        "key",
        Names(),
        "the columns by which rows replace each other; the key of the view, also when given",
        literal=True,
    ),
    OptionSpec(
        "snapshot",
        Boolean(),
        "whether the rows that are there come first, as inserts; without them only changes from now on",
        default=True,
        literal=True,
    ),
)
_SUBSCRIBE: Final = KeyTable(SUBSCRIBE_OPTIONS)


@frozen
class SubscribeOptions:
    """What a SUBSCRIBE asks for. None as form: changes as the view has them; `key` is empty where none is given.
    `snapshot`: the rows that are there come first."""

    changes: ChangeForm | None = None
    key: tuple[str, ...] = ()
    snapshot: bool = True


def subscribe_table() -> KeyTable:
    """The keys that the WITH clause of a SUBSCRIBE may give."""
    return _SUBSCRIBE


def resolve_subscribe_options(options: tuple[Option, ...], view: Name | None) -> SubscribeOptions:
    """Check and type the options of a SUBSCRIBE; None: to a query."""
    readings = read_options(options, _SUBSCRIBE)
    if readings.unknown:
        raise unknown_options(readings.unknown, _SUBSCRIBE, f"SUBSCRIBE TO {view or 'a query'}")
    given = {slot: found.typed for slot, found in readings.given.items()}
    key = given.get("key")
    return SubscribeOptions(
        next((form for form in CHANGE_FORMS if form == given.get("changes")), None),
        tuple(map(str, key)) if isinstance(key, tuple) else (),
        snapshot=given.get("snapshot") is not False,
    )
