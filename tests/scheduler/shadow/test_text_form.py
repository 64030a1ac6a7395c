from __future__ import annotations

import pytest

from scheduler.shadow.report import (
    Cost,
    FeasibilitySample,
    Passed,
    PluginInfluence,
    ShadowReport,
    WinnerSample,
)
from scheduler.shadow.text_form import as_text

WHO = {
    "scheduler_name": "berth",
    "live": "file@1",
    "shadow": "schedulingprofile/packing@3",
    "wanted": 1000,
}

FULL = ShadowReport(
    **WHO,
    compared=400,
    passed=Passed(budget=90, volumes=7),
    both_placed=342,
    changed_winners=300,
    only_live=3,
    only_shadow=1,
    changed_feasibility=40,
    nodes_lost=44,
    nodes_gained=2,
    winner_samples=(
        WinnerSample(pod="a/web-1", live="n1", shadow="n2", equals=3, lead=12, decisive="Fit"),
        WinnerSample(pod="a/web-2", live="n1", shadow="n3"),
    ),
    feasibility_samples=(
        FeasibilitySample(
            pod="a/web-2", node="n1", allowed_by="live", plugin="Rack", reason="rack is full"
        ),
    ),
    live_influence=(
        PluginInfluence(plugin="Fit", decisions=342, changes=0.727, spread=14.3),
        PluginInfluence(plugin="Image", decisions=12, changes=0.0, spread=0.5),
    ),
    shadow_influence=(PluginInfluence(plugin="Fit", decisions=342, changes=1.0, spread=40.0),),
    live_cost=Cost(mean_s=0.0008, p50_s=0.0005, p99_s=0.0045),
    shadow_cost=Cost(mean_s=0.0007, p50_s=0.0004, p99_s=0.0044),
)

FULL_TEXT = """\
schedulingprofile/packing@3 beside file@1, pods of berth:
  400 decisions of 1000 compared; passed over: 90 (no time), 7 (volumes came with the node)

Winners      300 (87.7 %) of 342 decisions in which both found a node would change
Feasibility  other nodes in 40 decisions (10.0 %): 44 lost, 2 gained; \
3 pods would find no node any more; 1 pod would find one
Cost         live 0.80 ms (p50 0.50, p99 4.50), shadow 0.70 ms (p50 0.40, p99 4.40)

Without it another              live            shadow
node would win         share  points     share  points
Fit                   72.7 %    14.3   100.0 %    40.0
Image                  0.0 %     0.5

Changed winners, for example:
  a/web-1: n1 -> n2 or 2 equals, by 12 points, most by Fit
  a/web-2: n1 -> n3; the shadow does not allow n1

Changed feasibility, for example:
  a/web-2: n1 refused by shadow alone: rack is full [Rack]
"""


def test_a_full_report_as_a_person_reads_it():
    assert as_text(FULL) == FULL_TEXT


@pytest.mark.parametrize(
    ("report", "line"),
    [
        pytest.param(
            ShadowReport(**{**WHO, "live": ""}),
            "schedulingprofile/packing@3 beside nobody yet, pods of berth:",
            id="nothing seen yet",
        ),
        pytest.param(
            ShadowReport(**WHO, compared=4, failures=4, failure="it fell over"),
            "  in 4 of them (100.0 %) the shadow failed: it fell over",
            id="only failures",
        ),
        pytest.param(
            ShadowReport(**WHO, compared=4, both_placed=4),
            "Feasibility  the same nodes in all decisions",
            id="the same nodes",
        ),
        pytest.param(
            ShadowReport(**WHO, compared=4),
            "Winners      no decision in which both found a node",
            id="no winners",
        ),
    ],
)
def test_what_is_said_where_there_is_little_to_say(report, line):
    assert line in as_text(report).splitlines()


def test_a_shadow_that_only_failed_has_no_figures():
    text = as_text(ShadowReport(**WHO, compared=4, failures=4, failure="it fell over"))
    assert "Winners" not in text
