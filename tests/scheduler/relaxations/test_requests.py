from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cache.objects import Container, ResourceRequirements
from cache.pod_info import PodInfo
from scheduler.relaxations.requests import amount_text, requesting
from tests.builders import PodBuilder, pod

_AMOUNTS = st.integers(0, 5000)


def _container(name: str, milli: int, *, restart: str | None = None) -> Container:
    requests = ResourceRequirements(requests={"cpu": f"{milli}m"})
    return Container(name=name, resources=requests, restart_policy=restart)


@st.composite
def _pods(draw: st.DrawFn) -> PodBuilder:
    asked = pod().request(cpu=f"{draw(_AMOUNTS)}m")
    for at, milli in enumerate(draw(st.lists(_AMOUNTS, max_size=2))):
        asked = asked.container(_container(f"c{at}", milli))
    for at, milli in enumerate(draw(st.lists(_AMOUNTS, max_size=3))):
        restart = draw(st.sampled_from([None, "Always"]))
        asked = asked.init_container(_container(f"i{at}", milli, restart=restart))
    return asked


@given(asked=_pods(), target=st.integers(0, 20_000))
def test_the_pod_requests_the_target_and_no_less_than_it_has_to(
    asked: PodBuilder, target: int
) -> None:
    before = asked.info().requests["cpu"]
    after = PodInfo(requesting(asked.build(), "cpu", target)).requests["cpu"]
    assert after == min(before, target)


@given(asked=_pods())
def test_a_target_above_the_requests_changes_nothing(asked: PodBuilder) -> None:
    assert requesting(asked.build(), "cpu", 10**6) == asked.build()


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 500, "500m"),
        ("cpu", 2000, "2"),
        ("memory", 4 << 30, "4Gi"),
        ("memory", 1_000_001, "1000001"),
        ("memory", 0, "0"),
        ("example.com/gpu", 1024, "1024"),
    ],
    ids=["milli", "cores", "bytes", "odd bytes", "nothing", "pieces"],
)
def test_amounts_are_exact(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text
