from __future__ import annotations

import msgspec
import pytest

from cache.objects import Container, ContainerStatus, ResourceRequirements
from cache.pod_group_objects import GROUP_LABEL, GroupKey, GroupSource
from cache.pod_groups import GroupCounts
from cache.pod_info import PodInfo
from plugins.framework.cluster_events import Action
from scheduler.event_handlers.pods_and_nodes import Land, node_update, pod_update
from scheduler.informers import Delta, DeltaKind
from tests.builders import node, pod
from tests.scheduler.parts import Parts


def ours(name: str = "a"):
    return pod(name).scheduler("berth").request(cpu="1")


FOREIGN = pod("a").scheduler("somebody-else").request(cpu="1")


def ended(builder):
    return with_end(builder.build())


def with_end(made):
    status = msgspec.structs.replace(made.status, phase="Failed")
    return msgspec.structs.replace(made, status=status)


@pytest.fixture
def parts() -> Parts:
    parts = Parts()
    parts.handlers.on_nodes([added(node("n1").capacity(cpu="4", memory="8Gi").build())])
    return parts


def added(obj):
    return Delta(DeltaKind.ADDED, None, obj)


def changed(old, new):
    return Delta(DeltaKind.UPDATED, old, new)


def deleted(old):
    return Delta(DeltaKind.DELETED, old, None)


@pytest.mark.parametrize(
    ("made", "land"),
    [
        pytest.param(ours().build(), Land.OURS, id="waits for one of our profiles"),
        pytest.param(ours().on("n1").build(), Land.ASSIGNED, id="is on a node"),
        pytest.param(FOREIGN.build(), Land.FOREIGN, id="waits for another scheduler"),
        pytest.param(FOREIGN.on("n1").build(), Land.ASSIGNED, id="another's, on a node"),
        pytest.param(ended(ours().on("n1")), Land.FOREIGN, id="has ended"),
        pytest.param(None, Land.FOREIGN, id="is not there"),
    ],
)
def test_every_pod_has_its_land(parts, made, land):
    assert parts.handlers.land(made) is land


class TestBorders:
    """A change that crosses a border is a removal here and an addition there."""

    def test_a_pending_pod_of_ours_is_queued(self, parts):
        parts.handlers.on_pods([added(ours().build())])
        assert parts.queue.counts().active == 1

    def test_a_pending_pod_of_others_is_left_alone(self, parts):
        parts.handlers.on_pods([added(FOREIGN.build())])
        assert parts.queue.counts().active == 0

    def test_an_assigned_pod_takes_room_whoever_bound_it(self, parts):
        parts.handlers.on_pods([added(FOREIGN.on("n1").build())])
        assert parts.milli_cpu_on("n1") == 1000

    def test_bound_by_somebody_else_it_leaves_the_queue(self, parts):
        parts.handlers.on_pods([added(ours().build())])
        parts.handlers.on_pods([changed(ours().build(), ours().on("n1").build())])
        assert parts.queue.counts().active == 0
        assert parts.milli_cpu_on("n1") == 1000

    def test_a_pod_that_ends_frees_its_node(self, parts):
        parts.handlers.on_pods([added(ours().on("n1").build())])
        parts.handlers.on_pods([changed(ours().on("n1").build(), ended(ours().on("n1")))])
        assert parts.milli_cpu_on("n1") == 0

    def test_a_pod_that_ended_before_we_came_takes_no_room(self, parts):
        parts.handlers.on_pods([added(ended(ours().on("n1")))])
        assert parts.milli_cpu_on("n1") == 0

    def test_a_deleted_pod_frees_its_node(self, parts):
        parts.handlers.on_pods([added(ours().on("n1").build())])
        parts.handlers.on_pods([deleted(ours().on("n1").build())])
        assert parts.milli_cpu_on("n1") == 0

    def test_a_deleted_pending_pod_leaves_the_queue(self, parts):
        parts.handlers.on_pods([added(ours().build()), deleted(ours().build())])
        assert parts.queue.counts().active == 0

    def test_deleted_while_it_is_bound_it_gives_back_its_room_at_once(self, parts):
        made = ours()
        parts.handlers.on_pods([added(made.build())])
        queued = parts.queue.pop(timeout_s=0)
        assert queued is not None
        parts.cache.assume_pod(queued.info, "n1")
        parts.handlers.on_pods([deleted(made.build())])
        assert parts.milli_cpu_on("n1") == 0
        parts.queue.done(queued.info.uid)
        assert parts.queue.counts().in_flight == 0

    def test_an_assumed_pod_is_not_queued_again_by_an_update(self, parts):
        made = ours()
        parts.handlers.on_pods([added(made.build())])
        queued = parts.queue.pop(timeout_s=0)
        assert queued is not None
        parts.cache.assume_pod(queued.info, "n1")
        parts.handlers.on_pods([changed(made.build(), made.label("touched").build())])
        assert parts.queue.counts().active == 0


class TestWakeUps:
    @pytest.fixture
    def refused(self, parts):
        """A pod that did not fit into 4 CPUs."""
        parts.handlers.on_pods([added(ours("large").request(cpu="8").build())])
        queued = parts.queue.pop(timeout_s=0)
        assert queued is not None
        queued.unschedulable_plugins = frozenset({"NodeResourcesFit"})
        parts.queue.add_unschedulable(queued)
        assert parts.queue.counts().unschedulable == 1
        return parts

    def waits(self, parts) -> bool:
        return parts.queue.counts().unschedulable == 1

    def test_a_new_node_wakes_it(self, refused):
        refused.handlers.on_nodes([added(node("n2").capacity(cpu="16").build())])
        assert not self.waits(refused)

    def test_a_node_that_grows_wakes_it(self, refused):
        before = node("n1").capacity(cpu="4", memory="8Gi").build()
        after = node("n1").capacity(cpu="16", memory="8Gi").build()
        refused.handlers.on_nodes([changed(before, after)])
        assert not self.waits(refused)

    def test_a_heartbeat_does_not(self, refused):
        before = node("n1").capacity(cpu="4", memory="8Gi").build()
        refused.handlers.on_nodes([changed(before, before)])
        assert self.waits(refused)

    def test_a_pod_that_leaves_a_node_wakes_it(self, refused):
        refused.handlers.on_pods([added(ours("b").on("n1").build())])
        refused.handlers.on_pods([deleted(ours("b").on("n1").build())])
        assert not self.waits(refused)

    def test_an_assumed_pod_that_is_deleted_wakes_it(self, parts):
        parts.handlers.on_pods([added(ours("binding").request(cpu="3").build())])
        binding = parts.queue.pop(timeout_s=0)
        assert binding is not None
        parts.cache.assume_pod(binding.info, "n1")
        parts.handlers.on_pods([added(ours("waits").request(cpu="3").build())])
        waits = parts.queue.pop(timeout_s=0)
        assert waits is not None
        waits.unschedulable_plugins = frozenset({"NodeResourcesFit"})
        parts.queue.add_unschedulable(waits)
        parts.handlers.on_pods([deleted(binding.info.pod)])
        assert not self.waits(parts)

    @pytest.mark.parametrize(
        ("priority", "stays"),
        [
            pytest.param(5, False, id="of higher priority"),
            pytest.param(0, False, id="of the same priority"),
            pytest.param(-5, True, id="of lower priority: it did not count"),
        ],
    )
    @pytest.mark.parametrize("how", ["deleted", "cleared", "moved"])
    def test_a_pod_that_leaves_its_nomination_wakes_it(self, refused, priority, stays, how):
        nominated = ours("nominated").priority(priority).nominated("n1")
        refused.handlers.on_pods([added(nominated.build())])
        gone = {
            "deleted": deleted(nominated.build()),
            "cleared": changed(nominated.build(), nominated.nominated("").build()),
            "moved": changed(nominated.build(), nominated.nominated("n2").build()),
        }
        refused.handlers.on_pods([gone[how]])
        assert self.waits(refused) is stays

    def test_an_assumed_pod_that_is_bound_elsewhere_wakes_it(self, parts):
        parts.handlers.on_pods([added(ours("binding").request(cpu="3").build())])
        binding = parts.queue.pop(timeout_s=0)
        assert binding is not None
        parts.cache.assume_pod(binding.info, "n1")
        parts.handlers.on_pods([added(ours("waits").request(cpu="3").build())])
        waits = parts.queue.pop(timeout_s=0)
        assert waits is not None
        waits.unschedulable_plugins = frozenset({"NodeResourcesFit"})
        parts.queue.add_unschedulable(waits)
        before = binding.info.pod
        parts.handlers.on_pods([changed(before, ours("binding").request(cpu="3").on("n2").build())])
        assert not self.waits(parts)

    @pytest.mark.parametrize(
        ("node_name", "stays"), [pytest.param("n1", True), pytest.param("n2", False)]
    )
    def test_a_nominated_pod_that_is_bound_elsewhere_wakes_it(self, refused, node_name, stays):
        nominated = ours("nominated").nominated("n1")
        refused.handlers.on_pods([added(nominated.build())])
        refused.handlers.on_pods([changed(nominated.build(), nominated.on(node_name).build())])
        assert self.waits(refused) is stays

    def test_a_nomination_that_the_api_has_not_heard_of_counts_too(self, refused):
        made = ours("nominated")
        refused.handlers.on_pods([added(made.build())])
        refused.queue.nominator.add(made.info(), "n1")
        refused.handlers.on_pods([deleted(made.build())])
        assert not self.waits(refused)

    def test_an_assumed_pod_gives_back_its_room_as_soon_as_it_is_to_be_deleted(self, parts):
        made = ours()
        parts.handlers.on_pods([added(made.build())])
        queued = parts.queue.pop(timeout_s=0)
        assert queued is not None
        parts.cache.assume_pod(queued.info, "n1")
        parts.handlers.on_pods([changed(made.build(), made.terminating().build())])
        assert parts.milli_cpu_on("n1") == 0


class TestWhatTheReaperConfirmed:
    """The watch has shown the pod without a node; the reaper has asked and confirmed it."""

    @pytest.fixture
    def confirmed(self, parts) -> Parts:
        parts.handlers.on_pods([added(ours().build())])
        queued = parts.queue.pop(timeout_s=0)
        assert queued is not None
        parts.queue.done(queued.info.uid)
        parts.cache.add_pod(ours().on("n1").info())
        return parts

    @pytest.mark.parametrize(
        "end",
        [
            pytest.param(deleted, id="gone"),
            pytest.param(lambda o: changed(o, with_end(o)), id="ended"),
        ],
    )
    def test_its_end_gives_its_room_back(self, confirmed, end):
        confirmed.handlers.on_pods([end(ours().build())])
        assert confirmed.milli_cpu_on("n1") == 0

    @pytest.mark.parametrize(
        "late",
        [
            pytest.param(ours().label("a", "b"), id="relabelled"),
            pytest.param(ours().terminating(), id="asked to go"),
        ],
    )
    def test_a_late_word_from_before_it_was_bound_changes_nothing(self, confirmed, late):
        confirmed.handlers.on_pods([changed(ours().build(), late.build())])
        assert confirmed.milli_cpu_on("n1") == 1000
        assert confirmed.queue.counts().active == 0


class TestMalformedObjects:
    def test_a_malformed_pod_costs_only_itself(self, parts):
        broken = ours("broken").request(cpu="lots").build()
        parts.handlers.on_pods([added(broken), added(ours("good").build())])
        assert parts.queue.counts().active == 1
        assert parts.counter('berth_malformed_objects_total{resource="pods"}') == 1

    def test_a_malformed_update_leaves_what_was_known(self, parts):
        good = ours().on("n1")
        parts.handlers.on_pods([added(good.build())])
        broken = good.request(cpu="?").build()
        parts.handlers.on_pods([changed(good.build(), broken)])
        assert parts.milli_cpu_on("n1") == 1000

    @pytest.mark.parametrize(
        "end",
        [
            pytest.param(deleted, id="gone"),
            pytest.param(lambda o: changed(o, with_end(o)), id="ended"),
        ],
    )
    @pytest.mark.parametrize("known", [True, False], ids=["known before", "never read"])
    def test_what_cannot_be_read_leaves_all_the_same(self, parts, known, end):
        broken = ours().on("n1").request(cpu="1e102")
        if known:
            parts.handlers.on_pods([added(ours().on("n1").build())])
            parts.handlers.on_pods([changed(ours().on("n1").build(), broken.build())])
        else:
            parts.handlers.on_pods([added(broken.build())])
        assert parts.milli_cpu_on("n1") > 0
        assert parts.handlers.unreadable() == {"pods": 1, "nodes": 0}
        parts.handlers.on_pods([end(broken.build())])
        assert parts.milli_cpu_on("n1") == 0
        assert parts.cache.counts().pods == 0
        assert parts.handlers.unreadable() == {"pods": 0, "nodes": 0}

    def test_what_can_be_read_of_an_assigned_pod_is_counted(self, parts):
        odd = ours().on("n1").request(cpu="1", memory="lots")
        parts.handlers.on_pods([added(odd.build())])
        held = parts.cache.dump().nodes["n1"]
        assert held.requested["cpu"] == 1000
        assert held.allocatable["memory"] < held.requested["memory"]
        parts.handlers.on_pods([changed(odd.build(), ours().on("n1").build())])
        assert parts.cache.dump().nodes["n1"].requested == {"cpu": 1000}

    def test_an_assumed_pod_whose_confirmation_cannot_be_read_is_confirmed_as_assumed(self, parts):
        made = ours()
        parts.handlers.on_pods([added(made.build())])
        queued = parts.queue.pop(timeout_s=0)
        assert queued is not None
        parts.cache.assume_pod(queued.info, "n1")
        parts.handlers.on_pods([changed(made.build(), made.on("n1").request(cpu="?").build())])
        assert parts.cache.counts().assumed_pods == 0
        assert parts.milli_cpu_on("n1") == 1000

    def test_a_malformed_node_costs_only_itself(self, parts):
        broken = node("broken").capacity(cpu="-").build()
        good = node("good").capacity(cpu="1").build()
        parts.handlers.on_nodes([added(broken), added(good)])
        assert sorted(parts.cache.node_names()) == ["good", "n1"]


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        pytest.param(node(), node(), Action(0), id="nothing"),
        pytest.param(node(), node().taint("k"), Action.UPDATE_NODE_TAINT, id="taint"),
        pytest.param(node(), node().unschedulable(), Action(0), id="cordon"),
        pytest.param(node().unschedulable(), node(), Action.UPDATE_NODE_TAINT, id="uncordon"),
        pytest.param(node(), node().label("k", "v"), Action.UPDATE_NODE_LABEL, id="label"),
        pytest.param(
            node(), node().condition("Ready"), Action.UPDATE_NODE_CONDITION, id="condition"
        ),
        pytest.param(
            node().capacity(cpu="1"),
            node().capacity(cpu="2").label("k", "v"),
            Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL,
            id="several at once",
        ),
    ],
)
def test_what_of_a_node_changed(old, new, action):
    assert node_update(old.build(), new.build()) == action


def resized(cpu: str):
    made = pod("a").request(cpu="4").on("n1").build()
    container = Container(name="main", resources=ResourceRequirements(requests={"cpu": cpu}))
    status = ContainerStatus(
        name="main", resources=ResourceRequirements(requests={"cpu": cpu}), allocated_resources={}
    )
    return msgspec.structs.replace(
        made,
        spec=msgspec.structs.replace(made.spec, containers=(container,)),
        status=msgspec.structs.replace(made.status, container_statuses=(status,)),
    )


@pytest.mark.parametrize(
    ("old", "new", "action"),
    [
        pytest.param(resized("4"), resized("2"), Action.UPDATE_POD_SCALE_DOWN, id="scaled down"),
        pytest.param(resized("2"), resized("4"), Action.UPDATE_OTHER, id="scaled up"),
        pytest.param(
            pod("a").build(), pod("a").label("k").build(), Action.UPDATE_POD_LABEL, id="label"
        ),
    ],
)
def test_what_of_an_assigned_pod_changed(old, new, action):
    assert pod_update(old, PodInfo(new)) == action


class TestGroups:
    """Each change of a pod that is, or was, a member of a group is known before the queue."""

    KEY = GroupKey("default", "ring", GroupSource.LABEL)
    ROWS = (
        pytest.param(ours(), GroupCounts(waiting=1), id="waits for us"),
        pytest.param(FOREIGN, GroupCounts(waiting=1), id="waits for another scheduler"),
        pytest.param(ours().gate("later"), GroupCounts(gated=1), id="has a gate"),
        pytest.param(FOREIGN.on("n1"), GroupCounts(assigned=1), id="is on a node"),
        pytest.param(ours().phase("Succeeded"), GroupCounts(succeeded=1), id="has succeeded"),
        pytest.param(ours().phase("Failed"), GroupCounts(failed=1), id="has failed"),
        pytest.param(ours().request(cpu="much"), GroupCounts(waiting=1), id="cannot be read"),
    )

    def counts(self, parts):
        return parts.pod_groups.standing(self.KEY).counts

    @pytest.mark.parametrize(("made", "counts"), ROWS)
    def test_a_member_counts_whatever_its_state(self, parts, made, counts):
        parts.handlers.on_pods([added(made.label(GROUP_LABEL, "ring").build())])
        assert self.counts(parts) == counts

    @pytest.mark.parametrize(("made", "counts"), ROWS)
    def test_a_waiting_member_becomes_whatever_it_becomes(self, parts, made, counts):
        was = ours().label(GROUP_LABEL, "ring").build()
        parts.handlers.on_pods([added(was)])
        parts.handlers.on_pods([changed(was, made.label(GROUP_LABEL, "ring").build())])
        assert self.counts(parts) == counts

    @pytest.mark.parametrize(("made", "counts"), ROWS)
    def test_a_member_that_is_gone_is_forgotten(self, parts, made, counts):
        was = made.label(GROUP_LABEL, "ring").build()
        parts.handlers.on_pods([added(was)])
        parts.handlers.on_pods([deleted(was)])
        assert parts.pod_groups.keys() == ()

    def test_the_group_hears_before_the_queue(self, parts):
        heard = []
        parts.pod_groups.subscribe(lambda key: heard.append(parts.queue.counts().active))
        parts.handlers.on_pods([added(ours().label(GROUP_LABEL, "ring").build())])
        assert (heard, parts.queue.counts().active) == ([0], 1)

    def test_a_pod_of_no_group_is_no_news_to_groups(self, parts):
        parts.pod_groups.subscribe(lambda key: pytest.fail(str(key)))
        was = ours().build()
        parts.handlers.on_pods([added(was), changed(was, ours().on("n1").build())])
        assert parts.pod_groups.keys() == ()
