"""What an expression reads of a device.

Most selectors look at one or two attributes, while devices differ in others, such as a UUID. Of all
devices that agree in what an expression reads, one has to be evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from plugins.cel.syntax import (
    INDEX,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

_DEVICE: Final = "device"
_ALONE: Final = frozenset({"driver", "allowMultipleAllocations"})
_BY_DOMAIN: Final = frozenset({"attributes", "capacity"})


class Read(NamedTuple):
    """One attribute or capacity: ``device.attributes["domain"].name``."""

    is_capacity: bool
    domain: str
    name: str


_Reader: TypeAlias = "Callable[[str, Mapping[str, Any], Mapping[str, Any]], Any]"

Key: TypeAlias = "Callable[[str, bool, Mapping[str, Any], Mapping[str, Any]], Hashable | None]"
"""Returns the key of a well-formed device, given driver, ``allowMultipleAllocations``, attributes
and capacities; None for a device that has one of the values twice."""


class Projection:
    """What an expression reads of devices, as a key: equal for devices with equal results.

    Attributes
    ----------
    key : Key
        A third of a microsecond for each value that is read.
    size : int
        The number of these values.

    *Concurrency*: immutable.
    """

    __slots__ = ("key", "size")

    def __init__(self, reads: Iterable[Read]) -> None:
        read = tuple(map(_reader, reads))
        self.size = len(read)
        self.key: Key
        if not read:
            self.key = lambda driver, shared, attributes, capacity: (driver, shared)
        elif len(read) == 1:
            self.key = _key_of_one(read[0])
        else:
            self.key = _key_of_several(read)


_TWICE: Final = object()


def _reader(read: Read) -> _Reader:
    """Return what reads one value of a device, given driver, attributes and capacities."""
    is_capacity, domain, name = read
    qualified = None if "/" in domain else f"{domain}/{name}"
    short = None if "/" in name else name

    def value_of(driver: str, attributes: Mapping[str, Any], capacity: Mapping[str, Any]) -> Any:
        values = capacity if is_capacity else attributes
        value = None if qualified is None else values.get(qualified)
        if domain == driver and short is not None:
            other = values.get(short)
            if other is not None:
                if value is not None:
                    return _TWICE
                value = other
        return str(value.value) if is_capacity and value is not None else value

    return value_of


def _key_of_one(read: _Reader) -> Key:
    def key(
        driver: str, shared: bool, attributes: Mapping[str, Any], capacity: Mapping[str, Any]
    ) -> Hashable | None:
        value = read(driver, attributes, capacity)
        return None if value is _TWICE else (driver, shared, value)

    return key


def _key_of_several(reads: tuple[_Reader, ...]) -> Key:
    def key(
        driver: str, shared: bool, attributes: Mapping[str, Any], capacity: Mapping[str, Any]
    ) -> Hashable | None:
        values = tuple([read(driver, attributes, capacity) for read in reads])
        return None if _TWICE in values else (driver, shared, values)

    return key


def reads_of(root: Node) -> tuple[Read, ...] | None:
    """Return the attributes and capacities on which the value of an expression depends.

    Driver and ``allowMultipleAllocations`` may be read as well. None means that the expression may
    read anything.

    *Cost*: linear in the expression.
    """
    found: dict[Read, None] = {}
    waiting = [root]
    # Macros use a part twice, and so do macros within it.
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        path = _path(node)
        if path is None:
            if isinstance(node, Comprehension) and _DEVICE in _variables(node):
                return None
            waiting.extend(_children(node))
        elif len(path) >= 3 and path[0] in _BY_DOMAIN:
            found[Read(path[0] == "capacity", path[1], path[2])] = None
        elif not path or path[0] not in _ALONE:
            return None
    return tuple(found)


def _path(node: Node) -> list[str] | None:
    """Return the fields of a chain that begins with the device; None for anything else."""
    path: list[str] = []
    while True:
        if isinstance(node, Ident):
            return path[::-1] if node.name.removeprefix(".") == _DEVICE else None
        if isinstance(node, Select):
            path.append(node.field)
            node = node.operand
        elif isinstance(node, Call) and node.function == INDEX and node.target is None:
            operand, key = node.arguments
            if not isinstance(key, Literal) or type(key.value) is not str:
                return None
            path.append(key.value)
            node = operand
        else:
            return None


def _variables(node: Comprehension) -> tuple[str, ...]:
    return node.first, node.second, node.accumulator


def _children(node: Node) -> Iterable[Node]:
    if isinstance(node, Select):
        return (node.operand,)
    if isinstance(node, Call):
        return node.arguments if node.target is None else (*node.arguments, node.target)
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, MapNode):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, Comprehension):
        return (node.range, node.initial, node.condition, node.step, node.result)
    return ()
