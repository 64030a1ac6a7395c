"""Characters to tokens.

*Source*: github.com/google/cel-go parser/gen/CEL.g4 and parser/unescape.go (0.26).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from plugins.cel.source import Issue, failure

NO_TEXT = ""
"""The text of the token that stands after the last one."""

_ESCAPE = (
    r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
)
_STRING = (
    r"(?:[rR](?:\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    rf"|\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf"|\"(?:{_ESCAPE}|[^\\\"\n\r])*\"|'(?:{_ESCAPE}|[^\\'\n\r])*')"
)
_TOKEN = re.compile(
    rf"""(?P<space>[\t \r\n\f]+|//[^\n]*)
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<bytes>[bB]{_STRING})
    |(?P<string>{_STRING})
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<escaped>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
_WORDS = {"in": "sign", "true": "word", "false": "word", "null": "word"}

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}
_MAX_CODE_POINT = 0x10FFFF


class Token(NamedTuple):
    """A token: its kind (name, int, string, sign, ...), its text and where it starts."""

    kind: str
    text: str
    position: int


def tokens(text: str) -> list[Token]:
    """Return the tokens of the expression; the last one has the kind ``end``.

    Raises
    ------
    CompileError
        A character begins no token.
    """
    found = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            message = f"Syntax error: token recognition error at: '{text[position]}'"
            raise failure(text, [Issue(position, message)])
        kind = str(match.lastgroup)
        if kind != "space":
            word = match.group()
            found.append(Token(_WORDS.get(word, kind) if kind == "name" else kind, word, position))
        position = match.end()
    found.append(Token("end", NO_TEXT, len(text)))
    return found


class BadLiteralError(ValueError):
    """The literal has no value; the message is cel-go's."""


def string_value(literal: str) -> str:
    """Return the text that a string literal stands for.

    Raises
    ------
    BadLiteralError
        An escape sequence is no code point.
    """
    raw, body = _body(literal)
    if raw or "\\" not in body:
        return body
    return "".join(
        part if isinstance(part, str) else _code_point(part) for part in _unescaped(body, False)
    )


def bytes_value(literal: str) -> bytes:
    """Return the bytes that a bytes literal stands for; its text is encoded as UTF-8.

    Raises
    ------
    BadLiteralError
        It has an escape sequence that only strings may have.
    """
    raw, body = _body(literal[1:])
    if raw or "\\" not in body:
        return body.encode()
    return b"".join(
        part.encode() if isinstance(part, str) else bytes([part]) for part in _unescaped(body, True)
    )


def _body(literal: str) -> tuple[bool, str]:
    literal = literal.replace("\r\n", "\n").replace("\r", "\n")
    raw = literal[0] in "rR"
    if raw:
        literal = literal[1:]
    if len(literal) >= 6 and literal[:3] in ("'''", '"""'):
        return raw, literal[3:-3]
    return raw, literal[1:-1]


def _code_point(number: int) -> str:
    if number > _MAX_CODE_POINT or 0xD800 <= number <= 0xDFFF:
        raise BadLiteralError("invalid unicode code point")
    return chr(number)


def _unescaped(body: str, is_bytes: bool) -> list[str | int]:
    """Return the parts of the body: texts as they are, numbers for escaped characters."""
    parts: list[str | int] = []
    position = 0
    while position < len(body):
        backslash = body.find("\\", position)
        if backslash < 0:
            parts.append(body[position:])
            break
        parts.append(body[position:backslash])
        kind = body[backslash + 1]
        position = backslash + 2
        if kind in _SIMPLE:
            parts.append(_SIMPLE[kind])
        elif kind in _DIGITS:
            if is_bytes and kind in "uU":
                raise BadLiteralError("unable to unescape string")
            parts.append(int(body[position : position + _DIGITS[kind]], 16))
            position += _DIGITS[kind]
        else:
            parts.append(int(body[position - 1 : position + 2], 8))
            position += 2
    return parts
