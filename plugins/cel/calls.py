"""Calls: which implementation runs, what it costs, and where its errors go.

*Source*: github.com/google/cel-go interpreter/interpretable.go, common/decls/decls.go (0.26).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from plugins.cel.attributes import COST, Constant, Frame, Part, Run
from plugins.cel.cost import COST_LIMIT, Cost, call_cost
from plugins.cel.declarations import FUNCTIONS, Overload
from plugins.cel.errors import NO_SUCH_OVERLOAD, CelError, CompileError, LimitExceededError
from plugins.cel.functions import IMPLEMENTATIONS, SINGLETONS, UNGUARDED, VARIADIC
from plugins.cel.guards import classes, guard
from plugins.cel.operators import MAX_LIST, unsupported
from plugins.cel.regular_expressions import CONSTANT_PATTERNS
from plugins.cel.syntax import ADD, EQUALS, NOT_STRICTLY_FALSE
from plugins.cel.values import Value, equal, is_list, type_name
from plugins.cel.weights import MAX_WEIGHT, WEIGHED, weight_of_call

if TYPE_CHECKING:
    from collections.abc import Callable

_CONVERSIONS = frozenset(
    {
        "bool",
        "bytes",
        "double",
        "duration",
        "dyn",
        "int",
        "string",
        "timestamp",
        "type",
        "uint",
    }
)
NOT_EQUALS = "_!=_"


def constant_call(function: str, overloads: tuple[str, ...], parts: list[Part]) -> Part | None:
    """Return the result of a conversion of a constant, which is computed once; else None.

    Raises
    ------
    CompileError
        The constant cannot be converted.
    """
    if function not in _CONVERSIONS or len(parts) != 1 or not isinstance(parts[0], Constant):
        return None
    try:
        return Constant(_implementation(function, overloads)(parts[0].value))
    except CelError as fault:
        raise CompileError(f"program instantiation failed: {fault}") from None


def call(function: str, overloads: tuple[str, ...], parts: list[Part]) -> Run:
    """Return the run of a call of one of the overloads, which the checker found to fit."""
    if function == NOT_STRICTLY_FALSE:
        return _not_strictly_false(parts[0].run())
    if function in (EQUALS, NOT_EQUALS) and isinstance(parts[1], Constant):
        constant = parts[1].value
        if type(constant) is str:
            return _equals_text(parts[0].run(), constant, function == EQUALS)
        if type(constant) in (int, bool):
            return _equals_scalar(parts[0].run(), constant, function == EQUALS)
    overload = overloads[0] if len(overloads) == 1 else ""
    implementation = _implementation(function, overloads)
    stops_early = len(parts) > 2 or _variadic(function, overloads)
    if function in CONSTANT_PATTERNS and _is_text(parts[1]):
        implementation = CONSTANT_PATTERNS[function](parts[1].value)
        stops_early = True
    cost = call_cost(function, overload)
    if overload in _PARSERS and isinstance(parts[0], Constant) and len(parts) == 1:
        return _parsed(parts[0].value, implementation, cost or _ONE)
    runs = tuple(part.run() for part in parts)
    implementation = _weighed(function, implementation)
    if len(runs) == 2 and not stops_early and cost is None and function not in _COUNTED:
        return _cheap_pair(runs[0], runs[1], implementation)
    if len(runs) == 2 and not stops_early:
        return _counted_pair(runs[0], runs[1], implementation, cost or _ONE)
    return _counted(runs, implementation, cost or _ONE, stops_early)


def _is_text(part: Part) -> TypeGuard[Constant]:
    return isinstance(part, Constant) and type(part.value) is str


_COUNTED = WEIGHED | {ADD}


def _weighed(function: str, implementation: Callable[..., Value]) -> Callable[..., Value]:
    """Return the implementation behind a test of what lies inside its arguments."""
    if function not in WEIGHED:
        return implementation

    def weighed(*given: Value) -> Value:
        if weight_of_call(given) > MAX_WEIGHT:
            raise LimitExceededError
        return implementation(*given)

    return weighed


def _variadic(function: str, overloads: tuple[str, ...]) -> bool:
    """Report whether an error of one argument keeps the next ones from being evaluated."""
    if function in SINGLETONS or function in (EQUALS, NOT_EQUALS):
        return False
    return len(overloads) != 1 or overloads[0] in VARIADIC


def _implementation(function: str, overloads: tuple[str, ...]) -> Callable[..., Value]:
    if function == EQUALS:
        return _equals
    if function == NOT_EQUALS:
        return _differs
    singleton = SINGLETONS.get(function)
    if singleton is not None:
        kinds, implementation = singleton.kinds, singleton.implementation
        if kinds is None:
            return implementation

        def dispatched(*given: Value) -> Value:
            if type(given[0]) in kinds:
                return implementation(*given)
            raise unsupported(function, given[0])

        return dispatched
    if len(overloads) == 1:
        declared = next(each for each in FUNCTIONS[function] if each.name == overloads[0])
        return _guarded(function, declared)
    return _dispatcher(function)


def _guarded(function: str, overload: Overload) -> Callable[..., Value]:
    implementation = _implemented(overload.name)
    if function in UNGUARDED:
        return implementation
    exact = classes(overload.arguments)
    if exact is not None and len(exact) in (1, 2):
        return _guarded_by_class(function, implementation, exact)
    fits = guard(overload.arguments)
    if fits is None:
        return implementation

    def guarded(*given: Value) -> Value:
        if not fits(given):
            raise _no_such_overload(function, given)
        return implementation(*given)

    return guarded


def _guarded_by_class(
    function: str, implementation: Callable[..., Value], exact: tuple[type, ...]
) -> Callable[..., Value]:
    """Return the implementation behind the test of the classes of one argument or two."""
    first, last = exact[0], exact[-1]

    def unary(value: Value) -> Value:
        if type(value) is first:
            return implementation(value)
        raise _no_such_overload(function, (value,))

    def binary(value: Value, other: Value) -> Value:
        if type(value) is first and type(other) is last:
            return implementation(value, other)
        raise _no_such_overload(function, (value, other))

    return unary if len(exact) == 1 else binary


def _implemented(name: str) -> Callable[..., Value]:
    found: Callable[..., Value] | None = IMPLEMENTATIONS.get(name)
    if found is None:
        raise CompileError(f"function overload {name} is not implemented")
    return found


def _no_such_overload(function: str, given: tuple[Value, ...]) -> CelError:
    names = ", ".join(type_name(each) for each in given)
    return CelError(f"{NO_SUCH_OVERLOAD}: {function}({names})")


def _dispatcher(function: str) -> Callable[..., Value]:
    """Return a function that takes the first overload that its arguments fit."""
    candidates = [
        (len(each.arguments), guard(each.arguments), _implemented(each.name))
        for each in FUNCTIONS[function]
    ]

    def dispatch(*given: Value) -> Value:
        for count, fits, implementation in candidates:
            if count == len(given) and (function in UNGUARDED or fits is None or fits(given)):
                return implementation(*given)
        raise _no_such_overload(function, given)

    return dispatch


def _equals(first: Value, second: Value) -> bool:
    result = equal(first, second)
    if result is None:
        raise CelError(NO_SUCH_OVERLOAD)
    return result


def _differs(first: Value, second: Value) -> bool:
    return equal(first, second) is not True


def _equals_text(run: Run, text: str, wanted: bool) -> Run:
    """Return the run of a comparison with a constant text: the commonest of all."""
    size = len(text)
    full = -(-size // 10)

    def compare(frame: Frame) -> bool:
        try:
            value = run(frame)
        except CelError:
            frame[COST] += 1 if size else 0
            raise
        if type(value) is str:
            if value == text:
                frame[COST] += full
                return wanted
            frame[COST] += -(-min(len(value), size) // 10)
            return not wanted
        given = (value, text)
        frame[COST] += _EQUALS_COST(given, None) if wanted else _DIFFERS_COST(given, None)
        return _equals(value, text) if wanted else _differs(value, text)

    return compare


def _equals_scalar(run: Run, constant: int | bool, wanted: bool) -> Run:
    """Return the run of a comparison with a constant integer or truth value."""
    kind = type(constant)

    def compare(frame: Frame) -> bool:
        try:
            value = run(frame)
        except CelError:
            frame[COST] += 1
            raise
        if type(value) is kind:
            frame[COST] += 1
            return (value == constant) is wanted
        given = (value, constant)
        frame[COST] += _EQUALS_COST(given, None) if wanted else _DIFFERS_COST(given, None)
        return _equals(value, constant) if wanted else _differs(value, constant)

    return compare


_EQUALS_COST = call_cost(EQUALS, "equals") or (lambda given, result: 1)
_DIFFERS_COST = call_cost(NOT_EQUALS, "not_equals") or (lambda given, result: 1)


_PARSERS = frozenset({"string_to_quantity", "string_to_semver", "string_to_ip", "string_to_cidr"})
"""Calls whose result, for a constant, is computed with the expression; each costs what it costs."""


def _parsed(constant: Value, implementation: Callable[..., Value], cost: Cost) -> Run:
    try:
        result = implementation(constant)
    except CelError as error:
        message, price = str(error), cost((constant,), error)

        def fail(frame: Frame) -> Value:
            _charge(frame, price, None)
            raise CelError(message)

        return fail
    price = cost((constant,), result)

    def run(frame: Frame) -> Value:
        frame[COST] += price
        return result

    return run


def _not_strictly_false(run: Run) -> Run:
    def test(frame: Frame) -> bool:
        frame[COST] += 1
        try:
            value = run(frame)
        except CelError:
            return True
        return value is not False

    return test


def _cheap_pair(first: Run, second: Run, implementation: Callable[..., Value]) -> Run:
    """Return the run of a call with two arguments that costs 1."""

    def run(frame: Frame) -> Value:
        frame[COST] += 1
        try:
            left = first(frame)
        except CelError:
            _evaluated(second, frame)
            raise
        return implementation(left, second(frame))

    return run


def _evaluated(run: Run, frame: Frame) -> Value:
    """Return the value or the error of the run."""
    try:
        return run(frame)
    except CelError as fault:
        return fault


def _one(given: tuple[Value, ...], result: Value) -> int:
    return 1


_ONE: Cost = _one


def _charge(frame: Frame, cost: int, result: Value) -> None:
    """Add the cost of a call.

    Raises
    ------
    LimitExceededError
        That was too much, or the result is too long a list.
    """
    frame[COST] += cost
    if not 0 <= frame[COST] <= COST_LIMIT or (is_list(result) and len(result) > MAX_LIST):
        raise LimitExceededError


def _counted_pair(first: Run, second: Run, implementation: Callable[..., Value], cost: Cost) -> Run:
    """Return the run of a call with two arguments, both of which are evaluated in any case."""

    def run(frame: Frame) -> Value:
        try:
            left = first(frame)
        except CelError as error:
            _charge(frame, cost((error, _evaluated(second, frame)), error), None)
            raise
        try:
            right = second(frame)
        except CelError as error:
            _charge(frame, cost((left, error), error), None)
            raise
        given = (left, right)
        try:
            result = implementation(left, right)
        except CelError as error:
            _charge(frame, cost(given, error), None)
            raise
        _charge(frame, cost(given, result), result)
        return result

    return run


def _counted(
    runs: tuple[Run, ...],
    implementation: Callable[..., Value],
    cost: Cost,
    stops_early: bool,
) -> Run:
    """Return the run of a call whose cost depends on its arguments or its result."""
    last = len(runs) - 1

    def run(frame: Frame) -> Value:
        values = []
        fault: CelError | None = None
        for index, argument in enumerate(runs):
            value = _evaluated(argument, frame)
            if type(value) is CelError:
                if stops_early and index < last:
                    raise value
                fault = fault or value
            values.append(value)
        given = tuple(values)
        result: Value = fault
        if fault is None:
            try:
                result = implementation(*given)
            except CelError as error:
                result = fault = error
        _charge(frame, cost(given, result), result)
        if fault is not None:
            raise fault
        return result

    return run
