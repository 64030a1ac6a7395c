"""Finds volumes that are there already for claims that have none: the smallest that fits.

What does not depend on the node is looked at once for each claim. What does, the node affinity
of the volumes that are left, is then asked about all nodes at once: volumes that demand one value
of one label, as local ones do, cost one look at that label's column together, all others one mask
for each distinct demand.

Source: k8s.io/component-helpers storage/volume/pv_helpers.go, FindMatchingVolume (0.36), with the
feature gate VolumeAttributesClass on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.label_selectors import IN, compile_label_selector
from cache.quantity import exact_value
from cache.storage import claim_class, claim_key
from plugins.volume_binding import reachability

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from cache.columns import NodesView
    from cache.label_selectors import NodeSelectorMatcher
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
    from plugins.framework.results import BoolArray, IntArray

STORAGE: Final = "storage"

AVAILABLE: Final = "Available"

_FILESYSTEM: Final = "Filesystem"

NO_VOLUME: Final = -1
"""Stands in arrays for a claim without a volume on a node."""

_MIN_REMEMBERED: Final = 256


@dataclass(frozen=True, slots=True)
class VolumeFacts:
    """What matching asks of a volume, worked out once."""

    volume: PersistentVolume
    size: int | Fraction
    mode: str
    attributes_class: str
    access_modes: frozenset[str]
    usable: bool
    """It is not being deleted."""
    available: bool
    affinity: NodeSelectorMatcher | None


class FactsMemory:
    """The facts of volumes, for as long as these do not change.

    *Concurrency*: confined to the scheduling thread.
    """

    def __init__(self) -> None:
        self._facts: dict[str, VolumeFacts] = {}

    def of(self, volumes: Iterable[PersistentVolume], num_known: int) -> list[VolumeFacts]:
        """Return the facts of volumes. ``num_known`` bounds what is remembered."""
        remembered = self._facts
        if len(remembered) > 2 * num_known + _MIN_REMEMBERED:
            remembered.clear()
        found = []
        for volume in volumes:
            facts = remembered.get(volume.metadata.name)
            if facts is None or facts.volume is not volume:
                facts = _facts_of(volume)
                remembered[volume.metadata.name] = facts
            found.append(facts)
        return found


def _facts_of(volume: PersistentVolume) -> VolumeFacts:
    spec = volume.spec
    return VolumeFacts(
        volume=volume,
        size=exact_value(spec.capacity.get(STORAGE, 0)),
        mode=spec.volume_mode or _FILESYSTEM,
        attributes_class=spec.volume_attributes_class_name or "",
        access_modes=frozenset(spec.access_modes),
        usable=volume.metadata.deletion_timestamp is None,
        available=volume.status.phase == AVAILABLE,
        affinity=reachability.compiled_affinity(spec.node_affinity),
    )


def requested_size(claim: PersistentVolumeClaim) -> int | Fraction:
    """Return how many bytes a claim asks for, 0 when it does not say."""
    return exact_value(claim.spec.resources.requests.get(STORAGE, 0))


class ClaimToMatch:
    """A claim and the volumes that could serve it, wherever they are.

    Attributes
    ----------
    claim
        The claim.
    kept
        The volumes that are kept for the claim: the first of them is taken, or, on a node that
        cannot reach it, none at all.
    free
        The others, the smallest first.
    """

    __slots__ = ("_groups", "claim", "free", "free_ids", "kept", "kept_ids")

    def __init__(
        self,
        claim: PersistentVolumeClaim,
        kept: Sequence[VolumeFacts],
        free: Sequence[VolumeFacts],
        id_of: dict[str, int],
    ) -> None:
        self.claim = claim
        self.kept = kept
        self.free = free
        self.kept_ids = [_id(facts, id_of) for facts in kept]
        # One more entry, for "none": the rank after the last.
        self.free_ids = np.array([*(_id(f, id_of) for f in free), NO_VOLUME], dtype=np.int64)
        self._groups: _Groups | None = None

    # --- one node -----------------------------------------------------------------------------

    def choose_one(self, labels: Mapping[str, str], taken: set[str]) -> PersistentVolume | None:
        """Return the volume for the claim on a node, or None.

        ``taken`` are the names of those that other claims of the pod get.
        """
        for facts in self.kept:
            if facts.volume.metadata.name not in taken:
                return facts.volume if reachability.matches(facts.affinity, labels) else None
        for facts in self.free:
            if facts.volume.metadata.name not in taken and (
                reachability.matches(facts.affinity, labels)
            ):
                return facts.volume
        return None

    # --- all nodes ----------------------------------------------------------------------------

    def choose(self, nodes: NodesView, taken: Sequence[IntArray]) -> IntArray:
        """Return int64 (n_nodes,): the id of the volume for the claim on each node, or NO_VOLUME.

        Parameters
        ----------
        taken
            What :meth:`choose` gave for the claims that chose before.
        """
        n = len(nodes)
        chosen: IntArray = np.full(n, NO_VOLUME, dtype=np.int64)
        undecided: BoolArray | None = None
        for facts, volume_id in zip(self.kept, self.kept_ids, strict=True):
            active = _not_taken(volume_id, taken, n)
            if undecided is not None:
                active &= undecided
            within = reachability.mask(facts.affinity, nodes)
            chosen[active if within is None else active & within] = volume_id
            undecided = ~active if undecided is None else undecided & ~active
            if not undecided.any():
                return chosen
        ranks = self._best_ranks(nodes, taken)
        of_free = self.free_ids[ranks]
        return of_free if undecided is None else np.where(undecided, of_free, chosen)

    def _best_ranks(self, nodes: NodesView, taken: Sequence[IntArray]) -> IntArray:
        none = len(self.free)
        best: IntArray = np.full(len(nodes), none, dtype=np.int64)
        for option in self._options(nodes, depth=len(taken) + 1):
            if taken:
                ids = self.free_ids[option]
                for others in taken:
                    option[ids == others] = none
            np.minimum(best, option, out=best)
        return best

    def _options(self, nodes: NodesView, depth: int) -> Iterator[IntArray]:
        """Yield, for each node, ranks of volumes that it can reach.

        Of volumes with the same demand only the first few matter: as many as other claims can
        take, and one more.
        """
        if self._groups is None:
            self._groups = _Groups(self.free)
        none = len(self.free)
        n = len(nodes)
        for rank in self._groups.anywhere[:depth]:
            yield np.full(n, rank, dtype=np.int64)
        for key, ranks_by_value in self._groups.by_label.items():
            column, ids = nodes.label(key)
            table = np.full((depth, len(column.values)), none, dtype=np.int64)
            for value, ranks in ranks_by_value.items():
                value_id = column.id_of(value)
                if value_id is not None:
                    first = ranks[:depth]
                    table[: len(first), value_id] = first
            for row in table:
                yield row.take(ids)
        for matcher, ranks in self._groups.others.items():
            within = reachability.mask(matcher, nodes)
            for rank in ranks[:depth]:
                if within is None:
                    yield np.full(n, rank, dtype=np.int64)
                else:
                    yield np.where(within, rank, none)


class _Groups:
    """Ranks of volumes by what they demand of a node, each list ascending."""

    __slots__ = ("anywhere", "by_label", "others")

    def __init__(self, ranked: Sequence[VolumeFacts]) -> None:
        self.anywhere: list[int] = []
        self.by_label: dict[str, dict[str, list[int]]] = {}
        self.others: dict[NodeSelectorMatcher, list[int]] = {}
        for rank, facts in enumerate(ranked):
            matcher = facts.affinity
            if matcher is None:
                self.anywhere.append(rank)
                continue
            terms = matcher.terms
            if len(terms) == 1 and len(terms[0].requirements) == 1:
                (requirement,) = terms[0].requirements
                if requirement.operator == IN and not terms[0].field_requirements:
                    by_value = self.by_label.setdefault(requirement.key, {})
                    for value in requirement.values:
                        by_value.setdefault(value, []).append(rank)
                    continue
            self.others.setdefault(matcher, []).append(rank)


def claim_to_match(
    claim: PersistentVolumeClaim, storage: Storage, memory: FactsMemory, id_of: dict[str, int]
) -> ClaimToMatch:
    """Look up the volumes that could serve a claim.

    Parameters
    ----------
    id_of
        Numbers of volumes by name, the same for all claims of a pod; grows.

    Raises
    ------
    MalformedObjectError
        When the claim's selector makes no sense.

    *Cost*: proportional to the free volumes of the class.
    """
    spec = claim.spec
    class_name = claim_class(claim)
    size = requested_size(claim)
    mode = spec.volume_mode or _FILESYSTEM
    attributes_class = spec.volume_attributes_class_name or ""
    selector = None
    if spec.selector is not None:
        selector = compile_label_selector(spec.selector, "spec.selector")
    num_known = len(storage.volumes)

    def fits(facts: VolumeFacts) -> bool:
        return (
            facts.usable
            and facts.size >= size
            and facts.mode == mode
            and facts.attributes_class == attributes_class
        )

    kept = [
        facts
        for facts in memory.of(storage.volumes_of_class(class_name, claim_key(claim)), num_known)
        if fits(facts) and _is_kept_for(facts.volume, claim)
    ]
    wanted = frozenset(spec.access_modes)
    free = [
        facts
        for facts in memory.of(storage.volumes_of_class(class_name), num_known)
        if facts.available
        and fits(facts)
        and wanted <= facts.access_modes
        and (selector is None or selector.matches(facts.volume.metadata.labels))
    ]
    # The sort keeps the order of volumes of one size, so that choices can be repeated.
    free.sort(key=_size)
    return ClaimToMatch(claim, kept, free, id_of)


def _size(facts: VolumeFacts) -> int | Fraction:
    return facts.size


def _id(facts: VolumeFacts, id_of: dict[str, int]) -> int:
    return id_of.setdefault(facts.volume.metadata.name, len(id_of))


def _is_kept_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether a volume whose reference has the claim's name means this very claim."""
    reference = volume.spec.claim_ref
    return reference is not None and reference.uid in ("", claim.metadata.uid)


def _not_taken(volume_id: int, taken: Sequence[IntArray], n: int) -> BoolArray:
    free = np.ones(n, dtype=np.bool_)
    for others in taken:
        free &= others != volume_id
    return free
