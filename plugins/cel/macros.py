"""Macros: calls that stand for loops, tests and bindings.

*Source*: github.com/google/cel-go parser/macro.go, ext/comprehensions.go, ext/bindings.go,
ext/lists.go and cel/library.go (0.26).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.cel.syntax import (
    ACCUMULATOR,
    ADD,
    AND,
    CONDITIONAL,
    EQUALS,
    NOT,
    NOT_STRICTLY_FALSE,
    OR,
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
    from collections.abc import Callable

MAP_INSERT = "cel.@mapInsert"
UNUSED = "#unused"
SORT_INPUT = "@__sortBy_input__"
SORT_BY_KEYS = "@sortByAssociatedKeys"


class MacroError(ValueError):
    """The arguments of a macro are wrong; ``position`` points at the bad one."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


def expanded(position: int, name: str, target: Node | None, given: list[Node]) -> Node | None:
    """Return what a macro call stands for, or None if the call is no macro.

    Raises
    ------
    MacroError
        It is one, and its arguments are not what it takes.
    """
    if target is None:
        return _has(position, given) if name == "has" and len(given) == 1 else None
    macro = _MACROS.get((name, len(given)))
    return None if macro is None else macro(position, target, given)


def _has(position: int, given: list[Node]) -> Node:
    tested = given[0]
    if not isinstance(tested, Select) or tested.test_only:
        raise MacroError(tested.position, "invalid argument to has() macro")
    return Select(position, tested.operand, tested.field, True)


def _variable(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.position, message)
    if node.name in (ACCUMULATOR, "__result__"):
        raise MacroError(node.position, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(given: list[Node], two: bool, message: str) -> tuple[str, str, list[Node]]:
    """Return the loop's variables (the second may be empty) and the other arguments."""
    if not two:
        return _variable(given[0], message), "", given[1:]
    names = []
    for node in given[:2]:
        if not isinstance(node, Ident):
            raise MacroError(node.position, "argument must be a simple name")
        names.append(node.name)
    if names[0] == names[1]:
        raise MacroError(given[1].position, f"duplicate variable name: {names[0]}")
    for node in given[:2]:
        _variable(node, message)
    return names[0], names[1], given[2:]


class _Loop:
    """Builds the loop of one macro call: all nodes stand at the call's position."""

    def __init__(self, position: int) -> None:
        self._position = position

    def accumulator(self) -> Node:
        return Ident(self._position, ACCUMULATOR)

    def literal(self, value: bool | int) -> Node:
        return Literal(self._position, value)

    def call(self, function: str, *arguments: Node) -> Node:
        return Call(self._position, function, list(arguments))

    def list(self, *elements: Node) -> Node:
        return ListNode(self._position, list(elements))

    def ident(self, name: str) -> Node:
        return Ident(self._position, name)

    def over(
        self, target: Node, names: tuple[str, str], initial: Node, condition: Node, step: Node
    ) -> Comprehension:
        first, second = names
        return Comprehension(
            self._position,
            target,
            first,
            second,
            ACCUMULATOR,
            initial,
            condition,
            step,
            self.accumulator(),
        )


_SIMPLE_NAME = "argument must be a simple name"
_NO_IDENTIFIER = "argument is not an identifier"


def _all(two: bool) -> Callable[[int, Node, list[Node]], Node]:
    def expand(position: int, target: Node, given: list[Node]) -> Node:
        first, second, (predicate,) = _variables(given, two, _SIMPLE_NAME)
        loop = _Loop(position)
        initial = loop.literal(True)
        condition = loop.call(NOT_STRICTLY_FALSE, loop.accumulator())
        step = loop.call(AND, loop.accumulator(), predicate)
        return loop.over(target, (first, second), initial, condition, step)

    return expand


def _exists(two: bool) -> Callable[[int, Node, list[Node]], Node]:
    def expand(position: int, target: Node, given: list[Node]) -> Node:
        first, second, (predicate,) = _variables(given, two, _SIMPLE_NAME)
        loop = _Loop(position)
        initial = loop.literal(False)
        condition = loop.call(NOT_STRICTLY_FALSE, loop.call(NOT, loop.accumulator()))
        step = loop.call(OR, loop.accumulator(), predicate)
        return loop.over(target, (first, second), initial, condition, step)

    return expand


def _exists_one(two: bool) -> Callable[[int, Node, list[Node]], Node]:
    def expand(position: int, target: Node, given: list[Node]) -> Node:
        first, second, (predicate,) = _variables(given, two, _SIMPLE_NAME)
        loop = _Loop(position)
        initial = loop.literal(0)
        more = loop.call(ADD, loop.accumulator(), loop.literal(1))
        step = loop.call(CONDITIONAL, predicate, more, loop.accumulator())
        whole = loop.over(target, (first, second), initial, loop.literal(True), step)
        whole.result = loop.call(EQUALS, loop.accumulator(), loop.literal(1))
        return whole

    return expand


def _map(two: bool) -> Callable[[int, Node, list[Node]], Node]:
    def expand(position: int, target: Node, given: list[Node]) -> Node:
        first, second, rest = _variables(given, two, _NO_IDENTIFIER)
        loop = _Loop(position)
        step = loop.call(ADD, loop.accumulator(), loop.list(rest[-1]))
        if len(rest) == 2:
            step = loop.call(CONDITIONAL, rest[0], step, loop.accumulator())
        return loop.over(target, (first, second), loop.list(), loop.literal(True), step)

    return expand


def _filter(position: int, target: Node, given: list[Node]) -> Node:
    first = _variable(given[0], _NO_IDENTIFIER)
    loop = _Loop(position)
    step = loop.call(ADD, loop.accumulator(), loop.list(given[0]))
    step = loop.call(CONDITIONAL, given[1], step, loop.accumulator())
    return loop.over(target, (first, ""), loop.list(), loop.literal(True), step)


def _transform_map(entry: bool) -> Callable[[int, Node, list[Node]], Node]:
    def expand(position: int, target: Node, given: list[Node]) -> Node:
        first, second, rest = _variables(given, True, _SIMPLE_NAME)
        loop = _Loop(position)
        if entry:
            step = loop.call(MAP_INSERT, loop.accumulator(), rest[-1])
        else:
            step = loop.call(MAP_INSERT, loop.accumulator(), loop.ident(first), rest[-1])
        if len(rest) == 2:
            step = loop.call(CONDITIONAL, rest[0], step, loop.accumulator())
        empty = MapNode(position)
        return loop.over(target, (first, second), empty, loop.literal(True), step)

    return expand


def _binding(position: int, name: str, value: Node, body: Node) -> Comprehension:
    """Return a loop that never runs: its accumulator is the variable, its result the body."""
    return Comprehension(
        position,
        ListNode(position, []),
        UNUSED,
        "",
        name,
        value,
        Literal(position, False),
        Ident(position, name),
        body,
    )


def _bind(position: int, target: Node, given: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(given[0], Ident):
        message = "cel.bind() variable names must be simple identifiers"
        raise MacroError(given[0].position, message)
    return _binding(position, given[0].name, given[1], given[2])


def _optional_map(flat: bool) -> Callable[[int, Node, list[Node]], Node]:
    macro = "optFlatMap" if flat else "optMap"

    def expand(position: int, target: Node, given: list[Node]) -> Node:
        if not isinstance(given[0], Ident):
            message = f"{macro}() variable name must be a simple identifier"
            raise MacroError(given[0].position, message)
        value = Call(position, "value", [], target)
        body: Node = _binding(position, given[0].name, value, given[1])
        if not flat:
            body = Call(position, "optional.of", [body])
        tested = Call(position, "hasValue", [], target)
        return Call(position, CONDITIONAL, [tested, body, Call(position, "optional.none", [])])

    return expand


def _sort_by(position: int, target: Node, given: list[Node]) -> Node:
    if not isinstance(target, ListNode | Select | Ident | Comprehension | Call):
        message = (
            "sortBy can only be applied to a list, identifier, comprehension, call or select "
            "expression"
        )
        raise MacroError(target.position, message)
    keys = _map(False)(position, Ident(position, SORT_INPUT), given)
    sorted_list = Call(position, SORT_BY_KEYS, [keys], Ident(position, SORT_INPUT))
    return _binding(position, SORT_INPUT, target, sorted_list)


_MACROS: dict[tuple[str, int], Callable[[int, Node, list[Node]], Node | None]] = {
    ("all", 2): _all(False),
    ("all", 3): _all(True),
    ("exists", 2): _exists(False),
    ("exists", 3): _exists(True),
    ("exists_one", 2): _exists_one(False),
    ("exists_one", 3): _exists_one(True),
    ("existsOne", 3): _exists_one(True),
    ("map", 2): _map(False),
    ("map", 3): _map(False),
    ("filter", 2): _filter,
    ("transformList", 3): _map(True),
    ("transformList", 4): _map(True),
    ("transformMap", 3): _transform_map(False),
    ("transformMap", 4): _transform_map(False),
    ("transformMapEntry", 3): _transform_map(True),
    ("transformMapEntry", 4): _transform_map(True),
    ("bind", 3): _bind,
    ("optMap", 2): _optional_map(False),
    ("optFlatMap", 2): _optional_map(True),
    ("sortBy", 2): _sort_by,
}
