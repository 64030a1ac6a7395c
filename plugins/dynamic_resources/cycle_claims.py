"""The claims of a pod in one cycle, and the allocations that were found for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plugins.dynamic_resources.extended_resources import is_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cache.columns import Columns
    from cache.device_objects import AllocationResult, ResourceClaim
    from cache.label_selectors import NodeSelectorMatcher
    from cache.objects import ContainerExtendedResourceRequest, Node
    from plugins.dynamic_resources.allocator import Allocator
    from plugins.framework.results import IntArray
    from plugins.framework.status import Status


class NodeAllocation(NamedTuple):
    """What was found for one node.

    Attributes
    ----------
    results
        An allocation for each claim without one, in the order of the claims.
    special
        The special claim with the requests for this node; None where no device stands for an
        extended resource.
    mappings
        The containers and resources that the requests of the special claim are for.
    """

    results: tuple[AllocationResult, ...]
    special: ResourceClaim | None = None
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


class Variant(NamedTuple):
    """The claims to allocate on the nodes on which the same extended resources are devices."""

    allocator: Allocator
    special: ResourceClaim | None
    mappings: tuple[ContainerExtendedResourceRequest, ...]


class CycleClaims:
    """The claims of one pod, from PreFilter to the end of its binding.

    Parameters
    ----------
    of_pod
        The claims that the pod names, in its order.
    special
        The special claim; it comes last.

    Attributes
    ----------
    claims
        All claims. One that was written is replaced by what the write returned.
    resources
        The amounts of extended resources that the pod requests, if it has a special claim.
    available
        The nodes on which an allocated claim can be used, by its index; others can be used
        everywhere.
    variants
        The claims to allocate, by the extended resources that are devices on a node.
    judged
        The verdicts on nodes, with the Node objects that they are about.
    counted_on
        The nodes that were counted: those that passed have no entry in ``by_node`` yet. None when
        each node was judged.
    counted_scores
        int (n_rows,): the scores of the nodes that were counted; None where all of them score 0.
    unavailable
        The indices of allocated claims that some node cannot use.
    by_node
        What was found on the nodes that passed.
    reserved
        The allocations in flight, by the index of their claim.

    Notes
    -----
    *Concurrency*: as the cycle state that contains it.

    What-ifs share it: no verdict depends on the pods of a node.
    """

    __slots__ = (
        "available",
        "by_node",
        "claims",
        "counted_on",
        "counted_scores",
        "judged",
        "reserved",
        "resources",
        "special_uid",
        "unavailable",
        "user_claims",
        "variants",
    )

    def __init__(
        self, of_pod: Sequence[ResourceClaim] = (), special: ResourceClaim | None = None
    ) -> None:
        self.claims = [*of_pod, *(() if special is None else (special,))]
        self.user_claims = len(of_pod)
        """How many claims the pod names."""
        self.special_uid = "" if special is None else special.metadata.uid
        """The UID of the special claim while it is in flight."""
        self.resources: Mapping[str, int] = {}
        self.available: dict[int, NodeSelectorMatcher] = {}
        self.variants: dict[frozenset[str], Variant] = {}
        self.judged: dict[str, tuple[Node | None, Status]] = {}
        self.counted_on: Columns | None = None
        self.counted_scores: IntArray | None = None
        self.unavailable: set[int] = set()
        self.by_node: dict[str, NodeAllocation] = {}
        self.reserved: dict[int, AllocationResult] = {}

    def __bool__(self) -> bool:
        """Whether there are any claims."""
        return bool(self.claims)

    @property
    def special(self) -> ResourceClaim | None:
        """The special claim, or None."""
        return self.claims[-1] if len(self.claims) > self.user_claims else None

    def is_special(self, index: int) -> bool:
        """Return whether a claim is the special one."""
        return index >= self.user_claims

    def to_allocate(self) -> Iterator[tuple[int, ResourceClaim]]:
        """Yield the claims without an allocation, with their indices."""
        for index, claim in enumerate(self.claims):
            if claim.status.allocation is None:
                yield index, claim

    @property
    def is_unallocated(self) -> bool:
        """Whether no claim has an allocation."""
        return all(claim.status.allocation is None for claim in self.claims)

    @property
    def left_over(self) -> ResourceClaim | None:
        """The special claim that an earlier attempt created, or None."""
        special = self.special
        return None if special is None or is_in_memory(special) else special
