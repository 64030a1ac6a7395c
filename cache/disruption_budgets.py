"""PodDisruptionBudgets by namespace: the pods whose eviction is avoided where possible."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cache.label_selectors import compile_label_selector
from cache.resources import MalformedObjectError
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cache.label_selectors import Selector
    from cache.locks import MakeLock
    from cache.objects import Pod
    from cache.workload_objects import PodDisruptionBudget


class DisruptionBudget(Value, frozen=True):
    """The fields of a budget that preemption reads.

    Parameters
    ----------
    name
        Its name within its namespace.
    selector
        The pods that it protects; never empty.
    disruptions_allowed
        The number of these pods that may be evicted now.
    disrupted_pods
        Names of pods whose eviction has been counted already.
    """

    name: str
    selector: Selector
    disruptions_allowed: int
    disrupted_pods: Mapping[str, str]

    def counts(self, pod: Pod) -> bool:
        """Return whether the eviction of a pod of this namespace would use one disruption.

        A pod without labels is not protected by any budget.

        *Source*: kube-scheduler 1.36, pkg/scheduler/framework/plugins/defaultpreemption
        (filterPodsWithPDBViolation).
        """
        metadata = pod.metadata
        return (
            bool(metadata.labels)
            and self.selector.matches(metadata.labels)
            and metadata.name not in self.disrupted_pods
        )


class DisruptionBudgets:
    """All budgets of the cluster that protect anything.

    A budget without a selector, with an empty one, or with one that cannot be read protects
    nothing from preemption. :meth:`objects` has it nevertheless: an eviction by the API counts an
    empty selector as one of all pods.

    Notes
    -----
    *Concurrency*: thread-safe; written from the I/O loop, read by the scheduling thread.
    """

    def __init__(self, make_lock: MakeLock = threading.Lock) -> None:
        self._lock = make_lock()
        self._by_namespace: dict[str, tuple[DisruptionBudget, ...]] = {}
        self._objects: dict[str, dict[str, PodDisruptionBudget]] = {}
        self.version = 0
        """Grows with every change: whatever was worked out from an older one may be wrong."""

    def budget_changed(
        self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None
    ) -> None:
        """Store a budget; ``new`` is None for a deleted one."""
        budget = None if new is None else _compiled(new)
        one = new if new is not None else old
        if one is None:
            return
        namespace, name = one.metadata.namespace, one.metadata.name
        with self._lock:
            self._store(namespace, name, new)
            held = self._by_namespace.get(namespace, ())
            others = tuple(each for each in held if each.name != name)
            now = others if budget is None else (*others, budget)
            if _same(held, now):
                return
            if now:
                self._by_namespace[namespace] = now
            else:
                del self._by_namespace[namespace]
            self.version += 1

    def _store(self, namespace: str, name: str, new: PodDisruptionBudget | None) -> None:
        objects = self._objects.setdefault(namespace, {})
        if new is not None:
            objects[name] = new
            return
        objects.pop(name, None)
        if not objects:
            del self._objects[namespace]

    @property
    def has_any(self) -> bool:
        """Whether there is any budget."""
        return bool(self._by_namespace)

    def in_namespace(self, namespace: str) -> tuple[DisruptionBudget, ...]:
        """Return the budgets of a namespace, in no particular order."""
        return self._by_namespace.get(namespace, ())

    def objects(self, namespace: str) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets of a namespace as the API has them, in no particular order."""
        with self._lock:
            return tuple(self._objects.get(namespace, {}).values())


def _same(held: tuple[DisruptionBudget, ...], now: tuple[DisruptionBudget, ...]) -> bool:
    return {each.name: each for each in held} == {each.name: each for each in now}


def _compiled(budget: PodDisruptionBudget) -> DisruptionBudget | None:
    try:
        selector = compile_label_selector(budget.spec.selector, "spec.selector")
    except MalformedObjectError:
        return None
    if selector.empty or selector.nothing:
        return None
    return DisruptionBudget(
        budget.metadata.name,
        selector,
        budget.status.disruptions_allowed,
        budget.status.disrupted_pods,
    )
