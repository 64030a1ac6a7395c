"""IP addresses and networks as values of expressions.

*Source*: k8s.io/apiserver pkg/cel/library/ip.go, cidr.go (0.36); Go net/netip (1.26).
"""

from __future__ import annotations

import ipaddress
import re

from plugins.cel.errors import NO_SUCH_OVERLOAD, CelError
from plugins.cel.go_text import go_quoted
from plugins.cel.values import Opaque, Value

MAX_ADDRESS = 200
"""Longest text that is read as an address."""


class _ParseError(ValueError):
    """The text is no address; the message is Go's."""


class Ip(Opaque):
    """An address: its number, and how many bits such addresses have."""

    __slots__ = ("bits", "number")
    type_name = "net.IP"
    go_native = "netip.Addr"

    def __init__(self, number: int, bits: int) -> None:
        self.number = number
        self.bits = bits

    def same(self, other: Opaque) -> bool:
        """Report whether both are the same address of one family."""
        return isinstance(other, Ip) and (self.number, self.bits) == (other.number, other.bits)

    def size(self) -> int:
        """Return the number of its bytes."""
        return self.bits // 8

    def __str__(self) -> str:
        if self.bits == 32:
            return str(ipaddress.IPv4Address(self.number))
        if self.number >> 32 == 0xFFFF:
            return f"::ffff:{ipaddress.IPv4Address(self.number & 0xFFFFFFFF)}"
        return str(ipaddress.IPv6Address(self.number))


class Cidr(Opaque):
    """A network: an address, which may have bits behind the prefix, and the prefix's length."""

    __slots__ = ("address", "length")
    type_name = "net.CIDR"
    go_native = "netip.Prefix"

    def __init__(self, address: Ip, length: int) -> None:
        self.address = address
        self.length = length

    def same(self, other: Opaque) -> bool:
        """Report whether both have the same address and length."""
        return (
            isinstance(other, Cidr)
            and self.length == other.length
            and self.address.same(other.address)
        )

    def size(self) -> int:
        """Return the number of bytes that the prefix needs."""
        return -(-self.length // 8)

    def overlaps(self, other: Cidr | Ip, length: int) -> bool:
        """Report whether the first ``length`` bits of both are the same."""
        address = other.address if isinstance(other, Cidr) else other
        shift = self.address.bits - length
        return (
            address.bits == self.address.bits
            and address.number >> shift == self.address.number >> shift
        )

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


def _failed(text: str, message: str, rest: str = "") -> _ParseError:
    place = f" (at {go_quoted(rest)})" if rest else ""
    return _ParseError(f"ParseAddr({go_quoted(text)}): {message}{place}")


def _parsed(text: str) -> tuple[Ip, str]:
    """Return the address and its zone."""
    if len(text) > MAX_ADDRESS:
        raise _failed(text, "unable to parse IP")
    for char in text:
        if char == ".":
            return Ip(_octets(text, text), 32), ""
        if char == ":":
            return _parsed_v6(text)
        if char == "%":
            raise _failed(text, "missing IPv6 address")
    raise _failed(text, "unable to parse IP")


def _octets(whole: str, text: str) -> int:
    """Return the number of an address with dots, which stands at the end of ``whole``."""
    fields: list[int] = []
    value = digits = 0
    for index, char in enumerate(text):
        if char in "0123456789":
            if digits == 1 and value == 0:
                raise _failed(whole, "IPv4 field has octet with leading zero")
            value = value * 10 + int(char)
            digits += 1
            if value > 255:
                raise _failed(whole, "IPv4 field has value >255")
        elif char == ".":
            if index in (0, len(text) - 1) or text[index - 1] == ".":
                message = "IPv4 field must have at least one digit"
                raise _failed(whole, message, text[index:])
            if len(fields) == 3:
                raise _failed(whole, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise _failed(whole, "unexpected character", text[index:])
    if len(fields) < 3:
        raise _failed(whole, "IPv4 address too short")
    return ((fields[0] << 8 | fields[1]) << 8 | fields[2]) << 8 | value


_HEX = re.compile(r"[0-9a-fA-F]*")


def _parsed_v6(whole: str) -> tuple[Ip, str]:
    text, percent, zone = whole.partition("%")
    if percent and not zone:
        raise _failed(whole, "zone must be a non-empty string")
    groups: list[int] = []
    ellipsis = -1
    if text.startswith("::"):
        ellipsis = 0
        text = text[2:]
        if not text:
            return Ip(0, 128), zone
    while len(groups) < 8:
        digits = _group(whole, text)
        after = text[len(digits) :]
        if after.startswith("."):
            groups.extend(_embedded(whole, text, len(groups), ellipsis))
            text = ""
            break
        groups.append(int(digits, 16))
        text = after
        if not text:
            break
        text = _after_colon(whole, text)
        if text.startswith(":"):
            if ellipsis >= 0:
                raise _failed(whole, "multiple :: in address", text)
            ellipsis = len(groups)
            text = text[1:]
            if not text:
                break
    if text:
        raise _failed(whole, "trailing garbage after address", text)
    return Ip(_expanded(whole, groups, ellipsis), 128), zone


def _group(whole: str, text: str) -> str:
    match = _HEX.match(text)
    digits = "" if match is None else match.group()
    if len(digits) > 4:
        raise _failed(whole, "each group must have 4 or less digits", text)
    if not digits:
        message = "each colon-separated field must have at least one digit"
        raise _failed(whole, message, text)
    return digits


def _embedded(whole: str, text: str, count: int, ellipsis: int) -> list[int]:
    """Return the two groups of an IPv4 address at the end."""
    if ellipsis < 0 and count != 6:
        message = "embedded IPv4 address must replace the final 2 fields of the address"
        raise _failed(whole, message, text)
    if count + 2 > 8:
        message = "too many hex fields to fit an embedded IPv4 at the end of the address"
        raise _failed(whole, message, text)
    number = _octets(whole, text)
    return [number >> 16, number & 0xFFFF]


def _after_colon(whole: str, text: str) -> str:
    if text[0] != ":":
        raise _failed(whole, "unexpected character, want colon", text)
    if len(text) == 1:
        raise _failed(whole, "colon must be followed by more characters", text)
    return text[1:]


def _expanded(whole: str, groups: list[int], ellipsis: int) -> int:
    if len(groups) < 8:
        if ellipsis < 0:
            raise _failed(whole, "address string too short")
        missing = [0] * (8 - len(groups))
        groups = [*groups[:ellipsis], *missing, *groups[ellipsis:]]
    elif ellipsis >= 0:
        raise _failed(whole, "the :: must expand to at least one field of zeros")
    number = 0
    for group in groups:
        number = number << 16 | group
    return number


def _is_mapped(address: Ip) -> bool:
    return address.bits == 128 and address.number >> 32 == 0xFFFF


def address(text: str) -> Ip:
    """Return the address; zones and IPv4 addresses in IPv6 form are not allowed."""
    try:
        parsed, zone = _parsed(text)
    except _ParseError as error:
        quoted = go_quoted(text)
        message = f"IP Address {quoted} parse error during conversion from string: {error}"
        raise CelError(message) from None
    if zone:
        raise CelError(f"IP address {go_quoted(text)} with zone value is not allowed")
    if _is_mapped(parsed):
        raise CelError(f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return parsed


_NETWORK = "network address parse error during conversion from string"


def network(text: str) -> Cidr:
    """Return the network of a text in CIDR notation."""
    try:
        parsed = _parsed_network(text)
    except _ParseError as error:
        raise CelError(f"{_NETWORK}: {_NETWORK}: {error}") from None
    if _is_mapped(parsed.address):
        message = f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed"
        raise CelError(f"{_NETWORK}: {message}")
    return parsed


def _parsed_network(text: str) -> Cidr:
    prefix = f"netip.ParsePrefix({go_quoted(text)}): "
    before, slash, digits = text.rpartition("/")
    if not slash:
        raise _ParseError(f"{prefix}no '/'")
    try:
        parsed, zone = _parsed(before)
    except _ParseError as error:
        raise _ParseError(f"{prefix}{error}") from None
    if zone:
        raise _ParseError(f"{prefix}IPv6 zones cannot be present in a prefix")
    if re.fullmatch(r"[0-9]|[1-9][0-9]{1,18}", digits) is None:
        raise _ParseError(f"{prefix}bad bits after slash: {go_quoted(digits)}")
    if int(digits) > parsed.bits:
        raise _ParseError(f"{prefix}prefix length out of range")
    return Cidr(parsed, int(digits))


def is_ip_literal(text: str) -> str | bool:
    """Return the error of a host in brackets, or whether it is an IPv4 address."""
    try:
        return _parsed(text)[0].bits == 32
    except _ParseError as error:
        return str(error)


def _is_ip(text: str) -> bool:
    try:
        address(text)
    except CelError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        network(text)
    except CelError:
        return False
    return True


def _is_unspecified(value: Ip) -> bool:
    return value.number == 0


def _is_loopback(value: Ip) -> bool:
    return value.number >> 24 == 127 if value.bits == 32 else value.number == 1


def _is_link_local_multicast(value: Ip) -> bool:
    if value.bits == 32:
        return value.number >> 8 == 0xE00000
    return value.number >> 112 & 0xFF0F == 0xFF02


def _is_link_local_unicast(value: Ip) -> bool:
    if value.bits == 32:
        return value.number >> 16 == 0xA9FE
    return value.number >> 112 & 0xFFC0 == 0xFE80


def _is_multicast(value: Ip) -> bool:
    return value.number >> 28 == 0xE if value.bits == 32 else value.number >> 120 == 0xFF


def _is_global_unicast(value: Ip) -> bool:
    if value.bits == 32 and value.number == 0xFFFFFFFF:
        return False
    return not (
        _is_unspecified(value)
        or _is_loopback(value)
        or _is_multicast(value)
        or _is_link_local_unicast(value)
    )


def _masked(value: Cidr) -> Cidr:
    shift = value.address.bits - value.length
    return Cidr(Ip(value.address.number >> shift << shift, value.address.bits), value.length)


def _contains_ip(value: Cidr, other: Ip) -> bool:
    return value.overlaps(other, value.length)


def _contains_ip_text(value: Cidr, text: str) -> bool:
    try:
        other = address(text)
    except CelError:
        raise CelError(NO_SUCH_OVERLOAD) from None  # the text of the error gets lost
    return _contains_ip(value, other)


def _contains_cidr(value: Cidr, other: Cidr) -> bool:
    return value.length <= other.length and value.overlaps(other, value.length)


IMPLEMENTATIONS: dict[str, Value] = {
    "string_to_ip": address,
    "ip_to_string": str,
    "ip_family": lambda value: 4 if value.bits == 32 else 6,
    "ip_is_canonical": lambda text: str(address(text)) == text,
    "ip_is_unspecified": _is_unspecified,
    "ip_is_loopback": _is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local_unicast,
    "ip_is_global_unicast": _is_global_unicast,
    "is_ip": _is_ip,
    "string_to_cidr": network,
    "cidr_to_string": str,
    "cidr_ip": lambda value: value.address,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_cidr_string": lambda value, text: _contains_cidr(value, network(text)),
    "cidr_contains_cidr": _contains_cidr,
    "cidr_prefix_length": lambda value: value.length,
    "cidr_masked": _masked,
    "is_cidr": _is_cidr,
}
