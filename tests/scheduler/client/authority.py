"""A certificate authority for tests: makes itself, servers and clients."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path


class Authority:
    """Writes PEM files into a folder: ``ca.crt``, and what it is asked to sign."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self.name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._builder(self._subject, self._key).add_extension(basic, critical=True)
        self.ca_file = folder / f"{name}.crt"
        self.ca_file.write_bytes(
            certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )

    def sign(self, name: str, *, host: str = "127.0.0.1") -> tuple[Path, Path]:
        """Write ``<name>.crt`` and ``<name>.key`` for `host` and return their paths."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        try:
            alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            alternative = x509.DNSName(host)
        certificate = self._builder(subject, key).add_extension(
            x509.SubjectAlternativeName([alternative]), critical=False
        )
        cert_file, key_file = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        cert_file.write_bytes(
            certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return cert_file, key_file

    def server_context(
        self, name: str = "server", *, host: str = "127.0.0.1", clients: Authority | None = None
    ) -> ssl.SSLContext:
        """Return what a server needs; with `clients` it wants a certificate signed by that."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # As berth's own contexts: Python 3.13 would refuse authorities like this one.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.load_cert_chain(*self.sign(name, host=host))
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients.ca_file)
        return context

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )
