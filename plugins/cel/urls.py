"""URLs as values of expressions.

*Source*: k8s.io/apiserver pkg/cel/library/urls.go (0.36); Go net/url/url.go (1.26).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from plugins.cel.addresses import is_ip_literal
from plugins.cel.errors import CelError
from plugins.cel.go_text import go_quoted
from plugins.cel.values import Map, Opaque, Value

MAX_PARAMETERS = 10_000
"""Most parameters of a query that are read.

*Source*: Go net/url/url.go, ``defaultMaxParams`` (1.26).
"""

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH = _UNRESERVED | frozenset(b"$&+,/:;=@")
_PATH_ENCODED = _PATH | frozenset(b"!'()*[]%")
_HOST = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+\-.]*")
_ESCAPE = re.compile(rb"%[0-9a-fA-F]{2}")


class UrlError(ValueError):
    """The text is no URL; the message is Go's."""


class Url(Opaque):
    """The parts of a URL; two are equal if they are written alike."""

    __slots__ = ("parts",)
    type_name = "kubernetes.URL"
    go_native = "*url.URL"

    def __init__(self, parts: _Parts) -> None:
        self.parts = parts

    def same(self, other: Opaque) -> bool:
        """Report whether both have the same parts."""
        return isinstance(other, Url) and self.parts == other.parts

    def __str__(self) -> str:
        return self.parts.text


class _Parts(NamedTuple):
    scheme: str
    user: str
    host: str
    path: str
    query: str
    text: str


def parsed(text: str, *, request: bool) -> _Parts:
    """Return the parts of a URL without fragment; ``request`` asks for an absolute one.

    Raises
    ------
    UrlError
        It is none.
    """
    if any(char < " " or char == "\x7f" for char in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and request:
        raise UrlError("empty url")
    if text == "*":
        return _Parts("", "", "", "*", "", text)
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("?")
    user = host = ""
    if not rest.startswith("/"):
        if scheme:
            return _Parts(scheme, "", "", "", query, text)
        if request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    if (scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(scheme, authority)
        rest = slash + path
    return _Parts(scheme, user, host, _escaped_path(rest), query, text)


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    if match is None or text[match.end() : match.end() + 1] != ":":
        return "", text
    return match.group().lower(), text[match.end() + 1 :]


def _unescaped(data: bytes) -> bytes:
    """Return the bytes with their escape sequences resolved."""
    parts = data.split(b"%")
    for index, part in enumerate(parts[1:], 1):
        if _ESCAPE.match(b"%" + part) is None:
            wrong = (b"%" + b"%".join(parts[index:]))[:3].decode(errors="replace")
            raise UrlError(f"invalid URL escape {go_quoted(wrong)}")
        parts[index] = bytes([int(part[:2], 16)]) + part[2:]
    return b"".join(parts)


def _authority(scheme: str, authority: str) -> tuple[str, str]:
    user, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if at:
        if _USER.fullmatch(user) is None:
            raise UrlError("net/url: invalid userinfo")
        _unescaped(user.encode())
    return user, host


def _host(scheme: str, host: str) -> str:
    opened = host.rfind("[")
    if opened > 0:
        raise UrlError("invalid IP-literal")
    if opened == 0:
        return _literal_host(host)
    colon = host.find(":")
    if colon >= 0:
        if scheme not in ("http", "https"):
            colon = host.rfind(":")
        _check_port(host[colon:])
    return _unescaped_host(host)


def _literal_host(host: str) -> str:
    closed = host.rfind("]")
    if closed < 0:
        raise UrlError("missing ']' in host")
    _check_port(host[closed + 1 :])
    port = _unescaped_host(host[closed + 1 :])
    inner, percent, zone = host[1:closed].partition("%25")
    name = _unescaped_host(inner)
    if percent:
        name += _unescaped(f"{percent}{zone}".encode()).decode(errors="replace")
    found = is_ip_literal(name)
    if isinstance(found, str):
        raise UrlError(f"invalid host: {found}")
    if found:
        raise UrlError("invalid IP-literal")
    return f"[{name}]{port}"


def _check_port(port: str) -> None:
    if re.fullmatch(r"(?::[0-9]*)?", port) is None:
        raise UrlError(f"invalid port {go_quoted(port)} after host")


def _unescaped_host(host: str) -> str:
    data = host.encode()
    position = 0
    while position < len(data):
        byte = data[position]
        if byte == 0x25:
            escape = data[position : position + 3]
            if _ESCAPE.fullmatch(escape) is None or (
                escape[1:2] in b"01234567" and escape != b"%25"
            ):
                shown = escape.decode(errors="replace")
                raise UrlError(f"invalid URL escape {go_quoted(shown)}")
            position += 3
            continue
        if byte < 0x80 and byte not in _HOST:
            raise UrlError(f"invalid character {go_quoted(chr(byte))} in host name")
        position += 1
    return _unescaped(data).decode(errors="replace")


def _escaped(data: bytes) -> str:
    return "".join(chr(byte) if byte in _PATH else f"%{byte:02X}" for byte in data)


def _escaped_path(text: str) -> str:
    data = text.encode()
    path = _unescaped(data)
    escaped = _escaped(path)
    if escaped == text or any(byte not in _PATH_ENCODED for byte in data):
        return "*" if path == b"*" else escaped
    return text


def url(text: str) -> Url:
    """Return the URL of an absolute URI or an absolute path."""
    prefix = "URL parse error during conversion from string: parse"
    try:
        parsed(text, request=True)
    except UrlError as error:
        raise CelError(f"{prefix} {go_quoted(text)}: {error}") from None
    before, _, fragment = text.partition("#")
    try:
        parts = parsed(before, request=False)
    except UrlError as error:
        raise CelError(f"{prefix} {go_quoted(before)}: {error}") from None
    try:
        _unescaped(fragment.encode())
    except UrlError as error:
        raise CelError(f"{prefix} {go_quoted(text)}: {error}") from None
    return Url(parts._replace(text=text))


def problem(text: str) -> str | None:
    """Return what is wrong with the text as an absolute URI or path, or None."""
    try:
        parsed(text, request=True)
    except UrlError as error:
        return f"parse {go_quoted(text)}: {error}"
    return None


def _split_host(host: str) -> tuple[str, str]:
    port = ""
    colon = host.rfind(":")
    if colon >= 0 and re.fullmatch(r":[0-9]*", host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, port


def _query(value: Url) -> Map:
    query = value.parts.query
    found: dict[str, Value] = {}
    if query.count("&") + 1 > MAX_PARAMETERS:
        return Map({})
    for parameter in query.split("&"):
        if ";" in parameter or not parameter:
            continue
        key, _, text = parameter.partition("=")
        try:
            name, content = (
                _unescaped(each.replace("+", " ").encode()).decode(errors="replace")
                for each in (key, text)
            )
        except UrlError:
            continue
        found.setdefault(name, []).append(content)
    return Map(dict(found))


IMPLEMENTATIONS: dict[str, Value] = {
    "string_to_url": url,
    "is_url_string": lambda text: problem(text) is None,
    "url_get_scheme": lambda value: value.parts.scheme,
    "url_get_host": lambda value: value.parts.host,
    "url_get_hostname": lambda value: _split_host(value.parts.host)[0],
    "url_get_port": lambda value: _split_host(value.parts.host)[1],
    "url_get_escaped_path": lambda value: value.parts.path,
    "url_get_query": _query,
}
