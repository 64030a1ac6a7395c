"""Open connections to the API server: directly or through a proxy, with TLS or without.

*Concurrency*: loop-confined.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote

from yarl import URL

from cache.value import Value
from scheduler.client.connection import Connection, ExchangeError
from scheduler.client.http1 import ResponseParser

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P", bound=asyncio.Protocol)

CONNECT_TIMEOUT_S: Final = 5.0


class Address(Value, frozen=True):
    """Where the server is and by which name it has to prove itself."""

    host: str
    port: int
    tls: bool
    server_name: str | None = None
    proxy: URL | None = None

    @classmethod
    def of(cls, base_url: str, server_name: str | None, proxy: str | None) -> Address:
        """Read a base URL that has been found good before."""
        url = URL(base_url)
        tls = url.scheme == "https"
        return cls(
            host=url.raw_host or "",
            port=url.port or (443 if tls else 80),
            tls=tls,
            server_name=server_name or (url.raw_host if tls else None),
            proxy=URL(proxy) if proxy else None,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        through = f" through {self.proxy.host}:{self.proxy.port}" if self.proxy else ""
        return f"{host}:{self.port}{through}"


class Connector:
    """Makes connections to one address.

    Parameters
    ----------
    address
        Where to.
    ssl_context
        Asked at each new connection.
    """

    def __init__(self, address: Address, ssl_context: Callable[[], ssl.SSLContext | None]) -> None:
        self._address = address
        self._ssl_context = ssl_context

    async def connect(
        self,
        make: Callable[[asyncio.AbstractEventLoop, ssl.SSLContext | None], P],
        timeout_s: float,
    ) -> P:
        """Connect, and return the protocol that `make` makes of the loop and the TLS context.

        Raises
        ------
        ExchangeError
            Reason ``"Unreachable"``; nothing has been sent.
        """
        address = self._address
        try:
            async with asyncio.timeout(timeout_s):
                if address.proxy is not None and address.tls:
                    return await self._connect_through_proxy(address.proxy, make)
                return await self._connect_directly(make)
        except TimeoutError:
            message = f"no connection to {address} within {timeout_s:.2g} s"
        except ssl.SSLCertVerificationError as error:
            message = f"the certificate of {address} is not trusted: {error.verify_message}"
        except OSError as error:
            message = f"no connection to {address}: {error}"
        except ExchangeError as error:
            message = f"no connection to {address}: {error.message}"
        raise ExchangeError("Unreachable", message, sent=False)

    async def _connect_directly(
        self, make: Callable[[asyncio.AbstractEventLoop, ssl.SSLContext | None], P]
    ) -> P:
        address = self._address
        loop = asyncio.get_running_loop()
        context = self._ssl_context() if address.tls else None
        host, port = address.host, address.port
        if address.proxy is not None:
            host, port = address.proxy.raw_host or "", address.proxy.port or 80
        _, protocol = await loop.create_connection(
            lambda: make(loop, context),
            host,
            port,
            ssl=context,
            server_hostname=address.server_name if context is not None else None,
        )
        return protocol

    async def _connect_through_proxy(
        self,
        proxy: URL,
        make: Callable[[asyncio.AbstractEventLoop, ssl.SSLContext | None], P],
    ) -> P:
        address = self._address
        loop = asyncio.get_running_loop()
        context = self._ssl_context()
        if context is None:
            raise OSError("there is no TLS context")
        host = f"[{address.host}]" if ":" in address.host else address.host
        target = f"{host}:{address.port}"
        request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{proxy_credentials(proxy)}\r\n"
        tunnel: Connection
        _, tunnel = await loop.create_connection(
            lambda: Connection(loop), proxy.raw_host or "", proxy.port or 80
        )
        try:
            parser = ResponseParser(0, keep_body=False, bodiless=True)
            answer = await tunnel.exchange(request.encode(), parser)
            if answer.status != 200:
                raise OSError(f"the proxy answered {answer.status}")
            protocol = make(loop, context)
            transport = await loop.start_tls(
                tunnel.transport, protocol, context, server_hostname=address.server_name
            )
            if transport is None:
                raise OSError("the connection was closed during the TLS handshake")
            protocol.connection_made(transport)
        except BaseException:
            tunnel.abort()
            raise
        return protocol


def proxy_credentials(proxy: URL) -> str:
    """Return the header line for the user and password in a proxy's URL, or nothing."""
    if proxy.raw_user is None:
        return ""
    pair = f"{unquote(proxy.raw_user)}:{unquote(proxy.raw_password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
