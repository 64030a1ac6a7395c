"""Tokens to a tree: precedence climbing, with macros expanded where they are called.

Nothing here recurses except through parentheses, brackets and braces, whose nesting is bounded.

*Source*: github.com/google/cel-go parser/gen/CEL.g4 and parser/parser.go (0.26).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.cel.lexer import BadLiteralError, Token, bytes_value, string_value, tokens
from plugins.cel.macros import MacroError, expanded
from plugins.cel.source import Issue, failure
from plugins.cel.syntax import (
    AND,
    CONDITIONAL,
    INDEX,
    NEGATE,
    NOT,
    OPTIONAL_INDEX,
    OPTIONAL_SELECT,
    OR,
    Call,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    qualified_name,
)
from plugins.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

if TYPE_CHECKING:
    from plugins.cel.errors import CompileError

MAX_NESTING = 64
"""Deepest nesting of parentheses, brackets and braces.

# Differs: cel-go stops at 250. A selector of a device needs a handful, and Python's own stack
has to hold the parser, the checker and the evaluation.
"""

MAX_DEPTH = 128
"""Deepest tree, where each operator, call and field is a level; cel-go stops at about 250."""

_RELATIONS = {word: f"_{word}_" for word in ("<", "<=", ">=", ">", "==", "!=")} | {"in": "@in"}
_BINARY: dict[str, tuple[int, str]] = {
    "||": (1, OR),
    "&&": (2, AND),
    **{word: (3, function) for word, function in _RELATIONS.items()},
    "+": (4, "_+_"),
    "-": (4, "_-_"),
    "*": (5, "_*_"),
    "/": (5, "_/_"),
    "%": (5, "_%_"),
}
_RESERVED = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    }
)
_WORDS = {"true": True, "false": False, "null": None}


def parse(text: str) -> Node:
    """Return the tree of the expression.

    Raises
    ------
    CompileError
        The text is no expression, or is nested too deeply.
    """
    parser = _Parser(text)
    node = parser.expression()
    if parser.token.kind != "end":
        raise parser.unexpected("expecting <EOF>")
    if parser.issues:
        raise failure(text, parser.issues)
    return node


class _Parser:
    """The state of one parse: the tokens, the place in them and what is wrong so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._index = 0
        self._nesting = 0
        self.token: Token = self._tokens[0]
        self.issues: list[Issue] = []

    def unexpected(self, wanted: str) -> CompileError:
        """Return the error for a token that may not stand here."""
        shown = self.token.text or "<EOF>"
        message = f"Syntax error: mismatched input '{shown}' {wanted}"
        return failure(self._text, [*self.issues, Issue(self.token.position, message)])

    def expression(self) -> Node:
        """Return the next expression: a ternary or what binds closer."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            message = f"expression recursion limit exceeded: {MAX_NESTING}"
            raise failure(self._text, [Issue(-1, message)])
        pending: list[tuple[int, Node, Node]] = []
        node = self._binary()
        while self._is_sign("?"):
            position = self._next().position
            middle = self._binary()
            self._expect(":")
            pending.append((position, node, middle))
            if len(pending) > MAX_NESTING:
                message = f"expression recursion limit exceeded: {MAX_NESTING}"
                raise failure(self._text, [Issue(-1, message)])
            node = self._binary()
        for position, condition, truthy in reversed(pending):
            node = Call(position, CONDITIONAL, [condition, truthy, node])
        self._nesting -= 1
        return node

    def _binary(self) -> Node:
        """Return operands and operators of all precedences above the ternary's."""
        operands = [self._unary()]
        operators: list[tuple[int, str, int]] = []
        while self.token.kind == "sign" and self.token.text in _BINARY:
            precedence, function = _BINARY[self.token.text]
            while operators and operators[-1][0] >= precedence:
                _reduce(operands, operators)
            operators.append((precedence, function, self._next().position))
            operands.append(self._unary())
        while operators:
            _reduce(operands, operators)
        return operands[0]

    def _unary(self) -> Node:
        first = self.token
        if first.kind != "sign" or first.text not in ("!", "-"):
            return self._member()
        if first.text == "-" and self._tokens[self._index + 1].kind in ("int", "float"):
            return self._member()
        count = 0
        while self._accept(first.text):
            count += 1
        node = self._member()
        if count % 2 == 0:
            return node
        return Call(first.position, NOT if first.text == "!" else NEGATE, [node])

    def _member(self) -> Node:
        node = self._primary()
        while self.token.kind == "sign":
            sign = self.token.text
            if sign == ".":
                node = self._field(node)
            elif sign == "[":
                position = self._next().position
                function = OPTIONAL_INDEX if self._accept("?") else INDEX
                index = self.expression()
                self._expect("]")
                node = Call(position, function, [node, index])
            elif sign == "{" and qualified_name(node) is not None:
                raise self._message(node)
            else:
                break
        return node

    def _field(self, operand: Node) -> Node:
        position = self._next().position
        optional = self._accept("?")
        name = self.token
        if name.kind == "escaped":
            self.issues.append(Issue(name.position, "unsupported syntax: '`'"))
        elif name.kind != "name":
            raise self.unexpected("expecting IDENTIFIER")
        self._next()
        if optional:
            return Call(position, OPTIONAL_SELECT, [operand, Literal(name.position, name.text)])
        if self._is_sign("(") and name.kind == "name":
            opened = self._next().position
            return self._called(opened, name.text, operand, self._arguments())
        return Select(position, operand, name.text)

    def _called(self, position: int, name: str, target: Node | None, given: list[Node]) -> Node:
        try:
            macro = expanded(position, name, target, given)
        except MacroError as error:
            self.issues.append(Issue(error.position, str(error)))
            return Literal(position, None)
        return Call(position, name, given, target) if macro is None else macro

    def _arguments(self) -> list[Node]:
        given: list[Node] = []
        if self._accept(")"):
            return given
        given.append(self.expression())
        while self._accept(","):
            given.append(self.expression())
        self._expect(")")
        return given

    def _primary(self) -> Node:
        token = self.token
        if token.kind == "sign":
            return self._bracketed(token)
        if token.kind == "name":
            return self._named("", token)
        if token.kind == "word":
            self._next()
            return Literal(token.position, _WORDS[token.text])
        if token.kind in ("int", "uint", "float", "string", "bytes"):
            return self._literal("")
        raise self.unexpected("expecting an expression")

    def _bracketed(self, token: Token) -> Node:
        if token.text == "(":
            self._next()
            node = self.expression()
            self._expect(")")
            return node
        if token.text == "[":
            self._next()
            return self._list(token.position)
        if token.text == "{":
            self._next()
            return self._map(token.position)
        if token.text == "." and self._tokens[self._index + 1].kind == "name":
            self._next()
            return self._named(".", self.token)
        if token.text == "-" and self._tokens[self._index + 1].kind in ("int", "float"):
            self._next()
            return self._literal("-")
        raise self.unexpected("expecting an expression")

    def _named(self, dot: str, token: Token) -> Node:
        self._next()
        reserved = token.text in _RESERVED
        if reserved:
            message = f"reserved identifier: {token.text}"
            self.issues.append(Issue(token.position - len(dot), message))
        if self._is_sign("("):
            opened = self._next().position
            given = self._arguments()
            if reserved:
                return Literal(opened, None)
            return self._called(opened, dot + token.text, None, given)
        return Ident(token.position, dot + token.text)

    def _list(self, position: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._is_sign("]"):
            if self._is_sign(",") and not elements:
                self._next()
                break
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self.expression())
            if not self._accept(","):
                break
        self._expect("]")
        return ListNode(position, elements, frozenset(optional))

    def _map(self, position: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._is_sign("}"):
            if self._is_sign(",") and not entries:
                self._next()
                break
            optional = self._accept("?")
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression(), optional))
            if not self._accept(","):
                break
        self._expect("}")
        return MapNode(position, entries)

    def _message(self, node: Node) -> CompileError:
        # Differs: protobuf's own messages are known to cel-go; selectors have no use for them.
        name = (qualified_name(node) or "").lstrip(".")
        message = f"undeclared reference to '{name}' (in container '')"
        return failure(self._text, [*self.issues, Issue(self.token.position, message)])

    def _literal(self, sign: str) -> Node:
        token = self._next()
        position = token.position
        if sign:
            position = self._tokens[self._index - 2].position
        try:
            return Literal(position, _literal_value(token, sign))
        except BadLiteralError as error:
            self.issues.append(Issue(position, str(error)))
            return Literal(position, None)

    def _next(self) -> Token:
        token = self.token
        self._index += 1
        self.token = self._tokens[self._index]
        return token

    def _is_sign(self, text: str) -> bool:
        return self.token.kind == "sign" and self.token.text == text

    def _accept(self, text: str) -> bool:
        if not self._is_sign(text):
            return False
        self._next()
        return True

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self.unexpected(f"expecting '{text}'")


def _reduce(operands: list[Node], operators: list[tuple[int, str, int]]) -> None:
    _, function, position = operators.pop()
    right = operands.pop()
    left = operands.pop()
    if function in (AND, OR) and isinstance(left, Call) and left.function == function:
        # One node for the whole chain: a long list of conditions is no deep tree.
        left.arguments.append(right)
        operands.append(left)
        return
    operands.append(Call(position, function, [left, right]))


def _literal_value(token: Token, sign: str) -> int | float | str | bytes:
    text = token.text
    if token.kind == "string":
        return string_value(text)
    if token.kind == "bytes":
        return bytes_value(text)
    if token.kind == "float":
        number = float(sign + text)
        if number in (float("inf"), float("-inf")):
            raise BadLiteralError("invalid double literal")
        return number
    unsigned = token.kind == "uint"
    digits = text[:-1] if unsigned else text
    base = 16 if digits.startswith("0x") else 10
    # Longer ones are out of range; int() itself takes quadratic time.
    value = int(sign + digits, base) if len(digits.lstrip("0x")) <= 40 else UINT_MAX + 1
    if unsigned:
        if value > UINT_MAX:
            raise BadLiteralError("invalid uint literal")
        return Uint(value)
    if not INT_MIN <= value <= INT_MAX:
        raise BadLiteralError("invalid int literal")
    return value
