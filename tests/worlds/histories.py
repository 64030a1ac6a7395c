"""What happens in the world of a seed, as lines that :mod:`tests.worlds.steps` reads.

It is made up without a scheduler, so that the same happens whatever the scheduler does: a line
that makes no sense by then does nothing. At the end all faults stop, time passes, and the
scheduler gets the chance to finish.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Final

from tests.worlds import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.worlds.objects import Json

FEATURES: Final = {
    "priorities": 0.8,
    "gates": 0.4,
    "ports": 0.3,
    "devices": 0.3,
    "taints": 0.4,
    "node affinity": 0.4,
    "spread": 0.4,
    "neighbours": 0.4,
    "tenants": 0.3,
    "owners": 0.4,
    "finalizers": 0.3,
    "storage": 0.45,
}
"""What pods may ask for, and in what share of the worlds."""

_TROUBLES: Final = {
    "answers": 0.5,
    "evictions": 0.25,
    "watches": 0.35,
    "plugin": 0.35,
    "profiles": 0.3,
    "crashes": 0.25,
    "others": 0.3,
    "etcd": 0.2,
}
"""What goes wrong besides there not being enough room, and in what share of the worlds."""

_HAPPENINGS: Final = 48
_UNREADABLE: Final = "1e102"
"""An amount that the API server takes and that no scheduler can count with."""

_SERVED: Final = ["NodeAffinity", "TaintToleration", "InterPodAffinity", "NodePorts"]
_WATCHED: Final = ("pods", "pods", "nodes", "persistentvolumes", "persistentvolumeclaims")
_REFUSALS: Final = (500, 503, 429, 409, 404, 403, 422)
_REQUESTS: Final = (
    *("binds", "binds", "binds", "statuses", "statuses"),
    *("deletes", "deletes", "events", "volumes", "volumes"),
)


def history(seed: int) -> tuple[str, ...]:
    """Return what happens in the world of a seed, one step a line."""
    return tuple(_History(random.Random(seed)).lines())


class _History:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._features = [each for each, share in FEATURES.items() if rng.random() < share]
        troubles = [each for each, share in _TROUBLES.items() if rng.random() < share]
        self._maker = objects.PodMaker(rng, self._features)
        self._lines: list[str] = []
        self._nodes: list[str] = []
        self._pods: list[str] = []
        self._specs: dict[str, Json] = {}
        self._claims: list[str] = []
        self._volumes = 0
        self._ways: list[tuple[int, Callable[[], None]]] = [
            *self._everyday(),
            *(way for trouble in troubles for way in self._trouble(trouble)),
        ]

    def lines(self) -> Sequence[str]:
        """Make all of it up."""
        self._begin()
        weights = [weight for weight, _ in self._ways]
        for _ in range(_HAPPENINGS):
            ((_, happen),) = self._rng.choices(self._ways, weights)
            happen()
        self._end()
        return self._lines

    def _say(self, line: str, *, meanwhile: float = 0.0) -> None:
        """Add a line; with some probability it happens in the middle of the next cycle."""
        in_the_middle = self._rng.random() < meanwhile
        self._lines.append(f"meanwhile {line}" if in_the_middle else line)
        if in_the_middle:
            self._lines.append("cycle")

    def _create(self, resource: str, name: str, obj: Json, *, meanwhile: float = 0.0) -> None:
        self._say(f"create {resource} {name} {_text(obj)}", meanwhile=meanwhile)

    # --- how it begins and ends ---------------------------------------------------------------

    def _begin(self) -> None:
        rng = self._rng
        for name, team in (("default", "a"), ("other", "b")):
            self._create("namespaces", name, objects.namespace(team))
        if "owners" in self._features:
            for app in objects.APPS:
                self._create("replicasets", f"{app}-set", objects.replica_set(app))
            self._create("services", "web", objects.service("web"))
        if "priorities" in self._features and rng.random() < 0.6:
            for app in objects.APPS[:2]:
                budget = objects.budget(app, rng.choice((0, 1)))
                self._create("poddisruptionbudgets", f"budget-{app}", budget)
        for _ in range(rng.choice((1, 2, 2, 3, 3, 4))):
            self._new_node()
        if "storage" in self._features:
            self._begin_storage()
        for _ in range(rng.choice((0, 2, 4))):
            self._new_pod(on=rng.choice(self._nodes))
        self._say("kubelets start pods")

    def _begin_storage(self) -> None:
        rng = self._rng
        for name in objects.CLASSES:
            self._create("storageclasses", name, objects.storage_class(name))
        driver = objects.csi_driver(storage_capacity=rng.random() < 0.5)
        self._create("csidrivers", "csi.example.com", driver)
        for zone in objects.ZONES:
            capacity = objects.capacity(zone, rng.choice((0, 1, 10, 10)))
            self._create("csistoragecapacities", f"fast-{zone}", capacity)
        for _ in range(3):
            self._new_volume()
            self._new_claim()

    def _end(self) -> None:
        for verb in ("binds", "statuses", "deletes"):
            self._say(f"release {verb}")
        for resource in dict.fromkeys(_WATCHED):
            self._say(f"release watch of {resource}")
        self._say("loop is free")
        self._say("the profile comes back")
        self._say("look for lost events")
        for pause_s in (11, 61, 301):
            for line in ("kubelets end pods", "kubelets start pods", "volumes are bound"):
                self._say(line)
            self._say(f"advance {pause_s}s")
            for _ in range(3):
                self._say("cycle")

    # --- every day ----------------------------------------------------------------------------

    def _everyday(self) -> list[tuple[int, Callable[[], None]]]:
        ways = [
            (22, self._new_pods),
            (36, self._cycles),
            (9, self._time_passes),
            (3, self._new_node),
            (8, self._change_node),
            (2, self._delete_node),
            (5, self._kubelets),
            (14, self._end_pod),
            (5, self._change_pod),
            (1, lambda: self._say("look for lost events")),
            (1, lambda: self._say(f"activate {self._any_pod()}")),
        ]
        if "storage" in self._features:
            ways += [
                (6, lambda: self._say("volumes are bound", meanwhile=0.2)),
                (2, self._new_volume),
                (3, self._new_claim),
                (1, self._change_storage),
            ]
        if "priorities" in self._features:
            ways.append((2, self._change_budget))
        return ways

    def _any_pod(self) -> str:
        # Mostly one of the latest: those are more likely to be there, and to wait.
        return self._rng.choice(self._pods[-8:] if self._pods else ["p0"])

    def _new_pods(self) -> None:
        for _ in range(self._rng.choice((1, 1, 2, 3))):
            self._new_pod()

    def _new_pod(self, on: str = "", priority: int | None = None) -> str:
        rng = self._rng
        name = f"p{len(self._pods) + 1}"
        alike = self._pods and rng.random() < 0.35
        pod = json.loads(_text(self._specs[self._any_pod()])) if alike else None
        pod = pod or self._maker.pod(self._claims)
        self._pods.append(name)
        self._specs[name] = json.loads(_text(pod))
        if on:
            pod["spec"]["nodeName"] = on
            pod["spec"].pop("schedulingGates", None)
        if priority is not None:
            pod["spec"]["priority"] = priority
        self._create("pods", name, pod, meanwhile=0.05)
        return name

    def _cycles(self) -> None:
        for _ in range(self._rng.choice((1, 2, 2, 3))):
            self._say("cycle")

    def _time_passes(self) -> None:
        self._say(f"advance {self._rng.choice((1, 1, 2, 5, 11, 31, 61, 301))}s")

    def _new_node(self) -> None:
        name = f"n{len(self._nodes) + 1}"
        self._nodes.append(name)
        self._create("nodes", name, objects.node(self._rng, name), meanwhile=0.1)
        if "storage" in self._features:
            self._create("csinodes", name, objects.csi_node(name, self._rng.choice((1, 2, 9))))

    def _change_node(self) -> None:
        rng = self._rng
        patch: Json = rng.choice(
            (
                {"status": objects.room(rng)},
                {"metadata": {"labels": {objects.ZONE: rng.choice(objects.ZONES)}}},
                {"metadata": {"labels": {"disk": rng.choice(("ssd", "hdd"))}}},
                {"spec": {"taints": [rng.choice(objects.TAINTS)]}},
                {"spec": {"taints": None}},
                {"spec": {"unschedulable": True}},
                {"spec": {"unschedulable": None}},
            )
        )
        self._say(f"change nodes {rng.choice(self._nodes)} {_text(patch)}", meanwhile=0.15)

    def _delete_node(self) -> None:
        name = self._rng.choice(self._nodes)
        self._say(f"remove nodes {name}", meanwhile=0.2)
        if self._rng.random() < 0.6:
            self._say("cycle")
            self._create("nodes", name, objects.node(self._rng, name))

    def _kubelets(self) -> None:
        self._say(self._rng.choice(("kubelets start pods", "kubelets end pods")))

    def _end_pod(self) -> None:
        name = (
            self._any_pod() if self._rng.random() < 0.6 else self._rng.choice(self._pods or ["p0"])
        )
        line = self._rng.choice(
            (
                f"delete pod {name}",
                f"delete pod {name}",
                f"end pod {name}",
                f"finish pod {name}",
                f"recreate pod {name}",
                f"the kubelet rejects {name} with OutOfcpu",
            )
        )
        self._say(line, meanwhile=0.2)

    def _change_pod(self) -> None:
        rng, name = self._rng, self._any_pod()
        spec = self._specs.get(name, {"spec": {"containers": [{"resources": {}}]}})["spec"]
        container = spec["containers"][0]
        cpu = rng.choice(("250m", "250m", "2", "2", _UNREADABLE))
        requests = {**container["resources"].get("requests", {}), "cpu": cpu}
        resized = {**container, "resources": {"requests": requests, "limits": {}}}
        no_finalizer = _text({"metadata": {"finalizers": None}})
        line = rng.choice(
            (
                f"ungate pod {name}",
                f"ungate pod {name}",
                f"label pod {name} app={rng.choice(objects.APPS)}",
                f"change pods {name} {_text({'spec': {'containers': [resized]}})}",
                f"change pods {name} {no_finalizer}",
            )
        )
        self._say(line, meanwhile=0.2)

    def _new_volume(self) -> None:
        self._volumes += 1
        self._create("persistentvolumes", f"v{self._volumes}", self._volume(), meanwhile=0.1)

    def _volume(self) -> Json:
        return objects.volume(self._rng, self._nodes)

    def _new_claim(self) -> None:
        self._claims.append(f"c{len(self._claims) + 1}")
        claim = objects.claim(self._rng)
        self._create("persistentvolumeclaims", self._claims[-1], claim, meanwhile=0.1)

    def _change_storage(self) -> None:
        rng = self._rng
        capacity = objects.capacity("", rng.choice((0, 10)))["capacity"]
        line = rng.choice(
            (
                f"change csistoragecapacities fast-east {_text({'capacity': capacity})}",
                f"remove persistentvolumes v{rng.randrange(1, self._volumes + 1)}",
                f"remove persistentvolumeclaims {rng.choice(self._claims)}",
            )
        )
        self._say(line, meanwhile=0.2)

    def _change_budget(self) -> None:
        name = f"budget-{self._rng.choice(objects.APPS[:2])}"
        patch = {"status": {"disruptionsAllowed": self._rng.choice((0, 1, 2))}}
        self._say(f"change poddisruptionbudgets {name} {_text(patch)}")

    # --- trouble ------------------------------------------------------------------------------

    def _trouble(self, trouble: str) -> list[tuple[int, Callable[[], None]]]:
        return {
            "answers": [(16, self._bad_answer), (4, self._hold_requests), (4, self._release)],
            "evictions": [(8, self._disturb_eviction)],
            "watches": [
                (7, self._hold_watch),
                (7, self._release_watch),
                (2, self._lose_events),
                (6, self._leave_unconfirmed),
            ],
            "plugin": [(12, self._plugin)],
            "profiles": [(7, self._profiles_change), (2, self._reload_while_binding)],
            "crashes": [(8, self._crash)],
            "others": [(10, self._bind_elsewhere)],
            "etcd": [(3, self._restore)],
        }[trouble]

    def _bad_answer(self) -> None:
        rng, verb = self._rng, self._rng.choice(_REQUESTS)
        status = rng.choice(_REFUSALS)
        pod = self._any_pod()
        lines = (
            f"refuse next of {verb} with {status}",
            f"refuse next of {verb} with {status}",
            f"lose the next answer of {verb}",
            f"lose the next answer of {verb}",
            f"lose the next request of {verb}",
            f"refuse binds of {pod} with {status}",
            f"refuse binds of {pod} no longer",
            "refuse next of binds with 429 for 60s",
        )
        self._say(rng.choice(lines))
        self._cycles()

    def _hold_requests(self) -> None:
        verb = self._rng.choice(("binds", "binds", "statuses", "deletes"))
        self._say(f"hold {verb}")
        self._cycles()

    def _release(self) -> None:
        verb = self._rng.choice(("binds", "binds", "statuses", "deletes"))
        ends = ("", "", " with 500", " with 409", " with 404")
        self._say(f"release {verb}{self._rng.choice(ends)}")

    def _disturb_eviction(self) -> None:
        """Let something come between a preemptor and its victims."""
        rng = self._rng
        verb = rng.choice(("statuses", "deletes"))
        preemptor = self._new_pod(priority=1000)
        self._say(f"hold {verb}")
        self._say("cycle")
        between = (
            f"delete pod {preemptor}",
            f"change nodes {rng.choice(self._nodes)} {_text({'spec': {'taints': None}})}",
            f"end pod {self._any_pod()}",
            "kubelets end pods",
        )
        self._say(rng.choice(between))
        ends = ("", "", " with 403", " with 404", " with 422", " with 500")
        self._say(f"release {verb}{rng.choice(ends)}")

    def _leave_unconfirmed(self) -> None:
        """Let a pod be bound, or lost again, without a word of it from the watch."""
        name = self._new_pod(priority=2000)
        self._say("hold watch of pods")
        self._say("cycle")
        is_gone = self._rng.random() < 0.6
        is_answered_late = self._rng.random() < 0.3
        if is_answered_late:
            self._say("loop is busy")
        elif is_gone:
            self._say(f"end pod {name}")
        self._say(f"advance {self._rng.choice((31, 301))}s")
        if is_answered_late and is_gone:
            self._say(f"end pod {name}")
        self._say("cycle")
        self._say("release watch of pods")
        self._say("loop is free")

    def _hold_watch(self) -> None:
        self._say(f"hold watch of {self._rng.choice(_WATCHED)}")
        self._cycles()

    def _release_watch(self) -> None:
        self._say(f"release watch of {self._rng.choice(_WATCHED)}", meanwhile=0.15)

    def _lose_events(self) -> None:
        resource = self._rng.choice(("pods", "nodes"))
        self._say(f"hold watch of {resource}")
        self._end_pod()
        self._new_pods()
        self._say(f"recreate pod {self._any_pod()}")
        self._say(f"lose events of {resource}")
        self._say(f"label pod {self._any_pod()} app={self._rng.choice(objects.APPS)}")
        self._say(f"release watch of {resource}")
        self._say("look for lost events")

    def _plugin(self) -> None:
        pod = self._any_pod()
        lines = (
            f"plugin keeps {pod} out",
            f"plugin keeps p{len(self._pods) + 1} out",
            f"plugin lets {pod} in",
            f"plugin holds {pod}",
            f"plugin holds p{len(self._pods) + 1}",
            "plugin fails next reserve",
            "plugin fails next filter",
            f"plugin needs 300ms for {pod}",
            f"plugin needs 60ms for p{len(self._pods) + 1}",
        )
        self._say(self._rng.choice(lines))
        self._cycles()

    def _reload_while_binding(self) -> None:
        self._new_pod(priority=2000)
        self._say("hold binds")
        self._say("cycle")
        self._say("the profile is taken away")
        self._say("the profile comes back")
        self._say(f"release binds{self._rng.choice(('', ' with 409', ' with 500'))}")

    def _profiles_change(self) -> None:
        lines = (
            "the profile is taken away",
            "the profile comes back",
            "the profile comes back",
            f"the profile is without {self._rng.choice(_SERVED)}",
        )
        self._say(self._rng.choice(lines), meanwhile=0.15)

    def _crash(self) -> None:
        lines = (
            "the next hand-over breaks down",
            "the next report breaks down",
            f"queue forgets {self._any_pod()}",
            "loop is busy",
            "loop is free",
        )
        self._say(self._rng.choice(lines))
        self._cycles()

    def _bind_elsewhere(self) -> None:
        node = self._rng.choice(self._nodes)
        if self._rng.random() < 0.4:
            name = self._new_pod(priority=2000)
            self._say("hold binds")
            self._say("cycle")
            self._say(f"another scheduler binds {name} to {node}")
            self._say("release binds")
        else:
            name = self._new_pod() if self._rng.random() < 0.5 else self._any_pod()
            self._say(f"another scheduler binds {name} to {node}", meanwhile=0.5)

    def _restore(self) -> None:
        self._say("save etcd")
        for _ in range(3):
            self._rng.choice((self._new_pods, self._cycles, self._end_pod))()
        self._say("restore etcd")


def _text(obj: Json) -> str:
    return json.dumps(obj, sort_keys=True, separators=(",", ":"))
