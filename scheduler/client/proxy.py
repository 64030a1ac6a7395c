"""Find the HTTP proxy of the API server in the environment variables.

*Source*: golang.org/x/net http/httpproxy, which every Go client of Kubernetes follows; Python's own
reading of ``NO_PROXY`` knows no CIDR ranges, and in a cluster the server's host is an address.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from yarl import URL

from scheduler.client.errors import ClientConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


def environment_proxy(base_url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy that `environ` names for `base_url`, or None.

    ``HTTPS_PROXY`` or ``HTTP_PROXY`` by scheme, upper case first; never for a loopback address or
    ``localhost``, nor for a host that ``NO_PROXY`` lists by name, domain, address or CIDR range.

    Raises
    ------
    ClientConfigError
        The proxy is not an ``http://`` URL.
    """
    url = URL(base_url)
    variable = f"{url.scheme}_proxy"
    value = (environ.get(variable.upper()) or environ.get(variable) or "").strip()
    host = (url.host or "").rstrip(".").lower()
    no_proxy = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if not value or _is_loopback(host) or _is_listed(host, url.port, no_proxy):
        return None
    return checked_proxy(value if "://" in value else f"http://{value}", f"${variable.upper()}")


def checked_proxy(value: str, where: str) -> str:
    """Return `value` if it is the URL of an HTTP proxy.

    Raises
    ------
    ClientConfigError
        It is not; the sentence begins with `where`.
    """
    try:
        url = URL(value)
    except ValueError as error:
        raise ClientConfigError(f"{where} is not the URL of a proxy: {error}") from None
    if url.scheme != "http" or not url.host:
        shown = url.with_user(None) if url.host else value
        raise ClientConfigError(
            f"{where} is {str(shown)!r}: only proxies of the form http://host:port are supported"
        )
    return value


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_listed(host: str, port: int | None, no_proxy: str) -> bool:
    return any(
        _matches(host, port, entry) for part in no_proxy.split(",") if (entry := part.strip())
    )


def _matches(host: str, port: int | None, entry: str) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    entry_address = _address(entry.strip("[]"))
    if entry_address is not None:
        return address == entry_address
    name, _, entry_port = entry.rpartition(":") if ":" in entry else (entry, "", "")
    if entry_port and entry_port != str(port):
        return False
    name = name.strip("[]").rstrip(".").lower()
    if address is not None:
        return _address(name) == address
    if name.startswith("*."):
        name = name[1:]
    # ".example.org" is the subdomains alone, "example.org" is itself and its subdomains.
    return (
        host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")
    )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
