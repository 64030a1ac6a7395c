"""Positions in an expression, and messages that point at them."""

from __future__ import annotations

from typing import NamedTuple

from plugins.cel.errors import CompileError

MAX_SNIPPET = 16384
"""Longest line that a message quotes.

*Source*: github.com/google/cel-go common/error.go (0.26).
"""

MAX_MESSAGES = 100
"""Errors that are reported for one expression; the others are counted.

*Source*: github.com/google/cel-go common/errors.go (0.26).
"""


class Issue(NamedTuple):
    """A message about the character at ``position``, counted in code points."""

    position: int
    message: str


def failure(text: str, issues: list[Issue]) -> CompileError:
    """Return the error that lists the issues, in the order of their positions.

    Notes
    -----
    *Source*: github.com/google/cel-go common/errors.go, ``Errors.ToDisplayString`` (0.26);
    k8s.io/dynamic-resource-allocation cel/compile.go, ``CompileCELExpression`` (0.36).
    """
    shown = issues[:MAX_MESSAGES]
    lines = [_display(text, issue) for issue in sorted(shown, key=lambda each: each.position)]
    if len(issues) > MAX_MESSAGES:
        lines.append(f"{len(issues) - MAX_MESSAGES} more errors were truncated")
    return CompileError("compilation failed: " + "\n".join(lines))


def _display(text: str, issue: Issue) -> str:
    if issue.position < 0:
        return f"ERROR: <input>:-1:0: {issue.message}"
    before = text[: issue.position]
    line = before.count("\n") + 1
    start = before.rfind("\n") + 1
    column = issue.position - start
    end = text.find("\n", start)
    snippet = text[start : end if end >= 0 else len(text)]
    message = f"ERROR: <input>:{line}:{column + 1}: {issue.message}"
    if len(snippet) > MAX_SNIPPET:
        return message
    snippet = snippet.replace("\t", " ")
    dots = "".join("\uff0e" if ord(char) > 127 else "." for char in snippet[:column])
    wide = column < len(snippet) and ord(snippet[column]) > 127
    return f"{message}\n | {snippet}\n | {dots}{chr(0xFF3E) if wide else '^'}"
