"""The plugins that look at volumes, through the conformance checks, in clusters with storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cache.pod_info import PodInfo
from cache.scheduler_cache import SchedulerCache
from cache.snapshot import Snapshot
from cache.storage import Storage
from plugins.node_volume_limits import NodeVolumeLimits
from plugins.volume_restrictions import VolumeRestrictions
from plugins.volume_zone import VolumeZone
from tests.builders import node, pod
from tests.plugins import conformance
from tests.plugins.conformance import Cluster, Recipe, RecordingHandle, ask
from tests.plugins.storage_worlds import (
    DRIVERS,
    NODE_NAMES,
    World,
    nodes,
    pods,
    storage_objects,
    worlds,
)
from tests.storage_builders import attachment, claim, csi_node, tell, volume

if TYPE_CHECKING:
    from cache.objects import Node, Pod
    from plugins.framework.interfaces import Plugin
    from tests.storage_builders import StorageObject

PLUGINS = pytest.mark.parametrize(
    "plugin",
    [
        pytest.param(each, id=each.name)
        for each in (VolumeRestrictions, NodeVolumeLimits, VolumeZone)
    ],
)

SOME = settings(max_examples=settings().max_examples // 2, deadline=None)


def recipe_for(plugin: type[Plugin], storage: Storage) -> Recipe:
    return Recipe(plugin, None, lambda: RecordingHandle(storage=storage))


@PLUGINS
@given(world=worlds(), pod=pods(), data=st.data())
@SOME
def test_a_cluster_gets_the_same_answers_in_every_form(
    plugin: type[Plugin], world: World, pod: Pod, data: st.DataObject
) -> None:
    cluster, recipe = world.cluster, recipe_for(plugin, world.storage())
    conformance.check_legal_statuses(recipe, cluster, pod)
    conformance.check_filter_twins(recipe, cluster, pod)
    conformance.check_same_again(recipe, cluster, pod)
    conformance.check_inputs_unchanged(recipe, cluster, pod)
    conformance.check_no_nodes(recipe, pod)
    rows = data.draw(st.permutations(range(len(cluster.nodes))))
    conformance.check_some_rows(recipe, cluster, pod, rows[: data.draw(st.integers(0, 5))])


@PLUGINS
@given(before=worlds(), after=worlds(), other=pods(), pod=pods())
@SOME
def test_answers_do_not_depend_on_the_past(
    plugin: type[Plugin], before: World, after: World, other: Pod, pod: Pod
) -> None:
    recipe = recipe_for(plugin, after.storage())
    conformance.check_nothing_leaks(recipe, [(before.cluster, other)], after.cluster, pod)
    conformance.check_follows_changes(recipe, before.cluster, after.cluster, [other, pod])


@PLUGINS
@given(world=worlds(min_nodes=1), pod=pods(), data=st.data())
@SOME
def test_a_what_if_is_as_good_as_the_real_thing(
    plugin: type[Plugin], world: World, pod: Pod, data: st.DataObject
) -> None:
    recipe = recipe_for(plugin, world.storage())
    newcomer = data.draw(_newcomers(world))
    conformance.check_what_if(recipe, world.cluster, newcomer, pod)
    conformance.check_what_if_vector(recipe, world.cluster, newcomer, pod)


SHARED = pod().claim("shared")


def _full(limit: int, *objects: StorageObject) -> World:
    """One node, the limit of its driver, and a pod there with the volume of ``SHARED``."""
    cluster = Cluster((node("node-0").build(),), (SHARED.uid("placed").on("node-0").build(),))
    driven = volume("pv-0").csi(DRIVERS[0], "vol-a").build()
    limited = csi_node("node-0").driver(DRIVERS[0], limit=limit).build()
    return World(cluster, (claim("shared").bound_to("pv-0").build(), driven, limited, *objects))


@PLUGINS
@given(world=worlds(min_nodes=1), asked=pods(), leaving=st.sets(st.integers(0, 3)))
@example(_full(0), SHARED.build(), {0})
@example(_full(1, attachment("pv-0", "node-0", DRIVERS[0])), SHARED.build(), {0})
@SOME
def test_a_node_that_passes_still_passes_when_pods_leave_it(
    plugin: type[Plugin], world: World, asked: Pod, leaving: set[int]
) -> None:
    left = [each for index, each in enumerate(world.cluster.pods) if index in leaving]
    recipe = recipe_for(plugin, world.storage())
    conformance.check_eased_by_removals(recipe, world.cluster, left, asked)


@PLUGINS
@given(data=st.data(), pod=pods())
@SOME
def test_changes_of_storage_are_followed_as_those_of_nodes_and_pods_are(
    plugin: type[Plugin], data: st.DataObject, pod: Pod
) -> None:
    """After each of some changes, a plugin that saw them all says what a new one says."""
    history = _History(plugin)
    for _ in range(data.draw(st.integers(1, 5))):
        history.take(data.draw)
        history.compare(pod)


def _newcomers(world: World) -> st.SearchStrategy[Pod]:
    hosts = [node.metadata.name for node in world.cluster.nodes]
    return st.sampled_from(hosts).flatmap(lambda host: pods("newcomer", host))


class _History:
    """A cache, a Storage and a plugin that live through changes."""

    def __init__(self, plugin: type[Plugin]) -> None:
        self.storage = Storage()
        self.recipe = recipe_for(plugin, self.storage)
        self.plugin = self.recipe.make()
        self.cache, self.snapshot = SchedulerCache(), Snapshot()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.objects: dict[tuple[type, str, str], StorageObject] = {}

    def take(self, draw: st.DrawFn) -> None:
        for _ in range(draw(st.integers(1, 3))):
            step = draw(
                st.sampled_from([self.storage_changes, self.node_changes, self.pod_changes])
            )
            step(draw)

    def storage_changes(self, draw: st.DrawFn) -> None:
        for new in draw(storage_objects()):
            key = (type(new), new.metadata.namespace, new.metadata.name)
            old = self.objects.pop(key, None)
            if old is not None and draw(st.booleans()):
                tell(self.storage, old, None)
            else:
                tell(self.storage, old, new)
                self.objects[key] = new

    def node_changes(self, draw: st.DrawFn) -> None:
        name = draw(st.sampled_from(NODE_NAMES))
        if name in self.nodes and draw(st.booleans()):
            del self.nodes[name]
            self.cache.remove_node(name)
        else:
            self.nodes[name] = draw(nodes(name))
            self.cache.update_node(self.nodes[name])

    def pod_changes(self, draw: st.DrawFn) -> None:
        name = draw(st.sampled_from(["placed-0", "placed-1", "placed-2", "placed-3"]))
        known = self.pods.pop(name, None)
        if known is not None:
            self.cache.remove_pod(PodInfo(known))
        if known is None or draw(st.booleans()):
            host = draw(st.sampled_from(NODE_NAMES))
            self.pods[name] = draw(pods(name, host))
            self.cache.add_pod(PodInfo(self.pods[name]))

    def compare(self, pod: Pod) -> None:
        self.cache.update_snapshot(self.snapshot)
        fresh = Cluster(tuple(self.nodes.values()), tuple(self.pods.values())).snapshot()
        asked = PodInfo(pod)
        lived = ask(self.plugin, asked, self.snapshot.all_nodes())
        assert lived == ask(self.recipe.make(), asked, fresh.all_nodes())
        assert self.snapshot.columns.claim_ref_counts == fresh.columns.claim_ref_counts
