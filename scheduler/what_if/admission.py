"""What the API server would fill in or refuse by the limits of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from cache.quantity import QuantityError
from cache.resources import MalformedObjectError
from scheduler.client.codec import Decoder, UndecodableObjectError
from scheduler.offline.cluster import LIMIT_RANGE, RESOURCE_QUOTA
from scheduler.what_if.limit_objects import LimitRange, ResourceQuota, check_amounts
from scheduler.what_if.limit_ranges import completed, refusal
from scheduler.what_if.quotas import QuotaLedger

if TYPE_CHECKING:
    from cache.objects import Pod
    from scheduler.offline.cluster import Cluster

T = TypeVar("T", LimitRange, ResourceQuota)

RANGES: Final = Decoder(LimitRange)
QUOTAS: Final = Decoder(ResourceQuota)


class Admission:
    """The LimitRanges and ResourceQuotas of a cluster, as far as they are known.

    Parameters
    ----------
    cluster
        Holds them.

    Attributes
    ----------
    unreadable
        Sentences about those that cannot be read.

    Notes
    -----
    *Concurrency*: confined to its owner.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.unreadable: list[str] = []
        self._ranges = self._read(RANGES, LIMIT_RANGE)
        self._quotas = self._read(QUOTAS, RESOURCE_QUOTA)
        self._ledgers: dict[str, QuotaLedger] = {}

    def not_considered(self) -> str:
        """Return a sentence about what is not known, or nothing."""
        kinds = [kind for kind in (RESOURCE_QUOTA, LIMIT_RANGE) if kind not in self._cluster.limits]
        if not kinds:
            return ""
        return (
            f"Nothing is known of {' and '.join(f'{kind}s' for kind in kinds)}: what they would "
            "refuse or fill in was not considered."
        )

    def complete(self, pod: Pod) -> Pod:
        """Return a new pod with what LimitRanges fill in."""
        return completed(pod, self._ranges.get(pod.metadata.namespace, ()))

    def admit(self, pod: Pod) -> str:
        """Count a new pod, or return why it is refused."""
        namespace = pod.metadata.namespace
        try:
            why = refusal(pod, self._ranges.get(namespace, ()))
        except QuantityError as error:
            return str(error)
        if why or namespace not in self._quotas:
            return why
        return self._ledger(namespace).admit(pod)

    def release(self, pod: Pod) -> None:
        """Count a pod that is gone."""
        if pod.metadata.namespace in self._quotas:
            self._ledger(pod.metadata.namespace).release(pod)

    def _ledger(self, namespace: str) -> QuotaLedger:
        ledger = self._ledgers.get(namespace)
        if ledger is None:
            pods = [p for p in self._cluster.pods.values() if p.metadata.namespace == namespace]
            ledger = self._ledgers[namespace] = QuotaLedger(self._quotas[namespace], pods)
        return ledger

    def _read(self, decoder: Decoder[T], kind: str) -> dict[str, list[T]]:
        found: dict[str, list[T]] = {}
        for raw in self._cluster.limits.get(kind, ()):
            try:
                made = decoder.decode(raw)
                check_amounts(made)
            except (UndecodableObjectError, MalformedObjectError) as error:
                self.unreadable.append(f"A {kind} cannot be read and is left out: {error}")
                continue
            found.setdefault(made.metadata.namespace, []).append(made)
        return found
