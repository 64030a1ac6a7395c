"""Where each scenario of pod groups is tested.

The number is that of the scenario; a test in brackets is a row of a test. Campaigns are targets of
their own in the Makefile.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.bench.workloads import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

TESTS: Final = Path(__file__).parents[1]
LIVE: Final = "scenarios/test_pod_groups"
CYCLE: Final = "scheduler/cycle/test_group_cycles::test_scenario"
PLANNER: Final = "scheduler/pod_groups/test_planner"
TOPOLOGY: Final = "scheduler/pod_groups/test_topology"
UNDO: Final = "scheduler/pod_groups/test_undo"
GROUPS: Final = "scheduler/queueing/test_groups"
PREEMPTION: Final = "scheduler/pod_groups/test_preemption"
VICTIMS: Final = "plugins/default_preemption/test_gangs"
OBJECTS: Final = "cache/test_pod_group_objects"
MEMBERS: Final = "cache/test_pod_groups"
MAKE: Final = "make gangs KIND="
BENCH: Final = "make bench WORKLOADS="
DECISIONS: Final = "python -m tests.bench.gang_plans"

# fmt: off
SCENARIOS: Final[Mapping[int, tuple[str, ...]]] = {
    # two gangs, room for one
    1: (f"{LIVE}::test_1_of_two_gangs_one_is_whole_and_the_other_follows_when_it_ends",
        f"{CYCLE}[1, 2: two gangs, room for one]"),
    # members created in turn
    2: (f"{LIVE}::test_2_members_of_two_gangs_in_turn",
        f"{CYCLE}[1, 2: two gangs, room for one]"),
    # 100 gangs, room for half
    3: (f"{MAKE}competing",
        "scheduler/cycle/test_group_histories::test_at_rest_each_gang_is_whole_or_waits"),
    # one member too many
    4: (f"{PLANNER}::test_row_4_the_group_says_how_many_fit_and_what_the_next_one_lacks",
        f"{CYCLE}[4: one member too many, and a single pod behind]",
        "scenarios/test_pod_group_reports::test_a_gang_that_does_not_fit_says_so_everywhere"),
    # more members than the minimum
    5: (f"{PLANNER}::test_row_5_members_beyond_the_minimum_are_placed_as_far_as_they_fit",
        f"{CYCLE}[5: more members than the minimum]"),
    # pods before the object
    6: (f"{LIVE}::test_6_pods_wait_for_the_object_of_their_group",
        f"{CYCLE}[6: members before the object]"),
    # the last member
    7: (f"{LIVE}::test_7_the_last_member_completes_the_minimum",
        f"{CYCLE}[7: one attempt after the last member]"),
    # a member deleted while held
    8: (f"{LIVE}::test_8_a_member_is_deleted_while_its_gang_is_held",
        f"{CYCLE}[8: a member is deleted while it waits]"),
    # a member deleted between decision and bind
    9: (f"{CYCLE}[9: a member that is deleted while Permit holds it takes all of them back]",),
    # made again with a smaller minimum
    10: (f"{LIVE}::test_10_a_group_that_is_made_again_has_its_new_minimum",
         f"{CYCLE}[10: the object is made again with a smaller minimum]"),
    # minimum lowered and raised in place
    11: (f"{LIVE}::test_11_a_lower_minimum_wakes_the_gang",
         f"{LIVE}::test_11_a_higher_minimum_holds_those_that_wait",
         f"{GROUPS}::test_a_lowered_minimum_counts_at_once_a_raised_one_too"),
    # minResources beyond the cluster
    12: (f"{PLANNER}::test_row_12_min_resources_beyond_the_cluster_are_refused_with_both_amounts",),
    # never fits
    13: (f"{LIVE}::test_13_a_gang_that_never_fits_writes_no_event_for_each_member",
         f"{CYCLE}[13: a gang that never fits pauses for longer and longer]",
         f"{GROUPS}::test_the_longest_pause_grows_with_the_group",
         f"{MAKE}never"),
    # a stream of small pods
    14: (f"{GROUPS}::test_a_group_that_does_not_fit_holds_nobody_up",),
    # a higher priority
    15: (f"{LIVE}::test_15_a_gang_of_a_higher_priority_goes_first",
         f"{CYCLE}[15: the gang of a higher priority first]"),
    # affinity, anti-affinity and spread among members
    16: (f"{PLANNER}::test_row_16_members_that_want_each_other_in_one_zone",
         f"{PLANNER}::test_row_16_only_one_zone_has_room_and_it_is_not_the_most_attractive"),
    17: (f"{PLANNER}::test_row_17_members_that_keep_apart",
         f"{PLANNER}::test_row_17_members_that_spread_over_zones"),
    18: (f"{PLANNER}::test_row_18_affinity_of_the_first_that_only_a_later_one_satisfies",),
    # one large member and small ones
    19: (f"{PLANNER}::test_row_19_one_large_member_and_older_small_ones",),
    # priorities of members, preemptionPolicy Never
    20: (f"{LIVE}::test_20_one_member_that_never_preempts_binds_the_gang",
         f"{GROUPS}::test_the_lowest_priority_of_the_members_counts",
         f"{GROUPS}::test_the_priority_of_the_object_counts_more"),
    # schedulerNames
    21: (f"{LIVE}::test_21_members_with_different_scheduler_names",
         f"{GROUPS}::test_members_of_two_schedulers_are_kept"),
    # a gated member
    22: (f"{LIVE}::test_22_a_member_with_a_gate",
         f"{CYCLE}[22: a gated member]"),
    # what a failed trial reserved
    23: (f"{PLANNER}::test_row_23_a_refusal_leaves_nothing_behind",
         f"{UNDO}::test_row_23_volumes_of_a_refused_gang_are_free_again",
         f"{UNDO}::test_row_23_host_ports_of_a_refused_gang_are_free_again"),
    # a gang preempts
    24: (f"{PREEMPTION}::test_victims_are_chosen_for_all_members_and_each_member_has_a_node",
         f"{UNDO}::test_members_get_the_rooms_that_they_are_nominated_for",
         f"{UNDO}::test_the_room_of_a_stranger_with_a_lower_priority_is_not"),
    25: (f"{PREEMPTION}::test_nobody_goes_where_one_member_cannot_fit_even_then",),
    # victims are gangs
    26: (f"{LIVE}::test_26_27_the_surplus_of_a_gang_goes[for a gang]",
         f"{LIVE}::test_26_27_a_gang_without_surplus_goes_whole[for a gang]",
         f"{LIVE}::test_26_27_somebody_else_goes_instead_of_a_gang[for a gang]",
         f"{LIVE}::test_26_a_member_that_is_being_bound_goes_with_its_gang",
         f"{LIVE}::test_26_a_new_member_of_a_gang_that_is_being_evicted_stays_unbound",
         f"{PREEMPTION}::test_a_gang_loses_its_surplus_or_everybody",
         f"{PREEMPTION}::test_pods_go_before_a_gang_of_their_priority"),
    27: (f"{LIVE}::test_26_27_the_surplus_of_a_gang_goes[for a single pod]",
         f"{LIVE}::test_26_27_a_gang_without_surplus_goes_whole[for a single pod]",
         f"{VICTIMS}::test_a_surplus_member_goes_alone"),
    28: (f"{VICTIMS}::test_a_budget_that_would_be_violated_protects_a_gang_with_a_member_elsewhere",
         f"{VICTIMS}::test_violations_by_members_elsewhere_are_shown"),
    # a bind fails
    29: (f"{LIVE}::test_29_it_is_tried_again_and_the_gang_is_whole",
         f"{LIVE}::test_29_refused_for_good_it_waits_alone_and_gives_its_room_back",
         f"{CYCLE}[29: the binding of one member is refused for good]"),
    # a node dies
    30: (f"{CYCLE}[30: a gang that lost a member is completed before others]",
         f"{GROUPS}::test_a_gang_below_its_minimum_is_completed_first",
         f"{MAKE}faults"),
    31: (f"{CYCLE}[31: the node dies while Permit holds a member]",),
    # a new leader
    32: (f"{LIVE}::test_32_a_new_leader_completes_the_gang_that_it_finds",
         f"{MAKE}faults"),
    33: (f"{MAKE}faults",),
    # members finish
    34: (f"{LIVE}::test_34_a_replacement_is_placed_when_others_have_succeeded",
         f"{CYCLE}[34: members finish one by one, one of the rest is replaced]"),
    35: (f"{LIVE}::test_35_the_last_wave_of_an_indexed_job",),
    # topology
    36: (f"{TOPOLOGY}::test_row_36_the_rack_that_has_room_is_taken",
         f"{TOPOLOGY}::test_row_36_no_rack_has_room_though_all_together_do",
         f"{CYCLE}[36: bound members fix a full rack]"),
    37: (f"{TOPOLOGY}::test_row_37_nodes_without_the_label_are_left_out",
         f"{TOPOLOGY}::test_row_37_a_changed_label_is_seen_at_once"),
    38: (f"{TOPOLOGY}::test_row_38_preferred_the_tightest_that_fits",
         f"{TOPOLOGY}::test_row_38_preferred_but_no_rack_has_room",
         f"{TOPOLOGY}::test_row_38_wide_required_and_narrow_preferred"),
    39: (f"{PREEMPTION}::test_with_a_required_topology_the_cheapest_domain_is_taken",),
    # 1 000 members on 5 000 nodes, with and without racks
    40: (DECISIONS,),
    41: (DECISIONS,),
    # 1 000 gangs of three
    42: (f"{BENCH}Gangs1000",),
    # two schedulers
    43: (f"{CYCLE}[32, 43: another scheduler has bound a part]",),
    # a pod joins later
    44: (f"{LIVE}::test_44_a_pod_that_joins_later_is_placed_alone",
         f"{TOPOLOGY}::test_where_one_more_member_may_go"),
    # a group named twice, or none
    45: (f"{LIVE}::test_45_the_field_counts_before_the_label",
         f"{LIVE}::test_45_a_group_of_another_namespace_is_none",
         f"{CYCLE}[45: a label that names no group]"),
    # hostile objects
    46: (f"{OBJECTS}::test_the_rules_of_an_x_pod_group[minMember -1]",
         f"{OBJECTS}::test_the_rules_of_an_x_pod_group[largest minMember]",
         f"{MEMBERS}::test_a_group_without_pods_takes_less_than_two_kilobytes",
         f"{MEMBERS}::test_a_minimum_beyond_all_pods_takes_no_memory"),
    # random clusters against an exhaustive search
    47: ("scheduler/pod_groups/test_exhaustive"
         "::test_row_47_a_gang_is_placed_where_an_exhaustive_search_places_it",),
    # any history, then rest
    48: ("scheduler/cycle/test_group_histories::test_at_rest_each_gang_is_whole_or_waits",
         f"{MAKE}faults"),
}
# fmt: on


def test_every_scenario_is_tested() -> None:
    assert list(SCENARIOS) == list(range(1, 49))


@pytest.mark.parametrize(
    "named", sorted({each for tests in SCENARIOS.values() for each in tests}), ids=lambda each: each
)
def test_the_tests_of_scenarios_exist(named: str) -> None:
    if named.startswith(MAKE):
        assert f'"{named.removeprefix(MAKE)}"' in (TESTS / "gangs" / "__main__.py").read_text()
        return
    if named.startswith(BENCH):
        assert named.removeprefix(BENCH) in BY_NAME
        return
    if named == DECISIONS:
        assert "__main__" in (TESTS / "bench" / "gang_plans.py").read_text()
        return
    module, _, test = named.partition("::")
    name, _, row = test.partition("[")
    text = (TESTS / f"{module}.py").read_text()
    assert f"def {name}(" in text
    assert not row or f'"{row.removesuffix("]")}"' in text
