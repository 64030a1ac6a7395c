"""The API with a span for each write about a traced pod."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from scheduler.client.api import Api
from scheduler.tracing.trace_ids import trace_id_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from msgspec import Struct

    from scheduler.client.transport import Transport
    from scheduler.kinds import ResourceKind
    from scheduler.tracing.traces import Traces

    T = TypeVar("T", bound=Struct)

TRACE_ANNOTATION: Final = "scheduling.berth.dev/trace-id"
"""On Events about traced pods: the id of the trace, 32 digits."""


class TracedApi(Api):
    """The API, with a span for each write about a traced pod, and its trace id in Events.

    Writes of volumes and claims belong to the pod for which the current task binds; all others
    name their pod.
    """

    def __init__(self, transport: Transport, traces: Traces) -> None:
        super().__init__(transport)
        self._traces = traces

    @contextmanager
    def _write(self, trace_id: int, name: str) -> Iterator[None]:
        if not trace_id:
            yield
            return
        began, error = perf_counter(), "cancelled"
        try:
            yield
            error = ""
        except Exception as raised:
            error = str(raised) or type(raised).__name__
            raise
        finally:
            self._traces.wrote(trace_id, name, began, error)

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
        """Bind a pod; see :meth:`Api.bind_pod`."""
        with self._write(self._traces.sampled(uid), "POST pods/binding"):
            await super().bind_pod(
                namespace,
                name,
                uid,
                node_name,
                timeout_s=timeout_s,
                resource_version=resource_version,
                may_send=may_send,
            )

    async def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        patch: Mapping[str, Any],
        *,
        resource_version: str = "",
    ) -> None:
        """Change a pod's status; see :meth:`Api.patch_pod_status`."""
        with self._write(self._traces.sampled(uid), "PATCH pods/status"):
            await super().patch_pod_status(
                namespace, name, uid, patch, resource_version=resource_version
            )

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        """Delete a pod, which is a victim; see :meth:`Api.delete_pod`."""
        with self._write(self._traces.sampled(uid), "DELETE pods"):
            await super().delete_pod(namespace, name, uid, may_send=may_send)

    async def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        """Create an Event, with the trace id of its pod; see :meth:`Api.create_event`."""
        trace_id = self._traces.sampled(body["regarding"].get("uid", ""))
        with self._write(trace_id, "POST events"):
            await super().create_event(namespace, _annotated(body, trace_id))

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
        """Change an object; see :meth:`Api.patch_object`."""
        what = f"{kind.resource}/{subresource}" if subresource else kind.resource
        with self._write(self._traces.under_way(), f"PATCH {what}"):
            return await super().patch_object(
                kind, namespace, name, patch, subresource=subresource, strategic=strategic
            )

    async def create_object(
        self, kind: ResourceKind[T], namespace: str, body: Mapping[str, Any]
    ) -> T:
        """Create an object; see :meth:`Api.create_object`."""
        with self._write(self._traces.under_way(), f"POST {kind.resource}"):
            return await super().create_object(kind, namespace, body)

    async def delete_object(
        self, kind: ResourceKind[T], namespace: str, name: str, uid: str
    ) -> None:
        """Delete an object; see :meth:`Api.delete_object`."""
        with self._write(self._traces.under_way(), f"DELETE {kind.resource}"):
            await super().delete_object(kind, namespace, name, uid)


def _annotated(body: Mapping[str, Any], trace_id: int) -> Mapping[str, Any]:
    """Return the body of an Event with the trace id of its pod, if that is traced."""
    if not trace_id:
        return body
    metadata = body["metadata"]
    annotations = {**metadata.get("annotations", {}), TRACE_ANNOTATION: trace_id_text(trace_id)}
    return {**body, "metadata": {**metadata, "annotations": annotations}}
