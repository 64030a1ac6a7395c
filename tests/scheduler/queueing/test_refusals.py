from __future__ import annotations

from plugins.framework.cluster_events import NODE_ADD
from tests.builders import pod
from tests.scheduler.parts import Parts

ONE = pod("one").scheduler("berth")


def refused(*plugins: str) -> Parts:
    """Return parts whose queue has a pod that plugins have refused."""
    parts = Parts()
    parts.queue.add(ONE.info())
    queued = parts.queue.pop(0)
    queued.unschedulable_plugins = frozenset(plugins)
    parts.queue.add_unschedulable(queued)
    return parts


def counted(parts: Parts) -> dict[str, float]:
    return {plugin: count for (plugin, _), count in parts.queue.refusals().items()}


def test_a_pod_counts_for_each_who_refused_it():
    assert counted(refused("Fit", "NodeAffinity")) == {"Fit": 1, "NodeAffinity": 1}


def test_a_pod_counts_until_it_is_tried_again():
    parts = refused("Fit")
    parts.queue.activate([ONE.info().uid])
    assert counted(parts) == {"Fit": 1}
    parts.queue.pop(0)
    assert counted(parts) == {}


def test_a_pod_that_is_gone_counts_no_more():
    parts = refused("Fit")
    parts.queue.delete(ONE.info().uid)
    assert counted(parts) == {}


def test_a_gated_pod_counts_for_its_gate():
    parts = Parts()
    parts.queue.add(ONE.gate("example.com/later").info())
    assert counted(parts) == {"SchedulingGates": 1}


def test_a_failure_of_our_own_is_nobody_s():
    assert counted(refused()) == {}


def test_events_are_counted_while_a_pod_is_in_flight():
    parts = Parts()
    assert parts.queue.in_flight_events() == {"PodPopped": 0}
    parts.queue.add(ONE.info())
    parts.queue.pop(0)
    parts.queue.move_all(NODE_ADD, None, None)
    assert parts.queue.in_flight_events() == {"PodPopped": 1, "NodeAdd": 1}
