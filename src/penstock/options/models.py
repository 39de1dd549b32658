"""A connector's options as a pydantic model: how a third party declares them with types of its own choosing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.frozen import frozen
from penstock.options.schema import ANY, OptionSpec, Role
from penstock.options.values import text_value
from penstock.secrets import carries_credentials
from penstock.sql.statements import OptionValue

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo


@frozen
class Validated:
    """A kind of value that a field of a pydantic model checks."""

    name: str
    model: type[BaseModel]
    field: str

    def read(self, value: OptionValue) -> object:
        """The value as the field has it; pydantic reads numbers and booleans out of text by itself."""
        from pydantic import SecretStr, ValidationError

        try:
            # The partial model is checked field by field, so that the error can point at its option.
            typed = self.model.__pydantic_validator__.validate_assignment(
                self.model.model_construct(), self.field, value.reveal()
            )
        except ValidationError as error:
            raise ValueError(_expected(error, self.field)) from None
        found = getattr(typed, self.field)
        return found.get_secret_value() if isinstance(found, SecretStr) else found

    def write(self, typed: object) -> OptionValue:
        return text_value(str(typed))

    def sensitive(self, typed: object) -> bool:
        """Whether the value, whatever type the model gives it, has a user, a password or parameters in it."""
        return carries_credentials(str(typed))


def options_of(
    model: type[BaseModel], *, aliases: Mapping[str, tuple[str, ...]] | None = None, roles: frozenset[Role] = ANY
) -> tuple[OptionSpec, ...]:
    """The options that a pydantic model declares: one a field.

    The field's description is the documentation, its default the default; a field without one is required, and a
    `SecretStr` is secret. `aliases` gives other spellings by field.
    """
    return tuple(
        OptionSpec(
            key=info.alias or name,
            kind=Validated(_type_name(info), model, name),
            summary=info.description or name.replace("_", " "),
            default=None if info.is_required() else info.get_default(call_default_factory=True, validated_data={}),
            aliases=(aliases or {}).get(name, ()),
            roles=roles,
            secret=_is_secret(info),
            required=info.is_required(),
        )
        for name, info in model.model_fields.items()
    )


def _is_secret(info: FieldInfo) -> bool:
    from pydantic import SecretStr

    return SecretStr in (info.annotation, *getattr(info.annotation, "__args__", ()))


def _type_name(info: FieldInfo) -> str:
    annotation: Any = info.annotation
    return str(getattr(annotation, "__name__", annotation)).replace("typing.", "")


def _expected(error: Exception, field: str) -> str:
    """Pydantic's word for what it wanted, without the input it quotes."""
    from pydantic import ValidationError

    assert isinstance(error, ValidationError)
    messages = [item["msg"] for item in error.errors(include_input=False, include_url=False, include_context=False)]
    return (
        f"a value that fits: {messages[0][:1].lower()}{messages[0][1:]}" if messages else f"a value that fits {field}"
    )
