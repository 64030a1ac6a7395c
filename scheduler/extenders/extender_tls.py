"""What an extender's TLS configuration comes to.

Source: kube-scheduler 1.36, pkg/scheduler/extender.go (makeTransport); k8s.io/client-go
transport/transport.go (0.36): data goes before files, a CA replaces the system's.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.client.errors import ClientConfigError

if TYPE_CHECKING:
    from scheduler.config import Extender


def ssl_context_of(extender: Extender, where: str) -> ssl.SSLContext:
    """Return how the extender is verified and how it verifies us.

    With ``enableHTTPS`` and no CA anybody is trusted, as by kube-scheduler; without
    ``enableHTTPS`` an ``https://`` URL is verified by the system's authorities.

    Parameters
    ----------
    where
        The path of the extender in the configuration, for messages.

    Raises
    ------
    ClientConfigError
        A file is missing, something is not PEM, or certificate and key do not match.
    """
    tls = extender.tls_config
    path = f"{where}.tlsConfig"
    ca = None if tls is None else _pem(tls.ca_data, tls.ca_file, f"{path}.ca")
    try:
        context = ssl.create_default_context(cadata=None if ca is None else ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ClientConfigError(f"{path}: the certificate authority cannot be used") from error
    # Authorities that have served for years are refused by the strict reading of RFC 5280.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if (tls is not None and tls.insecure) or (extender.enable_https and ca is None):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls is not None:
        certificate = _pem(tls.cert_data, tls.cert_file, f"{path}.cert")
        key = _pem(tls.key_data, tls.key_file, f"{path}.key")
        if certificate is not None and key is not None:
            _load_pair(context, certificate, key, path)
    return context


def _pem(data: bytes, file: str, path: str) -> bytes | None:
    if data or not file:
        return data or None
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ClientConfigError(f"{path}File: {file}: {error.strerror}") from error


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes, path: str) -> None:
    # OpenSSL's binding loads a chain from files only.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pair.pem")
        file.touch(mode=0o600)
        file.write_bytes(certificate + b"\n" + key)
        try:
            context.load_cert_chain(file)
        except OSError as error:
            raise ClientConfigError(f"{path}: the client certificate cannot be used") from error
