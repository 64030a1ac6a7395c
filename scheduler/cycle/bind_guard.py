"""The guard: a look at the newest known state of a pod's node, right before the pod is bound.

A decision is made from the snapshot of its cycle. Until the binding is sent, milliseconds pass, or
minutes where a pod waits for a plugin or for its volumes. Another scheduler may bind pods to the
same node in that time, and the API server accepts both: it does not add up what pods request. The
kubelet does, and rejects the pod that comes second, which has failed for good. What the watch has
reported by then is in the cache, and so the pod can go back to the queue instead.

    decision -> assume -> [permit] -> [look, PreBind] -> look -> bind -> in doubt -> bind
                                            |              |                           |
                                            +--------------+---------------------------+-> undo

Pods on the node count with what they request, other pods that are assumed there, too. Pods that are
only nominated do not: no kubelet knows of them. What the watch reports after the look is not seen;
docs/beside-kube-scheduler.md describes what remains.

# Differs: kube-scheduler binds whatever its snapshot said.

*Source*: pkg/kubelet/lifecycle/predicate.go, Admit (1.36), for what a kubelet checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugins.framework.status import SUCCESS, Code, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.pod_info import PodInfo
    from cache.scheduler_cache import SchedulerCache
    from scheduler.cycle.foreign_binds import ForeignBinds
    from scheduler.runtime.profile_map import Profiles

MAX_REMEMBERED: Final = 2048
"""Pods of which it is remembered that they fitted: more than there are slots for bindings."""

NODE_DELETED: Final = "NodeDeleted"
OTHER_POOL: Final = "Pool"


def _owned(_: PodInfo) -> bool:
    return True


class BindingWithheldError(Exception):
    """The binding was not sent: the node that was decided on has been taken by others.

    ``cause`` is the plugin that refused it, ``NodeDeleted``, or ``Pool`` for a pod that another
    pool owns.
    """

    def __init__(self, node_name: str, cause: str, why: str) -> None:
        super().__init__(f"binding to node {node_name} withheld: {why} since the decision")
        self.cause = cause


class BindGuard:
    """Decides whether the binding of an assumed pod is still worth sending.

    Parameters
    ----------
    foreign
        Is told of each binding that is sent; None for nobody.
    enabled
        Whether anything is refused for what others have done to its node.
    owns
        Whether a pod is still this pool's; any thread.

    Notes
    -----
    *Concurrency*: :meth:`check` on any thread, :meth:`sends` on the I/O loop.
    """

    def __init__(
        self,
        cache: SchedulerCache,
        profiles: Profiles,
        foreign: ForeignBinds | None = None,
        *,
        enabled: bool = True,
        owns: Callable[[PodInfo], bool] = _owned,
    ) -> None:
        self._owns = owns
        self._enabled = enabled
        self._foreign = foreign
        self._cache = cache
        self._profiles = profiles
        self._fitted: dict[str, int] = {}  # by UID, at which generation of its node

    def check(self, info: PodInfo) -> Status:
        """Return Success, or an Error status whose ``error`` is a :class:`BindingWithheldError`.

        A pod that is not assumed any more is not judged: the API server knows what became of it.
        *Cost*: 4 us; less for the second of two looks if its node has not changed between them.
        """
        if not self._owns(info):
            node = self._cache.assumed_node(info.uid) or ""
            return _withheld(node, OTHER_POOL, "the pod was given to another pool")
        if not self._enabled:
            return SUCCESS
        generation = self._cache.generation_around(info.uid)
        if generation is None or self._fitted.pop(info.uid, None) == generation:
            return SUCCESS
        usage = self._cache.usage_around(info.uid)
        if usage is None or not usage.is_assumed:
            return SUCCESS
        if usage.node is None:
            return _withheld(usage.name, NODE_DELETED, "node was deleted")
        framework = self._profiles.get(info.pod.spec.scheduler_name)
        if framework is None:
            return SUCCESS
        status = framework.still_fits(info, usage)
        if status.is_success:
            if len(self._fitted) >= MAX_REMEMBERED:
                self._fitted.clear()  # some are never asked about again
            self._fitted[info.uid] = generation
            return SUCCESS
        return _withheld(usage.name, status.plugin, status.message)

    def sends(self, node_name: str) -> None:
        """Take note that a binding to a node is sent now."""
        if self._foreign is not None:
            self._foreign.sends(node_name)


def _withheld(node_name: str, cause: str, why: str) -> Status:
    error = BindingWithheldError(node_name, cause, why)
    return Status(Code.ERROR, (str(error),), error=error)
