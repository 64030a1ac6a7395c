"""Decode plain data into typed structs strictly, and report every error, not only the first.

A name that the struct does not know, a missing required field, a value of the wrong type or out
of its bounds is an error. As in Kubernetes' own reader, null stands for "not given", a number
without fraction is an integer however it is written, bytes are base64 and durations are Go's.

*Source*: k8s.io/apimachinery pkg/runtime/serializer/json (strict decoding); sigs.k8s.io/json.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import inspect

from plugins.framework.go_duration import GoDuration, parse_go_duration
from scheduler.config.config_error import Mistake, child, did_you_mean, item, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

_AT_PATH: Final = re.compile(r"^(?P<why>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
"""How msgspec says where a value stands."""

_WIDEST: Final = 2**31 - 1
"""From here on a bound is that of the type, which is not worth mentioning."""

_RETIRED: Final[Mapping[str, str]] = {
    "healthzBindAddress": "removed in v1; use --bind-address",
    "metricsBindAddress": "removed in v1; use --bind-address",
    "algorithmSource": "removed; a profile's plugins take its place",
    "hardPodAffinitySymmetricWeight": "moved to hardPodAffinityWeight of InterPodAffinityArgs",
    "schedulerName": "moved into profiles",
    "unreserve": "removed; reserve plugins undo what they reserved",
}
"""Fields of former versions, and what became of them."""


def cleaned(data: object, kind: type, path: str) -> tuple[Any, list[Mistake]]:
    """Return ``data`` as :func:`msgspec.convert` can take it for ``kind``, and all mistakes.

    Nulls that stand for "not given" are left out, whole numbers become ints and durations
    become :class:`GoDuration`; everything else stays plain. Where there are mistakes, what is
    returned is of no use.

    Parameters
    ----------
    data
        What a document says.
    kind
        A msgspec Struct type. Whether it forbids unknown fields is its own choice.
    path
        Where the data stands, for the mistakes.
    """
    cleaner = _Cleaner()
    value = cleaner.value(data, inspect.type_info(kind), path)
    return value, cleaner.mistakes


def decode(data: object, kind: type[T], path: str) -> tuple[T | None, list[Mistake]]:
    """Return ``data`` as a ``kind``, or None and all mistakes.

    Parameters are those of :func:`cleaned`.
    """
    value, mistakes = cleaned(data, kind, path)
    return (None, mistakes) if mistakes else convert_cleaned(value, kind, path)


def convert_cleaned(value: object, kind: type[T], path: str) -> tuple[T | None, list[Mistake]]:
    """Return what :func:`cleaned` returned without mistakes as a ``kind``.

    A mistake is still possible where only the type itself can tell, as for a choice of types.
    """
    try:
        return msgspec.convert(value, kind), []
    except msgspec.ValidationError as error:
        return None, [_translated(error, path)]


def _translated(error: msgspec.ValidationError, path: str) -> Mistake:
    found = _AT_PATH.match(str(error))
    if found is None:
        return Mistake(path, str(error))
    return Mistake(f"{path}{found['path'] or ''}".lstrip("."), found["why"])


class _Cleaner:
    """Walks data and type side by side."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def _wrong(self, path: str, why: str) -> None:
        self.mistakes.append(Mistake(path, why))

    def value(self, data: object, info: inspect.Type, path: str) -> object:
        """Return ``data`` made fit for ``info``."""
        if isinstance(info, inspect.UnionType):
            return self._union(data, info, path)
        if isinstance(info, inspect.StructType):
            return self._struct(data, info, path)
        if isinstance(info, (inspect.ListType, inspect.VarTupleType, inspect.SetType)):
            return self._list(data, info.item_type, path)
        if isinstance(info, inspect.DictType):
            return self._dict(data, info.value_type, path)
        return self._leaf(data, info, path)

    def _union(self, data: object, info: inspect.UnionType, path: str) -> object:
        options = [each for each in info.types if not isinstance(each, inspect.NoneType)]
        if data is None and len(options) < len(info.types):
            return None
        # A choice between types is msgspec's to make.
        return self.value(data, options[0], path) if len(options) == 1 else data

    def _struct(self, data: object, info: inspect.StructType, path: str) -> object:
        if not isinstance(data, Mapping):
            self._wrong(path, f"must be a mapping, not {shown(data)}")
            return None
        fields = {field.encode_name: field for field in info.fields}
        result: dict[str, object] = {}
        for key, value in data.items():
            field = fields.get(key)
            where = child(path, key)
            if field is None:
                if info.forbid_unknown_fields:
                    self._wrong(where, _unknown(key, fields))
            elif value is not None:
                result[key] = self.value(value, field.type, where)
        for name, field in fields.items():
            if field.required and data.get(name) is None:
                self._wrong(child(path, name), "is required")
        return result

    def _list(self, data: object, item_type: inspect.Type, path: str) -> object:
        if not isinstance(data, Sequence) or isinstance(data, str):
            self._wrong(path, f"must be a list, not {shown(data)}")
            return None
        return [self.value(each, item_type, item(path, index)) for index, each in enumerate(data)]

    def _dict(self, data: object, value_type: inspect.Type, path: str) -> object:
        if not isinstance(data, Mapping):
            self._wrong(path, f"must be a mapping, not {shown(data)}")
            return None
        return {key: self.value(each, value_type, child(path, key)) for key, each in data.items()}

    def _leaf(self, data: object, info: inspect.Type, path: str) -> object:
        if isinstance(info, inspect.BoolType):
            if not isinstance(data, bool):
                self._wrong(path, f"must be true or false, not {shown(data)}")
        elif isinstance(info, (inspect.IntType, inspect.FloatType)):
            return self._number(data, info, path)
        elif isinstance(info, inspect.StrType):
            if not isinstance(data, str):
                self._wrong(path, f"must be text, not {shown(data)}")
        elif isinstance(info, inspect.BytesType):
            return self._base64(data, path)
        elif isinstance(info, inspect.CustomType) and info.cls is GoDuration:
            return self._duration(data, path)
        return data

    def _number(self, data: object, info: inspect.IntType | inspect.FloatType, path: str) -> object:
        whole = isinstance(info, inspect.IntType)
        if isinstance(data, float) and whole and data.is_integer():
            data = int(data)
        if isinstance(data, bool) or not isinstance(data, int if whole else (int, float)):
            self._wrong(path, f"must be a {'whole ' * whole}number, not {shown(data)}")
            return None
        too_low = info.ge is not None and data < info.ge
        too_high = info.le is not None and data > info.le
        if too_low or too_high:
            self._wrong(path, f"must be {_bounds(info.ge, info.le, too_low)}, not {data}")
        return data

    def _base64(self, data: object, path: str) -> object:
        if not isinstance(data, str):
            self._wrong(path, f"must be text in base64, not {shown(data)}")
            return None
        one_line = data.replace("\r", "").replace("\n", "")
        try:
            base64.b64decode(one_line, validate=True)
        except (binascii.Error, ValueError):
            self._wrong(path, "is not base64")
        return one_line

    def _duration(self, data: object, path: str) -> object:
        if not isinstance(data, str):
            self._wrong(path, f"must be a duration like '1m30s', not {shown(data)}")
            return None
        try:
            return parse_go_duration(data)
        except ValueError as error:
            self._wrong(path, str(error))
            return None


def _unknown(key: str, known: Iterable[str]) -> str:
    if key in _RETIRED:
        return f"unknown field: {_RETIRED[key]}"
    return f"unknown field{did_you_mean(key, known)}"


def _bounds(low: float | None, high: float | None, too_low: bool) -> str:
    if low is None:
        return f"at most {high}"
    if high is None or (too_low and high >= _WIDEST):
        return f"at least {low}"
    return f"from {low} to {high}"
