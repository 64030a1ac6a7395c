"""Packing against sums that are worked out pod by pod."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.objects import OwnerReference
from scheduler.policy_replay.packing import (
    MAX_SAMPLES,
    Packing,
    PackingOverTime,
    packing_of,
)
from tests.builders import PodBuilder, node, pod

NODES = st.lists(
    st.tuples(
        st.integers(1, 64), st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=4)
    ),
    min_size=1,
    max_size=6,
)


def daemon(builder: PodBuilder) -> PodBuilder:
    """Return the same pod, of a DaemonSet."""
    owner = OwnerReference(kind="DaemonSet", name="logs", uid="logs", controller=True)
    return builder._meta(owner_references=(owner,))


@given(NODES)
def test_shares_are_of_what_used_nodes_have(
    nodes: list[tuple[int, list[tuple[int, bool]]]],
) -> None:
    infos = []
    for index, (cpu, pods) in enumerate(nodes):
        builders = [
            (daemon if is_daemon else lambda each: each)(
                pod(f"p{index}-{number}").uid(f"{index}-{number}").request(cpu=str(amount))
            )
            for number, (amount, is_daemon) in enumerate(pods)
        ]
        infos.append(node(f"n{index}").capacity(cpu=str(cpu), pods="10").info(*builders))
    found = packing_of(infos)
    used = [(cpu, pods) for cpu, pods in nodes if not all(is_daemon for _, is_daemon in pods)]
    whole = sum(cpu for cpu, _ in used)
    asked = sum(amount for _, pods in used for amount, _ in pods)
    assert (found.nodes, found.used) == (len(nodes), len(used))
    assert found.requested["cpu"] == pytest.approx(asked / whole if whole else 0.0)
    assert found.requested["pods"] == pytest.approx(
        sum(len(pods) for _, pods in used) / (10 * len(used)) if used else 0.0
    )


def test_what_the_usual_requests_cannot_use_is_a_share_of_all() -> None:
    full = node("n1").capacity(cpu="4", pods="10").info(pod("a").uid("a").request(cpu="3"))
    empty = node("n2").capacity(cpu="4", pods="10").info()
    assert packing_of([full, empty]).fragmented["cpu"] == pytest.approx(1 / 8)


def test_no_nodes_are_no_error() -> None:
    assert packing_of([]) == Packing()


def at(used: float) -> Packing:
    return Packing(10, used, {"cpu": used / 10}, {})


def test_the_average_is_over_time() -> None:
    over = PackingOverTime()
    for now_s, used in ((0.0, 5), (3.0, 1), (4.0, 9)):
        over.add(now_s, at(used), at(0))
    means = over.means()
    assert means is not None
    assert means[0].used == pytest.approx((3 * 1 + 1 * 9) / 4)
    assert means[0].requested["cpu"] == pytest.approx(0.3)
    assert means[1].used == 0


def test_there_is_no_average_of_a_moment() -> None:
    over = PackingOverTime()
    over.add(7.0, at(1), at(1))
    assert over.means() is None


def test_samples_are_few_however_long_it_takes() -> None:
    over = PackingOverTime()
    for second in range(100_000):
        if over.is_due(second):
            over.add(second, at(1), at(1))
    assert over.samples < 10 * MAX_SAMPLES
    means = over.means()
    assert means is not None
    assert means[0].used == pytest.approx(1)
