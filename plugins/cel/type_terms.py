"""The types that the checker works with.

*Source*: github.com/google/cel-go common/types/types.go and checker/format.go (0.26).
"""

from __future__ import annotations

from typing import NamedTuple

from plugins.cel.errors import CompileError


class Type(NamedTuple):
    """A type: its kind, its name and its parameters.

    Kinds are ``plain`` for scalars, ``struct``, ``opaque``, ``list``, ``map``, ``type``,
    ``param`` (a variable of the checker), ``dyn``, ``any``, ``error``, ``null`` and ``time``
    (durations and timestamps, which may be null).
    """

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()


BOOL = Type("plain", "bool")
BYTES = Type("plain", "bytes")
DOUBLE = Type("plain", "double")
INT = Type("plain", "int")
STRING = Type("plain", "string")
UINT = Type("plain", "uint")
NULL = Type("null", "null")
DYN = Type("dyn", "dyn")
ANY = Type("any", "any")
ERROR = Type("error", "!error!")
DURATION = Type("time", "duration")
TIMESTAMP = Type("time", "timestamp")
TYPE = Type("type", "type")
DEVICE = Type("struct", "kubernetes.DRADevice")
QUANTITY = Type("struct", "kubernetes.Quantity")
SEMVER = Type("struct", "kubernetes.Semver")
URL = Type("struct", "kubernetes.URL")
FORMAT = Type("struct", "kubernetes.NamedFormat")
IP = Type("opaque", "net.IP")
CIDR = Type("opaque", "net.CIDR")


def list_of(element: Type) -> Type:
    """Return the type of a list."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of a map."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of an optional value."""
    return Type("opaque", "optional_type", (value,))


def type_of(named: Type) -> Type:
    """Return the type of a type's name."""
    return Type("type", "type", (named,))


def parameter(name: str) -> Type:
    """Return a variable that stands for a type."""
    return Type("param", name)


def is_dyn(type_: Type) -> bool:
    """Report whether nothing is known about values of the type before they are there."""
    return type_.kind == "dyn" or type_.kind == "any"


def is_optional(type_: Type) -> bool:
    """Report whether the type is that of an optional value."""
    return type_.kind == "opaque" and type_.name == "optional_type"


def shown(type_: Type) -> str:
    """Return the type as messages of the compiler show it."""
    if not type_.parameters:
        return type_.name
    inner = ", ".join(shown(each) for each in type_.parameters)
    return f"{type_.name}({inner})"


_RUNTIME_NAMES = {
    "any": "google.protobuf.Any",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "null": "null_type",
    "!error!": "error",
}


def named(type_: Type) -> str:
    """Return the type with the names that values have while an expression runs."""
    name = _RUNTIME_NAMES.get(type_.name, type_.name)
    if not type_.parameters:
        return name
    return f"{name}({', '.join(named(each) for each in type_.parameters)})"


MAX_TYPE_DEPTH = 60
"""Deepest nesting of types; each list in a list is a level."""


class TypeVariables:
    """What the checker found out about its type variables, and the rules of assignment.

    *Source*: github.com/google/cel-go checker/types.go (0.26).
    """

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        self._replaced: list[tuple[Type, Type | None]] = []
        self._count = 0

    def fresh(self) -> Type:
        """Return a variable that nothing is known about."""
        self._count += 1
        return Type("param", f"_var{self._count - 1}")

    def assignable(self, first: list[Type], second: list[Type]) -> bool:
        """Report whether each type of ``first`` fits ``second``; learn from it if they all do."""
        self._replaced.clear()
        if len(first) == len(second) and all(map(self._assignable, first, second)):
            return True
        for variable, before in reversed(self._replaced):
            if before is None:
                del self._bound[variable]
            else:
                self._bound[variable] = before
        return False

    def _bind(self, variable: Type, type_: Type) -> None:
        self._replaced.append((variable, self._bound.get(variable)))
        self._bound[variable] = type_

    def substitute(self, type_: Type, to_dyn: bool = False, depth: int = 0) -> Type:
        """Return the type with its known variables replaced; unknown ones by dyn if asked."""
        if depth > MAX_TYPE_DEPTH:
            raise CompileError("compilation failed: types are nested too deeply")
        while type_ in self._bound:
            type_ = self._bound[type_]
        if type_.kind == "param":
            return DYN if to_dyn else type_
        if not type_.parameters:
            return type_
        inner = tuple(self.substitute(each, to_dyn, depth + 1) for each in type_.parameters)
        return type_ if inner == type_.parameters else Type(type_.kind, type_.name, inner)

    def _assignable(self, first: Type, second: Type) -> bool:
        if second.kind == "param":
            valid, known = self._substitutable(first, second)
            if valid or known:
                return valid
        if first.kind == "param":
            return self._substitutable(second, first)[0]
        if first.kind in _WILD or second.kind in _WILD:
            return True
        if first.kind == "null" or second.kind == "null":
            other = second if first.kind == "null" else first
            return other.kind in _NULLABLE
        if first.kind == "type":
            return second.kind == "type"
        return (
            first.kind == second.kind
            and first.name == second.name
            and len(first.parameters) == len(second.parameters)
            and all(map(self._assignable, first.parameters, second.parameters))
        )

    def _substitutable(self, type_: Type, variable: Type) -> tuple[bool, bool]:
        """Return whether the variable can stand for the type, and whether it was bound before."""
        if type_ == variable:
            return True, True
        bound = self._bound.get(variable)
        if bound is None:
            if self._unreferenced(variable, type_):
                self._bind(variable, type_)
                return True, False
            return False, False
        if bound == type_:
            return True, True
        if not self._assignable(type_, bound):
            return False, True
        general = type_ if less_specific(type_, bound) else bound
        if self._unreferenced(variable, general):
            self._bind(variable, general)
        return True, True

    def _unreferenced(self, variable: Type, within: Type, depth: int = 0) -> bool:
        if depth > MAX_TYPE_DEPTH:
            raise CompileError("compilation failed: types are nested too deeply")
        if within == variable:
            return False
        if within.kind == "param":
            bound = self._bound.get(within)
            return bound is None or self._unreferenced(variable, bound, depth + 1)
        return all(self._unreferenced(variable, each, depth + 1) for each in within.parameters)


_WILD = frozenset({"dyn", "any", "error"})
_NULLABLE = frozenset({"null", "opaque", "struct", "time"})


def less_specific(first: Type, second: Type) -> bool:
    """Report whether ``first`` equals ``second``, or says less about its values."""
    if is_dyn(first) or first.kind == "param":
        return True
    if is_dyn(second) or second.kind == "param" or first.kind != second.kind:
        return False
    if first.kind == "type":
        return True
    return (
        first.name == second.name
        and len(first.parameters) == len(second.parameters)
        and all(map(less_specific, first.parameters, second.parameters))
    )
