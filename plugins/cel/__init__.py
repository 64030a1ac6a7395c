"""The Common Expression Language as Kubernetes uses it for the selectors of devices.

An expression is compiled once (:func:`compile_expression`) and evaluated for each distinct device
(:class:`DeviceView`). Nothing here knows of claims, classes or nodes.
"""

from plugins.cel.device import AttributeLike, DeviceView, is_amount, is_version
from plugins.cel.errors import COST_LIMIT_EXCEEDED, CompileError, EvaluationError
from plugins.cel.program import MAX_EXPRESSION_BYTES, Program, compile_expression

__all__ = [
    "COST_LIMIT_EXCEEDED",
    "MAX_EXPRESSION_BYTES",
    "AttributeLike",
    "CompileError",
    "DeviceView",
    "EvaluationError",
    "Program",
    "compile_expression",
    "is_amount",
    "is_version",
]
