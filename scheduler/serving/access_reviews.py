"""Query the API server for the user of a token, users' permissions, and authorities of clients.

*Source*: k8s.io/api authentication/v1 and authorization/v1 (0.36); for the authorities
k8s.io/apiserver pkg/server/options/authentication.go (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.client.codec import read_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.client.transport import Transport

AUTHORITIES_PATH: Final = (
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
)

TIMEOUT_S: Final = 5.0
"""Of one review: a request to us has to be answered within twice that, after two of them."""


class User(msgspec.Struct, frozen=True):
    """Somebody whom the API server knows."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}


class ResourceRight(msgspec.Struct, frozen=True, omit_defaults=True):
    """A right to a resource of the API; empty fields stand for all of a kind."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""


class Reviews:
    """Asks the API server.

    Parameters
    ----------
    transport
        One of its own: reviews shall neither wait behind bindings nor take their place.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def user_of(self, token: str) -> User | None:
        """Return whose token it is, or None if it is nobody's.

        Raises
        ------
        ApiError
            The server does not say.
        """
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        answer = await self._post("/apis/authentication.k8s.io/v1/tokenreviews", review)
        status = read_answer(_TOKEN_REVIEW, answer, "a review").status
        return status.user if status.authenticated else None

    async def is_allowed(self, user: User, verb: str, path: str) -> bool:
        """Return whether `user` may do `verb` to a path that is no resource of the API.

        Raises
        ------
        ApiError
            The server does not say.
        """
        return await self._allowed(user, {"nonResourceAttributes": {"path": path, "verb": verb}})

    async def may(self, user: User, right: ResourceRight) -> bool:
        """Return whether `user` has a right to a resource of the API.

        Raises
        ------
        ApiError
            The server does not say.
        """
        return await self._allowed(user, {"resourceAttributes": right})

    async def authorities(self) -> Mapping[str, str]:
        """Return what the cluster publishes about client certificates and the front proxy.

        Raises
        ------
        ApiError
            The server does not say.
        """
        answer = await self._transport.request("GET", AUTHORITIES_PATH, timeout_s=TIMEOUT_S)
        return read_answer(_CONFIG_MAP, answer.body, "a ConfigMap").data

    async def _allowed(self, user: User, attributes: dict[str, Any]) -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": user.groups,
                "extra": user.extra,
                **attributes,
            },
        }
        answer = await self._post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return read_answer(_ACCESS_REVIEW, answer, "a review").status.allowed

    async def _post(self, path: str, review: dict[str, Any]) -> bytes:
        body = msgspec.json.encode(review)
        answer = await self._transport.request("POST", path, body=body, timeout_s=TIMEOUT_S)
        return answer.body


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


_CONFIG_MAP: Final = msgspec.json.Decoder(_ConfigMap)
_TOKEN_REVIEW: Final = msgspec.json.Decoder(_TokenReview)
_ACCESS_REVIEW: Final = msgspec.json.Decoder(_AccessReview)
