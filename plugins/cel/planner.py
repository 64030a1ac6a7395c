"""A checked tree to closures.

Each node becomes a function of a :data:`~plugins.cel.attributes.Frame`. Errors of CEL travel as
the exception CelError, which ``&&``, ``||``, ``?:`` and loops absorb where CEL lets them.

*Source*: github.com/google/cel-go interpreter/planner.go, interpretable.go, decorators.go,
runtimecost.go (0.26).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.cel import attributes
from plugins.cel.aggregates import list_run, map_run, member_of_constants
from plugins.cel.attributes import (
    DEVICE,
    FIRST_SLOT,
    Chain,
    Choice,
    Code,
    Constant,
    Frame,
    Part,
    Qualifier,
    Run,
    as_chain,
)
from plugins.cel.calls import call, constant_call
from plugins.cel.errors import NO_SUCH_OVERLOAD, CelError, CompileError
from plugins.cel.go_text import go_type
from plugins.cel.loops import UNSET, Loop, accumulated, fold
from plugins.cel.macros import UNUSED
from plugins.cel.optionals import unwrapped
from plugins.cel.regular_expressions import CONSTANT_PATTERNS
from plugins.cel.syntax import (
    AND,
    CONDITIONAL,
    INDEX,
    OPTIONAL_INDEX,
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
)
from plugins.cel.values import Optional, TypeValue, Uint, Value

if TYPE_CHECKING:
    from plugins.cel.checker import Checked


class Planner:
    """Compiles one tree.

    ``slots`` is how long a frame has to be, ``patterns`` the number of regular expressions that
    were compiled.
    """

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._scopes: list[dict[str, Run]] = []
        self.slots = FIRST_SLOT
        self.patterns = 0
        self._planned: dict[int, Part] = {}

    def compiled(self, node: Node) -> Run:
        """Return the run of the whole expression."""
        return self._plan(node).run()

    def _run(self, node: Node) -> Run:
        return self._plan(node).run()

    def _plan(self, node: Node) -> Part:
        # A macro that uses its target twice has it evaluated twice, but planned once.
        part = self._planned.get(id(node))
        if part is None:
            part = self._planned[id(node)] = self._new_part(node)
        return part

    def _new_part(self, node: Node) -> Part:
        if isinstance(node, Literal):
            return Constant(node.value)
        if isinstance(node, Ident):
            return self._variable(self._checked.names[id(node)])
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        return self._comprehension(node)

    def _variable(self, name: str) -> Part:
        for scope in reversed(self._scopes):
            if name in scope:
                return Chain(scope[name])
        if name == "device":
            return Chain(_device)
        return Constant(TypeValue(name))

    def _select(self, node: Select) -> Part:
        name = self._checked.names.get(id(node))
        if name is not None:
            return self._variable(name)
        chain = as_chain(self._plan(node.operand))
        if not node.test_only:
            chain.qualify(Qualifier(node.field))
            return chain
        chain.qualify(Qualifier(node.field, test_only=True))
        chain.test_only = True
        tested = chain.run()
        return Code(lambda frame: attributes.test_result(tested(frame)))

    def _call(self, node: Call) -> Part:
        function = node.function
        if node.target is None:
            if function in (AND, OR):
                terms = tuple(self._run(each) for each in node.arguments)
                return Code(_logical(terms, function == OR))
            if function == CONDITIONAL:
                condition, truthy, falsy = node.arguments
                return Choice(
                    self._run(condition),
                    as_chain(self._plan(truthy)),
                    as_chain(self._plan(falsy)),
                )
            if function in (INDEX, OPTIONAL_INDEX, OPTIONAL_SELECT):
                return self._index(node, optional=function != INDEX)
        name, overloads = self._checked.overloads[id(node)]
        nodes = list(node.arguments)
        if node.target is not None and id(node) not in self._checked.namespaced:
            nodes.insert(0, node.target)
        parts = [self._plan(each) for each in nodes]
        self.patterns += name in CONSTANT_PATTERNS and isinstance(parts[1], Constant)
        if overloads in (("optional_or_optional",), ("optional_orValue_value",)):
            return Code(_optional_or(parts[0].run(), parts[1].run(), name == "orValue"))
        if overloads == ("in_list",) and isinstance(parts[1], Constant):
            member = member_of_constants(parts[0].run(), parts[1].value)
            if member is not None:
                return member
        constant = constant_call(name, overloads, parts)
        return Code(call(name, overloads, parts)) if constant is None else constant

    def _index(self, node: Call, *, optional: bool) -> Part:
        chain = as_chain(self._plan(node.arguments[0]))
        index = self._plan(node.arguments[1])
        if isinstance(index, Constant):
            if type(index.value) not in (str, int, bool, Uint, float):
                kind = go_type(index.value)
                raise CompileError(f"program instantiation failed: invalid qualifier type: {kind}")
            chain.qualify(Qualifier(index.value, optional=optional))
        else:
            resolve = index.resolve() if isinstance(index, Chain | Choice) else index.run()
            chain.qualify(Qualifier(dynamic=resolve, optional=optional))
        return chain

    def _list(self, node: ListNode) -> Part:
        parts = [self._plan(each) for each in node.elements]
        return list_run(parts, node.optional)

    def _map(self, node: MapNode) -> Part:
        entries = [
            (self._plan(key), self._plan(value), optional) for key, value, optional in node.entries
        ]
        return map_run(entries)

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _comprehension(self, node: Comprehension) -> Part:
        over = self._plan(node.range)
        initial = self._run(node.initial)
        slot = self._slot()
        first, second = self._slot(), self._slot()
        accumulator = accumulated(slot, initial)
        self._scopes.append({node.accumulator: accumulator})
        names = {node.first: _loop_variable(first)}
        if node.second:
            names[node.second] = _loop_variable(second)
        self._scopes.append(names)
        condition = self._run(node.condition)
        step = self._run(node.step)
        self._scopes.pop()
        result = self._run(node.result)
        self._scopes.pop()
        if node.first == UNUSED:
            return Code(_binding(slot, result))
        loop = Loop(slot, first, second if node.second else 0, initial)
        return Code(fold(loop, over.run(), condition, step, result))


def _device(frame: Frame) -> Value:
    return frame[DEVICE]


def _loop_variable(slot: int) -> Run:
    return lambda frame: frame[slot]


def _binding(slot: int, result: Run) -> Run:
    """Return the run of ``cel.bind``: the variable is evaluated when it is first used."""

    def bind(frame: Frame) -> Value:
        frame[slot] = UNSET
        return attributes.immutable(result(frame))

    return bind


def _logical(terms: tuple[Run, ...], decisive: bool) -> Run:
    """Return the run of ``||`` (true decides) or ``&&`` (false does); errors wait for the end."""

    def decide(frame: Frame) -> Value:
        fault: CelError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CelError as error:
                fault = fault or error
                continue
            if value is decisive:
                return decisive
            if value is not (not decisive) and fault is None:
                fault = CelError(NO_SUCH_OVERLOAD)
        if fault is not None:
            raise fault
        return not decisive

    return decide


def _optional_or(first: Run, second: Run, unwrap: bool) -> Run:
    def choose(frame: Frame) -> Value:
        held = first(frame)
        if type(held) is not Optional:
            return held
        if not held.present:
            return second(frame)
        return unwrapped(held) if unwrap else held

    return choose
