"""The words of CEL as kube-scheduler knows it: signatures, literals, attributes, real selectors.

*Source*: k8s.io/dynamic-resource-allocation cel/compile.go, k8s.io/apiserver
pkg/cel/environment/base.go and pkg/cel/library (v0.36.3); cel-go v0.26.0 ext.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

DRIVER: Final = "d.example.com"
OTHER_DOMAIN: Final = "other.example.com"

_SIGNATURES = """
string.contains(string) bool            | string.startsWith(string) bool
string.endsWith(string) bool            | string.matches(regex) bool
string.find(regex) string               | string.findAll(regex) list(string)
string.findAll(regex, int) list(string) | matches(string, regex) bool
string.charAt(int) string               | string.indexOf(string) int
string.indexOf(string, int) int         | string.lastIndexOf(string) int
string.lastIndexOf(string, int) int     | string.lowerAscii() string
string.upperAscii() string              | string.replace(string, string) string
string.replace(string, string, int) string | string.split(string) list(string)
string.split(string, int) list(string)  | string.substring(int) string
string.substring(int, int) string       | string.trim() string
string.format(formatted) string         | list(string).join() string
list(string).join(string) string        | strings.quote(string) string
size(string) int                        | string.size() int
size(bytes) int                         | size(list(T)) int
list(T).size() int                      | size(map(string,T)) int
map(string,T).size() int                | list(C).isSorted() bool
list(N).sum() N                         | list(C).min() C
list(C).max() C                         | list(T).indexOf(T) int
list(T).lastIndexOf(T) int              | list(T).slice(small, small) list(T)
list(list(T)).flatten() list(T)         | list(list(T)).flatten(small) list(T)
list(T).distinct() list(T)              | list(C).sort() list(C)
list(T).reverse() list(T)               | lists.range(small) list(int)
list(T).first() optional(T)             | list(T).last() optional(T)
optional.unwrap(list(optional(T))) list(T) | list(optional(T)).unwrapOpt() list(T)
sets.contains(list(T), list(T)) bool    | sets.equivalent(list(T), list(T)) bool
sets.intersects(list(T), list(T)) bool  | quantity(quantity_text) quantity
isQuantity(quantity_text) bool          | sign(quantity) int
quantity.isInteger() bool               | quantity.asInteger() int
quantity.asApproximateFloat() double    | quantity.add(quantity) quantity
quantity.add(int) quantity              | quantity.sub(quantity) quantity
quantity.sub(int) quantity              | quantity.isGreaterThan(quantity) bool
quantity.isLessThan(quantity) bool      | quantity.compareTo(quantity) int
semver(semver_text) semver              | semver(semver_text, bool) semver
isSemver(semver_text) bool              | isSemver(semver_text, bool) bool
semver.isGreaterThan(semver) bool       | semver.isLessThan(semver) bool
semver.compareTo(semver) int            | semver.major() int
semver.minor() int                      | semver.patch() int
int(double) int                         | int(string_of_number) int
int(uint) int                           | int(timestamp) int
uint(int) uint                          | uint(double) uint
uint(string_of_number) uint             | double(int) double
double(string_of_number) double         | double(uint) double
string(int) string                      | string(double) string
string(bool) string                     | string(bytes) string
string(duration) string                 | string(timestamp) string
string(uint) string                     | bytes(string) bytes
bool(string) bool                       | bool(bool) bool
duration(duration_text) duration        | timestamp(timestamp_text) timestamp
timestamp(int) timestamp                | duration.getHours() int
duration.getMinutes() int               | duration.getSeconds() int
duration.getMilliseconds() int          | timestamp.getFullYear() int
timestamp.getMonth() int                | timestamp.getDayOfYear() int
timestamp.getDayOfMonth() int           | timestamp.getDate() int
timestamp.getDayOfWeek() int            | timestamp.getHours() int
timestamp.getMinutes() int              | timestamp.getSeconds(zone) int
timestamp.getMilliseconds() int         | type(T) type
optional.of(T) optional(T)              | optional.none() optional(T)
optional.ofNonZeroValue(T) optional(T)  | optional(T).orValue(T) T
optional(T).or(optional(T)) optional(T) | optional(T).hasValue() bool
optional(T).value() T                   | T.includes(T) bool
list(T).includes(T) bool                | url(url_text) url
isURL(url_text) bool                    | url.getScheme() string
url.getHost() string                    | url.getHostname() string
url.getPort() string                    | url.getEscapedPath() string
url.getQuery() map(string,list(string)) | ip(ip_text) ip
isIP(ip_text) bool                      | ip.isCanonical(ip_text) bool
ip.family() int                         | ip.isLoopback() bool
ip.isUnspecified() bool                 | ip.isLinkLocalUnicast() bool
ip.isLinkLocalMulticast() bool          | ip.isGlobalUnicast() bool
string(ip) string                       | cidr(cidr_text) cidr
isCIDR(cidr_text) bool                  | cidr.containsIP(ip_text) bool
cidr.containsIP(ip) bool                | cidr.containsCIDR(cidr_text) bool
cidr.containsCIDR(cidr) bool            | cidr.ip() ip
cidr.masked() cidr                      | cidr.prefixLength() int
string(cidr) string                     | format.named(format_name) optional(format)
format.dns1123Label() format            | format.qualifiedName() format
format.uuid() format                    | format.validate(string) optional(list(string))
"""

_GLOBAL = frozenset({"strings", "lists", "sets", "optional"})
"""Namespaces: a name with one of these before the dot is a function, not a method."""

RARE_TYPES: Final = frozenset({"url", "ip", "cidr", "format", "timestamp", "duration"})


@dataclass(frozen=True, slots=True)
class Signature:
    """A function of CEL; a receiver makes it a method. ``T``, ``C``, ``N`` stand for types."""

    name: str
    receiver: str | None
    arguments: tuple[str, ...]
    result: str

    def rare(self) -> bool:
        """Report whether it is about a type that selectors seldom use."""
        words = {self.result, self.receiver, *self.arguments}
        return bool(words & RARE_TYPES) or any("ip_text" in str(word) for word in words)


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _signature(text: str) -> Signature:
    call, result = text.rsplit(" ", 1)
    depth, place = 0, len(call) - 1
    while True:  # back to the parenthesis that opens the arguments
        depth += {")": 1, "(": -1}.get(call[place], 0)
        if depth == 0:
            break
        place -= 1
    head, arguments = call[:place], tuple(_split(call[place + 1 : -1]))
    receiver, dot, name = head.rpartition(".")
    method = bool(dot) and receiver not in _GLOBAL and not _is_namespaced(head)
    return Signature(name if method else head, receiver if method else None, arguments, result)


def _is_namespaced(head: str) -> bool:
    """``ip.isCanonical`` and most of ``format`` are functions; the types have methods, too."""
    return head == "ip.isCanonical" or (head.startswith("format.") and head != "format.validate")


def _by_result() -> Mapping[str, tuple[Signature, ...]]:
    grouped = defaultdict(list)
    for text in re.split(r"[|\n]", _SIGNATURES):
        if text.strip():
            signature = _signature(text.strip())
            grouped[signature.result].append(signature)
    return MappingProxyType({result: tuple(some) for result, some in grouped.items()})


FUNCTIONS: Final = _by_result()
"""All functions by the type of their result, which may hold a type variable."""

ANY_TYPES: Final = ("int", "string", "bool", "double", "quantity", "semver", "uint", "bytes")
COMPARABLE: Final = ("int", "string", "double", "quantity", "semver", "bool", "uint", "duration")
NUMBERS: Final = ("int", "double", "uint", "duration")

LITERALS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "bool": ("true", "false"),
        "int": (
            *("0", "1", "2", "3", "7", "-1", "10", "40", "0x1F", "100"),
            *("9223372036854775807", "-9223372036854775808", "9007199254740993", "4294967296"),
        ),
        "small": ("0", "1", "2", "3", "-1", "5"),
        "uint": ("0u", "1u", "2u", "40u", "0xFu", "18446744073709551615u", "3U"),
        "double": (
            *("0.0", "1.0", "2.5", "-1.5", "1e3", ".5", "1e308", "-0.0", "1.0/0.0", "0.0/0.0"),
            *("9223372036854775807.0", "1e-7", "123456789.125", "40.0"),
        ),
        "string": (
            *('"a100"', '"h100"', '"d.example.com"', '""', "'A'", '"example.com"', '"a b,c"'),
            *(r'"\u00e9\n"', '"日本語"', r"r'\d+'", '"""x"y"""', '"1"', '"true"', r'"\x41\101"'),
            *('"0-1"', '"model"', '"a"', '"😀b"', "' trim\\t'"),
        ),
        "bytes": ('b"abc"', 'b""', "b'\\xff'", 'b"é"'),
        "null": ("null",),
        "type": ("int", "string", "bool", "double", "list", "map", "type", "uint", "bytes"),
        "regex": (
            *('"^a"', '"[a-h]1.*"', r"'\\d+'", '"(a|b)?"', '""', '"a{2,3}"', '"(?i)A"', '"."'),
            *(r'"\\pL+"', '"(x)(y)"', '"["', '"(?=a)"', r'"\\bex"'),
        ),
        "quantity_text": (
            *('"1Gi"', '"40Gi"', '"0"', '"-5"', '"1.5"', '"100m"', '"1e3"', '"1E"', '"80Gi"'),
            *('"12k"', '"1Ki"', '"x"', '""', '"9223372036854775807"', '"99999999999999999999"'),
            *('"0.5n"', '"+1"', '"1.5Gi"', '" 1"', '"1e400"'),
        ),
        "semver_text": (
            *('"1.0.0"', '"1.2.3"', '"1.2.3-rc.1"', '"1.2.3+b1"', '"2.0.0"', '"v1.2.3"', '"1.2"'),
            *('"01.2.3"', '"1.2.3-alpha.10"', '"1.2.3-alpha.2"', '"x"', '""', '"1"', '"v01.02"'),
            *('"18446744073709551616.0.0"', '"1.2.3-"', '"1.2.3-01"', '"550.54.15"'),
        ),
        "string_of_number": ('"1"', '"-1"', '"x"', '"1.5"', '""', '"1e3"', '"9223372036854775808"'),
        "duration_text": ('"1s"', '"1h30m"', '"-1.5s"', '"1"', '"100ms"', '"2562047h"', '"1d"'),
        "timestamp_text": (
            *('"2026-01-02T03:04:05Z"', '"2026-01-02T03:04:05.678+02:00"', '"2020"'),
            *('"0001-01-01T00:00:00Z"', '"1969-12-31T23:59:59Z"', '"9999-12-31T23:59:59Z"'),
        ),
        "zone": ('"UTC"', '"02:00"', '"-08:30"', '"Europe/Berlin"', '"nowhere"'),
        "url_text": (
            *('"https://example.com:80/p%20q?a=b&a=c"', '"x"', '"/path"', '"http://[::1]:1/"'),
        ),
        "ip_text": (
            '"127.0.0.1"',
            '"::1"',
            '"fe80::1"',
            '"1.2.3"',
            '"::ffff:1.2.3.4"',
            '"0.0.0.0"',
        ),
        "cidr_text": ('"10.0.0.0/8"', '"10.1.2.3/16"', '"::/0"', '"10.0.0.0"', '"fd00::/64"'),
        "format_name": ('"dns1123Label"', '"uuid"', '"date"', '"nothing"', '"labelValue"'),
        "formatted": (
            *("[1]", '["a"]', '[1, "a"]', "[true]", "[1.5]", "[[1, 2]]", '[{"a": 1}]', "[]"),
            *('[quantity("1")]', "[b'ab']", "[null]", "[-255]", '[duration("90s")]', "[2u]"),
        ),
    }
)

FORMATS: Final = (
    *('"%d"', '"%s"', '"%x"', '"%X"', '"%o"', '"%b"', '"%e"', '"%f"', '"%.2f"', '"%.3e"', '"%%"'),
    *('"%q"', '"%s %s"', '"%d-%s"', '"%"', '"a"', '"%.1d"'),
)

ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "int": ("cores", "numa"),
        "string": ("model", "uuid"),
        "bool": ("ready", "ecc"),
        "semver": ("driverVersion", "firmware"),
    }
)
"""The ids of attributes by their usual type; a device may have them with another."""

CAPACITIES: Final = ("memory", "slots")

REAL_SELECTORS: Final = (
    'device.driver == "d.example.com"',
    'device.driver == "gpu.nvidia.com"',
    "device.driver.endsWith('.example.com')",
    'device.attributes["d.example.com"].model == "a100"',
    "device.attributes['d.example.com'].model in ['a100', 'h100']",
    'device.attributes["d.example.com"].driverVersion.isGreaterThan(semver("1.2.0"))',
    'device.attributes["d.example.com"].driverVersion.compareTo(semver("1.2.3")) >= 0',
    'device.capacity["d.example.com"].memory.isGreaterThan(quantity("40Gi"))',
    'device.capacity["d.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
    '"memory" in device.capacity["d.example.com"] && '
    'device.capacity["d.example.com"].memory.isGreaterThan(quantity("1Ki"))',
    '!("slots" in device.capacity["d.example.com"]) || '
    'device.capacity["d.example.com"].slots.isLessThan(quantity("8"))',
    'cel.bind(dra, device.attributes["d.example.com"], dra.ready && dra.ecc)',
    'cel.bind(a, device.attributes["d.example.com"], has(a.model) && a.model.startsWith("a"))',
    'device.attributes["d.example.com"].ready',
    "has(device.attributes['d.example.com'].cores) && "
    "device.attributes['d.example.com'].cores >= 2",
    'device.attributes["d.example.com"].model.matches("^[ah]100$")',
    'device.attributes["d.example.com"].model.lowerAscii().matches("^.*a100.*$")',
    'device.attributes["d.example.com"].cores % 2 == 0',
    'device.driver == "d.example.com" && device.attributes["d.example.com"].numa == 0 && '
    'device.attributes["d.example.com"].model != "h100"',
    'device.attributes["other.example.com"].uuid in device.attributes["d.example.com"]',
    'device.attributes["d.example.com"].exists(k, k == "model")',
    'device.attributes["d.example.com"].exists_one(x, x == "model")',
    'device.attributes.all(domain, domain == "d.example.com")',
    '"other.example.com" in device.attributes',
    'device.attributes["d.example.com"].?ready.orValue(false)',
    'device.attributes[?"d.example.com"].?numa.orValue(-1) == 1',
    "device.allowMultipleAllocations == true && device.driver != ''",
    'device.capacity["d.example.com"].exists(k, v, v.isGreaterThan(quantity("10Gi")))',
    'device.capacity["d.example.com"].memory.add(quantity("1Gi")).sub(quantity("1Gi")) == '
    'device.capacity["d.example.com"].memory',
    'isSemver("v1.0.0", true) && semver("v1.2", true).minor() == 2',
    'device.attributes["d.example.com"].uuid.split("-").size() >= 2',
    'size(device.attributes["d.example.com"].model) > 3 ? true : false',
    '[1, 2, 4].exists(n, n == device.attributes["d.example.com"].cores)',
    'device.attributes["d.example.com"].model.includes("a100")',
    "device.attributes['d.example.com'].cores == 2.0",
    "sets.intersects([device.attributes['d.example.com'].model], ['a100'])",
    "device.attributes['d.example.com'].model > 'a' && 1 in {1: 'one'}",
    "optional.of(device.driver).hasValue() /* none */ || false // end\n",
)
"""Selectors as people write them, and as the documentation shows them."""

BAD_TEXTS: Final = (
    *("", " ", "?!", "1", "device", "device.driver", "device.foo", "true &&", "(true", "a.b.c"),
    *("true ? false", '"open', "'a\nb' == ''", "1 +", "[1, 2", "{1: }", "true true", "!!", "- -1"),
    *("device.attributes", "device.attributes.x.y.z", "0x", "1.e5", "1.", "1..2", r'"\q" == ""'),
    *(r'"\ud800" == ""', r"b'é' == b''", '"\\u12" == ""', "in", "x in in", "true || || false"),
    *("package == 1", "for == 1", "null == null", "null == 1", "1 == true", '"a" == 1', "@x"),
    *("9223372036854775808 == 1", "18446744073709551616u == 1u", "1e999 == 1.0", "-0x1 == -1"),
    *("has(device)", "has(1)", "cel.bind(1, 2, true)", "cel.bind(a.b, 1, true)", "[].all(1, true)"),
    *("[1, 'a'] == []", "{1: 2, 'a': 'b'} == {}", "{1: 1, 1: 2} == {}", "[1].map(x, y)", "#"),
    *("authorizer.path('/').check('get').allowed()", "true\u00a0", "true;", "{'a': 1}.a == 1"),
    *(
        "device.driver()",
        "nothing(1)",
        "'a'.nothing()",
        "size()",
        "true.size() == 1",
        "!1",
        "-true",
    ),
    *("`a` == 1", "device.`driver` == ''", "{'a-b': 1}.`a-b` == 1", "$ == 1", "1 = 1", "1 === 1"),
    *("true and false", "not true", "[1, 2,] == [1, 2]", "{1: 2,} == {1: 2}", "f(1,)", "a?.b"),
    *("'a'.matches('(')", "duration('x') == duration('1s')", "timestamp('x') == timestamp(1)"),
)
"""Texts that are no selectors, or nearly so."""
