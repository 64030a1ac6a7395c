"""Where each scenario of dynamic resource allocation is tested, and the scenarios of their own.

The number is that of the scenario; a test in brackets is a row of a test.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from scheduler.client.errors import ApiError
from scheduler.kinds import RESOURCE_CLAIMS
from tests.builders import pod
from tests.device_builders import allocated, resource_claim
from tests.plugins.dynamic_resources.device_world import DeviceWorld

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE: Final = Path(__file__).parent
TESTS: Final = HERE.parents[1]

# fmt: off
SCENARIOS: Final[Mapping[int, tuple[str, ...]]] = {
    # a claim that does not exist; it is created
    1: ("test_filtering::test_a_pod_waits_at_the_gate_until_its_claim_exists",
        "test_hints::test_a_changed_claim[its claim is created]"),
    # a template without a claim; the claim is made
    2: ("test_claims_of_pod::test_a_claim_that_cannot_be_used_is_the_reason[no status entry]",
        "test_hints::test_a_changed_pod[its claim is made]",
        "scenarios/test_devices::test_ten_pods_of_a_template_get_a_device_each_and_give_it_back"),
    # the claim of a former pod of the same name
    3: ("test_claims_of_pod::test_a_claim_that_cannot_be_used_is_the_reason[of a former pod]",),
    # an unknown class
    4: ("test_filtering::test_requests_are_checked_before_the_nodes[unknown class]",
        "test_hints::test_the_events_are_kube_schedulers_and_the_deleted_claim"),
    # one node of three has the device
    5: ("test_filtering::test_the_node_with_the_device_is_the_only_one",),
    # two pods and one device
    6: ("scenarios/test_devices::test_a_pod_waits_for_the_device_of_another",),
    # two devices, of one slice or two
    7: ("test_allocator::test_which_devices_are_found"
        "[two devices from two slices, in the order of the slices' names]",),
    # the order of pools and slices
    8: ("test_allocator::test_which_devices_are_found[pools in the order of their names]",
        "test_allocator::test_which_devices_are_found[pools in the order of their drivers first]"),
    # a pool with binding conditions
    9: ("test_allocator::test_which_devices_are_found[a pool with binding conditions last]",),
    # backtracking
    10: ("test_allocator::test_which_devices_are_found[backtracks over requests]",
         "test_allocator::test_which_devices_are_found[backtracks over claims]",
         "test_search_properties::test_the_first_of_all_solutions_is_found"),
    # matchAttribute
    11: ("test_constraints::test_equal_values[equal]",
         "test_constraints::test_equal_values[no attribute]",
         "test_constraints::test_equal_values[a version and a text]"),
    # attributes with and without a domain
    12: ("test_constraints::test_equal_values[with and without domain]",),
    # distinctAttribute
    13: ("test_constraints::test_distinct_values[different]",
         "test_constraints::test_distinct_values"
         "[the third device of a request may equal the first]",
         "test_constraints::test_distinct_values"
         "[the value is forgotten when a device is given back]"),
    # prioritized lists and their scores
    14: ("test_requests_for_all_devices::test_prioritized_lists[the second]",
         "test_filtering::test_the_second_alternative_scores_one_less"),
    15: ("test_filtering::test_earlier_alternatives_score_more",),
    16: ("test_requests_for_all_devices::test_prioritized_lists[500 or one]",),
    # all devices
    17: ("test_requests_for_all_devices::test_all_devices_and_admin_access[of two pools]",
         "test_requests_for_all_devices::test_all_devices_and_admin_access[without slices]",
         "test_requests_for_all_devices::test_all_devices_and_admin_access[one in use]",
         "test_requests_for_all_devices::test_all_devices_and_admin_access"
         "[one in use, for admin]"),
    18: ("test_pools::test_pools[an incomplete pool of another driver]",
         "test_constraints::test_a_constraint_in_the_way_of_all_devices_is_an_error[match]"),
    # incomplete and invalid pools
    19: ("test_pools::test_pools[incomplete]",),
    20: ("test_pools::test_pools[a device name twice]",
         "test_pools::test_pools[an invalid pool and a good one]"),
    21: ("test_pools::test_pools[newer generation is incomplete]",
         "test_pools::test_pools[newer generation for another node only]",
         "test_pools::test_pools[newer generation for another node, not noticed]"),
    # admin access
    22: ("test_requests_for_all_devices::test_all_devices_and_admin_access"
         "[two for admin, one in use]",
         "test_requests_for_all_devices::test_all_devices_and_admin_access"
         "[two requests of a claim do not]",
         "test_requests_for_all_devices::test_all_devices_and_admin_access"
         "[an ordinary claim after admin]"),
    # taints
    23: ("test_allocation_results::test_tolerations[by another value]",
         "test_allocation_results::test_taints[NoSchedule]",
         "test_allocation_results::test_taints[None]"),
    24: ("test_filtering::test_taints_that_came_after_the_allocation_do_not_matter",),
    # counters
    25: ("test_counters::test_counters[halves exclude the whole]",
         "test_counters::test_counters[the whole in use excludes the halves]"),
    26: ("test_counters::test_a_device_on_another_node_consumes_counters",),
    27: ("test_counters::test_two_drivers_with_pools_of_one_name_have_counters_of_their_own",),
    # shared devices
    28: ("test_shared_devices::test_shares[half and half and a little]",),
    29: ("test_shared_devices::test_shares[the default]",
         "test_shared_devices::test_shares[up to the next step]",
         "test_shared_devices::test_shares[over the maximum]",
         "test_shared_devices::test_shares[up to the next value]"),
    30: ("test_shared_devices::test_shares[nothing asked for is everything]",
         "test_shared_devices::test_shares[an unknown capacity]"),
    # nodes of devices
    31: ("test_pools::test_pools[devices choose their nodes]",
         "test_pools::test_a_selector_of_a_foreign_device_may_fail"),
    32: ("test_allocation_results::test_nodes[some nodes and local]",
         "test_allocation_results::test_nodes[all nodes]"),
    # errors of expressions
    33: ("test_allocator::test_errors[an expression that fails]",
         "test_allocator::test_errors[an expression that is no bool]"),
    34: ("test_allocator::test_an_expression_is_not_evaluated_for_a_device_in_use",
         "scheduler/runtime/test_survivors::"
         "test_a_filter_of_survivors_is_not_asked_about_rejected_nodes"),
    35: ("test_filtering::test_an_error_on_one_node_ends_the_cycle",),
    # claims that pods share
    36: ("test_binding::test_five_pods_share_a_claim",),
    37: ("test_device_scenarios::test_the_257th_pod_of_a_claim_is_refused_by_the_api_server",
         "scheduler/api_writes/test_claim_reservations::"
         "test_as_many_are_written_as_the_limit_allows"),
    # writes that meet others
    38: ("test_binding::test_a_conflict_is_no_reason_to_fail",
         "test_binding::test_nothing_is_left_in_flight_when_the_claim_cannot_be_written"),
    39: ("test_binding::test_when_the_bind_fails_the_reservation_goes_and_the_allocation_stays",),
    40: ("test_device_scenarios::test_after_a_restart_a_pod_goes_where_its_claim_is_allocated",),
    # an allocated claim whose node is full
    41: ("test_filtering::test_the_nodes_of_an_allocated_claim_are_the_only_ones",
         "test_filtering::test_after_its_claim_was_given_back_the_pod_finds_another_node"),
    # binding conditions
    42: ("test_binding::test_binding_waits_for_the_driver",
         "test_binding::test_after_a_failure_the_claim_is_given_back",
         "test_binding::test_a_binding_that_takes_too_long_ends"),
    # extended resources
    43: ("test_binding::test_the_special_claim_is_created_allocated_and_shown",
         "test_filtering::test_a_class_provides_an_extended_resource_where_no_device_plugin_does"),
    44: ("test_filtering::test_the_name_of_a_class_is_a_resource",
         "cache/test_device_classes::test_of_several_classes_one_provides_the_resource"),
    45: ("test_extended_resources::test_requests_and_mappings"
         "[an init container reuses what comes later]",),
    # many pods at once
    46: ("test_device_scenarios::test_pods_that_differ_in_nothing_never_get_one_device",),
    # properties
    47: ("test_filtering::test_the_scalar_form_says_the_same",
         "cache/test_allocated_devices::test_the_incremental_state_is_the_rebuilt_one",
         "test_pools::test_an_index_that_follows_changes_equals_a_new_one",
         "test_search_properties::test_a_search_changes_nothing"),
}
# fmt: on


def test_every_scenario_is_tested() -> None:
    assert list(SCENARIOS) == list(range(1, 48))


@pytest.mark.parametrize(
    "named", [each for tests in SCENARIOS.values() for each in tests], ids=lambda each: each
)
def test_the_tests_of_scenarios_exist(named: str) -> None:
    module, _, test = named.partition("::")
    name, _, row = test.partition("[")
    folder = TESTS if "/" in module else HERE
    text = (folder / f"{module}.py").read_text()
    assert f"def {name}(" in text
    assert not row or f'"{row.removesuffix("]")}' in text


WEB = pod("web").resource_claim("r", "c")
CLAIM = resource_claim("c").request("r", "gpu")


def test_the_257th_pod_of_a_claim_is_refused_by_the_api_server() -> None:
    world = DeviceWorld("n1")
    others = [pod(f"p{index}").build() for index in range(256)]
    world.claim(CLAIM.allocated(allocated("gpu-0"), nodes="n1").reserved_for(*others))
    world.api.faults.append(ApiError(422, "Invalid", "must have at most 256 items"))
    cycle = world.cycle(WEB)
    assert cycle.feasible() == ["n1"]
    assert cycle.reserve().is_success
    assert cycle.pre_bind() == ("add reservation to claim default/c: must have at most 256 items")
    cycle.unreserve()
    assert len(world.shown("c").status.reserved_for) == 256
    assert world.known.claims.in_flight(world.shown("c").metadata.uid) is None


def test_after_a_restart_a_pod_goes_where_its_claim_is_allocated() -> None:
    world = DeviceWorld("n1", "n2").local("n2", "gpu-0")
    world.claim(CLAIM)
    assert world.place(WEB) == "n2"
    written = world.api.raw(RESOURCE_CLAIMS, "default", "c")
    again = DeviceWorld("n1", "n2").local("n1", "gpu-0", "gpu-1").local("n2", "gpu-0", "gpu-1")
    again.api.put(
        RESOURCE_CLAIMS, "default", "c", msgspec.json.decode(msgspec.json.encode(written))
    )
    assert again.place(WEB) == "n2"
    assert again.api.requests == []
    assert [each.device for each in again.known.allocated().devices] == ["gpu-0"]


def test_pods_that_differ_in_nothing_never_get_one_device() -> None:
    world = DeviceWorld("n1").local("n1", *(f"gpu-{index}" for index in range(100)))
    cycles = []
    for index in range(101):
        world.claim(resource_claim(f"c{index}").request("r", "gpu"))
        cycles.append(world.cycle(pod(f"p{index}").resource_claim("r", f"c{index}")))
        if index < 100:
            assert cycles[-1].reserve().is_success
    assert cycles.pop().refusal() == "cannot allocate all claims"
    assert {cycle.pre_bind() for cycle in cycles} == {""}
    taken = [world.shown(f"c{index}").status.allocation for index in range(100)]
    assert len({each.devices.results[0].device for each in taken if each is not None}) == 100


def test_a_claim_that_a_pod_names_twice_is_allocated_once() -> None:
    world = DeviceWorld("n1").local("n1", "gpu-0", "gpu-1")
    world.claim(CLAIM)
    twice = WEB.resource_claim("q", "c")
    cycle = world.cycle(twice)
    assert cycle.reserve().is_success
    assert cycle.pre_bind() == "claim default/c got allocated elsewhere in the meantime"
    cycle.unreserve()
    # kube-scheduler would reserve it twice for the pod, which the API server refuses for ever.
    assert world.place(twice) == "n1"
    assert [each.name for each in world.shown("c").status.reserved_for] == ["web"]
    assert [each.device for each in world.known.allocated().devices] == ["gpu-0"]
