"""After any history, what is shared by signature places a pod as a look at every node would."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec.structs import replace

from cache.objects import ContainerImage, Node, Quantity, Taint
from cache.pod_info import PodInfo, on_node
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import Code
from plugins.registry import PLUGINS
from scheduler.config import default_config, running_profiles
from scheduler.cycle import kept_verdicts, ranking, signature_reuse
from scheduler.cycle.host_selection import HostSelector
from scheduler.cycle.signature_reuse import SignatureReuse
from scheduler.queueing.nominator import Nominator
from scheduler.runtime.nominated_nodes import NominatedNodes
from scheduler.runtime.profile_builder import build_framework
from tests.builders import names_term, node, pod, requirement, term
from tests.scheduler.parts import NoBinding

NODE_NAMES = [f"node-{index}" for index in range(12)]
IMAGES = [ContainerImage((f"registry/image-{size}:1",), size * 1_000_000) for size in (20, 90, 700)]


@st.composite
def kinds_of_nodes(draw):
    """Nodes on which most pods find room, with what plugins prefer and avoid."""
    built = node().zone(draw(st.sampled_from(["a", "b"])))
    built = built.capacity(cpu=draw(st.sampled_from(["1", "2", "8"])), memory="8Gi", pods="12")
    if draw(st.integers(0, 3)) == 0:
        built = built.taint("soft", effect="PreferNoSchedule")
    if draw(st.integers(0, 5)) == 0:
        built = built.taint("hard")
    if draw(st.integers(0, 7)) == 0:
        built = built.unschedulable()
    if draw(st.booleans()):
        built = built.label("disk", draw(st.sampled_from(["ssd", "hdd"])))
    for image in draw(st.lists(st.sampled_from(IMAGES), unique=True, max_size=2)):
        built = built.image(*image.names, size_bytes=image.size_bytes)
    return built.build()


@st.composite
def kinds_of_pods(draw):
    """Pods that most nodes can run, each with a few of the things that plugins look at."""
    cpu = draw(st.sampled_from(["100m", "300m", "900m"]))
    built = pod().request(cpu=cpu, memory=draw(st.sampled_from(["64Mi", "1Gi"])))
    built = built.priority(draw(st.sampled_from([0, 0, 5])))
    built = built.label("app", draw(st.sampled_from(["web", "db"])))
    wishes = draw(st.sets(st.sampled_from(WISHES), max_size=3))
    for wish in sorted(wishes):
        built = _WITH[wish](built)
    return built.build()


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SSD = term(requirement("disk", "In", "ssd"))

_WITH = {
    "port": lambda built: built.host_port(8080),
    "tolerates hard": lambda built: built.toleration("hard", operator="Exists"),
    "tolerates soft": lambda built: built.toleration("soft", operator="Exists"),
    "selects": lambda built: built.node_selector("disk", "ssd"),
    "prefers": lambda built: built.prefers_node(10, SSD),
    "image": lambda built: built.image(IMAGES[2].names[0]),
    "image too": lambda built: built.image(IMAGES[1].names[0]),
    "spreads": lambda built: built.spread(ZONE, max_skew=2, app="web"),
    "would spread": lambda built: built.spread(
        ZONE, when_unsatisfiable="ScheduleAnyway", app="web"
    ),
    "follows": lambda built: built.prefers_pods(5, ZONE, app="db"),
    "keeps away": lambda built: built.pod_anti_affinity(HOST, app="db"),
    "names a node": lambda built: built.node_affinity(names_term("node-1")),
}
WISHES = sorted(_WITH)

HARD, SOFT = Taint("hard", effect="NoSchedule"), Taint("soft", effect="PreferNoSchedule")


def _toggles_taint(taint):
    def change(old: Node):
        kept = tuple(each for each in old.spec.taints if each != taint)
        taints = kept if taint in old.spec.taints else (*kept, taint)
        return replace(old, spec=replace(old.spec, taints=taints))

    return change


def _toggles_cordon(old: Node):
    return replace(old, spec=replace(old.spec, unschedulable=not old.spec.unschedulable))


def _toggles_disk(old: Node):
    disk = "hdd" if old.metadata.labels.get("disk") == "ssd" else "ssd"
    labels = {**old.metadata.labels, "disk": disk}
    return replace(old, metadata=replace(old.metadata, labels=labels))


def _toggles_cpu(old: Node):
    cpu = "1" if old.status.allocatable["cpu"] == "8" else "8"
    room: dict[str, Quantity] = {**old.status.allocatable, "cpu": cpu}
    return replace(old, status=replace(old.status, allocatable=room))


def _toggles_image(old: Node):
    kept = tuple(each for each in old.status.images if each != IMAGES[2])
    images = kept if IMAGES[2] in old.status.images else (*kept, IMAGES[2])
    return replace(old, status=replace(old.status, images=images))


CHANGES = {
    "cordon": _toggles_cordon,
    "CPU": _toggles_cpu,
    "disk": _toggles_disk,
    "hard taint": _toggles_taint(HARD),
    "image": _toggles_image,
    "soft taint": _toggles_taint(SOFT),
}
"""What may happen to a Node object; an image also changes what the others' images are worth."""


def framework():
    return build_framework(running_profiles(default_config("berth"))[0], 0, PLUGINS, NoBinding())


def by_looking_at_every_node(runner, snapshot, info):
    """Return the best rows, their score and the number of feasible nodes.

    None when the pod is rejected or the search is narrowed. No plugin may fail.
    """
    state, nodes = CycleState(), snapshot.all_nodes()
    pre = runner.run_pre_filter(state, info, nodes)
    assert pre.status.code is not Code.ERROR
    if pre.status.code is not Code.SUCCESS or pre.node_names is not None:
        return None
    mask = runner.run_filter(state, info, nodes).feasible
    rows = np.arange(len(nodes)) if mask is None else np.flatnonzero(mask)
    if len(rows) == 0:
        return None
    if len(rows) == 1:
        return {int(rows[0])}, None, 1
    total = runner.run_score(state, info, nodes.subset(rows)).total
    best = int(total.max())
    return set(rows[total == best].tolist()), best, len(rows)


class ReuseHistory(RuleBasedStateMachine):
    """A cluster that changes, and pods of a few kinds that come again and again."""

    @initialize(
        shapes=st.lists(kinds_of_pods(), min_size=1, max_size=4),
        nodes=st.lists(kinds_of_nodes(), min_size=2, max_size=12),
        seed=st.integers(0, 2**32),
        one_by_one=st.sampled_from([0, kept_verdicts.MAX_ONE_BY_ONE]),
        in_int16=st.sampled_from([0, kept_verdicts._IN_INT16]),
        followed=st.sampled_from([1, ranking.MAX_FOLLOWED]),
        rankings=st.sampled_from([1, signature_reuse.MAX_RANKINGS]),
        kept_bytes=st.sampled_from([1 << 17, signature_reuse.MAX_KEPT_BYTES]),
    )
    def begins(self, shapes, nodes, seed, one_by_one, in_int16, followed, rankings, kept_bytes):
        self.limits = [
            # With 0 the vector forms follow every change, as they do many at once.
            mock.patch.object(kept_verdicts, "MAX_ONE_BY_ONE", one_by_one),
            # With 0 scores take eight bytes, as they do where weights are large.
            mock.patch.object(kept_verdicts, "_IN_INT16", in_int16),
            mock.patch.object(ranking, "MAX_FOLLOWED", followed),
            mock.patch.object(signature_reuse, "MAX_RANKINGS", rankings),
            mock.patch.object(signature_reuse, "MAX_KEPT_BYTES", kept_bytes),
        ]
        for limit in self.limits:
            limit.start()
        self.cache, self.snapshot = SchedulerCache(), Snapshot()
        self.runner = framework()
        self.coming: list[PodInfo] = []
        self.reuse = SignatureReuse(self.snapshot, HostSelector(seed), lambda n: self.coming[:n])
        self.shapes, self.incarnation = shapes, 0
        self.running: dict[str, PodInfo] = {}
        self.nodes: dict[str, Node] = {}
        self.nominator = Nominator(is_waiting=lambda uid: True)
        self.runner.nominated = NominatedNodes(self.nominator.latest)
        for name, shape in zip(NODE_NAMES, nodes, strict=False):
            self.node_comes_or_changes(name, shape)

    def a_pod(self, shape, node_name=""):
        self.incarnation += 1
        meta = replace(
            shape.metadata, name=f"pod-{self.incarnation}", uid=f"uid-{self.incarnation}"
        )
        spec = replace(shape.spec, node_name=node_name)
        return PodInfo(replace(shape, metadata=meta, spec=spec))

    @rule(
        name=st.sampled_from(NODE_NAMES),
        shape=kinds_of_nodes(),
    )
    def node_comes_or_changes(self, name, shape):
        labels = {**shape.metadata.labels, HOST: name}
        meta = replace(shape.metadata, name=name, uid=name, labels=labels)
        self.node_is_now(replace(shape, metadata=meta))

    def node_is_now(self, new):
        self.nodes[new.metadata.name] = new
        self.cache.add_node(new)

    @rule(data=st.data(), changes=st.lists(st.sampled_from(sorted(CHANGES)), max_size=3))
    def nodes_change_between_two_pods_of_a_kind(self, data, changes):
        """What is kept of the first has to follow the changes to serve the second."""
        for shape in self.shapes:
            self.is_placed(self.a_pod(shape))
        for change in changes if self.nodes else ():
            name = data.draw(st.sampled_from(sorted(self.nodes)))
            self.node_is_now(CHANGES[change](self.nodes[name]))
            for shape in self.shapes:
                self.is_placed(self.a_pod(shape))

    @rule(name=st.sampled_from(NODE_NAMES))
    def node_goes(self, name):
        self.nodes.pop(name, None)
        self.cache.remove_node(name)

    @rule(data=st.data(), name=st.sampled_from(NODE_NAMES))
    def pod_of_a_known_kind_comes(self, data, name):
        self.settles(self.a_pod(data.draw(st.sampled_from(self.shapes)), name))

    @rule(shape=kinds_of_pods(), name=st.sampled_from(NODE_NAMES))
    def pod_of_another_kind_comes(self, shape, name):
        self.settles(self.a_pod(shape, name))

    @rule(shape=kinds_of_pods(), name=st.sampled_from(NODE_NAMES))
    def pod_is_nominated(self, shape, name):
        self.nominator.add(self.a_pod(shape), name)

    @rule(name=st.sampled_from(NODE_NAMES))
    def nominations_end(self, name):
        for each in self.nominator.nominated_pods_for_node(name):
            self.nominator.delete(each.uid)

    @rule(data=st.data())
    def pod_goes(self, data):
        if self.running:
            uid = data.draw(st.sampled_from(sorted(self.running)))
            self.cache.remove_pod(self.running.pop(uid))

    @rule(data=st.data(), times=st.integers(1, 4))
    def pods_are_placed(self, data, times):
        shape = data.draw(st.sampled_from(self.shapes))
        for _ in range(times):
            self.is_placed(self.a_pod(shape))

    @rule(data=st.data(), order=st.permutations(range(1, 7)))
    def pods_of_many_requests_come_in_turn(self, data, order):
        """They share what reads no pods, and each of their requests has a column of its own."""
        shape = data.draw(st.sampled_from(self.shapes))
        self.coming = []
        for number in order:
            requests = {"cpu": f"{70 * number}m", "memory": "64Mi"}
            (container,) = shape.spec.containers
            resources = replace(container.resources, requests=requests)
            spec = replace(shape.spec, containers=(replace(container, resources=resources),))
            self.coming.append(self.a_pod(replace(shape, spec=spec)))
        while self.coming:
            self.is_placed(self.coming.pop(0))

    def is_placed(self, info):
        self.cache.update_snapshot(self.snapshot)
        state = CycleState()
        placement = self.reuse.place(self.runner, state, info)
        expected = by_looking_at_every_node(self.runner, self.snapshot, info)
        if placement is None:
            assert expected is None
            return
        assert expected is not None
        best, score, count = expected
        assert placement.row in best
        assert (placement.score, placement.feasible_nodes) == (score, count)
        node_name = self.snapshot.columns.node_infos[placement.row].name
        self.settles(PodInfo(on_node(info.pod, node_name)))

    def settles(self, info):
        self.running[info.uid] = info
        self.cache.add_pod(info)

    def teardown(self):
        for limit in self.limits:
            limit.stop()


ReuseHistory.TestCase.settings = settings(stateful_step_count=30, deadline=None)
TestReuseHistory = ReuseHistory.TestCase
