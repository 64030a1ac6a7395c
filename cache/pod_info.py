"""A pod with the data that scheduling derives from it, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cache.host_ports import host_ports
from cache.resources import MalformedObjectError, pod_amounts, with_readable_amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.host_ports import HostPort
    from cache.objects import Affinity, Pod

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})


class PodInfo:
    """A pod and the data derived from it.

    Parameters
    ----------
    pod
        The pod as the API has it.

    Raises
    ------
    MalformedObjectError
        When a quantity of the pod cannot be read; the message names its path.

    Notes
    -----
    *Concurrency*: nothing is changed after construction; may be shared between threads.

    *Cost*: a few microseconds; quantities are parsed once for each distinct text.

    *Source*: pkg/scheduler/framework/types.go, PodInfo (1.36).
    """

    __slots__ = (
        "host_ports",
        "key",
        "nonzero_memory_bytes",
        "nonzero_milli_cpu",
        "pod",
        "requests",
        "uid",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.uid = pod.metadata.uid
        """The only key under which the cache and the queue know a pod: names come again."""
        self.key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        """``namespace/name``, for people."""
        self.requests: Mapping[str, int]
        """Amounts by resource name: milli-CPU for ``cpu``, bytes or counts for all others."""
        self.requests, self.nonzero_milli_cpu, self.nonzero_memory_bytes = pod_amounts(pod)
        self.host_ports: tuple[HostPort, ...] = host_ports(pod)

    def twin(self, pod: Pod) -> PodInfo:
        """Return the data of a pod with the same containers, without reading its amounts anew."""
        made = object.__new__(PodInfo)
        made.pod = pod
        made.uid = pod.metadata.uid
        made.key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        made.requests = self.requests
        made.nonzero_milli_cpu = self.nonzero_milli_cpu
        made.nonzero_memory_bytes = self.nonzero_memory_bytes
        made.host_ports = self.host_ports
        return made

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.pod.metadata.namespace

    @property
    def name(self) -> str:
        """The pod's name: may belong to another pod later."""
        return self.pod.metadata.name

    @property
    def node_name(self) -> str:
        """The node that the API says the pod is bound to, or the empty string."""
        return self.pod.spec.node_name

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.pod.metadata.labels

    @property
    def priority(self) -> int:
        """The pod's priority, 0 when none is set."""
        return self.pod.spec.priority or 0

    @property
    def is_terminating(self) -> bool:
        """Whether the deletion of the pod was requested."""
        return self.pod.metadata.deletion_timestamp is not None

    def __repr__(self) -> str:
        return f"PodInfo({self.key}, uid={self.uid})"


def readable_info(pod: Pod) -> PodInfo:
    """Return the derived data of any pod; a malformed amount counts as the largest amount."""
    try:
        return PodInfo(pod)
    except MalformedObjectError:
        return PodInfo(with_readable_amounts(pod))


def is_terminal(pod: Pod) -> bool:
    """Return whether the pod has ended, and so uses no resources of its node any more."""
    return pod.status.phase in TERMINAL_PHASES


def on_node(pod: Pod, node_name: str) -> Pod:
    """Return the pod as it will be once it is bound: the form in which an assumed pod counts."""
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    return msgspec.structs.replace(pod, spec=spec)


def has_affinity(affinity: Affinity | None) -> bool:
    """Return whether there is any pod affinity or anti-affinity term, required or preferred."""
    return affinity is not None and (
        affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    )


def has_required_anti_affinity(affinity: Affinity | None) -> bool:
    """Return whether there is any required anti-affinity term."""
    if affinity is None or affinity.pod_anti_affinity is None:
        return False
    terms = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    return bool(terms)
