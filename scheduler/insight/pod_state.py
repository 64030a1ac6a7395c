"""What becomes of a pod at present, in a word, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cache.pod_info import is_terminal
from scheduler.queueing import QueueState

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod
    from scheduler.runtime.known_pods import KnownPods
    from scheduler.runtime.profile_map import Profiles


def pod_state(
    pods: KnownPods,
    profiles: Profiles,
    pod: Pod,
    is_given_away: Callable[[Pod], bool] = is_terminal,
) -> str:
    """Return the state of a pod.

    ``ended``, ``bound``, ``assumed`` (its binding is under way), ``foreign`` (it asks for another
    scheduler), or its state in the queue: ``active``, ``backoff``, ``unschedulable``, ``gated``,
    ``grouped``, ``in_flight``; ``nowhere`` for a moment between two of them. ``other_pool`` for a
    pod of which ``is_given_away`` returns true.

    *Concurrency*: any thread.
    """
    if is_terminal(pod):
        return "ended"
    if pod.spec.node_name:
        return "bound"
    if pods.cache.assumed_node(pod.metadata.uid) is not None:
        return "assumed"
    if is_given_away(pod):
        return "other_pool"
    state = pods.queue.state_of(pod.metadata.uid)
    if state is QueueState.NOWHERE and profiles.get(pod.spec.scheduler_name) is None:
        return "foreign"
    return state.value
