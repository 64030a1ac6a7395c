"""Provide the client's credentials, by one class for each method of a kubeconfig."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from scheduler.client.errors import ClientConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from scheduler.client.tls import CertificatePair

TOKEN_FILE_PERIOD_S: Final = 60.0
"""The kubelet rotates a projected token at 80 % of its life, of which 10 minutes is the least."""

_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")


class Grant(NamedTuple):
    """A proof and how long it is good for.

    Attributes
    ----------
    header
        The value of ``Authorization``, or None.
    pair
        A client certificate, or None.
    fresh_for_s
        After so many seconds a newer one should be asked for.
    valid_for_s
        After so many seconds it is of no use.
    """

    header: str | None
    pair: CertificatePair | None = None
    fresh_for_s: float = math.inf
    valid_for_s: float = math.inf


class AuthSource(Protocol):
    """Something that can be asked for a proof, again and again."""

    async def obtain(self) -> Grant:
        """Return a proof, the newest there is.

        Raises
        ------
        ClientConfigError
            There is none at this time.
        """


class StaticAuth:
    """What was written down once: a token, a user and password, or nothing."""

    def __init__(self, header: str | None = None) -> None:
        self._grant = Grant(header)

    async def obtain(self) -> Grant:
        """Return the same as ever."""
        return self._grant


class TokenFile:
    """A bearer token in a file that somebody else rewrites."""

    def __init__(self, path: Path, where: str) -> None:
        self._path = path
        self._where = where

    async def obtain(self) -> Grant:
        """Read the file. Cost: some 20 us; it lives in memory on every cluster."""
        try:
            text = self._path.read_bytes().decode("ascii", "replace")
        except OSError as error:
            raise ClientConfigError(
                f"{self._where}: the token file {self._path} cannot be read: {error.strerror}"
            ) from error
        if not text.strip():
            raise ClientConfigError(f"{self._where}: the token file {self._path} is empty")
        return Grant(bearer(text, self._where), fresh_for_s=TOKEN_FILE_PERIOD_S)


class LibraryAuth:
    """An ``auth-provider`` (OpenID Connect, Google), which the client library renews.

    Parameters
    ----------
    renew
        Has the library renew what needs it and returns the value of ``Authorization``.
    """

    def __init__(self, renew: Callable[[], Awaitable[Any]], where: str) -> None:
        self._renew = renew
        self._where = where

    async def obtain(self) -> Grant:
        """Ask the library, which looks at the token's own expiry."""
        try:
            header = await self._renew()
        except Exception as error:  # what it raises is its own affair
            raise ClientConfigError(
                f"{self._where}: the auth-provider gave no token: {error}"
            ) from error
        if not isinstance(header, str) or not header:
            raise ClientConfigError(f"{self._where}: the auth-provider gave no token")
        return Grant(header, fresh_for_s=TOKEN_FILE_PERIOD_S)


def bearer(token: str, where: str) -> str:
    """Return the header value for a token, without the blanks and line ends around it.

    Raises
    ------
    ClientConfigError
        It has characters inside that no header may have.
    """
    token = token.strip()
    if not _VISIBLE.fullmatch(token):
        raise ClientConfigError(f"{where}: the token has characters that no token can have")
    return f"Bearer {token}"
