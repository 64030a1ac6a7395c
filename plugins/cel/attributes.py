"""Variables and what is selected from them: chains of fields and indices, and their cost.

A chain is resolved as one step, as cel-go does it: each field or index costs 1, and the chain as
a whole another 1.

*Source*: github.com/google/cel-go interpreter/attributes.go, runtimecost.go (0.26).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from plugins.cel.errors import NO_SUCH_OVERLOAD, CelError
from plugins.cel.go_text import go_type, shown_value
from plugins.cel.values import (
    INT_MAX,
    MISSING,
    NONE,
    DomainMap,
    Map,
    MutableList,
    MutableMap,
    Opaque,
    Optional,
    TypeValue,
    Uint,
    Value,
    is_list,
    is_map,
    type_name,
)

Frame: TypeAlias = list[Value]
"""One evaluation: its cost, the work that costs nothing, the device, and the variables."""

COST = 0
WORK = 1
DEVICE = 2
FIRST_SLOT = 3

Run: TypeAlias = Callable[[Frame], Value]
"""A compiled part of an expression; it raises CelError for an error value."""


@dataclass(slots=True)
class Constant:
    """A part whose value is known: it costs nothing."""

    value: Value

    def run(self) -> Run:
        """Return the compiled part."""
        value = self.value
        return lambda frame: value


@dataclass(slots=True)
class Code:
    """A compiled part that is no chain."""

    compiled: Run

    def run(self) -> Run:
        """Return the compiled part."""
        return self.compiled


@dataclass(slots=True)
class Qualifier:
    """One field or index of a chain: a constant, or the run that gives it."""

    key: Value = None
    dynamic: Run | None = None
    optional: bool = False
    test_only: bool = False


@dataclass(slots=True)
class Chain:
    """A base (a variable, or the value of another part) and its qualifiers."""

    base: Run
    qualifiers: list[Qualifier] = field(default_factory=list)
    test_only: bool = False

    def qualify(self, qualifier: Qualifier) -> None:
        """Append a field or index."""
        self.qualifiers.append(qualifier)

    def resolve(self) -> Run:
        """Return the run without the cost of the chain as a whole."""
        return _resolver(self.base, tuple(self.qualifiers), 0)

    def run(self) -> Run:
        """Return the compiled chain."""
        return _resolver(self.base, tuple(self.qualifiers), 0 if self.test_only else 1)


@dataclass(slots=True)
class Choice:
    """``condition ? truthy : falsy``; what is selected from it is selected from either."""

    condition: Run
    truthy: Chain | Choice
    falsy: Chain | Choice
    test_only: bool = False

    def qualify(self, qualifier: Qualifier) -> None:
        """Append a field or index to both."""
        self.truthy.qualify(qualifier)
        self.falsy.qualify(qualifier)

    def resolve(self) -> Run:
        """Return the compiled choice."""
        condition, truthy, falsy = self.condition, self.truthy.resolve(), self.falsy.resolve()

        def choose(frame: Frame) -> Value:
            chosen = condition(frame)
            if chosen is True:
                return truthy(frame)
            if chosen is False:
                return falsy(frame)
            raise CelError(NO_SUCH_OVERLOAD)

        return choose

    def run(self) -> Run:
        """Return the compiled choice: a choice itself costs nothing."""
        return self.resolve()


Part: TypeAlias = Constant | Code | Chain | Choice


def as_chain(part: Part) -> Chain | Choice:
    """Return the part as one that fields can be selected from."""
    if isinstance(part, Chain | Choice):
        return part
    return Chain(part.run())


def _resolver(base: Run, qualifiers: tuple[Qualifier, ...], own_cost: int) -> Run:
    plain = all(
        type(each.key) is str and each.dynamic is None and not (each.optional or each.test_only)
        for each in qualifiers
    )
    if not qualifiers:
        return _bare(base, own_cost)
    if plain and len(qualifiers) <= 3:
        return _fields(base, tuple(str(each.key) for each in qualifiers), qualifiers, own_cost)
    return _general(base, qualifiers, own_cost)


def _bare(base: Run, own_cost: int) -> Run:
    def resolve(frame: Frame) -> Value:
        frame[COST] += own_cost
        value = base(frame)
        return native(value) if type(value) is Optional else value

    return resolve


def _fields(
    base: Run, keys: tuple[str, ...], qualifiers: tuple[Qualifier, ...], own_cost: int
) -> Run:
    """Return the run for fields of maps; anything else is left to the general one."""
    cost = len(keys)

    def resolve(frame: Frame) -> Value:
        frame[COST] += own_cost
        value = found = base(frame)
        for key in keys:
            if type(found) is Map or type(found) is DomainMap:
                found = found.find(key)
            else:
                found = MISSING
                break
        if found is MISSING:
            return _resolved(frame, value, qualifiers)
        frame[COST] += cost
        return found

    return resolve


def _general(base: Run, qualifiers: tuple[Qualifier, ...], own_cost: int) -> Run:
    def resolve(frame: Frame) -> Value:
        frame[COST] += own_cost
        return _resolved(frame, base(frame), qualifiers)

    return resolve


def _resolved(frame: Frame, value: Value, qualifiers: tuple[Qualifier, ...]) -> Value:
    optional = False
    if type(value) is Optional:
        if not value.present:
            return value
        value = native(value).value
        optional = True
    for qualifier in qualifiers:
        optional = optional or qualifier.optional
        key = qualifier.key
        if not optional:
            frame[COST] += 1
        if qualifier.dynamic is not None:
            key = _index(qualifier.dynamic(frame))
        if qualifier.test_only and not optional:
            return _found(value, key, True) is not MISSING
        value = _found(value, key, optional)
        if optional:
            if value is MISSING:
                return NONE
            frame[COST] += 1
    return Optional(True, value) if optional else value


def test_result(value: Value) -> Value:
    """Return what ``has`` says about the value of its chain."""
    return value.present if type(value) is Optional else value


def _index(key: Value) -> Value:
    if type(key) in (str, int, bool, Uint, float):
        return key
    raise CelError(f"invalid qualifier type: {go_type(key)}")


def index_of(key: Value) -> int:
    """Return the index of a list that the value stands for.

    Raises
    ------
    CelError
        It is no whole number.
    """
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is float or kind is Uint:
        if (kind is Uint and key <= INT_MAX) or (
            kind is float and key.is_integer() and abs(key) < 2.0**63
        ):
            return int(key)
        raise CelError(f"unsupported index value {shown_value(key)} in list")
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


def _found(value: Value, key: Value, presence: bool) -> Value:
    """Return the field or element; MISSING or an error where there is none."""
    if is_map(value):
        found = value.find(key)
        if found is MISSING and not presence:
            raise CelError(f"no such key: {shown_value(key)}")
        return found
    if is_list(value):
        index = index_of(key)
        if 0 <= index < len(value):
            return value[index]
        if presence:
            return MISSING
        raise CelError(f"index out of bounds: {shown_value(key)}")
    if presence:
        return MISSING
    raise CelError(f"no such key: {shown_value(key)}")


def native(held: Optional) -> Optional:
    """Return an optional variable as cel-go reads it: its value goes through a native one.

    Notes
    -----
    *Source*: github.com/google/cel-go interpreter/attributes.go, ``applyQualifiers`` (0.26). A
    value of an extension's type does not come back from there; the map of domains comes back as
    a plain one.
    """
    value = held.value
    kind = type(value)
    if not held.present:
        return held
    if kind is DomainMap:
        return Optional(True, Map(value.entries))
    if kind is TypeValue:
        return Optional(True, value.name)
    if kind is Optional:
        inner = value
        while type(inner) is Optional:
            inner = inner.value if inner.present else None
        return native(Optional(True, inner))
    if kind is MutableList:
        return held
    if kind is CelError:
        text = f"unsupported conversion to ref.Val: (*errors.errorString){value}"
        return Optional(True, CelError(text))
    if isinstance(value, Opaque) and value.type_name != "kubernetes.NamedFormat":
        text = f"unsupported conversion to ref.Val: ({value.go_native}){value}"
        return Optional(True, CelError(text))
    return held


def immutable(value: Value) -> Value:
    """Return the result of a loop: from here on nothing changes it."""
    kind = type(value)
    if kind is MutableList:
        return list(value)
    if kind is MutableMap:
        return Map(value.entries)
    return value
