"""Provide the server's certificate: a configured one, or a self-signed one.

*Source*: k8s.io/apiserver pkg/server/options/serving.go and pkg/server/dynamiccertificates (0.36).
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import re
import socket
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIFETIME_DAYS: Final = 365
"""Of a certificate that we make. Source: k8s.io/client-go util/cert/cert.go (0.36)."""

LOOK_AGAIN_S: Final = 60.0
"""How often given files are looked at. Source: pkg/server/dynamiccertificates (0.36)."""

_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?")

log = structlog.get_logger(__name__)


class CertificateError(Exception):
    """There is no certificate to serve with; the message is one sentence for a person."""


class GivenCertificate:
    """A certificate from two files that somebody else renews.

    Parameters
    ----------
    cert_file, key_file
        PEM: the chain, the server's own certificate first, and its key without a passphrase.
    clock
        Seconds of a monotonic clock.

    Raises
    ------
    CertificateError
        They cannot be used. Files that can no longer be used later on are logged, and what they
        held before goes on being served.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self, cert_file: str, key_file: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._files = (cert_file, key_file)
        self._clock = clock
        self._client_cas = ""
        try:
            self._seen: tuple[tuple[int, int, int], ...] = self._state()
            self._pem = _first_certificate(cert_file)
            self._context = _loaded(cert_file, key_file)
        except OSError as error:  # ssl.SSLError is one
            raise CertificateError(
                f"cannot serve with {cert_file} and {key_file}: {_reason(error)}"
            ) from error
        self._looked_s = clock()

    @property
    def pem(self) -> str:
        """The server's own certificate."""
        return self._pem

    def context(self) -> ssl.SSLContext:
        """Return what the files hold, another object after a rotation.

        They are looked at once in `LOOK_AGAIN_S`.
        """
        now_s = self._clock()
        if now_s - self._looked_s >= LOOK_AGAIN_S:
            self._looked_s = now_s
            self._look_again()
        return self._context

    def ask_clients(self, client_cas: str) -> None:
        """Ask clients for certificates of these authorities, in PEM; they need not have one."""
        if client_cas != self._client_cas:
            self._client_cas, self._seen = client_cas, ()
            self._look_again()

    def _look_again(self) -> None:
        cert_file, key_file = self._files
        try:
            state = self._state()
            if state == self._seen:
                return
            context, pem = (
                _loaded(cert_file, key_file, self._client_cas),
                _first_certificate(cert_file),
            )
        except OSError as error:
            # Half of a rotation, perhaps: the state is not noted, so the next look tries again.
            log.error("certificate cannot be read again", file=cert_file, error=_reason(error))
            return
        self._context, self._pem = context, pem
        if self._seen:
            log.info("certificate has been renewed", file=cert_file)
        self._seen = state

    def _state(self) -> tuple[tuple[int, int, int], ...]:
        found = [os.stat(name) for name in self._files]  # noqa: PTH116 - follows links, as wanted
        return tuple((each.st_mtime_ns, each.st_ino, each.st_size) for each in found)


class SelfMadeCertificate:
    """A certificate that nobody else has signed, for as long as the process lives.

    Parameters
    ----------
    addresses
        Names and IP addresses it is good for besides this machine's name and loopback.
    """

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        self._pem = make_certificate(
            [socket.gethostname(), "localhost", "127.0.0.1", "::1", *addresses]
        )
        self._client_cas = ""
        self._context = _from_memory(self._pem)

    @property
    def pem(self) -> str:
        """The server's own certificate."""
        return _certificates(self._pem.decode("ascii"))[0]

    def context(self) -> ssl.SSLContext:
        """Return it; another object after a change of the authorities of clients."""
        return self._context

    def ask_clients(self, client_cas: str) -> None:
        """Ask clients for certificates of these authorities, in PEM; they need not have one."""
        if client_cas != self._client_cas:
            self._client_cas = client_cas
            try:
                self._context = _from_memory(self._pem, client_cas)
            except OSError as error:
                log.error("authorities of clients cannot be used", error=_reason(error))


Certificate: TypeAlias = GivenCertificate | SelfMadeCertificate
"""What to answer a handshake with."""


def make_certificate(addresses: Sequence[str]) -> bytes:
    """Return a new key and a certificate for it, signed by itself, as PEM.

    Parameters
    ----------
    addresses
        DNS names and IP addresses; the first is the subject. What is neither is left out.
    """
    # Needed by nobody who brings a certificate, and slow to import.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415

    now = dt.datetime.now(dt.UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    # The time makes the subject another one after each start: clients keep certificates by it.
    name = x509.Name(
        [
            x509.NameAttribute(
                x509.NameOID.COMMON_NAME, f"{addresses[0][:40]}@{int(now.timestamp())}"
            )
        ]
    )
    names: dict[x509.GeneralName, None] = {}
    for address in addresses:
        try:
            names[x509.IPAddress(ipaddress.ip_address(address))] = None
        except ValueError:
            if address.isascii() and address:
                names[x509.DNSName(address)] = None
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=LIFETIME_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + certificate.public_bytes(serialization.Encoding.PEM)


def _first_certificate(file: str) -> str:
    """Return the first certificate of a file as PEM; empty if it has none."""
    text = Path(file).read_text(encoding="ascii", errors="replace")
    return next(iter(_certificates(text)), "")


def _certificates(text: str) -> list[str]:
    return _CERTIFICATE.findall(text)


def _from_memory(pem: bytes, client_cas: str = "") -> ssl.SSLContext:
    # OpenSSL reads files only, and the root file system may be read-only.
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        return _loaded(f"/proc/self/fd/{descriptor}", client_cas=client_cas)
    finally:
        os.close(descriptor)


def _loaded(cert_file: str, key_file: str | None = None, client_cas: str = "") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # Without a passphrase given here OpenSSL would ask for it on the terminal, and wait.
    context.load_cert_chain(cert_file, key_file, password="")
    if client_cas:
        context.load_verify_locations(cadata=client_cas)
        context.verify_mode = ssl.CERT_OPTIONAL
        # As Go has it: whoever is listed is trusted, and need not have signed itself.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        # A resumed session has no verified chain, and who is asked for a certificate shows it.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    return context


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return os.strerror(error.errno) if error.errno is not None else str(error)
