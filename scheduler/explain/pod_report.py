"""What an explanation of one pod needs besides: the pod without its node, notes, shortfalls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cache.pod_info import PodInfo, is_terminal
from cache.resources import MalformedObjectError
from plugins.node_resources_fit import NodeResourcesFit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cache.objects import Pod
    from cache.snapshot import Snapshot
    from plugins.node_resources_fit import Shortfall
    from scheduler.offline.cluster import Cluster
    from scheduler.runtime.framework_runner import FrameworkRunner


class UnreadablePodError(Exception):
    """A pod cannot be read; the message is one sentence."""


def notes_on(framework: FrameworkRunner, pod: Pod) -> list[str]:
    """Return further notes about the pod for the user."""
    notes = []
    wanted, served = pod.spec.scheduler_name, framework.profile_name
    if wanted != served:
        notes.append(
            f"It asks for the scheduler {wanted or 'default-scheduler'!r}, not {served!r}."
        )
    status = framework.pre_enqueue(pod)
    if not status.is_success:
        notes.append(f"It is not tried at present: {status.message}.")
    if is_terminal(pod):
        notes.append("It has ended; this is what would be said of it if it had not.")
    elif pod.spec.node_name:
        notes.append(
            f"It is on {pod.spec.node_name}; this is what would be said of it if it were not."
        )
    return notes


def as_if_pending(cluster: Cluster, pod: Pod) -> PodInfo:
    """Remove the pod from its node, if it has one; return it without a node.

    Raises
    ------
    UnreadablePodError
        A quantity of the pod cannot be read.
    """
    try:
        if pod.spec.node_name:
            cluster.cache.remove_pod(PodInfo(pod))
            pod = replace(pod, spec=replace(pod.spec, node_name=""))
        return PodInfo(pod)
    except MalformedObjectError as error:
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        raise UnreadablePodError(f"pod {key} cannot be read: {error}") from error


def lacks_on(
    framework: FrameworkRunner, snapshot: Snapshot, info: PodInfo
) -> Callable[[str], Sequence[Shortfall]]:
    """Return a function from the name of a node that NodeResourcesFit rejects to its shortfalls."""
    fits = [plugin for plugin in framework.plugins if isinstance(plugin, NodeResourcesFit)]

    def lacks(name: str) -> Sequence[Shortfall]:
        node_info = snapshot.get(name)
        return [] if node_info is None or not fits else fits[0].shortfalls(info, node_info)

    return lacks
