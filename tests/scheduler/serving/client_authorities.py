"""Authorities and the client certificates that they sign, for tests of serving."""

from __future__ import annotations

import datetime as dt
import ssl
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

DAY = dt.timedelta(days=1)
PEM = serialization.Encoding.PEM


class Authority:
    """Signs client certificates."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = subject(name)
        builder = _certificate(self._name, self._name, self._key.public_key(), dt.timedelta(0))
        self._certificate = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self._certificate.public_bytes(PEM).decode()

    def sign(
        self, folder: Path, name: str, *organizations: str, age: dt.timedelta = dt.timedelta(0)
    ) -> str:
        """Return a file with a certificate and its key; without a common name if that is empty."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = (
            _certificate(subject(name, *organizations), self._name, key.public_key(), age)
            .add_extension(usage, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        file = folder / f"{name or 'nameless'}-{id(key)}.pem"
        file.write_bytes(
            certificate.public_bytes(PEM)
            + key.private_bytes(
                PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return str(file)


def subject(name: str, *organizations: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    if name:
        parts.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    return x509.Name(parts or [x509.NameAttribute(NameOID.COUNTRY_NAME, "NO")])


def _certificate(
    of: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, age: dt.timedelta
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC) - age
    return (
        x509.CertificateBuilder()
        .subject_name(of)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
    )


def client_context(certificate: str | None = None) -> ssl.SSLContext:
    """Return how a client connects that trusts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context
