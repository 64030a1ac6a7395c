"""Define the options of serving: address, TLS and access, from the command line."""

from __future__ import annotations

from typing import Final

from cache.value import Value

SECURE_PORT: Final = 10259
"""kube-scheduler's. Source: pkg/scheduler/apis/config/types.go (1.36)."""

ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")
"""For the kubelet, which has no token. Source: k8s.io/apiserver pkg/server/options/
authorization.go (0.36)."""

CACHE_TTL_S: Final = 10.0
"""Of an answer about a token or a right. Source: as above."""


class ServingOptions(Value, frozen=True):
    """Where and to whom berth answers.

    Parameters
    ----------
    bind_address
        The address of HTTPS, without a port; the empty string for all of this machine's.
    secure_port
        The port of HTTPS; 0 takes a free one, None serves none.
    insecure_bind_address
        ``host:port`` where everybody is answered over plain HTTP; None serves none.
    tls_cert_file, tls_private_key_file
        PEM, read again when they change; a certificate is made where both are empty.
    always_allowed_paths
        Paths that need no token; one that ends with ``*`` stands for all that begin so.
    """

    bind_address: str = "0.0.0.0"  # noqa: S104 - as kube-scheduler; who may read is asked for
    secure_port: int | None = SECURE_PORT
    insecure_bind_address: str | None = None
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    always_allowed_paths: tuple[str, ...] = ALWAYS_ALLOWED
    token_ttl_s: float = CACHE_TTL_S
    allowed_ttl_s: float = CACHE_TTL_S
    refused_ttl_s: float = CACHE_TTL_S
