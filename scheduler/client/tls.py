"""Load the certificates of server and client, and report when they have changed."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from cache.value import Value
from scheduler.client.errors import ClientConfigError


class CertificatePair(Value, frozen=True):
    """A client certificate and its key, in PEM, as an exec plugin hands them out."""

    certificate: str
    key: str


class TlsFiles(Value, frozen=True):
    """Where the certificates are.

    Attributes
    ----------
    where
        Whose they are, for error messages.
    ca_file
        PEM; None trusts the system's authorities.
    cert_file, key_file
        PEM; None where the client proves itself otherwise. The key may stand in `cert_file`.
    ca_data, cert_data, key_data
        PEM itself, in place of a file.
    verify
        False trusts any server (``insecure-skip-tls-verify``).
    """

    where: str
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    ca_data: str | None = None
    cert_data: str | None = None
    key_data: str | None = None
    verify: bool = True

    def state(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Return what changes when a file is replaced or rewritten; None for a missing one."""
        return tuple(
            _file_state(name) for name in (self.ca_file, self.cert_file, self.key_file) if name
        )

    def context(self, pair: CertificatePair | None = None) -> ssl.SSLContext:
        """Read the files and return a new context; `pair` goes before `cert_file`.

        Raises
        ------
        ClientConfigError
            A file is missing, is not what it should be, or certificate and key do not match.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_file, cadata=self.ca_data)
        except (OSError, ValueError) as error:
            authority = "that is embedded" if self.ca_data is not None else self.ca_file
            raise ClientConfigError(
                f"{self.where}: the certificate authority {authority} cannot be used: {_why(error)}"
            ) from error
        # OpenSSL's strict reading of RFC 5280, the default since Python 3.13, refuses authorities
        # that have served clusters and kubectl for years.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["http/1.1"])
        try:
            if pair is not None:
                _load_pair(context, pair)
            elif self.cert_data is not None or self.key_data is not None:
                _load_pair(context, self._embedded_pair())
            elif self.cert_file is not None:
                context.load_cert_chain(self.cert_file, self.key_file)
        except OSError as error:
            raise ClientConfigError(
                f"{self.where}: the client certificate cannot be used: {_why(error)}"
            ) from error
        return context

    def _embedded_pair(self) -> CertificatePair:
        """Return certificate and key, one of which is embedded and the other maybe a file."""
        return CertificatePair(
            _text(self.cert_data, self.cert_file), _text(self.key_data, self.key_file)
        )


def _text(data: str | None, file: str | None) -> str:
    if data is not None:
        return data
    return "" if file is None else Path(file).read_text(encoding="ascii", errors="replace")


def _load_pair(context: ssl.SSLContext, pair: CertificatePair) -> None:
    # OpenSSL's binding loads a chain from files only.
    descriptor, name = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "w", encoding="ascii", errors="replace") as file:
            file.write(f"{pair.certificate}\n{pair.key}\n")
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()


def _file_state(name: str) -> tuple[int, int, int] | None:
    try:
        stat = Path(name).stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return "it is not PEM"
    if isinstance(error, ssl.SSLError):
        # The reason is a constant of OpenSSL's, such as KEY_VALUES_MISMATCH.
        return error.reason.replace("_", " ").lower() if error.reason else "it is not PEM"
    return f"{error.strerror or error}"
