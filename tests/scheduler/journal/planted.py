"""Objects in which every field that can hold a text holds a secret."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from msgspec import inspect

if TYPE_CHECKING:
    import msgspec

SECRET: Final = "wombat"
"""Stands in every text, and is no part of an alias or of a word that is kept."""

FORMS: Final = (
    "{}",
    "{}-0",
    "0{}",
    "{}.example.com",
    "{}.example.com/gpu",
    "a/b/{}",
    "{} and more",
    "Ünïcode {} ☃",
    "registry.example.com:5000/{}:v1",
    "{}@sha256:0123",
    "hugepages-{}",
    "attachable-volumes-{}",
    "requests.{}/a",
    "kubernetes.io/{}",
    "deviceclass.resource.kubernetes.io/{}",
    "aws://zone/vol-{}",
    "azure-storage-account-{}-secret",
    "projects/UNSPECIFIED/zones/{}/disks/d",
    "group#account#{}#volume#namespace",
    "{0}__{0}-b",
    "1.2.3-{0}+build.{0}",
    "2026-11-23T12:00:00Z {}",
    "10Gi{}",
    "12{}",
    "{}=",
    "container-1-request-1{}",
    'device.driver == "{0}" && device.attributes["{0}"].{0} == "{0}" // {0}',
    'device.attributes["{0}"].x.startsWith("{0}")',
    '["{0}"].exists({0}, device.driver == {0})',
    "device.driver == '{}",
    "{}\n",
    " {}",
    "{}" + "x" * 300,
)
"""What secrets look like: all that some rule takes apart."""


@st.composite
def secrets(draw: st.DrawFn) -> str:
    """Draw a text with the secret in it."""
    return draw(st.sampled_from(FORMS)).format(SECRET + draw(st.sampled_from(["", "s", "1"])))


def planted(struct: type[msgspec.Struct], form: str, choice: int) -> dict[str, Any]:
    """Return an object with a secret in all of its fields, as it stands in a journal.

    Parameters
    ----------
    choice
        Which type a field has that can have several.
    """
    numbers = count()

    def text() -> str:
        return form.format(f"{SECRET}{next(numbers)}")

    def filled(kind: inspect.Type) -> Any:
        if isinstance(kind, inspect.StructType):
            return {field.encode_name: filled(field.type) for field in kind.fields}
        if isinstance(kind, inspect.VarTupleType):
            return [filled(kind.item_type), filled(kind.item_type)]
        if isinstance(kind, inspect.DictType):
            return {text(): filled(kind.value_type)}
        if isinstance(kind, inspect.UnionType):
            told = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
            return filled(told[choice % len(told)])
        if isinstance(kind, inspect.StrType):
            return text()
        if isinstance(kind, inspect.AnyType):
            return [text()]
        return {inspect.IntType: 7, inspect.FloatType: 0.5, inspect.BoolType: True}[type(kind)]

    found: dict[str, Any] = filled(inspect.type_info(struct))
    return found
