"""Identify users by client certificates, and by the headers of the front proxy.

The cluster publishes both authorities in the ConfigMap ``extension-apiserver-authentication``:

- that of client certificates: the common name is the user, the organizations are its groups;
- that of the front proxy, the API server's aggregator: with a certificate of this authority, and
  one of the allowed names, a client may name the user in headers. Without it, the headers are
  ignored, whoever sends them.

OpenSSL verifies a certificate during the handshake against both. The verified chain shows which of
the two has signed it.

# Differs: a certificate that neither has signed ends the handshake; in kube-scheduler the response
# is 401.

*Source*: k8s.io/apiserver pkg/authentication/request/x509/{x509,verify_common_name}.go,
pkg/authentication/request/headerrequest/requestheader.go and
pkg/authentication/authenticatorfactory/delegating.go (0.36).
"""

from __future__ import annotations

import hashlib
import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec
import structlog

from scheduler.serving.access_reviews import User

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"

_PEM: Final = re.compile(
    "-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Authorities:
    """Who signs client certificates, and whom the front proxy is known by.

    Parameters
    ----------
    client_ca, proxy_ca
        PEM; empty where the cluster has none.
    proxy_names
        The common names that the front proxy may have; empty for any.
    user_headers, uid_headers, group_headers, extra_prefixes
        The headers by which the front proxy names the user.
    """

    client_ca: str = ""
    proxy_ca: str = ""
    proxy_names: tuple[str, ...] = ()
    user_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Authorities:
        """Return those of the ConfigMap's data; a field that cannot be read counts as empty.

        Without headers that name the user there is no front proxy.
        """
        user_headers = _names(data, "requestheader-username-headers")
        return cls(
            client_ca=data.get("client-ca-file", ""),
            proxy_ca=data.get("requestheader-client-ca-file", "") if user_headers else "",
            proxy_names=_names(data, "requestheader-allowed-names"),
            user_headers=user_headers,
            uid_headers=_names(data, "requestheader-uid-headers"),
            group_headers=_names(data, "requestheader-group-headers"),
            extra_prefixes=_names(data, "requestheader-extra-headers-prefix"),
        )

    def pem(self) -> str:
        """Return all certificates in PEM, for the handshake."""
        found = _PEM.findall(f"{self.client_ca}\n{self.proxy_ca}")
        return "\n".join(block for block in found if block.isascii())


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Return a list of names in JSON."""
    text = data.get(key, "")
    if not text:
        return ()
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except msgspec.MsgspecError:
        log.error("authentication of clients: a list cannot be read", key=key)
        # As an empty list of names means any, one that cannot be read has a name of nobody.
        return ("\0",)


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A client's certificate that the handshake has verified.

    Parameters
    ----------
    chain
        DER, the client's own first.
    common_name, organizations
        Of its subject.
    """

    chain: tuple[bytes, ...]
    common_name: str
    organizations: tuple[str, ...]


class ClientCertificates:
    """Knows the users of verified certificates.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, authorities: Authorities | None = None) -> None:
        self.trust(authorities or Authorities())

    def trust(self, authorities: Authorities) -> None:
        """Identify users by these authorities from now on."""
        self.authorities = authorities
        self._client_roots = _ders(authorities.client_ca)
        self._proxy_roots = _ders(authorities.proxy_ca)

    def user_of(self, request: web.Request) -> User | None:
        """Return the user whom the certificate of a request proves, or None."""
        peer = peer_certificate(request.get_extra_info("ssl_object"))
        return None if peer is None else self.identify(peer, request.headers)

    def identify(self, peer: PeerCertificate, headers: Any) -> User | None:
        """Return the user of a certificate; that of the headers if it is the front proxy's.

        Parameters
        ----------
        headers
            A ``multidict`` without regard to case.
        """
        signers = set(peer.chain[1:])
        trusted = self.authorities
        if self._proxy_roots & signers and (
            not trusted.proxy_names or peer.common_name in trusted.proxy_names
        ):
            user = _user_of_headers(trusted, headers)
            if user is not None:
                return user
        if not self._client_roots & signers or not peer.common_name:
            return None
        digest = hashlib.sha256(peer.chain[0]).hexdigest()
        return User(
            username=peer.common_name,
            groups=(*peer.organizations, "system:authenticated"),
            extra={CREDENTIAL_ID: [f"X509SHA256={digest}"]},
        )


def _user_of_headers(trusted: Authorities, headers: Any) -> User | None:
    username = _first(headers, trusted.user_headers)
    if not username:
        return None
    groups = [each for name in trusted.group_headers for each in headers.getall(name, ())]
    is_anonymous = username == "system:anonymous" or "system:unauthenticated" in groups
    if not is_anonymous and "system:authenticated" not in groups:
        groups.append("system:authenticated")
    extra: dict[str, list[str]] = {}
    for name, value in headers.items():
        for prefix in trusted.extra_prefixes:
            if prefix and name.lower().startswith(prefix.lower()):
                extra.setdefault(unquote(name[len(prefix) :]).lower(), []).append(value)
    uid = _first(headers, trusted.uid_headers)
    return User(username=username, uid=uid, groups=tuple(groups), extra=extra)


def _first(headers: Any, names: Sequence[str]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


def peer_certificate(ssl_object: Any) -> PeerCertificate | None:
    """Return the verified certificate of a connection; None without TLS or without one."""
    if ssl_object is None:
        return None
    subject = (ssl_object.getpeercert() or {}).get("subject")
    chain = _verified_chain(ssl_object)
    if not subject or len(chain) < 2:
        return None
    names: dict[str, list[str]] = {}
    for parts in subject:
        for key, value in parts:
            names.setdefault(key, []).append(value)
    common_names = names.get("commonName", [""])
    return PeerCertificate(chain, common_names[-1], tuple(names.get("organizationName", ())))


def _verified_chain(ssl_object: Any) -> tuple[bytes, ...]:
    """Return the verified chain in DER; empty where OpenSSL has none, as after a resumption."""
    if hasattr(ssl_object, "get_verified_chain"):  # from Python 3.13 on
        return tuple(ssl_object.get_verified_chain() or ())
    # The same of Python 3.10 to 3.12, where it has no public name yet.
    found = ssl_object._sslobj.get_verified_chain()
    return tuple(ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in found or ())


def _ders(pem: str) -> frozenset[bytes]:
    found = set()
    for block in _PEM.findall(pem):
        try:
            found.add(ssl.PEM_cert_to_DER_cert(block))
        except ValueError:
            log.error("authentication of clients: an authority is not PEM")
    return frozenset(found)
