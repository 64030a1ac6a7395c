"""Scenarios of pod groups on a real API server; the number of each stands in front of its test.

All share one API server and, but for one, one berth. Each has a namespace and nodes of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scheduler.client.errors import ApiError
from scheduler.config import default_config, with_election
from scheduler.cycle import held_groups
from tests.controlplane import pod_groups
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.pod_groups import install_x_pod_groups
from tests.scenarios.gang_world import HIGH, POLITE, GangWorld, members
from tests.scenarios.running_berth import BindFailure, RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

both_apis = pytest.mark.parametrize("world", [False, True], ids=["field", "label"], indirect=True)
PREEMPTORS = [
    pytest.param(False, id="for a single pod"),
    pytest.param(True, id="for a gang"),
]
label = pytest.mark.parametrize("world", [True], ids=["label"], indirect=True)


@pytest.fixture(scope="module")
def plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    with ControlPlane(pod_groups=True) as started:
        install_x_pod_groups(started)
        yield started


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(plane.admin_kubeconfig) as started:
        never = {"preemptionPolicy": "Never"}
        started.create_many([_priority_class(HIGH), {**_priority_class(POLITE), **never}])
        yield started


@pytest.fixture(scope="module")
def berth(plane: ControlPlane, api: BlockingApi) -> Iterator[RunningBerth]:
    with pytest.MonkeyPatch.context() as patch:
        # A group that cannot be tried says so after five seconds; nobody wants to wait for that.
        patch.setattr(held_groups, "LASTS_S", 0.2)
        with RunningBerth(plane.berth_kubeconfig()) as started:
            api.wait_until(lambda: started.is_ready, "berth is ready")
            yield started


@pytest.fixture
def world(
    api: BlockingApi, berth: RunningBerth, request: pytest.FixtureRequest
) -> Iterator[GangWorld]:
    made = GangWorld(api, berth, by_label=getattr(request, "param", False))
    yield made
    made.clear()


def _priority_class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 100,
    }


@both_apis
def test_1_of_two_gangs_one_is_whole_and_the_other_follows_when_it_ends(world: GangWorld) -> None:
    world.node(3)
    world.gang("first", 3)
    world.wait_bound(*members("first", 3))
    world.gang("second", 3)
    world.wait_refused(*members("second", 3))
    assert world.nothing_is_held(members("second", 3))
    world.end(*members("first", 3))
    world.wait_bound(*members("first", 3), *members("second", 3))


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")], ids=["a first", "b first"])
def test_2_members_of_two_gangs_in_turn(world: GangWorld, order: tuple[str, str]) -> None:
    world.node(3)
    world.group("a", 3)
    world.group("b", 3)
    world.create(*(world.member(gang, f"{gang}-{i}") for i in range(3) for gang in order))
    world.api.wait_until(lambda: len(world.bound()) == 3, "one gang is bound")
    (whole,) = {name.partition("-")[0] for name in world.bound()}
    (other,) = {"a", "b"} - {whole}
    world.wait_refused(*members(other, 3))
    assert world.bound() == set(members(whole, 3))


@both_apis
def test_6_pods_wait_for_the_object_of_their_group(world: GangWorld) -> None:
    world.node(3)
    world.create(*(world.member("late", name) for name in members("late", 3)))
    world.wait_refused(*members("late", 3))
    assert "late" in world.reason("late-0")
    world.group("late", 3)
    world.wait_bound(*members("late", 3))


@both_apis
def test_7_the_last_member_completes_the_minimum(world: GangWorld) -> None:
    world.node(3)
    world.gang("few", 2, minimum=3)
    world.wait_refused(*members("few", 2))
    assert world.bound() == set()
    world.create(world.member("few", "few-2"))
    world.wait_bound(*members("few", 3))


def test_8_a_member_is_deleted_while_its_gang_is_held(world: GangWorld) -> None:
    world.node(3)
    world.gang("held", 2, minimum=3)
    world.wait_refused(*members("held", 2))
    world.delete("held-0")
    world.create(world.member("held", "held-2"))
    world.wait_refused("held-1", "held-2")
    assert world.nothing_is_held(["held-1", "held-2"])
    world.create(world.member("held", "held-3"))
    world.wait_bound("held-1", "held-2", "held-3")


@both_apis
def test_10_a_group_that_is_made_again_has_its_new_minimum(world: GangWorld) -> None:
    world.node(2)
    world.gang("again", 3)
    world.wait_refused(*members("again", 3))
    world.delete_group("again")
    world.group("again", 2)
    world.api.wait_until(lambda: len(world.bound()) == 2, "two members are bound")


@label
class TestRow11:
    def test_11_a_lower_minimum_wakes_the_gang(self, world: GangWorld) -> None:
        world.node(2)
        world.gang("lower", 3)
        world.wait_refused(*members("lower", 3))
        world.api.patch(world.group_path("lower"), {"spec": {"minMember": 2}})
        world.api.wait_until(lambda: len(world.bound()) == 2, "two members are bound")

    def test_11_a_higher_minimum_holds_those_that_wait(self, world: GangWorld) -> None:
        world.node(3)
        world.gang("higher", 1, minimum=2)
        world.wait_refused("higher-0")
        world.api.patch(world.group_path("higher"), {"spec": {"minMember": 3}})
        world.create(world.member("higher", "higher-1"))
        world.wait_refused("higher-1")
        assert world.nothing_is_held(members("higher", 2))
        world.create(world.member("higher", "higher-2"))
        world.wait_bound(*members("higher", 3))


def test_13_a_gang_that_never_fits_writes_no_event_for_each_member(world: GangWorld) -> None:
    world.node(10)
    world.gang("never", 30)
    world.wait_refused(*members("never", 30))
    world.create(world.pod("single"))
    world.wait_bound("single")
    events = world.api.list_all(f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events")
    failed = [each for each in events if each["reason"] == "FailedScheduling"]
    assert len(failed) <= 2


def test_15_a_gang_of_a_higher_priority_goes_first(world: GangWorld) -> None:
    world.gang("low", 3)
    world.gang("high", 3, priorityClassName=HIGH)
    world.wait_refused(*members("low", 3), *members("high", 3))
    world.node(3)
    world.wait_bound(*members("high", 3))
    world.node(3)
    world.wait_bound(*members("high", 3), *members("low", 3))


@both_apis
def test_20_one_member_that_never_preempts_binds_the_gang(world: GangWorld) -> None:
    world.node(3)
    world.create(*(world.pod(name) for name in members("low", 3)))
    world.wait_bound(*members("low", 3))
    world.group("polite", 2, **({} if world.by_label else {"priorityClassName": HIGH}))
    world.create(
        world.member("polite", "polite-0", priorityClassName=HIGH),
        world.member("polite", "polite-1", priorityClassName=POLITE),
    )
    world.wait_refused(*members("polite", 2))
    assert world.bound() == set(members("low", 3))


def test_21_members_with_different_scheduler_names(world: GangWorld) -> None:
    world.node(3)
    world.group("mixed", 2)
    other = world.member("mixed", "mixed-1")
    other["spec"]["schedulerName"] = "other"
    world.create(world.member("mixed", "mixed-0"), other, world.member("mixed", "mixed-2"))
    world.wait_refused("mixed-0", "mixed-2")
    assert "other" in world.reason("mixed-0")
    assert world.nothing_is_held(members("mixed", 3))


@pytest.mark.parametrize(
    ("minimum", "bound"),
    [
        pytest.param(2, members("gated", 3)[1:], id="enough without it"),
        pytest.param(3, [], id="too few without it"),
    ],
)
def test_22_a_member_with_a_gate(world: GangWorld, minimum: int, bound: list[str]) -> None:
    world.node(3)
    world.group("gated", minimum)
    gates = {"schedulingGates": [{"name": "example.com/wait"}]}
    world.create(
        world.member("gated", "gated-0", **gates),
        world.member("gated", "gated-1"),
        world.member("gated", "gated-2"),
    )
    if bound:
        world.wait_bound(*bound)
    else:
        world.wait_refused("gated-1", "gated-2")
    assert world.bound() == set(bound)


@pytest.mark.parametrize("by_gang", PREEMPTORS)
class TestRows26And27:
    """Victims are members of gangs: of a gang that preempts (26), and of a single pod (27)."""

    def preempt(self, world: GangWorld, *, by_gang: bool) -> None:
        if by_gang:
            world.gang("high", 1, priorityClassName=HIGH)
        else:
            world.create(world.pod("high-0", priorityClassName=HIGH))

    def test_26_27_the_surplus_of_a_gang_goes(self, world: GangWorld, by_gang: bool) -> None:
        world.node(3)
        world.gang("low", 3, minimum=2)
        world.wait_bound(*members("low", 3))
        self.preempt(world, by_gang=by_gang)
        world.api.wait_until(lambda: "high-0" in world.bound(), "the preemptor is bound")
        assert len(world.bound()) == 3

    def test_26_27_a_gang_without_surplus_goes_whole(self, world: GangWorld, by_gang: bool) -> None:
        world.node(3)
        world.gang("low", 3)
        world.wait_bound(*members("low", 3))
        self.preempt(world, by_gang=by_gang)
        world.wait_bound("high-0")

    def test_26_27_somebody_else_goes_instead_of_a_gang(
        self, world: GangWorld, by_gang: bool
    ) -> None:
        world.node(4)
        world.gang("low", 3)
        world.create(world.pod("single"))
        world.wait_bound(*members("low", 3), "single")
        self.preempt(world, by_gang=by_gang)
        world.wait_bound(*members("low", 3), "high-0")


def test_26_a_member_that_is_being_bound_goes_with_its_gang(world: GangWorld) -> None:
    world.node(3)
    world.gang("low", 3)
    world.wait_bound(*members("low", 3))
    world.delete("low-2")
    transport = world.berth.app.transport
    world.berth.on_loop(transport.binding.clear)
    world.create(world.member("low", "low-3"))
    world.api.wait_until(
        lambda: world.berth.app.known.pods.cache.counts().assumed_pods == 1, "it is assumed"
    )
    world.gang("high", 2, priorityClassName=HIGH)
    world.api.wait_until(
        lambda: not {"low-0", "low-1"} & set(world.pods()), "the others are evicted"
    )
    world.berth.on_loop(transport.binding.set)
    world.wait_bound(*members("high", 2))


def test_26_a_new_member_of_a_gang_that_is_being_evicted_stays_unbound(world: GangWorld) -> None:
    world.node(4)
    slow = {"terminationGracePeriodSeconds": 600}  # nobody ends them here
    world.gang("low", 3, **slow)
    world.wait_bound(*members("low", 3))
    world.delete("low-2")
    gates = {"schedulingGates": [{"name": "example.com/wait"}]}
    world.create(world.member("low", "low-3", **gates))
    world.gang("high", 2, cpu=2, priorityClassName=HIGH)
    world.api.wait_until(
        lambda: all("deletionTimestamp" in world.pods()[x]["metadata"] for x in ("low-0", "low-1")),
        "the others are being evicted",
    )
    world.node(1)  # too small for those that preempt
    world.api.patch(world.path("low-3"), {"spec": {"schedulingGates": None}})
    world.create(world.pod("behind"))
    world.delete("low-0", "low-1")
    world.api.wait_until(lambda: set(members("high", 2)) <= world.bound(), "the others are bound")
    assert "low-3" not in world.bound()


class TestRow29:
    """The bind of one member fails."""

    def fail(self, world: GangWorld, *failures: BindFailure) -> None:
        world.berth.app.transport.bind_failures["gang-1"] = list(failures)
        world.node(3)
        world.gang("gang", 3)

    @pytest.mark.parametrize(
        "failure",
        [
            pytest.param(BindFailure(ApiError(500, "InternalError", "no")), id="500"),
            pytest.param(BindFailure(ApiError(409, "Conflict", "no")), id="409"),
            pytest.param(
                BindFailure(ApiError(None, "Timeout", "no", ambiguous=True), is_sent=True),
                id="it took effect",
            ),
        ],
    )
    def test_29_it_is_tried_again_and_the_gang_is_whole(
        self, world: GangWorld, failure: BindFailure
    ) -> None:
        self.fail(world, failure)
        world.wait_bound(*members("gang", 3))

    def test_29_refused_for_good_it_waits_alone_and_gives_its_room_back(
        self, world: GangWorld
    ) -> None:
        refusal = BindFailure(ApiError(403, "Forbidden", "denied by a webhook"))
        self.fail(world, *[refusal] * 1_000)
        world.api.wait_until(lambda: len(world.bound()) == 2, "two members are bound")
        world.api.wait_until(lambda: bool(world.reason("gang-1")), "the third says why")
        world.create(world.pod("other"))
        world.api.wait_until(lambda: "other" in world.bound(), "another pod is not held up")
        world.berth.app.transport.bind_failures.clear()


def test_32_a_new_leader_completes_the_gang_that_it_finds(
    plane: ControlPlane, api: BlockingApi
) -> None:
    config = with_election(default_config("next"), leader_elect=False)
    with RunningBerth(plane.berth_kubeconfig(), config=config) as first:
        world = GangWorld(api, first, scheduler_name="next")
        refused = BindFailure(ApiError(403, "Forbidden", "denied"))
        api.wait_until(lambda: first.is_ready, "berth is ready")
        for name in ("gang-1", "gang-2"):
            first.app.transport.bind_failures[name] = [refused] * 1_000
        world.node(3)
        world.gang("gang", 3)
        api.wait_until(lambda: world.bound() == {"gang-0"}, "one member is bound")
    world.gang("rival", 2)
    with RunningBerth(plane.berth_kubeconfig(), config=config) as second:
        world.berth = second
        world.wait_bound(*members("gang", 3))
        world.wait_refused(*members("rival", 2))
    world.clear()


def test_34_a_replacement_is_placed_when_others_have_succeeded(world: GangWorld) -> None:
    world.node(3)
    world.gang("ending", 3)
    world.wait_bound(*members("ending", 3))
    world.end("ending-0")
    world.end("ending-1", phase="Failed")
    world.create(world.member("ending", "ending-3"))
    world.wait_bound(*members("ending", 4))


def test_35_the_last_wave_of_an_indexed_job(world: GangWorld) -> None:
    world.node(4)
    world.gang("job", 4)
    world.wait_bound(*members("job", 4))
    for wave in (range(4, 8), range(8, 10)):
        world.end(*(f"job-{i}" for i in range(wave.start - 4, wave.start)))
        world.create(*(world.member("job", f"job-{i}") for i in wave))
        world.wait_bound(*members("job", wave.stop))


@both_apis
def test_44_a_pod_that_joins_later_is_placed_alone(world: GangWorld) -> None:
    world.node(4)
    world.gang("running", 3)
    world.wait_bound(*members("running", 3))
    world.create(world.member("running", "running-3"))
    world.wait_bound(*members("running", 4))


class TestRow45:
    """A pod names its group twice, or a group that is not there."""

    def test_45_the_field_counts_before_the_label(self, world: GangWorld) -> None:
        world.node(2)
        world.group("field", 1)
        both = pod_groups.by_label(world.member("field", "both"), "absent")
        world.create(both)
        world.wait_bound("both")

    @both_apis
    def test_45_a_group_of_another_namespace_is_none(self, world: GangWorld) -> None:
        world.node(2)
        elsewhere = GangWorld(world.api, world.berth, by_label=world.by_label)
        elsewhere.group("there", 1)
        world.create(world.member("there", "lost"))
        world.wait_refused("lost")
        assert "there" in world.reason("lost")
        assert world.nothing_is_held(["lost"])
