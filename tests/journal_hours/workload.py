"""The pods of the campaign: of many kinds, each with a life of its own."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.controlplane.objects import HOSTNAME_LABEL, ZONE_LABEL, make_pod
from tests.controlplane.pod_groups import by_field, by_label, make_pod_group, make_x_pod_group
from tests.journal_hours.policies import SCHEDULER_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Json = dict[str, Any]

SLOW: Final = "leaves-slowly"
"""The label of pods that take some seconds to end, as with a kubelet."""

NAMESPACES: Final = tuple(f"team-{number}" for number in range(10))
"""Each pays for its own attempts: in a single one, preemptors would leave no time for others."""

CLASSES: Final = {"high": 1000, "middle": 100, "never-preempts": 500}
STORAGE_CLASS: Final = "dynamic"
DRIVER: Final = "csi.example.com"

_APPS: Final = ("web", "db", "cache", "batch", "cron")
_POOLS: Final = ("a", "b", "c")
_MILLI: Final = (100, 250, 500, 1000, 1500)


class Wave(NamedTuple):
    """Objects that come together, and go together after a time.

    Attributes
    ----------
    pods
        How many of the objects are pods.
    """

    objects: Sequence[Json]
    life_s: float
    pods: int = 1


class Workload:
    """Makes one wave after another.

    Parameters
    ----------
    life_s
        The mean life of a pod.
    """

    def __init__(self, seed: int, life_s: float) -> None:
        self._rng = random.Random(seed)
        self._life_s = life_s
        self._number = 0
        self._kinds: Sequence[tuple[int, Callable[[str], Wave]]] = (
            (40, self._plain),
            (12, self._spread),
            (8, self._apart),
            (8, self._together),
            (6, self._in_pool),
            (9, self._preemptor),
            (4, self._never),
            (4, self._with_volume),
            (2, self._tolerating),
            (3, self._gang),
        )
        self._weights = [weight for weight, _ in self._kinds]

    def next(self, crowding: float) -> Wave:
        """Return the next objects, which live so many times as long as others do."""
        self._number += 1
        (chosen,) = self._rng.choices(self._kinds, self._weights)
        wave = chosen[1](f"p{self._number:06}")
        namespace = self._rng.choice(NAMESPACES)
        for manifest in wave.objects:
            manifest["metadata"]["namespace"] = namespace
        return wave._replace(life_s=wave.life_s * crowding)

    # --- single pods --------------------------------------------------------------------------

    def _pod(self, name: str, *, labels: Json | None = None, milli: int = 0, **spec: Any) -> Json:
        rng = self._rng
        own = {"app": rng.choice(_APPS), **(labels or {})}
        grace_s = 0
        if rng.random() < 0.3:
            own[SLOW] = "yes"
            grace_s = 30
        made = make_pod(
            name,
            scheduler_name=rng.choices(SCHEDULER_NAMES, (85, 15))[0],
            cpu=f"{milli or rng.choice(_MILLI)}m",
            memory=f"{rng.choice((64, 128, 512, 1024))}Mi",
            labels=own,
            terminationGracePeriodSeconds=grace_s,
            **spec,
        )
        if rng.random() < 0.1:
            made["spec"].setdefault("priorityClassName", rng.choice(("middle", "never-preempts")))
        return made

    def _wave(self, *objects: Json, pods: int = 1) -> Wave:
        return Wave(objects, self._rng.uniform(0.4, 1.6) * self._life_s, pods)

    def _plain(self, name: str) -> Wave:
        return self._wave(self._pod(name))

    def _spread(self, name: str) -> Wave:
        rng = self._rng
        app = rng.choice(_APPS)
        constraint = {
            "maxSkew": rng.choice((1, 2, 5)),
            "topologyKey": rng.choice((ZONE_LABEL, HOSTNAME_LABEL)),
            "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": {"matchLabels": {"app": app}},
        }
        pod = self._pod(name, labels={"app": app}, topologySpreadConstraints=[constraint])
        return self._wave(pod)

    def _terms(self, key: str, *, app: str, required: bool) -> Json:
        term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
        if required:
            return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        weighted = {"weight": self._rng.randint(1, 100), "podAffinityTerm": term}
        return {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}

    def _apart(self, name: str) -> Wave:
        app = f"lonely-{self._rng.randrange(20)}"
        terms = self._terms(HOSTNAME_LABEL, app=app, required=self._rng.random() < 0.7)
        return self._wave(self._pod(name, labels={"app": app}, affinity={"podAntiAffinity": terms}))

    def _together(self, name: str) -> Wave:
        rng = self._rng
        key = rng.choice((ZONE_LABEL, HOSTNAME_LABEL))
        terms = self._terms(key, app=rng.choice(_APPS), required=rng.random() < 0.4)
        return self._wave(self._pod(name, affinity={"podAffinity": terms}))

    def _in_pool(self, name: str) -> Wave:
        return self._wave(self._pod(name, nodeSelector={"pool": self._rng.choice(_POOLS)}))

    def _tolerating(self, name: str) -> Wave:
        return self._wave(self._pod(name, tolerations=[{"operator": "Exists"}]))

    def _preemptor(self, name: str) -> Wave:
        milli = self._rng.choice((2000, 3000, 4000))
        return self._wave(self._pod(name, milli=milli, priorityClassName="high"))

    def _never(self, name: str) -> Wave:
        """Return a pod that fits on no node, whatever its priority."""
        rng = self._rng
        spec: Json = rng.choice(({"nodeSelector": {"pool": "none"}}, {"priorityClassName": "high"}))
        milli = 500_000 if "priorityClassName" in spec or rng.random() < 0.5 else 100
        return self._wave(self._pod(name, milli=milli, **spec))

    def _with_volume(self, name: str) -> Wave:
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": STORAGE_CLASS,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        pod = self._pod(name, volumes=volumes)
        # The claim may come after its pod.
        objects = (claim, pod) if self._rng.random() < 0.7 else (pod, claim)
        return self._wave(*objects)

    # --- gangs --------------------------------------------------------------------------------

    def _gang(self, name: str) -> Wave:
        rng = self._rng
        members, milli = rng.randint(2, 8), rng.choice((500, 1000, 2000))
        if rng.random() < 0.15:
            milli = 100_000  # it fits nowhere
        more = {"priorityClassName": "high"} if rng.random() < 0.3 else {}
        minimum = rng.randint(max(members - 2, 1), members)
        pods = [self._pod(f"{name}-{at}", milli=milli, **more) for at in range(members)]
        for pod in pods:
            # All members of a group ask for one scheduler.
            pod["spec"]["schedulerName"] = SCHEDULER_NAMES[0]
            pod["spec"].pop("priorityClassName", None)
            pod["spec"].update(more)
        if rng.random() < 0.5:
            group, join = make_x_pod_group(name, minimum), by_label
        else:
            constraint: Json = {}
            if rng.random() < 0.3:
                constraint = {"schedulingConstraints": {"topology": [{"key": ZONE_LABEL}]}}
            group, join = make_pod_group(name, minimum, **constraint, **more), by_field
        return self._wave(group, *(join(pod, name) for pod in pods), pods=members)
