"""/livez fails when nothing is scheduled any more: a running berth on a real API server."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from plugins.node_name import NodeName
from scheduler.cycle import schedule_one
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.objects import make_node, make_pod
from tests.scenarios.running_berth import RunningBerth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.results import NodeVerdicts
    from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.controlplane


@pytest.fixture
def api(fresh_control_plane: ControlPlane) -> Iterator[BlockingApi]:
    with BlockingApi(fresh_control_plane.admin_kubeconfig) as api:
        yield api


@pytest.fixture
def berth(fresh_control_plane: ControlPlane, api: BlockingApi) -> Iterator[RunningBerth]:
    with RunningBerth(fresh_control_plane.berth_kubeconfig()) as berth:
        api.wait_until(lambda: berth.is_ready, "berth is ready")
        yield berth


def livez(berth: RunningBerth, timeout_s: float = 30) -> tuple[int, str]:
    """Return status and text of /livez.

    Raises
    ------
    TimeoutError
        There was no response in time.
    """
    url = f"http://{berth.app.server.address}/livez"
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_it_fails_while_one_cycle_takes_too_long(
    fresh_control_plane: ControlPlane, api: BlockingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_held, may_go_on = threading.Event(), threading.Event()
    judge = NodeName.filter

    def hold(plugin: NodeName, state: CycleState, info: PodInfo, nodes: Any) -> NodeVerdicts:
        if info.key == "default/held":  # and not the pod of the rehearsal at the start
            is_held.set()
            may_go_on.wait(60)
        return judge(plugin, state, info, nodes)

    # Before the profile is built, which takes the methods of its plugins.
    monkeypatch.setattr(NodeName, "filter", hold)
    monkeypatch.setattr(schedule_one, "MAX_CYCLE_S", 0.5)
    with RunningBerth(fresh_control_plane.berth_kubeconfig()) as berth:
        try:
            api.create_many([make_node("n1"), make_pod("held")])
            assert is_held.wait(60)
            api.wait_until(lambda: livez(berth)[0] == 500, "/livez fails")
            assert "one scheduling cycle has been under way for" in livez(berth)[1]
        finally:
            may_go_on.set()
        api.wait_until(lambda: livez(berth) == (200, "ok"), "/livez is well again")


def test_it_does_not_respond_while_the_event_loop_is_blocked(berth: RunningBerth) -> None:
    is_blocked, may_go_on = threading.Event(), threading.Event()

    def block() -> None:
        is_blocked.set()
        may_go_on.wait(60)

    assert livez(berth) == (200, "ok")
    berth.on_loop(block)
    assert is_blocked.wait(30)
    try:
        with pytest.raises(TimeoutError):
            livez(berth, timeout_s=1)
    finally:
        may_go_on.set()
    assert livez(berth) == (200, "ok")
