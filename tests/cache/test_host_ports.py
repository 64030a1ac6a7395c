from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache.host_ports import ALL_ADDRESSES, HostPort, UsedHostPorts, host_ports
from cache.objects import Container, ContainerPort, Pod, PodSpec

PORTS = st.builds(
    HostPort,
    st.sampled_from([ALL_ADDRESSES, "10.0.0.1", "10.0.0.2"]),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from([80, 443]),
)


def overlap(one: HostPort, other: HostPort) -> bool:
    """The rule itself, for one pair."""
    addresses = {one.ip, other.ip}
    same_address = len(addresses) == 1 or ALL_ADDRESSES in addresses
    return same_address and one.protocol == other.protocol and one.port == other.port


def used(*ports: HostPort) -> UsedHostPorts:
    found = UsedHostPorts()
    for port in ports:
        found.add(port)
    return found


def test_host_ports_are_those_of_sidecars_then_of_containers_with_defaults_filled_in() -> None:
    pod = Pod(
        spec=PodSpec(
            containers=(
                Container(
                    ports=(
                        ContainerPort(container_port=1, host_port=81),
                        ContainerPort(container_port=2),
                        ContainerPort(host_port=82, host_ip="10.0.0.1", protocol="UDP"),
                    )
                ),
            ),
            init_containers=(
                Container(ports=(ContainerPort(host_port=83),)),
                Container(
                    ports=(ContainerPort(host_port=84, protocol=""), ContainerPort()),
                    restart_policy="Always",
                ),
            ),
        )
    )
    assert host_ports(pod) == (
        HostPort("0.0.0.0", "TCP", 84),
        HostPort("0.0.0.0", "TCP", 81),
        HostPort("10.0.0.1", "UDP", 82),
    )


@pytest.mark.parametrize(
    ("taken", "wanted", "conflict"),
    [
        pytest.param("10.0.0.1 TCP 80", "10.0.0.1 TCP 80", True, id="the same"),
        pytest.param("10.0.0.1 TCP 80", "10.0.0.2 TCP 80", False, id="other address"),
        pytest.param("10.0.0.1 TCP 80", "10.0.0.1 UDP 80", False, id="other protocol"),
        pytest.param("10.0.0.1 TCP 80", "10.0.0.1 TCP 81", False, id="other number"),
        pytest.param("0.0.0.0 TCP 80", "10.0.0.1 TCP 80", True, id="all addresses are taken"),
        pytest.param("10.0.0.1 TCP 80", "0.0.0.0 TCP 80", True, id="all addresses are wanted"),
        pytest.param("0.0.0.0 TCP 80", "::1 TCP 80", True, id="all includes IPv6"),
        pytest.param(":: TCP 80", "::1 TCP 80", False, id="the IPv6 wildcard is no wildcard"),
        pytest.param("0.0.0.0 UDP 80", "10.0.0.1 TCP 80", False, id="all of another protocol"),
    ],
)
def test_ports_conflict_when_protocol_and_number_agree_and_addresses_overlap(
    taken: str, wanted: str, conflict: bool
) -> None:
    ports = []
    for text in (taken, wanted):
        ip, protocol, number = text.split()
        ports.append(HostPort(ip, protocol, int(number)))
    assert used(ports[0]).conflicts(ports[1]) is conflict


def test_a_port_with_two_users_stays_used_when_one_of_them_leaves() -> None:
    port = HostPort("10.0.0.1", "TCP", 80)
    ports = used(port, port)
    ports.remove(port)
    assert ports.conflicts(port)


def test_removing_a_port_that_nobody_uses_changes_nothing() -> None:
    ports = used(HostPort("10.0.0.1", "TCP", 80))
    ports.remove(HostPort("10.0.0.2", "TCP", 80))
    assert ports == used(HostPort("10.0.0.1", "TCP", 80))


def test_a_copy_goes_its_own_way() -> None:
    port = HostPort("10.0.0.1", "TCP", 80)
    original = used(port)
    copied = original.copy()
    copied.remove(port)
    assert original.conflicts(port)
    assert not copied.conflicts(port)


def test_used_ports_compare_by_their_users_and_are_not_hashable() -> None:
    port = HostPort("10.0.0.1", "TCP", 80)
    assert used(port) != used(port, port)
    assert used(port) != "10.0.0.1 TCP 80"
    with pytest.raises(TypeError):
        hash(used(port))


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), PORTS), max_size=20), PORTS)
def test_counting_ports_agrees_with_comparing_every_pair(
    changes: list[tuple[bool, HostPort]], wanted: HostPort
) -> None:
    ports = UsedHostPorts()
    users: Counter[HostPort] = Counter()
    for added, port in changes:
        if added:
            ports.add(port)
            users[port] += 1
        else:
            ports.remove(port)
            users[port] = max(0, users[port] - 1)
    taken = +users
    assert ports.conflicts(wanted) == any(overlap(port, wanted) for port in taken)
    assert set(ports) == set(taken)
    assert len(ports) == len(taken)
    assert ports == used(*taken.elements()) == ports.copy()


@given(others=st.lists(PORTS), own=st.lists(PORTS))
def test_own_ports_are_in_nobodys_way(others: list[HostPort], own: list[HostPort]) -> None:
    expected = any(overlap(mine, theirs) for mine in own for theirs in others)
    assert used(*others, *own).conflicts_beside(own) == expected
