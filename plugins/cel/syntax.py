"""The tree of an expression, after its macros are expanded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from plugins.cel.values import Value


@dataclass(slots=True, eq=False)
class Literal:
    """A constant."""

    position: int
    value: Value


@dataclass(slots=True, eq=False)
class Ident:
    """A variable, or the name of a type."""

    position: int
    name: str


@dataclass(slots=True, eq=False)
class Select:
    """``operand.field``, or the test whether the field is there."""

    position: int
    operand: Node
    field: str
    test_only: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """A function, an operator or a method, which has a target."""

    position: int
    function: str
    arguments: list[Node]
    target: Node | None = None


@dataclass(slots=True, eq=False)
class ListNode:
    """A list; ``optional`` holds the indices of the elements that may be missing."""

    position: int
    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapNode:
    """A map: keys, values, and whether the entry may be missing."""

    position: int
    entries: list[tuple[Node, Node, bool]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Comprehension:
    """A loop over ``range``; ``second`` is empty where it has one variable."""

    position: int
    range: Node
    first: str
    second: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = Literal | Ident | Select | Call | ListNode | MapNode | Comprehension

AND = "_&&_"
OR = "_||_"
NOT = "!_"
NEGATE = "-_"
CONDITIONAL = "_?_:_"
INDEX = "_[_]"
OPTIONAL_INDEX = "_[?_]"
OPTIONAL_SELECT = "_?._"
ADD = "_+_"
EQUALS = "_==_"
NOT_STRICTLY_FALSE = "@not_strictly_false"
ACCUMULATOR = "@result"
"""The loops' own variable: no expression can write this name."""


def qualified_name(node: Node) -> str | None:
    """Return ``a.b.c`` for a chain of names, or None."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    names.append(node.name)
    return ".".join(reversed(names))
