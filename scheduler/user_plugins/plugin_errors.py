"""Describes exceptions that users' code raises."""

from __future__ import annotations

import traceback
from pathlib import PurePath

from plugins.authoring.checked_results import PolicyAnswerError


def told(error: BaseException, file: str) -> str:
    """Return the error as text, with the line of the user's file.

    Parameters
    ----------
    file
        The user's file, as tracebacks name it; empty if it is not known.
    """
    return _what(error) + _where(error, file)


def kind_of(error: BaseException) -> str:
    """Return the kind of a failure for metrics: ``raised``, ``memory`` or the error's own kind."""
    if isinstance(error, PolicyAnswerError):
        return error.kind
    return "memory" if isinstance(error, MemoryError) else "raised"


def named(error: BaseException) -> str:
    """Return the text of an exception as in the last line of its traceback."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def line_in(file: str, error: BaseException) -> int:
    """Return the innermost line of a file in an exception's traceback; 0 if there is none."""
    line = 0
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file:
            line = number
    return line


def _what(error: BaseException) -> str:
    if isinstance(error, PolicyAnswerError):
        return str(error)
    if isinstance(error, MemoryError):
        return str(error) or "it allocates more memory than a call may"
    return named(error)


def _where(error: BaseException, file: str) -> str:
    if not file:
        return ""
    name = file if file.startswith("<") else PurePath(file).name
    line = line_in(file, error)
    return f" ({name}, line {line})" if line else f" ({name})"
