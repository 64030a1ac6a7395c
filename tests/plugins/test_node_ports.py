from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.columns import Columns, NodesView
from cache.host_ports import ALL_ADDRESSES, HostPort, UsedHostPorts
from plugins.framework.cluster_events import Action, ClusterEvent, Hint, Resource
from plugins.framework.cycle_state import CycleState
from plugins.framework.status import SKIP, SUCCESS, unschedulable
from plugins.node_ports import NodePorts
from tests.builders import PodBuilder, array_bytes, node, pod
from tests.plugins.conformance import RecordingHandle, ask

REJECTED = unschedulable("node(s) didn't have free ports for the requested pod ports")


@pytest.fixture
def plugin() -> NodePorts:
    return NodePorts(None, RecordingHandle())


@pytest.mark.parametrize(
    ("asked", "there", "passes"),
    [
        pytest.param(pod().host_port(80), [], True, id="nothing there"),
        pytest.param(pod().host_port(80), [pod("x").host_port(81)], True, id="other port"),
        pytest.param(pod().host_port(80), [pod("x").host_port(80)], False, id="same port"),
        pytest.param(
            pod().host_port(80), [pod("x").host_port(80, protocol="UDP")], True, id="other protocol"
        ),
        pytest.param(
            pod().host_port(80, ip="10.0.0.1"),
            [pod("x").host_port(80, ip="10.0.0.2")],
            True,
            id="other address",
        ),
        pytest.param(
            pod().host_port(80, ip="10.0.0.1"),
            [pod("x").host_port(80, ip="10.0.0.1")],
            False,
            id="same address",
        ),
        pytest.param(
            pod().host_port(80, ip="10.0.0.1"),
            [pod("x").host_port(80)],
            False,
            id="all addresses are taken",
        ),
        pytest.param(
            pod().host_port(80),
            [pod("x").host_port(80, ip="10.0.0.2")],
            False,
            id="all addresses are wanted",
        ),
        pytest.param(
            pod().host_port(80).host_port(81), [pod("x").host_port(81)], False, id="one of two"
        ),
        pytest.param(
            pod().host_port(127), [pod("x").host_port(127)], False, id="highest bit of a block"
        ),
        pytest.param(
            pod().host_port(80), [pod("x").host_port(80 + 64)], True, id="same bit, other block"
        ),
        pytest.param(
            pod().host_port(65535), [pod("x").host_port(65535)], False, id="last port of all"
        ),
    ],
)
def test_a_port_is_taken_once(
    plugin: NodePorts, asked: PodBuilder, there: list[PodBuilder], passes: bool
) -> None:
    answers = ask(plugin, asked.info(), NodesView.of([node().info(*there)]))
    assert answers.statuses == {"node": SUCCESS if passes else REJECTED}


def test_a_pod_without_host_ports_is_skipped(plugin: NodePorts) -> None:
    answers = ask(plugin, pod().info(), NodesView.of([node().info()]))
    assert answers.pre_filter == SKIP


def _host_ports() -> st.SearchStrategy[HostPort]:
    return st.builds(
        HostPort,
        ip=st.sampled_from([ALL_ADDRESSES, "10.0.0.1", "10.0.0.2", "::1"]),
        protocol=st.sampled_from(["TCP", "UDP", "SCTP"]),
        port=st.one_of(st.sampled_from([1, 63, 64, 127, 128, 65535]), st.integers(1, 65535)),
    )


@given(used=st.lists(_host_ports(), max_size=6), wanted=st.lists(_host_ports(), max_size=6))
@settings(deadline=None)
def test_blocks_of_ports_tell_what_the_ports_tell(
    used: list[HostPort], wanted: list[HostPort]
) -> None:
    on_node, asked = pod("there"), pod()
    for port in used:
        on_node = on_node.host_port(port.port, ip=port.ip, protocol=port.protocol)
    for port in wanted:
        asked = asked.host_port(port.port, ip=port.ip, protocol=port.protocol)
    counted = UsedHostPorts()
    for port in used:
        counted.add(port)
    plugin = NodePorts(None, RecordingHandle())
    view = NodesView.of([node().info(on_node)])
    verdicts = plugin.filter(CycleState(), asked.info(), view)
    assert verdicts.status_of(0).is_success != any(map(counted.conflicts, wanted))


def test_a_verdict_follows_the_ports_of_the_node(plugin: NodePorts) -> None:
    columns, asked = Columns(), pod().host_port(80).info()
    verdicts = []
    for there in ([], [pod("x").host_port(80)], []):
        columns.put(node().info(*there))
        verdicts.append(plugin.filter(CycleState(), asked, NodesView(columns)).status_of(0))
    assert verdicts == [SUCCESS, REJECTED, SUCCESS]


def test_events(plugin: NodePorts) -> None:
    assert [registered.event for registered in plugin.events_to_register()] == [
        ClusterEvent(Resource.POD, Action.DELETE),
        ClusterEvent(Resource.NODE, Action.ADD),
    ]


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(pod().host_port(80).on("n"), Hint.QUEUE, id="the same port"),
        pytest.param(pod().host_port(80).nominated("n"), Hint.QUEUE, id="it was nominated"),
        pytest.param(pod().host_port(80), Hint.SKIP, id="it was nowhere"),
        pytest.param(pod().host_port(81).on("n"), Hint.SKIP, id="another port"),
        pytest.param(pod().on("n"), Hint.SKIP, id="no port"),
        pytest.param(pod().host_port(80, protocol="UDP").on("n"), Hint.SKIP, id="other protocol"),
        pytest.param(pod().host_port(80, ip="10.0.0.1").on("n"), Hint.QUEUE, id="of one address"),
    ],
)
def test_a_pod_that_goes_wakes_who_wants_its_port(
    plugin: NodePorts, gone: PodBuilder, expected: Hint
) -> None:
    after_pod = plugin.events_to_register()[0].hint
    assert after_pod is not None
    assert after_pod(pod("asked").host_port(80).build(), gone.build(), None) is expected


@pytest.mark.parametrize("taken", [pytest.param(5, id="few in use"), pytest.param(999, id="many")])
def test_ports_in_very_many_blocks_take_no_columns(plugin: NodePorts, taken: int) -> None:
    asked, there = pod(), pod("there")
    for index in range(100):
        asked = asked.host_port(64 * index + 1)
    for index in range(taken):
        there = there.host_port(64 * (index % 200) + 2 + index // 200)
    view = NodesView.of(
        [node("free").info(there), node("taken").info(there, pod("x").host_port(64 * 99 + 1))]
    )
    before = array_bytes(view.columns)
    answers = ask(plugin, asked.info(), view)
    assert answers.statuses == {"free": SUCCESS, "taken": REJECTED}
    assert array_bytes(view.columns) == before


def test_a_node_with_thousands_of_ports_is_asked_about_one_block(plugin: NodePorts) -> None:
    there = pod("there")
    for port in range(1, 700):
        there = there.host_port(port, ip="10.0.0.1")
    view = NodesView.of([node("n").info(there)])
    for asked, status in (
        (pod().host_port(699), REJECTED),
        (pod().host_port(700), SUCCESS),
        (pod().host_port(5, ip="10.0.0.2"), SUCCESS),
    ):
        assert ask(plugin, asked.info(), view).statuses == {"n": status}


def test_one_pod_with_ports_fits_on_each_node(plugin: NodePorts) -> None:
    view = NodesView.of([node("a").info(), node("b").info()])
    assert plugin.count(CycleState(), pod().host_port(80).info(), view).tolist() == [1, 1]
