"""The part of a kubelet that admits pods: whether what a pod requests is free on the node.

A kubelet checks each pod that its watch shows, in that order, against the pods that it has admitted
before and that have not ended. A pod that it rejects has failed and takes nothing. The checks of
the operating system, the node's name, labels, taints and ports are left out, because the pods of
this campaign ask for nothing of that kind; and none is critical, so none evicts another one.

*Source*: pkg/kubelet/lifecycle/predicate.go (Admit, removeMissingExtendedResources),
pkg/kubelet/kubelet.go (HandlePodAdditions, rejectPod) and
pkg/scheduler/framework/plugins/noderesources/fit.go (fitsRequest), 1.36.3.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

CPU: Final = "cpu"
PODS: Final = "pods"
_PLAIN: Final = (CPU, "memory", "ephemeral-storage")
"""In the order in which they are checked, after the number of pods and before other resources."""

_FACTORS: Final[Mapping[str, Fraction]] = {
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}


class Rejection(NamedTuple):
    """Why a pod was rejected, as its status has it."""

    reason: str
    message: str

    def status(self) -> dict[str, Any]:
        """Return the status that the kubelet writes."""
        message = f"Pod was rejected: {self.message}"
        return {"phase": "Failed", "reason": self.reason, "message": message}


class Kubelet:
    """The pods that one kubelet has admitted, and what they request together.

    Parameters
    ----------
    allocatable
        Of the node's status, as quantities.
    """

    def __init__(self, allocatable: Mapping[str, str]) -> None:
        self._capacity = amounts(allocatable)
        self._pods: dict[str, Mapping[str, int]] = {}
        self._used: dict[str, int] = {}

    def admit(self, uid: str, requests: Mapping[str, int]) -> Rejection | None:
        """Admit a pod that the watch shows for the first time; return why if it is rejected.

        Parameters
        ----------
        requests
            As :func:`pod_requests` returns them.
        """
        rejection = self._check(requests)
        if rejection is None:
            self._pods[uid] = requests
            for name, amount in requests.items():
                self._used[name] = self._used.get(name, 0) + amount
        return rejection

    def remove(self, uid: str) -> None:
        """Forget a pod that has ended or is gone; nothing happens if it was not admitted."""
        for name, amount in self._pods.pop(uid, {}).items():
            self._used[name] -= amount

    def _check(self, requests: Mapping[str, int]) -> Rejection | None:
        if len(self._pods) + 1 > self._capacity.get(PODS, 0):
            return _out_of(PODS, 1, len(self._pods), self._capacity.get(PODS, 0))
        # A resource that the node does not have belongs to the cluster, and is not checked.
        others = sorted(name for name in requests if name not in _PLAIN and name in self._capacity)
        for name in (*_PLAIN, *others):
            asked, used = requests.get(name, 0), self._used.get(name, 0)
            if asked > 0 and asked > self._capacity.get(name, 0) - used:
                return _out_of(name, asked, used, self._capacity.get(name, 0))
        return None


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return what a pod requests: of CPU thousandths, of everything else whole units.

    *Source*: k8s.io/component-helpers/resource/helpers.go, PodRequests (0.36), without sidecars
    and resources of the pod as a whole, which no pod of the campaign has.
    """
    total: dict[str, int] = {}
    for container in spec.get("containers", ()):
        for name, amount in _requests(container).items():
            total[name] = total.get(name, 0) + amount
    for container in spec.get("initContainers", ()):
        for name, amount in _requests(container).items():
            total[name] = max(total.get(name, 0), amount)
    for name, amount in amounts(spec.get("overhead", {})).items():
        total[name] = total.get(name, 0) + amount
    return total


def amounts(resources: Mapping[str, str]) -> dict[str, int]:
    """Return quantities as integers, rounded up: of CPU thousandths, else whole units."""
    return {
        name: -(-_value(quantity) * (1000 if name == CPU else 1) // 1)
        for name, quantity in resources.items()
    }


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    return amounts(container.get("resources", {}).get("requests", {}))


def _value(quantity: str) -> Fraction:
    for suffix, factor in _FACTORS.items():
        if quantity.endswith(suffix):
            return Fraction(quantity.removesuffix(suffix)) * factor
    return Fraction(quantity)


def _out_of(name: str, requested: int, used: int, capacity: int) -> Rejection:
    return Rejection(
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}",
    )
