"""The errors of the evaluator, and the failures that never leave it."""

from __future__ import annotations

COST_LIMIT_EXCEEDED = "operation cancelled: actual cost limit exceeded"
"""The text for an evaluation that ran out of its budget, as cel-go words it."""


class CompileError(ValueError):
    """The expression cannot be used: its syntax, its types, or something not implemented."""


class EvaluationError(ValueError):
    """The expression failed for this device."""


class CelError(Exception):
    """An error value of CEL: it travels to the nearest operator that may absorb it."""


class LimitExceededError(Exception):
    """The evaluation costs more than its budget; nothing in an expression absorbs it."""

    def __init__(self) -> None:
        super().__init__(COST_LIMIT_EXCEEDED)


class BrokenCallError(Exception):
    """A call that makes cel-go's own code fail: it ends the evaluation, nothing absorbs it."""


NO_SUCH_OVERLOAD = "no such overload"


def no_such_overload() -> CelError:
    """Return the error of an operation that has no meaning for the types of its operands."""
    return CelError(NO_SUCH_OVERLOAD)
