"""Hold the API server's address and CA and the client's credentials, and renew them.

:mod:`scheduler.client.credential_search` finds them, :class:`Credentials` renews them: tokens are
read again, programs run again, certificates loaded again before the old ones expire. What cannot
be renewed for the moment stays unchanged: a token file that is empty for an instant during its
rotation must not stop the scheduler.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from scheduler.client.auth_source import AuthSource, StaticAuth
from scheduler.client.errors import ClientConfigError
from scheduler.client.tls import TlsFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.client.tls import CertificatePair

_TLS_PERIOD_S: Final = 60.0
_RETRY_S: Final = 5.0
# Of many requests that were refused together, one asks for new credentials.
_REFRESH_GAP_S: Final = 1.0

log = structlog.get_logger(__name__)


class Credentials:
    """The way to one API server.

    Parameters
    ----------
    base_url
        ``https://host:port``, maybe with a path; ``http`` for a server without TLS.
    source
        Proof of who we are; nobody in particular when None.
    tls
        Certificates, for ``https``; read at the first use.
    tls_server_name
        Name that the server has to prove, if it is not the host in `base_url`.
    proxy
        ``http://host:port`` of a proxy, or None.
    clock
        Monotonic seconds.

    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        base_url: str,
        *,
        source: AuthSource | None = None,
        tls: TlsFiles | None = None,
        tls_server_name: str | None = None,
        proxy: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.tls_server_name = tls_server_name
        self.proxy = proxy
        self._source = source or StaticAuth()
        self._tls = tls
        self._clock = clock
        self._lock = asyncio.Lock()
        self._header: str | None = None
        self._pair: CertificatePair | None = None
        self._context: ssl.SSLContext | None = None
        self._context_state: object = None
        self._obtained_at = -math.inf
        self._fresh_until = -math.inf
        self._valid_until = -math.inf

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """What to secure new connections with; another object once certificates have changed.

        None for plain HTTP, and before the first `auth_header`.
        """
        return self._context

    def context_for(self, *, certificate: str = "", ca_file: str = "") -> ssl.SSLContext:
        """Return a context for a server other than the API server, which shows our certificate.

        Parameters
        ----------
        certificate
            The only certificate that the server may have, as PEM, whatever names are in it.
        ca_file
            In its place: the authorities that may have signed the server's certificate, as PEM.

        Raises
        ------
        ClientConfigError
            A certificate cannot be used.
        """
        if not certificate and not ca_file:  # the system's authorities would be trusted
            raise ValueError("a server is verified by its certificate or by an authority")
        tls = TlsFiles("the kubeconfig") if self._tls is None else self._tls
        trusting = replace(
            tls,
            where="the leader",
            ca_file=ca_file or None,
            ca_data=certificate or None,
            verify=True,
        )
        context = trusting.context(self._pair)
        if certificate:
            context.check_hostname = False
            # It is trusted by itself, whoever has signed it. The default since Python 3.13.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context

    async def auth_header(self) -> str | None:
        """Return the value of ``Authorization``, or None.

        While somebody renews it, the others go on with the old one as long as it is valid.

        Raises
        ------
        ClientConfigError
            There is no valid proof and none can be had at this time.

        *Cost*: a comparison while it is fresh.
        """
        now = self._clock()
        if now < self._fresh_until or (now < self._valid_until and self._lock.locked()):
            return self._header
        async with self._lock:
            if self._clock() >= self._fresh_until:
                await self._renew()
        return self._header

    async def refresh(self) -> str | None:
        """Renew although it seemed fresh, because the server has refused it; return the header.

        Raises
        ------
        ClientConfigError
            There is no valid proof and none can be had at this time.
        """
        asked_at = self._clock()
        async with self._lock:
            if self._obtained_at < asked_at - _REFRESH_GAP_S:
                await self._renew()
        return self._header

    async def _renew(self) -> None:
        now = self._clock()
        try:
            grant = await self._source.obtain()
        except ClientConfigError as error:
            if now >= self._valid_until:
                raise
            self._fresh_until = now + _RETRY_S
            log.warning("credentials not renewed, keeping the old ones", error=str(error))
            return
        self._renew_context(grant.pair)
        self._header = grant.header
        self._obtained_at = now
        self._valid_until = now + grant.valid_for_s
        tls_period_s = math.inf if self._tls is None else _TLS_PERIOD_S
        self._fresh_until = now + min(grant.fresh_for_s, tls_period_s)

    def _renew_context(self, pair: CertificatePair | None) -> None:
        if self._tls is None:
            return
        state = self._tls.state()
        if self._context is not None and (state, pair) == (self._context_state, self._pair):
            return
        try:
            self._context = self._tls.context(pair)
        except ClientConfigError as error:
            if self._context is None:
                raise
            log.warning("certificates not reloaded, keeping the old ones", error=str(error))
            return
        self._context_state = state
        self._pair = pair
