"""I4: after any history the cache equals one rebuilt from the API's truth, columns included."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cache.comparer import compare
from cache.node_info import NodeInfo
from cache.objects import ContainerImage, Node, NodeMeta, NodeStatus, Pod, PodMeta, PodSpec
from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from tests import strategies

NODE_NAMES = [f"node-{index}" for index in range(5)]
POD_NAMES = [f"pod-{index}" for index in range(6)]
IMAGES = [ContainerImage((f"registry/image-{size}:1",), size * 1_000_000) for size in (20, 90, 700)]


class CacheHistory(RuleBasedStateMachine):
    """The API's truth in two dicts, and a cache that is told of each change."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = SchedulerCache(ttl_s=10)
        self.snapshot = Snapshot()
        self.now_s = 0.0
        self.incarnation = 0
        self.nodes: dict[str, Node] = {}
        self.assigned: dict[str, Pod] = {}
        self.assumed: dict[str, tuple[PodInfo, str]] = {}
        self.finished_s: dict[str, float] = {}

    def _new_pod(self, shape: Pod, name: str, node_name: str) -> Pod:
        self.incarnation += 1
        meta = msgspec.structs.replace(
            shape.metadata, name=name, namespace="ns", uid=f"{name}-{self.incarnation}"
        )
        return msgspec.structs.replace(
            shape, metadata=meta, spec=msgspec.structs.replace(shape.spec, node_name=node_name)
        )

    @rule(
        name=st.sampled_from(NODE_NAMES),
        shape=strategies.nodes(),
        images=st.lists(st.sampled_from(IMAGES), unique=True, max_size=3),
        again=st.booleans(),
    )
    def node_added_or_changed(self, name, shape, images, again):
        self.incarnation += 1
        old = self.nodes.get(name)
        uid = old.metadata.uid if old is not None and not again else f"{name}-{self.incarnation}"
        node = Node(
            metadata=NodeMeta(name=name, uid=uid, labels=shape.metadata.labels),
            spec=shape.spec,
            status=NodeStatus(
                allocatable=shape.status.allocatable,
                conditions=shape.status.conditions,
                images=tuple(images),
            ),
        )
        self.nodes[name] = node
        self.cache.add_node(node)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def node_deleted(self, data):
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[name]
        assert self.cache.remove_node(name)

    @rule(
        shape=strategies.pods(),
        name=st.sampled_from(POD_NAMES),
        node_name=st.sampled_from(NODE_NAMES),
    )
    def pod_appears_assigned(self, shape, name, node_name):
        pod = self._new_pod(shape, name, node_name)
        self.assigned[pod.metadata.uid] = pod
        self.cache.add_pod(PodInfo(pod))

    @rule(
        shape=strategies.pods(),
        name=st.sampled_from(POD_NAMES),
        node_name=st.sampled_from(NODE_NAMES),
    )
    def pod_assumed(self, shape, name, node_name):
        info = PodInfo(self._new_pod(shape, name, ""))
        self.assumed[info.uid] = (info, node_name)
        self.cache.assume_pod(info, node_name)

    @precondition(lambda self: self.assumed)
    @rule(data=st.data())
    def binding_finished(self, data):
        uid = data.draw(st.sampled_from(sorted(self.assumed)))
        self.finished_s[uid] = self.now_s
        self.cache.finish_binding(self.assumed[uid][0], self.now_s)

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), moved_to=st.none() | st.sampled_from(NODE_NAMES))
    def watch_confirms(self, data, moved_to):
        uid = data.draw(st.sampled_from(sorted(self.assumed)))
        info, node_name = self.assumed.pop(uid)
        self.finished_s.pop(uid, None)
        spec = msgspec.structs.replace(info.pod.spec, node_name=moved_to or node_name)
        pod = msgspec.structs.replace(info.pod, spec=spec)
        self.assigned[uid] = pod
        self.cache.add_pod(PodInfo(pod))

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), api_says_gone=st.booleans())
    def assumption_ends(self, data, api_says_gone):
        uid = data.draw(st.sampled_from(sorted(self.assumed)))
        info, _ = self.assumed.pop(uid)
        self.finished_s.pop(uid, None)
        if api_says_gone:
            assert self.cache.remove_pod(info)
        else:
            assert self.cache.forget_pod(info)

    @precondition(lambda self: self.assigned)
    @rule(data=st.data(), shape=strategies.pods())
    def assigned_pod_updated(self, data, shape):
        uid = data.draw(st.sampled_from(sorted(self.assigned)))
        old = self.assigned[uid]
        spec = msgspec.structs.replace(
            old.spec, containers=shape.spec.containers, affinity=shape.spec.affinity
        )
        meta = PodMeta(
            name=old.metadata.name, namespace="ns", uid=uid, labels=shape.metadata.labels
        )
        self.assigned[uid] = Pod(metadata=meta, spec=spec)
        assert self.cache.update_pod(PodInfo(self.assigned[uid]))

    @precondition(lambda self: self.assigned)
    @rule(data=st.data())
    def assigned_pod_deleted(self, data):
        uid = data.draw(st.sampled_from(sorted(self.assigned)))
        assert self.cache.remove_pod(PodInfo(self.assigned.pop(uid)))

    @rule(seconds=st.floats(0, 20))
    def time_passes(self, seconds):
        self.now_s += seconds
        due = {uid for uid, at in self.finished_s.items() if at + 10 < self.now_s}
        expired = {info.uid for info in self.cache.expire_assumed(self.now_s)}
        assert expired == due
        for uid in due:
            del self.assumed[uid], self.finished_s[uid]

    @rule()
    def snapshot_updated(self):
        self.cache.update_snapshot(self.snapshot)
        self._check_snapshot()

    @rule()
    def stray_events(self):
        ghost = PodInfo(Pod(metadata=PodMeta(name="ghost", uid="ghost"), spec=PodSpec()))
        self.cache.finish_binding(ghost, self.now_s)
        assert not self.cache.forget_pod(ghost)
        assert not self.cache.update_pod(ghost)
        assert not self.cache.remove_pod(ghost)
        assert not self.cache.remove_node("no-such-node")

    @invariant()
    def the_cache_equals_the_truth(self):
        pods = [*self.assigned.values(), *(info.pod for info, _ in self.assumed.values())]
        assert compare(self.cache.dump(), self.nodes.values(), pods) == []

    @invariant()
    def assumed_pods_are_those_that_were_assumed(self):
        dump = self.cache.dump()
        assert dump.assumed == {uid: node for uid, (_, node) in self.assumed.items()}
        assert sorted(self.cache.node_names()) == sorted(self.nodes)

    def _check_snapshot(self) -> None:
        live = self.cache.dump().nodes
        assert sorted(self.snapshot.names()) == sorted(self.nodes)
        anew = Snapshot.of(live[name] for name in self.snapshot.names())
        for name in self.nodes:
            mine, theirs = self.snapshot.get(name), live[name]
            assert isinstance(mine, NodeInfo)
            assert mine.facts() == theirs.facts()
        ours, fresh = self.snapshot.columns, anew.columns
        for resource in ours.resource_row.keys() | fresh.resource_row.keys():
            view, twin = self.snapshot.all_nodes(), anew.all_nodes()
            np.testing.assert_array_equal(view.allocatable(resource), twin.allocatable(resource))
            np.testing.assert_array_equal(view.requested(resource), twin.requested(resource))
        np.testing.assert_array_equal(ours.nonzero_requested, fresh.nonzero_requested)
        np.testing.assert_array_equal(ours.unschedulable, fresh.unschedulable)
        assert [ours.taint_sets.value(int(i)) for i in ours.taint_set_ids] == [
            fresh.taint_sets.value(int(i)) for i in fresh.taint_set_ids
        ]
        assert sorted(self.snapshot.order()) == list(range(len(self.nodes)))
        assert [self.snapshot.names()[row] for row in self.snapshot.order()] == (
            self.cache.node_names()
        )


CacheHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestCacheHistory = CacheHistory.TestCase
