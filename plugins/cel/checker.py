"""Types of an expression: names that are not declared, calls that fit no overload.

*Source*: github.com/google/cel-go checker/checker.go (0.26).
"""

from __future__ import annotations

from plugins.cel import type_terms as types
from plugins.cel.declarations import DEVICE_FIELDS, FUNCTIONS, VARIABLE_TYPES, Overload
from plugins.cel.errors import CompileError
from plugins.cel.parser import MAX_DEPTH
from plugins.cel.source import Issue, failure
from plugins.cel.syntax import (
    AND,
    OPTIONAL_SELECT,
    OR,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    qualified_name,
)
from plugins.cel.type_terms import Type, TypeVariables, shown
from plugins.cel.values import Uint

MAX_ISSUES = 2 * 100
"""Where the check of a hopeless expression ends."""

_LITERALS: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


class Checked:
    """What the check found out, by the identity of nodes: functions, names and overloads."""

    def __init__(self) -> None:
        self.types: dict[int, Type] = {}
        self.overloads: dict[int, tuple[str, tuple[str, ...]]] = {}
        self.names: dict[int, str] = {}
        self.namespaced: set[int] = set()


def check(text: str, node: Node) -> tuple[Checked, TypeVariables]:
    """Return the facts about the tree, and what its type variables stand for.

    Raises
    ------
    CompileError
        With all that is wrong.
    """
    checker = _Checker()
    checker.check(node, 0)
    if checker.issues:
        raise failure(text, checker.issues)
    return checker.found, checker.variables


class _Checker:
    def __init__(self) -> None:
        self.found = Checked()
        self.variables = TypeVariables()
        self.issues: list[Issue] = []
        self._scopes: list[dict[str, Type]] = [dict(VARIABLE_TYPES)]

    def check(self, node: Node, depth: int) -> Type:
        """Return the type of the node; what is wrong becomes an issue."""
        known = self.found.types.get(id(node))
        if known is not None:
            return known
        if depth > MAX_DEPTH:
            raise CompileError("compilation failed: expression recursion limit exceeded")
        depth += 1
        if isinstance(node, Literal):
            type_ = _LITERALS[type(node.value)]
        elif isinstance(node, Ident):
            type_ = self._ident(node)
        elif isinstance(node, Select):
            type_ = self._select(node, depth)
        elif isinstance(node, Call):
            type_ = self._call(node, depth)
        elif isinstance(node, ListNode):
            type_ = self._list(node, depth)
        elif isinstance(node, MapNode):
            type_ = self._map(node, depth)
        else:
            type_ = self._comprehension(node, depth)
        self.found.types[id(node)] = type_
        return type_

    def _report(self, node: Node, message: str) -> Type:
        if len(self.issues) < MAX_ISSUES:
            self.issues.append(Issue(node.position, message))
        return types.ERROR

    def _lookup(self, name: str) -> tuple[str, Type] | None:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return name, scope[name]
        return None

    def _ident(self, node: Ident) -> Type:
        declared = self._lookup(node.name)
        if declared is None:
            message = f"undeclared reference to '{node.name}' (in container '')"
            return self._report(node, message)
        self.found.names[id(node)] = declared[0]
        return declared[1]

    def _select(self, node: Select, depth: int) -> Type:
        name = None if node.test_only else qualified_name(node)
        declared = None if name is None else self._lookup(name)
        if declared is not None:
            self.found.names[id(node)] = declared[0]
            return declared[1]
        result = self._field(node, node.operand, node.field, depth, optional=False)
        return types.BOOL if node.test_only else self.variables.substitute(result)

    def _field(self, node: Node, operand: Node, field: str, depth: int, *, optional: bool) -> Type:
        type_ = self.variables.substitute(self.check(operand, depth))
        target = type_
        if types.is_optional(type_):
            optional = True
            target = type_.parameters[0]
        result = types.DYN
        if target.kind == "map":
            result = target.parameters[1]
        elif target == types.DEVICE:
            found = DEVICE_FIELDS.get(field)
            if found is None:
                found = self._report(node, f"undefined field '{field}'")
            result = found
        elif target.kind == "struct":
            result = self._report(node, f"unexpected failed resolution of '{target.name}'")
        elif target.kind == "param":
            self.variables.assignable([types.DYN], [target])
        elif target.kind not in ("dyn", "any", "error"):
            message = f"type '{shown(target)}' does not support field selection"
            self._report(node, message)
        return types.optional_of(result) if optional else result

    def _call(self, node: Call, depth: int) -> Type:
        if node.function == OPTIONAL_SELECT:
            operand, field = node.arguments
            name = field.value if isinstance(field, Literal) else ""
            result = self._field(node, operand, str(name), depth, optional=True)
            self.found.overloads[id(node)] = (OPTIONAL_SELECT, ("select_optional_field",))
            return self.variables.substitute(result)
        given = [self.check(each, depth) for each in node.arguments]
        if node.function in (AND, OR):
            return self._logical(node, given)
        if node.target is None:
            name = node.function.removeprefix(".")
            if name in FUNCTIONS:
                return self._resolve(node, name, given, method=False)
            return self._undeclared(node)
        prefix = qualified_name(node.target)
        if prefix is not None:
            name = f"{prefix}.{node.function}".removeprefix(".")
            if name in FUNCTIONS:
                self.found.namespaced.add(id(node))
                return self._resolve(node, name, given, method=False)
        target = self.check(node.target, depth)
        if node.function in FUNCTIONS:
            return self._resolve(node, node.function, [target, *given], method=True)
        return self._undeclared(node)

    def _undeclared(self, node: Call) -> Type:
        return self._report(node, f"undeclared reference to '{node.function}' (in container '')")

    def _logical(self, node: Call, given: list[Type]) -> Type:
        for argument, type_ in zip(node.arguments, given, strict=True):
            if not self.variables.assignable([type_], [types.BOOL]):
                expected = f"expected type 'bool' but found '{shown(type_)}'"
                self._report(argument, expected)
        return types.BOOL

    def _resolve(self, node: Call, name: str, given: list[Type], *, method: bool) -> Type:
        result: Type | None = None
        fitting: list[str] = []
        for overload in FUNCTIONS[name]:
            if overload.method is not method or len(overload.arguments) != len(given):
                continue
            arguments, returned = self._instance(overload)
            if not self.variables.assignable(given, arguments):
                continue
            fitting.append(overload.name)
            returned = self.variables.substitute(returned)
            if result is None:
                result = returned
            elif not types.is_dyn(result) and returned != result:
                result = types.DYN
        if result is None:
            return self._no_overload(node, name, given, method)
        self.found.overloads[id(node)] = (name, tuple(fitting))
        return result

    def _instance(self, overload: Overload) -> tuple[list[Type], Type]:
        """Return the overload's types with fresh variables for its parameters."""
        if not overload.variables:
            return list(overload.arguments), overload.result
        fresh = {each: self.variables.fresh() for each in overload.variables}
        arguments = [_replaced(each, fresh) for each in overload.arguments]
        return arguments, _replaced(overload.result, fresh)

    def _no_overload(self, node: Call, name: str, given: list[Type], method: bool) -> Type:
        words = [shown(self.variables.substitute(each, to_dyn=True)) for each in given]
        target = f"{words[0]}." if method else ""
        inner = ", ".join(words[1:] if method else words)
        message = f"found no matching overload for '{name}' applied to '{target}({inner})'"
        return self._report(node, message)

    def _joined(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.variables.assignable([previous], [current]):
            return previous if types.less_specific(previous, current) else current
        return types.DYN

    def _unwrapped(self, node: Node, type_: Type) -> Type:
        """Return what an optional entry of a list or map holds."""
        if types.is_optional(type_):
            return type_.parameters[0]
        if not types.is_dyn(type_):
            wanted = shown(types.optional_of(type_))
            self._report(node, f"expected type '{wanted}' but found '{shown(type_)}'")
        return type_

    def _list(self, node: ListNode, depth: int) -> Type:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            type_ = self.check(element, depth)
            if index in node.optional:
                type_ = self._unwrapped(element, type_)
            joined = self._joined(joined, type_)
        return types.list_of(self.variables.fresh() if joined is None else joined)

    def _map(self, node: MapNode, depth: int) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._joined(keys, self.check(key, depth))
            type_ = self.check(value, depth)
            if optional:
                type_ = self._unwrapped(value, type_)
            values = self._joined(values, type_)
        if keys is None or values is None:
            return types.map_of(self.variables.fresh(), self.variables.fresh())
        return types.map_of(keys, values)

    def _comprehension(self, node: Comprehension, depth: int) -> Type:
        over = self.variables.substitute(self.check(node.range, depth))
        accumulator = self.check(node.initial, depth)
        first, second = self._elements(node, over)
        self._scopes.append({node.accumulator: accumulator})
        self._scopes.append({node.first: first})
        if node.second:
            self._scopes[-1][node.second] = second
        self._expect(node.condition, types.BOOL, self.check(node.condition, depth))
        self._expect(node.step, accumulator, self.check(node.step, depth))
        self._scopes.pop()
        result = self.check(node.result, depth)
        self._scopes.pop()
        return self.variables.substitute(result)

    def _elements(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        """Return the types of the loop's variables."""
        if over.kind == "list":
            element = over.parameters[0]
            return (types.INT, element) if node.second else (element, element)
        if over.kind == "map":
            return over.parameters[0], over.parameters[1]
        if over.kind in ("dyn", "error", "param"):
            self.variables.assignable([types.DYN], [over])
            return types.DYN, types.DYN
        message = (
            f"expression of type '{shown(over)}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)"
        )
        self._report(node.range, message)
        return types.ERROR, types.ERROR

    def _expect(self, node: Node, wanted: Type, actual: Type) -> None:
        if not self.variables.assignable([wanted], [actual]):
            message = f"expected type '{shown(wanted)}' but found '{shown(actual)}'"
            self._report(node, message)


def _replaced(type_: Type, fresh: dict[Type, Type]) -> Type:
    if type_ in fresh:
        return fresh[type_]
    if not type_.parameters:
        return type_
    return Type(type_.kind, type_.name, tuple(_replaced(each, fresh) for each in type_.parameters))
