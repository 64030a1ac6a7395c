"""Whether pods stand where their own constraints let them stand, told from API objects alone.

It shares no code with the plugins: plain dicts in, sentences out, pods compared one by one.

What is checked is the state at the end. That is right for hard spread constraints as long as
nothing is taken away and every pod that a constraint counts carries that constraint: the
emptiest domain only fills up afterwards. Anti-affinity is checked for both sides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Json = dict[str, Any]

_UNITS = {"m": 1, "": 1000, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}


@dataclass(frozen=True)
class _Meant:
    """The pods that a term means, and how many of them are in each domain."""

    uids: set[str]
    by_domain: Counter[str | None]


class Placement:
    """What the API server has: nodes, namespaces and pods.

    Parameters
    ----------
    nodes, namespaces, pods
        As the API lists them.
    """

    nodes: Iterable[Json]
    namespaces: Iterable[Json]
    pods: Iterable[Json]

    def __init__(
        self, nodes: Iterable[Json], namespaces: Iterable[Json], pods: Iterable[Json]
    ) -> None:
        self._nodes = {each["metadata"]["name"]: each for each in nodes}
        self._labels_of = {
            each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in namespaces
        }
        self._meant_by: dict[tuple[str, str], _Meant] = {}
        self._placed = [pod for pod in pods if pod["spec"].get("nodeName")]

    def mistakes(self) -> list[str]:
        """Return a sentence for each broken constraint."""
        return [
            *self._strangers(),
            *self._overcommitted(),
            *self._unloved(),
            *self._crowded(),
        ]

    # --- nodes --------------------------------------------------------------------------------

    def _strangers(self) -> Iterator[str]:
        for pod in self._placed:
            name, where = _name(pod), pod["spec"]["nodeName"]
            if where not in self._nodes:
                yield f"{name} is on {where}, which does not exist"
            elif not self._tolerates(pod, self._nodes[where]):
                yield f"{name} does not tolerate {where}"
            elif not self._selects(pod, self._nodes[where]):
                yield f"{name} does not select {where}"

    def _tolerates(self, pod: Json, node: Json) -> bool:
        return all(
            any(_tolerated(taint, each) for each in pod["spec"].get("tolerations", ()))
            for taint in node["spec"].get("taints", ())
            if taint["effect"] in ("NoSchedule", "NoExecute")
        )

    def _selects(self, pod: Json, node: Json) -> bool:
        labels = node["metadata"]["labels"]
        wanted = pod["spec"].get("nodeSelector", {})
        if any(labels.get(key) != value for key, value in wanted.items()):
            return False
        affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        if required is None:
            return True
        return any(
            all(_meets(labels, each) for each in term.get("matchExpressions", ()))
            for term in required["nodeSelectorTerms"]
        )

    def _overcommitted(self) -> Iterator[str]:
        used: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in self._placed:
            sums = used[pod["spec"]["nodeName"]]
            sums["pods"] += 1000
            for container in pod["spec"]["containers"]:
                for key, text in container.get("resources", {}).get("requests", {}).items():
                    sums[key] += _thousandths(text)
        for name, sums in used.items():
            room = self._nodes.get(name, {}).get("status", {}).get("allocatable", {})
            for key, amount in sums.items():
                if amount > _thousandths(room.get(key, "0")):
                    yield f"{name} has {room.get(key)} {key}, its pods ask for {amount / 1000}"

    # --- other pods ---------------------------------------------------------------------------

    def _unloved(self) -> Iterator[str]:
        for pod in self._placed:
            for term in _terms(pod, "podAffinity"):
                meant = self._meant(pod, term)
                others = len(meant.uids) - (pod["metadata"]["uid"] in meant.uids)
                if others and not self._beside(pod, term):
                    yield f"{_name(pod)} is away from all that its affinity means"
            for term in _terms(pod, "podAntiAffinity"):
                if number := self._beside(pod, term):
                    yield f"{_name(pod)} is beside {number} pods that it keeps away from"

    def _beside(self, pod: Json, term: Json) -> int:
        """Return how many other pods that a term means are in the pod's domain."""
        domain = self._domain(pod, term["topologyKey"])
        if domain is None:
            return 0
        meant = self._meant(pod, term)
        return meant.by_domain[domain] - (pod["metadata"]["uid"] in meant.uids)

    def _meant(self, pod: Json, term: Json) -> _Meant:
        key = (pod["metadata"]["namespace"], repr(term))
        if key not in self._meant_by:
            self._meant_by[key] = self._find(pod, term)
        return self._meant_by[key]

    def _find(self, pod: Json, term: Json) -> _Meant:
        namespaces = set(term.get("namespaces", ()))
        selector = term.get("namespaceSelector")
        if selector is not None:
            namespaces |= {
                name for name, labels in self._labels_of.items() if _selected(labels, selector)
            }
        elif not namespaces:
            namespaces = {pod["metadata"]["namespace"]}
        found = [
            other
            for other in self._placed
            if other["metadata"]["namespace"] in namespaces
            and _selected(other["metadata"].get("labels", {}), term.get("labelSelector"))
        ]
        return _Meant(
            {other["metadata"]["uid"] for other in found},
            Counter(self._domain(other, term["topologyKey"]) for other in found),
        )

    def _domain(self, pod: Json, key: str) -> str | None:
        node = self._nodes[pod["spec"]["nodeName"]]
        value: str | None = node["metadata"]["labels"].get(key)
        return value

    # --- spreading ----------------------------------------------------------------------------

    def _crowded(self) -> Iterator[str]:
        seen = set()
        for pod in self._placed:
            for constraint in pod["spec"].get("topologySpreadConstraints", ()):
                if constraint["whenUnsatisfiable"] != "DoNotSchedule":
                    continue
                alike = (pod["metadata"]["namespace"], repr(constraint), repr(_who(pod)))
                if alike in seen:
                    continue
                seen.add(alike)
                skew = self.skew(pod, constraint)
                if skew > constraint["maxSkew"]:
                    yield f"pods like {_name(pod)} have a skew of {skew} by {constraint}"

    def pods_by_node(self, **labels: str) -> Counter[str]:
        """Return how many pods with these labels each node has; nodes without any are left out."""
        return Counter(
            pod["spec"]["nodeName"]
            for pod in self._placed
            if labels.items() <= pod["metadata"].get("labels", {}).items()
        )

    def pods_by_domain(self, key: str, *, namespace: str) -> Counter[str | None]:
        """Return how many pods of a namespace are in each domain."""
        return Counter(
            self._domain(pod, key)
            for pod in self._placed
            if pod["metadata"]["namespace"] == namespace
        )

    def skew(self, pod: Json, constraint: Mapping[str, Any]) -> int:
        """Return how many more matching pods the fullest domain has than the emptiest."""
        key = constraint["topologyKey"]
        counts: dict[str, int] = {}
        for node in self._nodes.values():
            labels = node["metadata"]["labels"]
            if key in labels and self._counts(pod, node, constraint):
                counts.setdefault(labels[key], 0)
        for other in self._placed:
            node = self._nodes[other["spec"]["nodeName"]]
            if (
                other["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and _selected(other["metadata"].get("labels", {}), constraint["labelSelector"])
                and key in node["metadata"]["labels"]
                and self._counts(pod, node, constraint)
            ):
                counts[node["metadata"]["labels"][key]] += 1
        return max(counts.values()) - min(counts.values()) if counts else 0

    def _counts(self, pod: Json, node: Json, constraint: Mapping[str, Any]) -> bool:
        """Whether the constraint's policies let the node count."""
        honours_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
        if honours_affinity and not self._selects(pod, node):
            return False
        honours_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
        return not honours_taints or self._tolerates(pod, node)


def _terms(pod: Json, kind: str) -> Iterator[Json]:
    affinity = pod["spec"].get("affinity", {}).get(kind, {})
    yield from affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ())


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _who(pod: Json) -> Json:
    """Return what of a pod decides which nodes count for it."""
    asked = ("nodeSelector", "affinity", "tolerations")
    return {key: pod["spec"].get(key) for key in asked}


def _selected(labels: Mapping[str, str], selector: Mapping[str, Any] | None) -> bool:
    if selector is None:
        return False
    wanted = selector.get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(labels, each) for each in selector.get("matchExpressions", ())
    )


def _meets(labels: Mapping[str, str], requirement: Mapping[str, Any]) -> bool:
    value, values = labels.get(requirement["key"]), requirement.get("values", ())
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise ValueError(f"the checker does not know the operator {requirement['operator']}")


def _tolerated(taint: Mapping[str, str], toleration: Mapping[str, Any]) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key", taint["key"]) == taint["key"]
    same_value = toleration.get("value", "") == taint.get("value", "")
    return bool(toleration.get("key") == taint["key"] and same_value)


def _thousandths(text: str) -> int:
    digits = text.rstrip("mKiMG")
    return int(digits) * _UNITS[text.removeprefix(digits)]
