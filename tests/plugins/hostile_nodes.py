"""Hypothesis strategies for nodes at and past the edges of the resource arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from msgspec.structs import replace

from cache.objects import Container, ResourceRequirements
from tests.builders import node, pod

if TYPE_CHECKING:
    from tests.builders import NodeBuilder, PodBuilder

RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi")

INT64_MAX = 2**63 - 1

edges = st.sampled_from(
    [0, 1, 2, 99, 100, 101, 2**45, 2**46 - 1, 2**46, 2**52, 2**53 + 1, 2**56, 2**62, INT64_MAX]
)
amounts = st.one_of(st.integers(0, 5000), edges, st.integers(0, INT64_MAX))
"""Amounts in base units: small ones, where ratios meet the edges, and any."""


def _quantities(amount: int, resource: str) -> str:
    # CPU is read in milli-cores, so the thousandth part of what is to be read is written.
    return f"{amount}m" if resource == "cpu" else str(amount)


def resource_lists(names: tuple[str, ...] = RESOURCES) -> st.SearchStrategy[dict[str, str]]:
    """Quantities of some of the resources."""
    return st.dictionaries(st.sampled_from(names), amounts, max_size=len(names)).map(
        lambda given: {name: _quantities(amount, name) for name, amount in given.items()}
    )


def pods(name: str = "incoming") -> st.SearchStrategy[PodBuilder]:
    """Pods of one or two containers with requests of any size."""

    def build(first: dict[str, str], second: dict[str, str] | None) -> PodBuilder:
        built = pod(name).request(first)
        if second is None:
            return built
        return built.container(
            Container(name="second", resources=ResourceRequirements(requests=second))
        )

    return st.builds(build, resource_lists(), st.none() | resource_lists())


def _node(
    name: str, room: dict[str, str], pod_count: int, requests: list[dict[str, str]]
) -> tuple[NodeBuilder, list[PodBuilder]]:
    bare = node(name)
    status = replace(bare.build().status, allocatable={**room, "pods": str(pod_count)})
    built = type(bare)(replace(bare.build(), status=status))
    return built, [
        pod(f"{name}-{index}").request(request) for index, request in enumerate(requests)
    ]


def clusters() -> st.SearchStrategy[list[tuple[NodeBuilder, list[PodBuilder]]]]:
    """Up to six nodes, overcommitted ones among them, each with up to three pods."""
    one = st.tuples(resource_lists(), st.integers(0, 4), st.lists(resource_lists(), max_size=3))
    return st.lists(one, min_size=1, max_size=6).map(
        lambda drawn: [_node(f"n{index}", *parts) for index, parts in enumerate(drawn)]
    )
