"""The errors of option resolution, in one voice; none of them holds the value of a secret or unknown option."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import OptionError
from penstock.options.keys import nearest
from penstock.options.matching import KeyTable
from penstock.options.resolved import show as shown
from penstock.options.schema import OptionSpec
from penstock.options.values import Choice, Duration
from penstock.secrets import MASK, REFERENCE_FORMS
from penstock.sql.statements import Option, OptionValue

_LONGEST_QUOTE = 40


def unknown_options(
    unknown: Sequence[Option], table: KeyTable, place: str, extra_hint: str | None = None
) -> OptionError:
    """One error for all unknown keys, with the nearest known one of each."""
    names = ", ".join(dict.fromkeys(option.key for option in unknown))
    close = {option.key: table.suggest(option.key) for option in unknown}
    pairs = [f"{found} (for {key})" if len(close) > 1 else found for key, found in close.items() if found]
    hints = [f"did you mean {', '.join(pairs)}?"] if pairs else []
    if extra_hint:
        hints.append(extra_hint)
    return OptionError(
        "UNKNOWN_OPTION",
        f"unknown option{'s' if len(close) > 1 else ''} of {place}: {names}",
        hint=" ".join(hints) or "remove it; the known options are listed below",
        detail="known options: " + ", ".join(sorted(table.slots)),
        span=unknown[0].key_span,
    )


def invalid_value(option: Option, expected: str, *, show: bool, hint: str | None = None) -> OptionError:
    """An option whose value cannot be used; the value is quoted only where it may be shown."""
    got = f", not {quoted(option.value)}" if show else ""
    return OptionError(
        "INVALID_OPTION",
        f"option {option.key} must be {expected}{got}",
        hint=hint,
        span=option.value_span,
    )


def value_hint(spec: OptionSpec, value: OptionValue) -> str | None:
    """What to do about a value that cannot be used: the word that was meant, a form that can be read, the default."""
    kind = spec.kind
    if isinstance(kind, Choice):
        return _choice_hint(kind, value)
    form = "write a number with its unit, such as '5 s'" if isinstance(kind, Duration) else None
    left_out = None if spec.default is None else f"leave it out for the default, {shown(spec.default)}"
    if spec.setting is not None:
        left_out = f"leave it out for what the setting {spec.setting} says"
    return ", or ".join(filter(None, (form, left_out))) or None


def _choice_hint(kind: Choice, value: OptionValue) -> str:
    """The word that was meant, or all there are to choose from."""
    close = nearest(value.reveal(), (*kind.values, *kind.synonyms)) if value.kind == "text" else ()
    return f"did you mean '{close[0]}'?" if close else f"choose one of {', '.join(kind.values)}"


def masked_value(option: Option) -> OptionError:
    """A mask pasted back where the secret should be."""
    return OptionError(
        "INVALID_OPTION",
        f"the value of option {option.key} is a mask, not a secret",
        hint=f"CREATE SECRET s AS '…' and write {option.key} = SECRET s, or write '${{env:NAME}}' for a variable",
        span=option.value_span,
    )


def malformed_reference(option: Option) -> OptionError:
    """What looks like a reference and is none; the value is not quoted, it may be half a secret."""
    return OptionError(
        "INVALID_OPTION",
        f"the value of option {option.key} has a reference that cannot be read",
        hint=f"references are {REFERENCE_FORMS}; keep a value that itself has ${{ or {{{{ with CREATE SECRET",
        span=option.value_span,
    )


def conflicting(first: Option, second: Option) -> OptionError:
    """Two spellings of one option with different values."""
    same = first.key == second.key
    return OptionError(
        "CONFLICTING_OPTIONS",
        f"option {second.key} is given twice with different values"
        if same
        else f"options {first.key} and {second.key} mean the same and have different values",
        hint="keep one of them",
        span=second.key_span,
    )


def quoted(value: OptionValue) -> str:
    """A public value as an error may quote it."""
    if value.kind == "interval":
        return "an interval"
    text = value.reveal()
    if text == MASK:
        return "a mask"
    cut = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"
    return f"'{cut}'" if value.kind == "text" else cut
