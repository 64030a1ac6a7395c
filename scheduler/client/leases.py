"""Read, create and update the Lease by which replicas elect a leader.

What a Lease contains besides the record of the election (labels, annotations, fields of newer
versions) is sent back as it came, except for one annotation: the certificate of the leader's HTTPS
server, by which users who ask the leader know it. Every update names the resourceVersion that it
was made from, so that of two replicas one is refused.

*Source*: Kubernetes API 1.36, coordination.k8s.io/v1 leases; client-go tools/leaderelection
resourcelock, leaselock.go (0.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from cache.value import Value
from scheduler.client.errors import ApiError
from scheduler.client.paths import segment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.client.transport import Transport

LEASES: Final = "leases"
GROUP: Final = "coordination.k8s.io"

CERTIFICATE: Final = "scheduling.berth.dev/certificate"
"""The annotation with the certificate that the leader serves with, as PEM."""

_MAX_INT32: Final = 2**31 - 1


class LeaseRecord(Value, frozen=True):
    """What an election writes into a Lease.

    Attributes
    ----------
    holder
        The identity of who leads; empty when nobody does.
    duration_s
        For how long after a renewal nobody else may lead, in whole seconds; None where the Lease
        does not say.
    acquire_time, renew_time
        By the holder's wall clock, as ``2026-01-31T23:59:59.000000Z``: for people. Nothing is
        decided by them but whether the record has changed.
    transitions
        How often the Lease went from one holder to another.
    """

    holder: str = ""
    duration_s: int | None = None
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int = 0


class Lease(Value, frozen=True):
    """A Lease as the API server has it.

    Attributes
    ----------
    record
        What the election reads of it.
    document
        All of it.
    """

    record: LeaseRecord
    document: Mapping[str, Any]

    @property
    def certificate(self) -> str:
        """The certificate of the leader's HTTPS server as PEM; empty if it has published none."""
        annotations = (self.document.get("metadata") or {}).get("annotations") or {}
        found = annotations.get(CERTIFICATE)
        return found if isinstance(found, str) else ""

    @property
    def resource_version(self) -> str:
        """The version of the object; empty where the API server sends none."""
        found = (self.document.get("metadata") or {}).get("resourceVersion")
        return found if isinstance(found, str) else ""


class Leases:
    """Reads and writes one Lease.

    Parameters
    ----------
    transport
        Best one of its own: what waits for binds, or is refused with them, cannot keep a lease.
    namespace, name
        The Lease.
    certificate
        Returns the certificate that is published with each record that has a holder, as PEM; empty
        for none.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        name: str,
        certificate: Callable[[], str] = str,
    ) -> None:
        self._transport = transport
        self._certificate = certificate
        self._namespace = namespace
        self._name = name
        self._collection = f"/apis/{GROUP}/v1/namespaces/{segment(namespace)}/leases"
        self._path = f"{self._collection}/{segment(name)}"

    def __str__(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def get(self, *, timeout_s: float) -> Lease | None:
        """Return the Lease, or None if there is none.

        Raises
        ------
        ApiError
            No answer, or another refusal.
        """
        body = await self._transport.get(self._path, timeout_s=timeout_s)
        return None if body is None else _read(body)

    async def create(self, record: LeaseRecord, *, timeout_s: float) -> Lease:
        """Create the Lease.

        Raises
        ------
        ApiError
            409: there is one.
        """
        document = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Lease",
            "metadata": self._published({"name": self._name, "namespace": self._namespace}, record),
            "spec": _spec(record),
        }
        answer = await self._transport.request(
            "POST",
            self._collection,
            body=msgspec.json.encode(document),
            timeout_s=timeout_s,
        )
        return _read(answer.body)

    async def update(self, lease: Lease, record: LeaseRecord, *, timeout_s: float) -> Lease:
        """Write `record` into `lease`, if the API server still has that version of it.

        Raises
        ------
        ApiError
            409: it has another version. 404: there is none any more.
        """
        spec = {**(lease.document.get("spec") or {}), **_spec(record)}
        metadata = self._published(lease.document.get("metadata") or {}, record)
        answer = await self._transport.request(
            "PUT",
            self._path,
            body=msgspec.json.encode({**lease.document, "metadata": metadata, "spec": spec}),
            timeout_s=timeout_s,
        )
        return _read(answer.body)

    def _published(self, metadata: Mapping[str, Any], record: LeaseRecord) -> dict[str, Any]:
        """Return metadata with the holder's certificate, and with nobody else's."""
        annotations = dict(metadata.get("annotations") or {})
        annotations.pop(CERTIFICATE, None)
        if record.holder and (certificate := self._certificate()):
            annotations[CERTIFICATE] = certificate
        return {**metadata, "annotations": annotations}


def released(record: LeaseRecord, now: str) -> LeaseRecord:
    """Return the record of a Lease that its holder gives back at `now`: anybody may have it."""
    return replace(record, holder="", duration_s=1, acquire_time=now, renew_time=now)


def _spec(record: LeaseRecord) -> dict[str, Any]:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_s,
        "acquireTime": record.acquire_time,
        "renewTime": record.renew_time,
        "leaseTransitions": min(record.transitions, _MAX_INT32),
    }


def _read(body: bytes) -> Lease:
    try:
        document = _DOCUMENT.decode(body)
        spec = msgspec.convert(document.get("spec") or {}, _Spec)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(None, "BadResponse", f"this is not a Lease: {error}") from error
    record = LeaseRecord(
        holder=spec.holder_identity or "",
        duration_s=spec.lease_duration_seconds,
        acquire_time=spec.acquire_time or "",
        renew_time=spec.renew_time or "",
        transitions=spec.lease_transitions or 0,
    )
    return Lease(record, document)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


_DOCUMENT: Final = msgspec.json.Decoder(dict[str, Any])
