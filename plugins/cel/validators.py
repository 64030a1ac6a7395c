"""What a checked expression may not have besides wrong types: literals that cannot be right.

*Source*: github.com/google/cel-go cel/validator.go, ext/formatting.go (0.26).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.cel import times
from plugins.cel import type_terms as types
from plugins.cel.errors import CelError, LimitExceededError
from plugins.cel.formatting import ERRORS, Clause, clauses
from plugins.cel.regular_expressions import BadPatternError, compiled
from plugins.cel.source import Issue, failure
from plugins.cel.syntax import Call, Comprehension, ListNode, Literal, MapNode, Node, Select

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.cel.checker import Checked
    from plugins.cel.type_terms import Type, TypeVariables
    from plugins.cel.values import Value

_TEXT_KINDS = frozenset({"plain", "list", "map", "time", "type", "null"})
_FITTING: dict[str, frozenset[str]] = {
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}


def validate(text: str, node: Node, checked: Checked, variables: TypeVariables) -> None:
    """Look at each node of the tree.

    Raises
    ------
    CompileError
        With all that is wrong.
    """
    validator = _Validator(checked, variables)
    pending: list[tuple[Node, bool]] = [(node, False)]
    seen: set[int] = set()
    while pending:
        current, in_format = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        validator.look_at(current, in_format)
        in_format = in_format or (isinstance(current, Call) and current.function == "format")
        pending.extend((child, in_format) for child in children(current))
    if validator.issues:
        raise failure(text, validator.issues)


def children(node: Node) -> list[Node]:
    """Return the nodes right below a node."""
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return [*([] if node.target is None else [node.target]), *node.arguments]
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, MapNode):
        return [each for key, value, _ in node.entries for each in (key, value)]
    if isinstance(node, Comprehension):
        return [node.range, node.initial, node.condition, node.step, node.result]
    return []


class _Validator:
    def __init__(self, checked: Checked, variables: TypeVariables) -> None:
        self._checked = checked
        self._variables = variables
        self.issues: list[Issue] = []

    def look_at(self, node: Node, in_format: bool) -> None:
        if isinstance(node, Call):
            self._literal_argument(node)
            if node.function == "format" and node.target is not None:
                self._format(node)
        elif isinstance(node, ListNode) and not in_format:
            self._same_types([(each, i in node.optional) for i, each in enumerate(node.elements)])
        elif isinstance(node, MapNode) and not in_format:
            self._same_types([(key, False) for key, _, _ in node.entries])
            self._same_types([(value, optional) for _, value, optional in node.entries])

    def _type(self, node: Node) -> Type:
        return self._variables.substitute(self._checked.types[id(node)], to_dyn=True)

    def _report(self, node: Node, message: str) -> None:
        self.issues.append(Issue(node.position, message))

    def _same_types(self, nodes: list[tuple[Node, bool]]) -> None:
        """Report the first node whose type is not that of the first one."""
        expected: Type | None = None
        for node, optional in nodes:
            actual = self._type(node)
            if optional and types.is_optional(actual):
                actual = actual.parameters[0]
            if expected is None:
                expected = actual
            elif actual != expected:
                wanted = f"expected type '{types.shown(expected)}'"
                self._report(node, f"{wanted} but found '{types.shown(actual)}'")
                return

    def _literal_argument(self, node: Call) -> None:
        check = _LITERAL_CHECKS.get(node.function)
        if check is None or not node.arguments:
            return
        argument = node.arguments[0]
        if isinstance(argument, Literal) and not check(argument.value):
            self._report(argument, f"invalid {node.function} argument")

    def _format(self, node: Call) -> None:
        target, given = node.target, node.arguments[0]
        if not isinstance(target, Literal) or not isinstance(target.value, str):
            return
        if len(node.arguments) != 1 or not isinstance(given, ListNode):
            return
        used = 0
        try:
            for part in clauses(target.value, len(given.elements)):
                if isinstance(part, Clause):
                    wrong = self._unfit(given.elements[used], part.letter.lower())
                    used += 1
                    if wrong is not None:
                        name = types.named(self._type(wrong)).partition("(")[0]
                        message = f"{ERRORS[part.letter.lower()]} {name}"
                        self._report(wrong, f"error during formatting: {message}")
                        return
        except CelError as error:
            self._report(node, str(error))
            return
        except LimitExceededError:
            return
        if len(given.elements) > used:
            message = "too many arguments supplied to string.format"
            self._report(node, f"{message} (expected {used}, got {len(given.elements)})")

    def _unfit(self, node: Node, letter: str) -> Node | None:
        """Return the node that the clause cannot print, or None."""
        type_ = self._type(node)
        if letter != "s":
            fits = type_.kind == "dyn" or type_.name in _FITTING[letter]
            return None if fits else node
        if type_.kind != "dyn" and type_.kind not in _TEXT_KINDS:
            return node
        if isinstance(node, ListNode | MapNode):
            return next(
                (found for each in children(node) if (found := self._unfit(each, "s"))), None
            )
        return None


def _is_duration(value: Value) -> bool:
    return type(value) is str and _converts(times.string_to_duration, value)


def _is_timestamp(value: Value) -> bool:
    if type(value) is int:
        return _converts(times.IMPLEMENTATIONS["int64_to_timestamp"], value)
    return type(value) is str and _converts(times.string_to_timestamp, value)


def _converts(convert: Callable[[Value], Value], value: Value) -> bool:
    try:
        convert(value)
    except CelError:
        return False
    return True


def _is_pattern(value: Value) -> bool:
    try:
        compiled(str(value))
    except BadPatternError:
        return False
    return True


_LITERAL_CHECKS: dict[str, Callable[[Value], bool]] = {
    "duration": _is_duration,
    "timestamp": _is_timestamp,
    "matches": _is_pattern,
}
