"""CEL expressions about devices with aliases in place of their names and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.quantity import QuantityError, exact_value
from plugins.cel import CompileError, compile_expression
from plugins.cel.lexer import BadLiteralError, Token, string_value, tokens
from scheduler.journal.redacted_texts import version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.journal.aliases import Names

HIDDEN: Final = "false"
"""What stands for an expression that looks into texts: an alias has other letters."""

_CALLS: Final = frozenset(
    {
        *("has", "all", "exists", "exists_one", "existsOne", "filter", "map", "bind"),
        *("transformList", "transformMap", "transformMapEntry", "optMap", "optFlatMap"),
        *("quantity", "semver", "isQuantity", "isSemver", "isGreaterThan", "isLessThan"),
        *("compareTo", "isInteger", "asInteger", "asApproximateFloat", "sign"),
        *("major", "minor", "patch", "or", "orValue", "value", "hasValue", "of", "none"),
        *("ofNonZeroValue", "dyn", "bool", "abs", "ceil", "floor", "round", "max", "min"),
    }
)
"""Functions whose results do not depend on the letters of a text."""

_VARIABLES: Final = frozenset({"device", "cel", "math", "optional"})
_FIELDS: Final = frozenset({"driver", "attributes", "capacity", "allowMultipleAllocations"})


def redacted_expression(text: str, names: Names) -> str:
    """Return an expression that selects the redacted devices, or :data:`HIDDEN`.

    Names, texts and local variables get aliases; comments are left out.
    """
    try:
        compile_expression(text)
        read = tokens(text)
        values = {token: string_value(token.text) for token in read if token.kind == "string"}
    except (CompileError, BadLiteralError, RecursionError):
        return f"{names.plain(text)} ?"  # no expression either
    if not _is_about_equality(read):
        return HIDDEN
    parts = []
    for index, token in enumerate(read[:-1]):
        if token.kind == "string":
            parts.append(f'"{_literal(values[token], read, index, names)}"')
        elif token.kind in ("name", "escaped"):
            parts.append(_name(read, index, names))
        else:
            parts.append(token.text)
    return " ".join(parts)


def _is_about_equality(read: Sequence[Token]) -> bool:
    """Return whether texts are compared as a whole only."""
    for index, token in enumerate(read[:-1]):
        following = read[index + 1].text
        if token.kind == "bytes" or (token.kind == "sign" and token.text == "+"):
            return False
        if token.kind == "name" and following == "(" and token.text not in _CALLS:
            return False
        if token.text == "device" and following != ".":
            return False
    return True


def _literal(value: str, read: Sequence[Token], index: int, names: Names) -> str:
    function = read[index - 2].text if index >= 2 and read[index - 1].text == "(" else ""
    if function in ("semver", "isSemver"):
        return version(value, names)
    if function in ("quantity", "isQuantity"):
        try:
            exact_value(value)
        except QuantityError:
            return names.plain(value)
        return value
    return names.plain(value)


def _name(read: Sequence[Token], index: int, names: Names) -> str:
    token = read[index]
    if token.kind == "name" and read[index + 1].text == "(":
        return token.text
    is_field = index > 0 and _is_selected(read, index)
    if not is_field:
        return token.text if token.text in _VARIABLES else names.plain(token.text)
    operand = read[index - 2] if read[index - 1].text == "." else read[index - 3]
    if operand.text in _VARIABLES and token.text in _FIELDS:
        return token.text
    return names.plain(token.text.strip("`"))


def _is_selected(read: Sequence[Token], index: int) -> bool:
    before = read[index - 1].text
    return before == "." or (before == "?" and index > 1 and read[index - 2].text == ".")
