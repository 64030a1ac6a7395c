from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from cache.known import Known
from scheduler.queueing.nominator import Nominator
from scheduler.runtime.known_pods import KnownPods
from scheduler.runtime.plugin_handle import PluginActions, PluginServices, ProfileHandle
from scheduler.runtime.waiting_pods import WaitingPods
from tests.builders import pod
from tests.fakes.watched import FakeWatched
from tests.plugins.conformance import IdlePreemption
from tests.scheduler.parts import NoBinding

POD = pod("web").uid("u-1").scheduler("berth")


def nominated(made, node_name):
    status = msgspec.structs.replace(made.status, nominated_node_name=node_name)
    return msgspec.structs.replace(made, status=status)


def handle_over(live, nominator):
    known = Known.nothing()
    queue = SimpleNamespace(activate=None, nominator=nominator)
    return PluginServices(
        known,
        FakeWatched((), () if live is None else (live,)),
        KnownPods(known.cache, queue, WaitingPods()),
        PluginActions(NoBinding(), None, IdlePreemption(), None, None),
    )


@pytest.mark.parametrize(
    ("shown", "known", "seen"),
    [
        pytest.param("", "n1", "n1", id="the API has not heard of it yet"),
        pytest.param("n1", "", "", id="it was given up here"),
        pytest.param("n1", "n2", "n2", id="it moved"),
        pytest.param("n1", "n1", "n1", id="both agree"),
    ],
)
def test_a_live_pod_shows_the_nomination_that_counts_here(shown, known, seen):
    live = nominated(POD.build(), shown)
    nominator = Nominator(lambda uid: True)
    nominator.add(POD.info(), known)
    found = handle_over(live, nominator).live_pod("default", "web")
    assert found is not None
    assert found.status.nominated_node_name == seen


def test_a_pod_that_is_bound_is_shown_as_it_is():
    live = nominated(POD.on("n1").build(), "n1")
    handle = handle_over(live, Nominator(lambda uid: True))
    assert handle.live_pod("default", "web") is live


def test_a_pod_that_is_not_there_is_none():
    assert handle_over(None, Nominator(lambda uid: True)).live_pod("default", "web") is None


def test_nominated_pods_are_told_by_node_as_of_the_beginning_of_the_attempt():
    nominator = Nominator(lambda uid: True)
    nominator.add(POD.info(), "n1")
    nominator.freeze()
    nominator.delete("u-1")
    handle = handle_over(None, nominator)
    assert [each.uid for each in handle.nominated_pods("n1")] == ["u-1"]
    assert list(handle.nominated_node_names()) == ["n1"]


class Filters:
    """Stands for the filters of a profile."""


def test_a_profile_s_handle_has_everybody_s_services_and_its_own():
    shared = handle_over(None, Nominator(lambda uid: True))
    own = ProfileHandle(shared)
    filters = Filters()
    own.lend_filters(filters)  # type: ignore[arg-type]
    assert own.what_if is filters
    assert own.workloads is shared.workloads
