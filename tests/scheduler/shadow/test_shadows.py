from __future__ import annotations

from scheduler.profiles import ShadowOptions
from scheduler.shadow import Shadows
from tests.scheduler.shadow.policies import Points, decide, nodes, policy

WHOLE_TIME = 1.0


def observe(shadows: Shadows, live, *, times: int = 1) -> None:
    snapshot = nodes("a", "b")
    for _ in range(times):
        shadows.observe(snapshot, live, decide(snapshot, live))


def compared(shadows: Shadows, name: str) -> int:
    report = shadows.report(name)
    assert report is not None
    return report.compared


def installed(*names: str, decisions: int = 10, profile: str = "berth") -> Shadows:
    shadows = Shadows()
    for name in names:
        options = ShadowOptions(decisions, WHOLE_TIME)
        shadows.install(name, policy(Points(b=1), name=profile), options)
    return shadows


def test_where_nobody_looks_on_a_loop_asks_for_nothing_else():
    assert Shadows().active is None


def test_a_shadow_looks_on_once_it_is_installed():
    shadows = installed("gpu")
    observe(shadows, policy(Points(a=1)))
    report = shadows.report("gpu")
    assert report is not None
    assert (report.compared, report.changed_winners) == (1, 1)


def test_several_look_on_at_one_decision():
    shadows = installed("gpu", "packing")
    observe(shadows, policy())
    assert compared(shadows, "gpu") == compared(shadows, "packing") == 1


def test_a_shadow_minds_its_own_profile():
    shadows = installed("gpu", profile="other")
    observe(shadows, policy())
    assert compared(shadows, "gpu") == 0


def test_one_that_is_removed_is_forgotten():
    shadows = installed("gpu")
    shadows.remove("gpu")
    assert (shadows.active, shadows.report("gpu")) == (None, None)


def test_the_report_is_there_for_a_status_too():
    shadows = installed("gpu")
    observe(shadows, policy())
    plain = shadows.plain_report("gpu")
    assert plain is not None
    assert (plain["schedulerName"], plain["compared"]) == ("berth", 1)
    assert shadows.plain_report("packing") is None


def test_removing_nobody_is_no_mistake():
    shadows = installed("gpu")
    shadows.remove("packing")
    assert shadows.active is not None


def test_one_that_has_seen_enough_costs_nothing_more_and_keeps_its_report():
    shadows = installed("gpu", decisions=2)
    observe(shadows, policy(), times=3)
    assert shadows.active is None
    assert compared(shadows, "gpu") == 2


def test_installed_anew_it_begins_anew():
    shadows = installed("gpu", decisions=1)
    observe(shadows, policy())
    shadows.install("gpu", policy(), ShadowOptions(1, WHOLE_TIME))
    assert shadows.active is not None
    assert compared(shadows, "gpu") == 0
