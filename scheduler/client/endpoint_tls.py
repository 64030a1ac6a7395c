"""Build the TLS context of an extender, or of a similar server, from its configuration.

*Source*: kube-scheduler 1.36, pkg/scheduler/extender.go (makeTransport); k8s.io/client-go
transport/transport.go (0.36): data takes precedence over files, a CA replaces the system's, and a
certificate counts only with its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.client.tls import TlsFiles

if TYPE_CHECKING:
    import ssl

    from scheduler.config import ExtenderTLS


def endpoint_tls(
    tls: ExtenderTLS | None, where: str, *, trusts_anybody: bool = False
) -> ssl.SSLContext:
    """Return how the server is verified and how it verifies us.

    Parameters
    ----------
    where
        The path of the configuration, for messages.
    trusts_anybody
        Whether a server is not verified where no CA is named; otherwise the system's authorities
        count.

    Raises
    ------
    ClientConfigError
        A file is missing, something is not PEM, or certificate and key do not match.
    """
    if tls is None:
        return TlsFiles(where, verify=not trusts_anybody).context()
    ca_data, ca_file = _data_first(tls.ca_data, tls.ca_file)
    cert_data, cert_file = _data_first(tls.cert_data, tls.cert_file)
    key_data, key_file = _data_first(tls.key_data, tls.key_file)
    if not (cert_data or cert_file) or not (key_data or key_file):
        cert_data = cert_file = key_data = key_file = None
    return TlsFiles(
        where,
        ca_file=ca_file,
        cert_file=cert_file,
        key_file=key_file,
        ca_data=ca_data,
        cert_data=cert_data,
        key_data=key_data,
        verify=not tls.insecure and not (trusts_anybody and not (ca_data or ca_file)),
    ).context()


def _data_first(data: bytes, file: str) -> tuple[str | None, str | None]:
    if data:
        return data.decode("ascii", errors="backslashreplace"), None
    return None, file or None
