"""Provide one method for each API call of the scheduler.

Only this module knows paths, bodies and content types. A failure is the transport's
:class:`~scheduler.client.errors.ApiError`, unchanged;
:func:`~scheduler.client.errors.classify` decides what follows from it.

*Source*: Kubernetes API 1.36: core/v1 pods, pods/binding, pods/status, persistentvolumes and
persistentvolumeclaims, events.k8s.io/v1 events, authorization.k8s.io/v1 selfsubjectaccessreviews.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from cache.objects import ListMeta, Pod
from cache.value import Value
from scheduler.client.codec import Decoder, read_answer
from scheduler.client.errors import ApiError, ClientConfigError
from scheduler.client.paths import segment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scheduler.client.transport import Transport
    from scheduler.kinds import ResourceKind

T = TypeVar("T", bound=msgspec.Struct)

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

_REVIEWS_AT_A_TIME: Final = 4
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Permission(Value, frozen=True):
    """One right: a verb on a resource.

    Attributes
    ----------
    resource
        With its subresource, ``pods/binding``.
    namespace
        Empty for all namespaces.
    name
        Empty for all objects.
    """

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f" {self.name!r}" if self.name else ""
        where = f"in namespace {self.namespace!r}" if self.namespace else "in all namespaces"
        return f"{self.verb} {resource}{name} {where}"


class ListPage(msgspec.Struct, frozen=True):
    """A page of a list, its objects not decoded yet."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class Api:
    """The scheduler's calls to one API server.

    *Concurrency*: loop-confined.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._pods = Decoder(Pod)

    @property
    def writes_in_flight(self) -> int:
        """How many writes behind the fence are under way."""
        return self._transport.writes_in_flight

    async def bind_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        node_name: str,
        *,
        timeout_s: float = 30.0,
        resource_version: str = "",
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        """Bind a pod to a node, if it is still the pod with this `uid` and not bound yet.

        ``may_send`` is asked right before the request is written. With ``resource_version`` the pod
        is bound only if it still has this version.

        Raises
        ------
        ApiError
            404: there is no such pod. 409: another pod has the name now, or this one is bound,
            being deleted, or has another version.

        *Cost*: 26 us of CPU, 40 us with TLS, on an idle machine.
        """
        body = _encode(
            _Binding(
                metadata=_BindingMeta(name, namespace, uid, resource_version),
                target=_BindingTarget(name=node_name),
            )
        )
        # The answer is a Status that says what its HTTP status has said already.
        await self._transport.request(
            "POST",
            f"{_pod_path(namespace, name)}/binding",
            body=body,
            timeout_s=timeout_s,
            discard_body=True,
            may_send=may_send,
        )

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod as it is stored now, or None if there is none of that name.

        Raises
        ------
        UndecodableObjectError
            There is one that cannot be understood.
        """
        body = await self.get_pod_json(namespace, name)
        return None if body is None else self._pods.decode(body)

    async def get_pod_json(
        self, namespace: str, name: str, *, timeout_s: float = 30.0
    ) -> bytes | None:
        """Return the pod with all its fields, not decoded, or None if there is none."""
        return await self._transport.get(_pod_path(namespace, name), timeout_s=timeout_s)

    async def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        patch: Mapping[str, Any],
        *,
        resource_version: str = "",
    ) -> None:
        """Change a pod's status, if it is still the pod with this `uid`.

        Parameters
        ----------
        patch
            Of the status alone, as a strategic merge patch: conditions are merged by type, a
            None removes a field.
        resource_version
            Of the pod that is to be changed; the empty string for any.

        Raises
        ------
        ApiError
            404: there is no such pod. 409: it has another version. 422: another pod has the name
            now.
        """
        metadata = {"uid": uid}
        if resource_version:
            metadata["resourceVersion"] = resource_version
        await self._transport.request(
            "PATCH",
            f"{_pod_path(namespace, name)}/status",
            body=_encode({"metadata": metadata, "status": patch}),
            content_type=STRATEGIC_MERGE_PATCH,
            discard_body=True,
        )

    async def annotate_pending_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        annotations: Mapping[str, str],
        resource_version: str,
    ) -> str:
        """Write annotations of a pod and take its nomination away, if it has this version.

        By its status, which is all of a pod that a scheduler needs the right to write.

        Returns
        -------
        The version that it has then.

        Raises
        ------
        ApiError
            As :meth:`patch_pod_status`.

        *Source*: pkg/registry/core/pod/strategy.go, podStatusStrategy.PrepareForUpdate (1.36): an
        update of the status keeps the spec and the owners, not the annotations.
        """
        metadata = {"uid": uid, "resourceVersion": resource_version, "annotations": annotations}
        answer = await self._transport.request(
            "PATCH",
            f"{_pod_path(namespace, name)}/status",
            body=_encode({"metadata": metadata, "status": {"nominatedNodeName": None}}),
            content_type=STRATEGIC_MERGE_PATCH,
        )
        return read_answer(_WRITTEN, answer.body, "a pod").metadata.resource_version

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        """Ask for a pod's deletion, after its own grace period, if it still has this `uid`.

        ``may_send`` is asked right before the request is written.

        Raises
        ------
        ApiError
            404: there is no such pod. 409: another pod has the name now.
        """
        await self._transport.request(
            "DELETE",
            _pod_path(namespace, name),
            body=_encode(
                {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
            ),
            discard_body=True,
            may_send=may_send,
        )

    async def get_object(self, kind: ResourceKind[T], namespace: str, name: str) -> T | None:
        """Return an object as it is stored now, or None if there is none of that name.

        Parameters
        ----------
        namespace
            Empty for a cluster-scoped kind.

        Raises
        ------
        UndecodableObjectError
            There is one that cannot be understood.
        """
        body = await self._transport.get(_object_path(kind, namespace, name))
        return None if body is None else Decoder(kind.struct).decode(body)

    async def patch_object(
        self,
        kind: ResourceKind[T],
        namespace: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        strategic: bool = False,
    ) -> T:
        """Change an object by a merge patch, and return what became of it.

        What the patch does not name stays, known here or not. One that names a resourceVersion
        is only carried out on that version.

        Parameters
        ----------
        namespace
            Empty for a cluster-scoped kind.
        subresource
            The part to change, ``status`` for example; empty for the rest of the object.
        strategic
            Whether it is a strategic merge patch, in which lists are merged by key.

        Raises
        ------
        ApiError
            404: there is no such object. 409: it has another version.
        UndecodableObjectError
            The patch was carried out and the answer cannot be understood.
        """
        path = _object_path(kind, namespace, name)
        answer = await self._transport.request(
            "PATCH",
            f"{path}/{subresource}" if subresource else path,
            body=_encode(patch),
            content_type=STRATEGIC_MERGE_PATCH if strategic else MERGE_PATCH,
        )
        return Decoder(kind.struct).decode(answer.body)

    async def create_object(
        self, kind: ResourceKind[T], namespace: str, body: Mapping[str, Any]
    ) -> T:
        """Create an object and return it as it was stored.

        Raises
        ------
        ApiError
            409: there is one of that name.
        UndecodableObjectError
            It was created and the answer cannot be understood.
        """
        answer = await self._transport.request(
            "POST", _list_path(kind, namespace), body=_encode(body)
        )
        return Decoder(kind.struct).decode(answer.body)

    async def delete_object(
        self, kind: ResourceKind[T], namespace: str, name: str, uid: str
    ) -> None:
        """Delete an object, if it still has this `uid`.

        Raises
        ------
        ApiError
            404: there is none. 409: another object has the name now.
        """
        await self._transport.request(
            "DELETE",
            _object_path(kind, namespace, name),
            body=_encode(
                {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
            ),
            discard_body=True,
        )

    async def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        """Create an ``events.k8s.io/v1`` Event."""
        await self._transport.request(
            "POST",
            f"/apis/events.k8s.io/v1/namespaces/{segment(namespace)}/events",
            body=_encode(body),
            discard_body=True,
        )

    async def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Change an Event, by a merge patch: to count what has happened again.

        Raises
        ------
        ApiError
            404: the server has forgotten it, as it does with Events after an hour.
        """
        await self._transport.request(
            "PATCH",
            f"/apis/events.k8s.io/v1/namespaces/{segment(namespace)}/events/{segment(name)}",
            body=_encode(patch),
            content_type=MERGE_PATCH,
            discard_body=True,
        )

    async def list_page(
        self, kind: ResourceKind[T], *, limit: int = 500, continue_: str = ""
    ) -> ListPage:
        """Return a page of all objects of a kind, not decoded: one bad object shall cost no more.

        Raises
        ------
        ApiError
            410: `continue_` is too old. Reason ``"ResponseTooLarge"``: ask for fewer.
        """
        query = [("limit", str(limit))]
        if kind.label_selector:
            query.append(("labelSelector", kind.label_selector))
        if continue_:
            query.append(("continue", continue_))
        answer = await self._transport.request("GET", kind.path, query=query, timeout_s=60.0)
        return read_answer(_LIST_PAGE, answer.body, "a list")

    async def server_version(self) -> str:
        """Return the API server's version, as ``v1.36.3``."""
        answer = await self._transport.request("GET", "/version", timeout_s=10.0)
        return read_answer(_VERSION, answer.body, "a Kubernetes API server's version").git_version

    async def served_versions(self) -> frozenset[str]:
        """Return the versions of all API groups, such as ``apps/v1``; the core group has none.

        Raises
        ------
        ApiError
            When the server does not say.
        """
        answer = await self._transport.request("GET", "/apis", timeout_s=10.0)
        served = read_answer(_GROUPS, answer.body, "a list of API groups")
        return frozenset(
            version.group_version
            for group in served.groups or ()
            for version in group.versions or ()
        )

    async def served_resources(self, group_version: str) -> frozenset[str]:
        """Return the names of the resources in a version of a group, such as ``apps/v1``.

        Returns
        -------
        Subresources included; empty where the server does not have the group in that version.

        Raises
        ------
        ApiError
            When it does not say.
        """
        path = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        body = await self._transport.get(path, timeout_s=10.0)
        if body is None:
            return frozenset()
        served = read_answer(_RESOURCES, body, "a list of the resources of an API group")
        return frozenset(each.name for each in served.resources or ())

    async def check_server(self) -> str:
        """Return the API server's version, or say in one sentence why that cannot be had.

        ``"unknown"`` where the version is kept secret: somebody who answers 403 is there.

        Raises
        ------
        ClientConfigError
            It cannot be reached, does not accept the credentials, or is something else.
        """
        server = f"the API server at {self._transport.base_url}"
        try:
            return await self.server_version()
        except ApiError as error:
            if error.status == 403:
                return "unknown"
            if error.status == 401:
                raise ClientConfigError(f"{server} does not accept the credentials") from error
            if error.status is None:
                raise ClientConfigError(f"{server} gives no answer: {error.message}") from error
            raise ClientConfigError(
                f"{server} answered {error.status} {error.reason}: {error.message}"
            ) from error

    async def self_subject_access_review(self, permission: Permission) -> bool:
        """Return whether the server would allow us this."""
        resource, _, subresource = permission.resource.partition("/")
        attributes = {
            "verb": permission.verb,
            "group": permission.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": permission.namespace,
            "name": permission.name,
        }
        answer = await self._transport.request(
            "POST",
            _REVIEWS,
            body=_encode(
                {
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SelfSubjectAccessReview",
                    "spec": {"resourceAttributes": attributes},
                }
            ),
            timeout_s=10.0,
        )
        return read_answer(_REVIEW, answer.body, "an access review").status.allowed

    async def missing_permissions(self, required: Sequence[Permission]) -> list[Permission]:
        """Return those of `required` that the server would not allow us, in their order.

        Raises
        ------
        ExceptionGroup
            Of ApiErrors: the server does not say.
        """
        waiting = iter(required)
        refused: set[Permission] = set()

        async def ask() -> None:
            for permission in waiting:
                if not await self.self_subject_access_review(permission):
                    refused.add(permission)

        # A few at a time: each opens a connection, which costs as much as several questions.
        async with asyncio.TaskGroup() as group:
            for _ in range(_REVIEWS_AT_A_TIME):
                group.create_task(ask())
        return [permission for permission in required if permission in refused]


class _BindingMeta(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    name: str
    namespace: str
    uid: str
    resource_version: str = ""


class _WrittenMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str


class _Written(msgspec.Struct, frozen=True, gc=False):
    """What is read of an object that was written."""

    metadata: _WrittenMeta


class _BindingTarget(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    kind: str = "Node"
    api_version: str = "v1"


class _Binding(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    metadata: _BindingMeta
    target: _BindingTarget
    kind: str = "Binding"
    api_version: str = "v1"


class _Version(msgspec.Struct, rename="camel"):
    git_version: str


class _Resource(msgspec.Struct, frozen=True):
    name: str = ""


class _Resources(msgspec.Struct, frozen=True):
    # Go encodes an empty list as null.
    resources: tuple[_Resource, ...] | None = None


class _GroupVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, frozen=True):
    versions: tuple[_GroupVersion, ...] | None = None


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] | None = None


class _ReviewStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _ReviewStatus = _ReviewStatus()


_encode: Final = msgspec.json.Encoder().encode
_GROUPS: Final = msgspec.json.Decoder(_Groups)
_LIST_PAGE: Final = msgspec.json.Decoder(ListPage)
_RESOURCES: Final = msgspec.json.Decoder(_Resources)
_WRITTEN: Final = msgspec.json.Decoder(_Written)
_REVIEW: Final = msgspec.json.Decoder(_Review)
_VERSION: Final = msgspec.json.Decoder(_Version)


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{segment(namespace)}/pods/{segment(name)}"


def _list_path(kind: ResourceKind[Any], namespace: str) -> str:
    root, _, plural = kind.path.rpartition("/")
    return f"{root}/namespaces/{segment(namespace)}/{plural}"


def _object_path(kind: ResourceKind[Any], namespace: str, name: str) -> str:
    root, _, plural = kind.path.rpartition("/")
    where = f"/namespaces/{segment(namespace)}" if namespace else ""
    return f"{root}{where}/{plural}/{segment(name)}"
