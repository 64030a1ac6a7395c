"""Expressions, compiled and evaluated.

*Source*: k8s.io/dynamic-resource-allocation cel/compile.go, ``CompileCELExpression`` and
``DeviceMatches`` (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.cel import type_terms as types
from plugins.cel.checker import check
from plugins.cel.cost import COST_LIMIT
from plugins.cel.errors import (
    COST_LIMIT_EXCEEDED,
    BrokenCallError,
    CelError,
    CompileError,
    EvaluationError,
    LimitExceededError,
)
from plugins.cel.go_text import go_type
from plugins.cel.parser import parse
from plugins.cel.planner import Planner
from plugins.cel.reads import Projection, reads_of
from plugins.cel.regular_expressions import MAX_PATTERN_MEMORY
from plugins.cel.source import Issue, failure
from plugins.cel.validators import validate
from plugins.cel.values import Value, type_name

if TYPE_CHECKING:
    from plugins.cel.attributes import Run
    from plugins.cel.device import DeviceView

MAX_EXPRESSION_BYTES = 10 * 1024
"""Longest expression.

*Source*: k8s.io/api resource/v1 ``CELSelectorExpressionMaxLength`` (0.36).
"""


BYTES_PER_PROGRAM = 4096
"""Memory of the smallest program."""

BYTES_PER_CHARACTER = 300
"""Memory of a program for each character of its text: measured with the densest, nested loops."""


class Program:
    """A compiled expression over ``device``.

    Attributes
    ----------
    bytes : int
        The most memory that it may take.
    projection : Projection or None
        What it reads of well-formed devices; None where that may be anything.

    *Concurrency*: immutable; evaluations share nothing.
    """

    __slots__ = ("_run", "_slots", "bytes", "projection", "text")

    def __init__(
        self,
        text: str,
        run: Run,
        slots: int,
        patterns: int = 0,
        projection: Projection | None = None,
    ) -> None:
        self.text = text
        self.projection = projection
        self.bytes = (
            BYTES_PER_PROGRAM + BYTES_PER_CHARACTER * len(text) + MAX_PATTERN_MEMORY * patterns
        )
        self._run = run
        self._slots = slots

    def matches(self, device: DeviceView) -> bool:
        """Report whether the device satisfies the expression.

        Raises
        ------
        EvaluationError
            With kube-scheduler's text: an error of the expression, its budget, or a result that
            is no truth value.
        """
        return self.evaluate(device)[0]

    def evaluate(self, device: DeviceView) -> tuple[bool, int]:
        """Return whether the device satisfies the expression, and the cost of finding out.

        Raises
        ------
        EvaluationError
            As :meth:`matches`.
        """
        frame: list[Value] = [0, 0, device.checked(), *([None] * self._slots)]
        try:
            value = self._run(frame)
        except CelError as fault:
            text = COST_LIMIT_EXCEEDED if frame[0] > COST_LIMIT else str(fault)
            raise EvaluationError(text) from None
        except (LimitExceededError, BrokenCallError) as end:
            raise EvaluationError(str(end)) from None
        except RecursionError:
            raise EvaluationError("expression is nested too deeply") from None
        if frame[0] > COST_LIMIT:
            raise EvaluationError(COST_LIMIT_EXCEEDED)
        if value is True or value is False:
            return value, frame[0]
        raise EvaluationError(_not_bool(value))


_NOT_BOOL = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "string": "unsupported native conversion from string to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "type": "type conversion not supported for 'type'",
    "google.protobuf.Duration": "type conversion error from 'Duration' to 'bool'",
    "google.protobuf.Timestamp": "type conversion error from 'Timestamp' to 'bool'",
}


def _not_bool(value: Value) -> str:
    name = type_name(value)
    reason = _NOT_BOOL.get(name)
    if reason is None:
        short = go_type(value).rpartition(".")[2]
        reason = f"type conversion error from '{short}' to 'bool'"
    return f"CEL result of type {name} could not be converted to bool: {reason}"


def compile_expression(text: str) -> Program:
    """Return the program of a selector's expression.

    Raises
    ------
    CompileError
        With kube-scheduler's text for names and types; for syntax, in our own words.

    Notes
    -----
    *Cost*: linear in the text; some hundred microseconds for a usual selector.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_EXPRESSION_BYTES:
        raise CompileError(f"expression is longer than {MAX_EXPRESSION_BYTES} bytes")
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text if char > "\u0fff"):
        raise failure(text, [Issue(-1, "Syntax error: the text is no valid Unicode")])
    try:
        return _compiled(text)
    except RecursionError:
        raise CompileError("compilation failed: expression is nested too deeply") from None


def _compiled(text: str) -> Program:
    node = parse(text)
    checked, variables = check(text, node)
    validate(text, node, checked, variables)
    result = variables.substitute(checked.types[id(node)], to_dyn=True)
    if result not in (types.BOOL, types.ANY):
        raise CompileError(f"must evaluate to bool or the unknown type, not {types.named(result)}")
    planner = Planner(checked)
    run = planner.compiled(node)
    reads = reads_of(node)
    projection = None if reads is None else Projection(reads)
    return Program(text, run, planner.slots, planner.patterns, projection)
