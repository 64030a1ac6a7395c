"""The ResourceQuotas of a namespace: what is used of them, and the pods that they refuse.

*Source*: k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go (CheckRequest) and
pkg/quota/v1/evaluator/core/pods.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cache.pod_info import is_terminal
from cache.quantity import exact_value
from scheduler.what_if.limit_objects import (
    LIMITS,
    REQUESTS,
    ScopeRequirement,
    amounts_of,
    pod_amounts_of,
    shown_amount,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cache.objects import Pod
    from scheduler.what_if.limit_objects import Amounts, ResourceQuota

_ALWAYS_SET: Final = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
"""Every container has to say how much it uses of these, where a quota limits them."""

_COMPUTED: Final = ("cpu", "memory", "ephemeral-storage")

_PODS: Final = frozenset({"pods", "count/pods"})


class _Quota:
    """One quota, with what is used of it."""

    def __init__(self, quota: ResourceQuota, pods: Iterable[Pod]) -> None:
        self.name = quota.metadata.name
        spec, status = quota.spec, quota.status
        self._scopes = [ScopeRequirement(name, "Exists") for name in spec.scopes]
        if spec.scope_selector is not None:
            self._scopes += spec.scope_selector.match_expressions
        hard = status.hard or spec.hard
        self.hard: Amounts = {n: exact_value(text) for n, text in hard.items() if _is_of_pods(n)}
        self.used: Amounts = dict.fromkeys(self.hard, 0)
        if status.hard:
            self.used |= {n: exact_value(text) for n, text in status.used.items() if n in self.hard}
            return
        for pod in pods:
            if self.counts(pod) and not is_terminal(pod):
                self.add(_usage(pod), 1)

    def counts(self, pod: Pod) -> bool:
        """Return whether a pod counts."""
        return bool(self.hard) and all(_is_in_scope(pod, each) for each in self._scopes)

    def refusal(self, pod: Pod, usage: Amounts) -> str:
        """Return why one more pod is refused, or nothing."""
        missing = _missing(pod, _ALWAYS_SET & self.hard.keys())
        if missing:
            return f"failed quota: {self.name}: must specify {missing}"
        exceeded = [
            name
            for name, amount in sorted(usage.items())
            if amount and name in self.hard and self.used[name] + amount > self.hard[name]
        ]
        if not exceeded:
            return ""
        texts = [
            ",".join(f"{name}={shown_amount(name, amounts[name])}" for name in exceeded)
            for amounts in (usage, self.used, self.hard)
        ]
        return (
            f"exceeded quota: {self.name}, requested: {texts[0]}, used: {texts[1]}, "
            f"limited: {texts[2]}"
        )

    def add(self, usage: Amounts, sign: int) -> None:
        """Count a pod that comes, or goes."""
        for name in self.used:
            self.used[name] += sign * usage.get(name, 0)


class QuotaLedger:
    """The quotas of one namespace.

    Parameters
    ----------
    pods
        The pods of the namespace, for quotas whose use was not counted yet.
    """

    def __init__(self, quotas: Iterable[ResourceQuota], pods: Iterable[Pod]) -> None:
        everybody = list(pods)
        ordered = sorted(quotas, key=lambda each: each.metadata.name)
        self._quotas = [_Quota(each, everybody) for each in ordered]

    def admit(self, pod: Pod) -> str:
        """Count a new pod, or return why it is refused."""
        concerned = [quota for quota in self._quotas if quota.counts(pod)]
        if not concerned:
            return ""
        usage = _usage(pod)
        for quota in concerned:
            why = quota.refusal(pod, usage)
            if why:
                return why
        for quota in concerned:
            quota.add(usage, 1)
        return ""

    def release(self, pod: Pod) -> None:
        """Count a pod that is gone."""
        for quota in self._quotas:
            if quota.counts(pod):
                quota.add(_usage(pod), -1)


def _is_of_pods(name: str) -> bool:
    if name in _PODS or name.removeprefix("requests.").startswith("hugepages-"):
        return True
    bare = name.removeprefix("requests.").removeprefix("limits.")
    return bare in _COMPUTED or (name.startswith("requests.") and "/" in name)


def _usage(pod: Pod) -> Amounts:
    """Return what a pod uses of a quota, by the names of quotas."""
    usage: Amounts = {"pods": 1, "count/pods": 1}
    for name, amount in pod_amounts_of(pod, REQUESTS, overhead=True).items():
        usage[f"requests.{name}"] = amount
        if name in _COMPUTED or name.startswith("hugepages-"):
            usage[name] = amount
    for name, amount in pod_amounts_of(pod, LIMITS, overhead=True).items():
        if name in _COMPUTED:
            usage[f"limits.{name}"] = amount
    return usage


def _missing(pod: Pod, required: frozenset[str]) -> str:
    """Return which containers do not say how much they use."""
    if pod.spec.resources is not None:
        return ""
    found: dict[str, list[str]] = {}
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for name in sorted(required):
            which = LIMITS if name.startswith("limits.") else REQUESTS
            if name.rpartition(".")[2] not in amounts_of(container, which):
                found.setdefault(name, []).append(container.name)
    return "; ".join(f"{name} for: {','.join(sorted(found[name]))}" for name in sorted(found))


def _is_in_scope(pod: Pod, scope: ScopeRequirement) -> bool:
    """Return whether a pod is in a scope; no pod is known to have a deadline."""
    name = scope.scope_name
    if name in ("Terminating", "NotTerminating"):
        return name == "NotTerminating"
    if name in ("BestEffort", "NotBestEffort"):
        return _is_best_effort(pod) == (name == "BestEffort")
    if name == "PriorityClass":
        return _has_class(pod.spec.priority_class_name, scope)
    return name == "CrossNamespacePodAffinity" and _looks_at_other_namespaces(pod)


def _has_class(name: str, scope: ScopeRequirement) -> bool:
    if scope.operator == "Exists":
        return bool(name)
    if scope.operator == "DoesNotExist":
        return not name
    return (name in scope.values) == (scope.operator == "In")


def _is_best_effort(pod: Pod) -> bool:
    return not any(
        name in ("cpu", "memory") and exact_value(text)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for which in (REQUESTS, LIMITS)
        for name, text in amounts_of(container, which).items()
    )


def _looks_at_other_namespaces(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if terms is None:
            continue
        preferred = terms.preferred_during_scheduling_ignored_during_execution
        required = terms.required_during_scheduling_ignored_during_execution
        for term in (*required, *(each.pod_affinity_term for each in preferred)):
            if term.namespaces or term.namespace_selector is not None:
                return True
    return False
