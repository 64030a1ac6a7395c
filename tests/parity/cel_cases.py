"""Random CEL expressions and devices.

Most expressions are written by a grammar that knows types, so that they compile, with a wrong
type here and there; others are selectors as people write them, with some of their words changed,
or texts that are nearly selectors. The devices have the attributes that the expressions name,
mostly with the type that they expect. Drawn from :mod:`random`, as hypothesis would take most of
the time for its bookkeeping; :func:`simpler` makes a smaller expression from one that differs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from tests.parity.cel_words import (
    ANY_TYPES,
    ATTRIBUTES,
    BAD_TEXTS,
    CAPACITIES,
    COMPARABLE,
    DRIVER,
    FORMATS,
    FUNCTIONS,
    LITERALS,
    NUMBERS,
    OTHER_DOMAIN,
    RARE_TYPES,
    REAL_SELECTORS,
    Signature,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.parity.vocabulary import Json

DEPTH: Final = 4
_VARIABLES = ("x", "y", "k", "v", "a")


@dataclass(frozen=True, slots=True)
class Node:
    """An expression of a type, in words and the expressions between them."""

    type: str
    parts: tuple[str | Node, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def children(self) -> list[Node]:
        """Return the expressions inside, the outermost first."""
        return [part for part in self.parts if isinstance(part, Node)]

    def inside(self) -> Iterator[Node]:
        """Yield every expression inside."""
        for child in self.children():
            yield child
            yield from child.inside()


def simpler(node: Node) -> Iterator[Node]:
    """Yield the expressions that one change makes smaller, the smallest changes last."""
    for smaller in node.inside():
        if smaller.type == node.type:
            yield smaller
    literals = LITERALS.get(node.type, ("[]",) if node.type.startswith("list(") else ())
    for literal in literals[:2]:
        if len(literal) < len(str(node)):
            yield Node(node.type, (literal,))
    for place, part in enumerate(node.parts):
        if isinstance(part, Node):
            for smaller in simpler(part):
                yield Node(node.type, (*node.parts[:place], smaller, *node.parts[place + 1 :]))


# --- types --------------------------------------------------------------------------------------

_VARIABLE_TYPES = {"T": (*ANY_TYPES, *ANY_TYPES, "list(int)"), "C": COMPARABLE, "N": NUMBERS}


def _inner(kind: str) -> str:
    """Return ``int`` of ``list(int)``, and the values' type of a map."""
    inside = kind[kind.index("(") + 1 : -1]
    return inside.partition(",")[2] if kind.startswith("map(") else inside


def _bind(pattern: str, kind: str) -> str | None:
    """Return the type that a pattern's variable is in a type, ``""`` without a variable."""
    if pattern in _VARIABLE_TYPES:
        return kind if pattern == "T" or kind in _VARIABLE_TYPES[pattern] else None
    if pattern == kind:
        return ""
    head, found, _ = pattern.partition("(")
    if found and kind.startswith(f"{head}(") and "," not in kind + pattern:
        return _bind(_inner(pattern), _inner(kind))
    return None


@cache
def _producers(kind: str) -> tuple[tuple[tuple[Signature, str], ...], ...]:
    """Return the functions that return a type, the usual ones and the rare ones."""
    found = [
        (signature, bound)
        for result, some in FUNCTIONS.items()
        if (bound := _bind(result, kind)) is not None
        for signature in some
    ]
    usual = tuple(each for each in found if not each[0].rare())
    return usual, tuple(each for each in found if each[0].rare())


def _filled(pattern: str, bound: str) -> str:
    return re.sub(r"\b[TCN]\b", bound, pattern)


# --- the grammar --------------------------------------------------------------------------------

Scope = tuple[tuple[str, str], ...]


class Writer:
    """Writes expressions; what it writes depends on the random numbers alone."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def expression(self, kind: str, depth: int = DEPTH, scope: Scope = ()) -> Node:
        """Return an expression that mostly has this type."""
        random = self._random
        if random.random() < 0.012:
            return self._wrong(kind, depth, scope)
        known = [name for name, its in scope if its == kind]
        if known and random.random() < 0.4:
            return Node(kind, (random.choice(known),))
        if depth <= 0 or random.random() < 0.12:
            return self._leaf(kind, scope)
        roll = random.random()
        if roll < 0.25:
            return self._operator(kind, depth - 1, scope)
        if roll < 0.37:
            return self._macro(kind, depth - 1, scope)
        if roll < 0.43:
            parts = self._filling("(%b ? %0 : %0)", kind, depth - 1, scope)
            return Node(kind, parts)
        if roll < 0.48:
            return self._looked_up(kind, depth - 1, scope)
        if roll < 0.65 and (kind in ATTRIBUTES or kind == "quantity"):
            return self._of_device(kind)
        return self._call(kind, depth - 1, scope)

    def _wrong(self, kind: str, depth: int, scope: Scope) -> Node:
        other = self.expression(self._random.choice([*ANY_TYPES, "list(int)"]), depth - 1, scope)
        if self._random.random() < 0.7:
            return Node(kind, ("dyn(", other, ")"))
        return Node(kind, (other,))

    def _filling(self, pattern: str, kind: str, depth: int, scope: Scope) -> tuple[str | Node, ...]:
        """Fill ``%0`` with an expression of the type, ``%b`` with a bool, ``%i`` an int."""
        kinds = {"%0": kind, "%b": "bool", "%i": "int"}
        return tuple(
            self.expression(kinds[part], depth, scope) if part in kinds else part
            for part in re.split(r"(%[0bi])", pattern)
            if part
        )

    # --- leaves ---------------------------------------------------------------------------------

    def _leaf(self, kind: str, scope: Scope = ()) -> Node:
        random = self._random
        if kind in ATTRIBUTES and random.random() < 0.4:
            return self._of_device(kind)
        if kind in LITERALS:
            return Node(kind, (random.choice(LITERALS[kind]),))
        if kind == "quantity" and random.random() < 0.6:
            return self._of_device(kind)
        if kind.startswith("list("):
            some = [self.expression(_inner(kind), 0, scope) for _ in range(random.randrange(4))]
            return Node(kind, ("[", *_joined(some), "]"))
        if kind.startswith("map("):
            keys = random.sample(['"a"', '"b"', '"model"', '""'], random.randrange(3))
            pairs = [
                Node("pair", (key, ": ", self.expression(_inner(kind), 0, scope))) for key in keys
            ]
            return Node(kind, ("{", *_joined(pairs), "}"))
        if kind.startswith("optional("):
            return Node(kind, ("optional.of(", self.expression(_inner(kind), 0, scope), ")"))
        if kind == "format":
            return Node(kind, ("format.dns1123Label()",))
        return Node(kind, (f"{kind}(", self._leaf(f"{kind}_text"), ")"))

    def _of_device(self, kind: str) -> Node:
        """Return the value of an attribute or a capacity, with one of the ways to write it."""
        random = self._random
        if kind == "string" and random.random() < 0.25:
            return Node(kind, ("device.driver",))
        if kind == "bool" and random.random() < 0.2:
            return Node(kind, ("device.allowMultipleAllocations",))
        ids = CAPACITIES if kind == "quantity" else ATTRIBUTES[kind]
        name = random.choice(ids) if random.random() < 0.95 else random.choice(["gone", "cores"])
        field = "capacity" if kind == "quantity" else "attributes"
        domain = self._domain()
        pattern = random.choice(
            [
                *['device.{0}["{1}"].{2}'] * 6,
                'device.{0}["{1}"]["{2}"]',
                "cel.bind(d, device.{0}['{1}'], d.{2})",
                'device.{0}["{1}"].?{2}.value()',
                'device.{0}[?"{1}"].?{2}.value()',
                'device.{0}["{1}"][?"{2}"].value()',
            ]
        )
        return Node(kind, (pattern.format(field, domain, name),))

    def _domain(self) -> str:
        roll = self._random.random()
        return DRIVER if roll < 0.8 else OTHER_DOMAIN if roll < 0.97 else "no.example.com"

    # --- operators ------------------------------------------------------------------------------

    def _operator(self, kind: str, depth: int, scope: Scope) -> Node:
        random = self._random
        if kind == "bool":
            return self._condition(depth, scope)
        patterns = ["(%0)"]
        if kind in {"int", "double"}:
            patterns = ["%0 + %0", "%0 - %0", "%0 * %0", "%0 / %0", "-%0", "(-%0)"]
        if kind in {"int", "uint"}:
            patterns += ["%0 % %0", "%0 + %0", "%0 - %0", "%0 * %0", "%0 / %0"]
        if kind in {"string", "bytes"} or kind.startswith("list("):
            patterns = ["%0 + %0", "%0 + %0 + %0"]
        if kind == "duration":
            patterns = ["%0 + %0", "%0 - %0"]
        parts = self._filling(random.choice(patterns), kind, depth, scope)
        return _in_parentheses(kind, parts, random)

    def _condition(self, depth: int, scope: Scope) -> Node:
        random = self._random
        roll = random.random()
        if roll < 0.4:
            pattern = random.choice(["%b && %b", "%b || %b", "!%b", "%b && %b && %b", "!(%b)"])
            return _in_parentheses("bool", self._filling(pattern, "bool", depth, scope), random)
        if roll < 0.65:
            other = random.choice(
                [*ANY_TYPES, "list(int)", "list(string)", "map(string,int)", "null", "duration"]
            )
            parts = self._filling(random.choice(["%0 == %0", "%0 != %0"]), other, depth, scope)
        elif roll < 0.85:
            operator = random.choice([" < ", " <= ", " > ", " >= "])
            left = random.choice(["int", "double", "uint", "string", "bool", "duration", "bytes"])
            numbers = ["int", "double", "uint"]
            right = random.choice(numbers) if left in numbers else left
            ends = (self.expression(each, depth, scope) for each in (left, right))
            parts = (next(ends), operator, next(ends))
        elif roll < 0.95:
            inner = random.choice(ANY_TYPES)
            some = self.expression(f"list({inner})", depth, scope)
            parts = (self.expression(inner, depth, scope), " in ", some)
        else:
            parts = (self.expression("string", depth, scope), " in ", self._map_of_device())
        return _in_parentheses("bool", parts, random)

    def _map_of_device(self) -> str:
        field = self._random.choice(["attributes", "capacity"])
        return f'device.{field}["{self._domain()}"]'

    # --- functions, lookups, macros -------------------------------------------------------------

    def _call(self, kind: str, depth: int, scope: Scope) -> Node:
        random = self._random
        usual, rare = _producers(kind)
        some = rare if rare and (not usual or random.random() < 0.04) else usual
        if not some:
            return self._leaf(kind, scope)
        signature, bound = random.choice(some)
        text = f"{signature.result}{signature.receiver}{signature.arguments}"
        variable = re.search(r"\b[TCN]\b", text)
        if variable and not bound:
            bound = random.choice(_VARIABLE_TYPES[variable[0]])
        if signature.name == "format":
            pattern, values = random.choice(FORMATS), random.choice(LITERALS["formatted"])
            return Node(kind, (pattern, ".format(", values, ")"))
        arguments = [
            self.expression(_filled(each, bound), depth, scope) for each in signature.arguments
        ]
        call = (f"{signature.name}(", *_joined(arguments), ")")
        if signature.receiver is None:
            return Node(kind, call)
        receiver = self.expression(_filled(signature.receiver, bound), depth, scope)
        return Node(kind, (receiver, ".", *call))

    def _looked_up(self, kind: str, depth: int, scope: Scope) -> Node:
        random = self._random
        if "," in kind or len(kind) > 20:
            return self._leaf(kind, scope)
        if random.random() < 0.6:
            index = random.choice(["[0]", "[1]", "[-1]", "[3]", "[0.0]", "[0u]", "[?0].value()"])
            return Node(kind, (self.expression(f"list({kind})", depth, scope), index))
        index = random.choice(['["a"]', ".a", ".b", ".?a.value()", '["zz"]', ".?b.orValue(", "[1]"])
        some = self.expression(f"map(string,{kind})", depth, scope)
        if index.endswith("("):
            return Node(kind, (some, index, self.expression(kind, depth, scope), ")"))
        return Node(kind, (some, index))

    def _macro(self, kind: str, depth: int, scope: Scope) -> Node:
        random = self._random
        if random.random() < 0.25 or not (kind == "bool" or "(" in kind):
            name, other = random.choice(_VARIABLES), random.choice(ANY_TYPES)
            value = self.expression(other, depth, scope)
            body = self.expression(kind, depth, ((name, other), *scope))
            return Node(kind, (f"cel.bind({name}, ", value, ", ", body, ")"))
        if kind == "bool":
            return self._predicate(depth, scope)
        if kind.startswith("list("):
            return self._list_macro(kind, depth, scope)
        if kind.startswith("optional("):
            other = random.choice(ANY_TYPES)
            name = random.choice(_VARIABLES)
            value = self.expression(f"optional({other})", depth, scope)
            macro = random.choice(["optMap", "optFlatMap"])
            inner = _inner(kind) if macro == "optMap" else kind
            body = self.expression(inner, depth, ((name, other), *scope))
            return Node(kind, (value, f".{macro}({name}, ", body, ")"))
        return self._map_macro(kind, depth, scope)

    def _predicate(self, depth: int, scope: Scope) -> Node:
        random = self._random
        roll = random.random()
        first, second = random.sample(_VARIABLES, 2)
        if roll < 0.15:
            name = random.choice(["model", "cores", "memory", "gone", "ready"])
            return Node("bool", (f"has({self._map_of_device()}.{name})",))
        if roll < 0.25:
            macro = random.choice(["all", "exists", "exists_one"])
            body = self.expression("bool", depth, ((first, "string"), *scope))
            return Node("bool", (f"{self._map_of_device()}.{macro}({first}, ", body, ")"))
        inner = random.choice(ANY_TYPES)
        if roll < 0.75:
            macro = random.choice(["all", "exists", "exists_one", "existsOne"])
            some = self.expression(f"list({inner})", depth, scope)
            body = self.expression("bool", depth, ((first, inner), *scope))
            return Node("bool", (some, f".{macro}({first}, ", body, ")"))
        macro = random.choice(["all", "exists", "existsOne"])
        of_map = random.random() < 0.4
        some = self.expression(f"map(string,{inner})" if of_map else f"list({inner})", depth, scope)
        known = ((first, "string" if of_map else "int"), (second, inner), *scope)
        body = self.expression("bool", depth, known)
        return Node("bool", (some, f".{macro}({first}, {second}, ", body, ")"))

    def _list_macro(self, kind: str, depth: int, scope: Scope) -> Node:
        random = self._random
        inner, (first, second) = _inner(kind), random.sample(_VARIABLES, 2)
        macro = random.choice(
            ["filter", "map", "map3", "transformList", "transformList4", "sortBy"]
        )
        other = inner if macro in {"filter", "sortBy"} else random.choice(ANY_TYPES)
        some = self.expression(f"list({other})", depth, scope)
        known = ((first, other), *scope)
        if macro == "filter":
            body = (self.expression("bool", depth, known),)
        elif macro == "sortBy":
            body = (self.expression(random.choice(COMPARABLE), depth, known),)
        elif macro == "map":
            body = (self.expression(inner, depth, known),)
        elif macro == "map3":
            body = (self.expression("bool", depth, known), self.expression(inner, depth, known))
        else:
            known = ((first, "int"), (second, other), *scope)
            body = (self.expression(inner, depth, known),)
            if macro == "transformList4":
                body = (self.expression("bool", depth, known), *body)
        name = macro.rstrip("34")
        names = f"{first}, {second}" if name == "transformList" else first
        return Node(kind, (some, f".{name}({names}, ", *_joined(body), ")"))

    def _map_macro(self, kind: str, depth: int, scope: Scope) -> Node:
        random = self._random
        inner, (first, second) = _inner(kind), random.sample(_VARIABLES, 2)
        other = random.choice(ANY_TYPES)
        some = self.expression(f"map(string,{other})", depth, scope)
        known = ((first, "string"), (second, other), *scope)
        value = self.expression(inner, depth, known)
        if random.random() < 0.5:
            return Node(kind, (some, f".transformMap({first}, {second}, ", value, ")"))
        pair = ("{", self.expression("string", 0, known), ": ", value, "})")
        return Node(kind, (some, f".transformMapEntry({first}, {second}, ", *pair))


def _joined(nodes: list[Node] | tuple[Node, ...]) -> tuple[str | Node, ...]:
    """Return the nodes with commas between them."""
    parts: list[str | Node] = []
    for node in nodes:
        parts += [", ", node] if parts else [node]
    return tuple(parts)


def _in_parentheses(kind: str, parts: tuple[str | Node, ...], random: Random) -> Node:
    """Return an operator in parentheses, or without them: then the grammar of CEL decides."""
    return Node(kind, parts if random.random() < 0.25 else ("(", *parts, ")"))


# --- texts --------------------------------------------------------------------------------------

_TOKENS = re.compile(r"\"[^\"]*\"|'[^']*'|\w+|\s+|[=!<>&|]=?=?|.", re.DOTALL)
_HEAVY = (
    "lists.range(200).all(x, lists.range(200).all(y, lists.range(200).all(z, x + y + z >= 0)))",
    "lists.range(3000).map(x, lists.range(3000).exists(y, y < 0)).size() == 3000",
    "lists.range(2000).map(x, 'a').join().matches('^a*$') && "
    "lists.range(1500).all(x, lists.range(1500).all(y, true))",
)


def mutated(text: str, random: Random) -> str:
    """Return a text with one or two of its words changed."""
    for _ in range(random.choice([1, 1, 2])):
        words = _TOKENS.findall(text)
        if not words:
            return text
        place = random.randrange(len(words))
        others = _TOKENS.findall(random.choice(REAL_SELECTORS))
        change = random.randrange(6)
        if change == 0:
            del words[place]
        elif change == 1:
            words.insert(place, words[place])
        elif change == 2:
            words[place] = random.choice(others)
        elif change == 3:
            words.insert(place, random.choice(others))
        elif change == 4:
            other = random.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        else:
            word, cut = words[place], random.randrange(len(words[place]) + 1)
            words[place] = word[:cut] + random.choice("()[]{}.,:?!\"'\\0a+-* \n") + word[cut + 1 :]
        text = "".join(words)
    return text


def expressions(random: Random) -> Node:
    """Return any expression; texts are nodes without children."""
    writer, roll = Writer(random), random.random()
    if roll < 0.65:
        kind = "bool" if random.random() < 0.97 else random.choice(ANY_TYPES)
        return writer.expression(kind, random.choice([1, 2, 2, 3, DEPTH]))
    if roll < 0.75:
        text = mutated(str(writer.expression("bool", 2)), random)
    elif roll < 0.9:
        text = mutated(random.choice(REAL_SELECTORS), random)
    elif roll < 0.95:
        text = random.choice(REAL_SELECTORS)
    elif roll < 0.9985:
        text = random.choice(BAD_TEXTS)
    else:
        text = random.choice(_HEAVY)
    return Node("text", (text,))


# --- devices ------------------------------------------------------------------------------------

_VALUES: Final[dict[str, tuple[Json, ...]]] = {
    "int": tuple({"int": value} for value in (0, 1, 2, 3, 40, -1, 2**63 - 1, -(2**63))),
    "string": tuple(
        {"string": value} for value in ("a100", "h100", "", "0-1", "d.example.com", "é", "GPU-1-2")
    ),
    "bool": ({"bool": True}, {"bool": False}),
    "semver": tuple(
        {"version": value} for value in ("1.0.0", "1.2.3", "2.0.0-rc.1", "1.2.3+b", "550.54.15")
    ),
}
_BROKEN: Final = ({}, {"version": "1.2"}, {"version": "v1.2.3"}, {"ints": [1, 2]})
# No sum leaves 64 bits: kube-scheduler would then change the device itself.
_AMOUNTS = ("40Gi", "80Gi", "1Ki", "0", "8", "1500m", "-1", "1e3")


def devices(random: Random) -> Json:
    """Return a device as the program takes it."""
    attributes: Json = {}
    for kind, names in ATTRIBUTES.items():
        for name in names:
            if random.random() < 0.25:
                continue
            its = kind if random.random() < 0.92 else random.choice(sorted(_VALUES))
            prefix = random.choice(["", "", "", f"{DRIVER}/", f"{OTHER_DOMAIN}/"])
            attributes[prefix + name] = random.choice(_VALUES[its])
    if attributes and random.random() < 0.02:
        # No more than one: kube-scheduler reports the first of them in the order of a map.
        attributes[random.choice(sorted(attributes))] = random.choice(_BROKEN)
    capacity = {
        random.choice(["", "", f"{DRIVER}/", f"{OTHER_DOMAIN}/"]) + name: {
            "value": random.choice(_AMOUNTS)
        }
        for name in CAPACITIES
        if random.random() < 0.8
    }
    device: Json = {
        "driver": DRIVER if random.random() < 0.95 else OTHER_DOMAIN,
        "attributes": attributes,
        "capacity": capacity,
    }
    if random.random() < 0.4:
        device["allowMultipleAllocations"] = random.random() < 0.5
    return device


__all__ = ["RARE_TYPES", "Node", "Writer", "devices", "expressions", "mutated", "simpler"]
