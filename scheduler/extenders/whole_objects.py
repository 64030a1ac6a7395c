"""Pods and nodes as the API has them, for extenders that read more of them than we do.

A pod is asked of the API when an extender is asked about it; nodes are kept by a watch of their
own, which exists only where an extender wants whole nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from scheduler.client.codec import Decoder, UndecodableObjectError
from scheduler.client.errors import ApiError
from scheduler.extenders.extender_client import ExtenderError
from scheduler.kinds import ResourceKind

if TYPE_CHECKING:
    from cache.pod_info import PodInfo
    from scheduler.client.api import Api

POD_TIMEOUT_S: Final = 10.0
"""For one GET that a scheduling cycle waits for."""

_NOTHING: Final = msgspec.Raw()


class _WholeMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Every field of an object's metadata but ``managedFields``, which kube-scheduler drops too.

    What nobody looks at stays text.
    """

    name: str = ""
    generate_name: msgspec.Raw = _NOTHING
    namespace: str = ""
    self_link: msgspec.Raw = _NOTHING
    uid: str = ""
    resource_version: str = ""
    generation: msgspec.Raw = _NOTHING
    creation_timestamp: msgspec.Raw = _NOTHING
    deletion_timestamp: msgspec.Raw = _NOTHING
    deletion_grace_period_seconds: msgspec.Raw = _NOTHING
    labels: msgspec.Raw = _NOTHING
    annotations: msgspec.Raw = _NOTHING
    owner_references: msgspec.Raw = _NOTHING
    finalizers: msgspec.Raw = _NOTHING


class WholeObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object with ``spec`` and ``status`` as the API wrote them.

    Without ``kind`` and ``apiVersion``: Go's objects have lost them by the time that
    kube-scheduler sends them.
    """

    metadata: _WholeMeta = _WholeMeta()
    spec: msgspec.Raw = _NOTHING
    status: msgspec.Raw = _NOTHING


WHOLE_NODES: Final = ResourceKind("nodes", "/api/v1/nodes", WholeObject)

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = Decoder(WholeObject).decode


class WholeNodes(Protocol):
    """The nodes by name; an informer of :data:`WHOLE_NODES` is one."""

    def get(self, namespace: str, name: str) -> WholeObject | None:
        """Return the node, or None if it has not arrived."""


class WholeObjects(Protocol):
    """Where an extender's pods and nodes come from."""

    async def pod(self, info: PodInfo) -> msgspec.Raw:
        """Return the pod as JSON; raises ExtenderError when it cannot be had."""

    def node(self, name: str) -> msgspec.Raw | None:
        """Return the node as JSON; None if it has not arrived."""


class ApiWholeObjects:
    """Whole objects of the API server.

    Parameters
    ----------
    nodes
        None where no extender wants whole nodes.

    Notes
    -----
    *Concurrency*: loop-confined.

    *Cost*: of :meth:`pod`, one GET; of :meth:`node`, encoding one object again, some 5 us.
    """

    def __init__(self, api: Api, nodes: WholeNodes | None) -> None:
        self._api = api
        self._nodes = nodes

    async def pod(self, info: PodInfo) -> msgspec.Raw:
        """Return the pod as the API has it now.

        Raises
        ------
        ExtenderError
            It is gone, replaced by one of the same name, or the API server gives no answer.
        """
        try:
            body = await self._api.get_pod_json(info.namespace, info.name, timeout_s=POD_TIMEOUT_S)
            whole = None if body is None else _decode(body)
        except (ApiError, UndecodableObjectError) as error:
            raise ExtenderError(f"cannot get the pod to show to extenders: {error}") from error
        if whole is None or whole.metadata.uid != info.uid:
            raise ExtenderError("the pod no longer exists")
        return msgspec.Raw(_encode(whole))

    def node(self, name: str) -> msgspec.Raw | None:
        """Return the node as the watch last brought it."""
        whole = None if self._nodes is None else self._nodes.get("", name)
        return None if whole is None else msgspec.Raw(_encode(whole))


def own_bytes(whole: WholeObject) -> WholeObject:
    """Return the object with bytes of its own: a Raw keeps all of the message that it came in."""
    metadata = msgspec.structs.replace(whole.metadata, **_copies(whole.metadata))
    return msgspec.structs.replace(whole, metadata=metadata, **_copies(whole))


def _copies(struct: msgspec.Struct) -> dict[str, Any]:
    values = ((name, getattr(struct, name)) for name in struct.__struct_fields__)
    return {
        name: value.copy() for name, value in values if isinstance(value, msgspec.Raw) and value
    }
