"""The Common Expression Language as Kubernetes uses it for the selectors of devices.

An expression is compiled once (:func:`compile_expression`) and evaluated for each distinct device
(:class:`DeviceView`). Nothing here knows of claims, classes or nodes.

The compiler is imported with the first expression: most clusters have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.cel.device import AttributeLike, DeviceView, is_amount, is_version
from plugins.cel.errors import COST_LIMIT_EXCEEDED, CompileError, EvaluationError

if TYPE_CHECKING:
    from plugins.cel.program import Program

__all__ = [
    "COST_LIMIT_EXCEEDED",
    "AttributeLike",
    "CompileError",
    "DeviceView",
    "EvaluationError",
    "compile_expression",
    "is_amount",
    "is_version",
]


def compile_expression(text: str) -> Program:
    """Compile an expression; see :func:`plugins.cel.program.compile_expression`.

    Raises
    ------
    CompileError
        With kube-scheduler's text.
    """
    from plugins.cel.program import compile_expression as compile_  # noqa: PLC0415 - see above

    return compile_(text)
