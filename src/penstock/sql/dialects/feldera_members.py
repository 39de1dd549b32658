"""Members of Feldera's JSON: those that are known, and each as an option."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from penstock.errors import OptionError
from penstock.secrets import Secret
from penstock.sql.dialects.feldera import refuse_at
from penstock.sql.dialects.json_places import Member, Node
from penstock.sql.statements import Option, OptionValue


def members(node: Node) -> dict[str, Member]:
    """The members of an object; INVALID_OPTION for anything else."""
    if not isinstance(node.value, dict):
        raise OptionError(
            "INVALID_OPTION", "an object is wanted in the option connectors", hint="write {…}", span=node.span
        )
    return node.members


def known(node: Node, names: frozenset[str], later: Mapping[str, str], place: str) -> dict[str, Member]:
    """The members of an object whose names are all known; those of `later` are refused with what to do instead."""
    found = members(node)
    for name, member in found.items():
        if name in later:
            refuse_at(f"{name} in {place}", later[name], member.key_span)
        if name not in names:
            close = difflib.get_close_matches(name, [*names, *later], n=1, cutoff=0.6)
            raise OptionError(
                "UNKNOWN_OPTION",
                f"unknown member of {place} in the option connectors: {name}",
                hint=f"did you mean {close[0]}?" if close else f"known members: {', '.join(sorted(names))}",
                span=member.key_span,
            )
    return found


def required(found: Mapping[str, Member], name: str, node: Node) -> Member:
    """A member that must be there."""
    if name not in found:
        raise OptionError(
            "MISSING_OPTION",
            f"the option connectors needs the member {name}",
            hint=f'add "{name}": …',
            span=node.span,
        )
    return found[name]


def member_text(member: Member) -> str:
    """The text of a member; empty where it is none."""
    return member.node.value if isinstance(member.node.value, str) else ""


def option(member: Member, key: str, text: str) -> Option:
    """A member as an option with this text."""
    return Option(key, OptionValue("text", Secret(text)), member.key_span, member.node.span)


def scalar(member: Member, key: str) -> Option:
    """A text, a number or true and false as an option."""
    value = member.node.value
    if isinstance(value, bool):
        made = OptionValue("boolean", Secret("true" if value else "false"))
    elif isinstance(value, int | float):
        made = OptionValue("number", Secret(str(value)))
    elif isinstance(value, str):
        made = OptionValue("text", Secret(value))
    else:
        raise OptionError(
            "INVALID_OPTION",
            "a text, a number, true or false is wanted in the option connectors",
            hint="leave the member out where it has no value",
            span=member.key_span,
        )
    return Option(key, made, member.key_span, member.node.span)
