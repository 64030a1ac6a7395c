"""Taints of nodes, and the tolerations of pods for them.

*Source*: k8s.io/api core/v1 toleration.go (ToleratesTaint) and k8s.io/component-helpers
scheduling/corev1/helpers.go (FindMatchingUntoleratedTaint), 0.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from cache.objects import Taint, Toleration

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

TAINT_NODE_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""The key of the taint that a cordoned node carries."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether ``toleration`` covers ``taint``.

    An empty effect covers every effect and an empty key every key. The operator ``Exists``
    covers every value; ``Equal``, also written as nothing, covers its own. The numeric
    operators ``Lt`` and ``Gt`` cover nothing: their feature gate
    TaintTolerationComparisonOperators is alpha and off in 1.36, and so they are with
    kube-scheduler.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator == "Exists":
        return True
    return operator in ("", "Equal") and toleration.value == taint.value


class ToleratedTaints:
    """The taints that thousands of tolerations cover, found without visiting each toleration.

    Parameters
    ----------
    tolerations
        In any order.

    Notes
    -----
    *Concurrency*: immutable; share it between threads.
    """

    __slots__ = ("_covered",)

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        covered: set[tuple[str, str | None, str]] = set()
        for each in tolerations:
            if each.operator == "Exists":
                covered.add((each.key, None, each.effect))
            elif each.operator in ("", "Equal"):
                covered.add((each.key, each.value, each.effect))
        self._covered = covered

    def __contains__(self, taint: Taint) -> bool:
        """Return whether some toleration covers a taint. *Cost*: a microsecond."""
        return any(
            (key, value, effect) in self._covered
            for key in (taint.key, "")
            for value in (taint.value, None)
            for effect in (taint.effect, "")
        )


def is_tolerated(taint: Taint, tolerations: Sequence[Toleration] | ToleratedTaints) -> bool:
    """Return whether some toleration covers ``taint``."""
    if isinstance(tolerations, ToleratedTaints):
        return taint in tolerations
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated(
    taints: Sequence[Taint],
    tolerations: Sequence[Toleration] | ToleratedTaints,
    effects: Container[str],
) -> Taint | None:
    """Return the first taint with one of ``effects`` that no toleration covers, or None.

    Parameters
    ----------
    taints : sequence of Taint
        In the order of the node's spec; the first untolerated one is reported to the user.
    tolerations : sequence of Toleration, or ToleratedTaints
        Of the pod.
    effects : container of str
        The effects that count; other taints are ignored.
    """
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, tolerations):
            return taint
    return None
