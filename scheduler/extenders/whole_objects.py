"""Whole pods and nodes of the API, for extenders that read more fields than Berth does.

A pod is read from the API server when an extender is called for it. Nodes are stored by a separate
watch, which runs only if an extender wants whole nodes.
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
"""The timeout of a GET for which a scheduling cycle waits."""

_NOTHING: Final = msgspec.Raw()


class _WholeMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Every field of an object's metadata except ``managedFields``, which kube-scheduler drops too.

    Fields that Berth does not read stay undecoded.
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

    It has no ``kind`` and ``apiVersion``, because kube-scheduler's decoded Go objects do not have
    them either when it sends them.
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
    """Provides the whole pods and nodes for extenders."""

    async def pod(self, info: PodInfo) -> msgspec.Raw:
        """Return the pod as JSON; raise ExtenderError if it cannot be read."""

    def node(self, name: str) -> msgspec.Raw | None:
        """Return the node as JSON; None if it has not arrived."""


class ApiWholeObjects:
    """Whole objects of the API server.

    Parameters
    ----------
    nodes
        The store of whole nodes; None if no extender wants them.

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
            When the pod is deleted or replaced by one of the same name, or cannot be read.
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
        """Return the node as the watch last delivered it."""
        whole = None if self._nodes is None else self._nodes.get("", name)
        return None if whole is None else msgspec.Raw(_encode(whole))


def own_bytes(whole: WholeObject) -> WholeObject:
    """Return a copy of the object with its own bytes: a Raw keeps its whole message in memory."""
    metadata = msgspec.structs.replace(whole.metadata, **_copies(whole.metadata))
    return msgspec.structs.replace(whole, metadata=metadata, **_copies(whole))


def _copies(struct: msgspec.Struct) -> dict[str, Any]:
    values = ((name, getattr(struct, name)) for name in struct.__struct_fields__)
    return {
        name: value.copy() for name, value in values if isinstance(value, msgspec.Raw) and value
    }
