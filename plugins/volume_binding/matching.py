"""Finds existing volumes for unbound claims: the smallest volume that fits.

Conditions that do not depend on the node are checked once for each claim. The node affinity of
the remaining volumes is then evaluated for all nodes at once.

*Source*: k8s.io/component-helpers storage/volume/pv_helpers.go, FindMatchingVolume (0.36), with the
feature gate VolumeAttributesClass on.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.distinct import distinct
from cache.label_selectors import compile_label_selector
from cache.quantity import exact_value
from cache.storage import claim_class, namespaced_name
from cache.value import MutableValue
from plugins.volume_binding import reachability
from plugins.volume_binding.free_volumes import (
    ANYWHERE,
    BY_LABEL,
    FILESYSTEM,
    STORAGE,
    shape_of,
    size_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    import numpy.typing as npt

    from cache.columns import NodesView
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolume, PersistentVolumeClaim
    from plugins.framework.results import BoolArray, IntArray, RowArray
    from plugins.volume_binding.free_volumes import FreeVolumes, Shape

NO_VOLUME: Final = -1
"""Stands in arrays for a claim without a volume on a node."""


def requested_size(claim: PersistentVolumeClaim) -> int | Fraction:
    """Return the bytes that a claim requests, 0 when it requests none."""
    return exact_value(claim.spec.resources.requests.get(STORAGE, 0))


class ClaimToMatch(MutableValue, eq=False):
    """A claim and the volumes that could be bound to it, wherever they are.

    In arrays a volume is a number: that of its row among the free ones, or a negative one, for a
    volume that is kept for a claim.

    Attributes
    ----------
    claim
        The claim.
    kept
        The volumes that are kept for the claim, by their numbers: the first of them is taken, or,
        on a node that cannot reach it, none at all.
    free
        The free volumes of the class; the same for all claims of a pod with this class.
    rows
        intp (n,): those of the free volumes that suit the claim, the smallest first.
    """

    claim: PersistentVolumeClaim
    kept: Mapping[int, PersistentVolume]
    free: FreeVolumes
    rows: RowArray

    # --- one node -----------------------------------------------------------------------------

    def choose_one(self, labels: Mapping[str, str], taken: set[str]) -> PersistentVolume | None:
        """Return the volume for the claim on a node, or None.

        ``taken`` are the names of the volumes that other claims of the pod get.

        *Cost*: a few passes over the free volumes of the class.
        """
        for volume in self.kept.values():
            if volume.metadata.name not in taken:
                return volume if _reaches(volume, labels) else None
        row: int
        for row in self._rows_within_reach(labels).tolist():
            volume = self.free.volumes[row]
            if volume.metadata.name not in taken:
                return volume
        return None

    def _rows_within_reach(self, labels: Mapping[str, str]) -> RowArray:
        demand_ids = self.free.demand_ids[self.rows]
        within: BoolArray = np.zeros(len(self.rows), dtype=np.bool_)
        for key, values in self.free.values_by_label.items():
            value = labels.get(key)
            wanted = None if value is None else self.free.labels[key].ids.get(value)
            if wanted is not None:
                within |= values[self.rows] == wanted
        for demand_id in distinct(demand_ids).tolist():
            if demand_id != BY_LABEL and (
                reachability.matches(self.free.demands[demand_id], labels)
            ):
                within |= demand_ids == demand_id
        return self.rows[within]

    # --- all nodes ----------------------------------------------------------------------------

    def choose(self, nodes: NodesView, taken: Sequence[IntArray]) -> IntArray:
        """Return int64 (n_nodes,): the volume for the claim on each node, or NO_VOLUME.

        Parameters
        ----------
        taken
            The results of :meth:`choose` for the previous claims of this class.
        """
        n = len(nodes)
        chosen: IntArray = np.full(n, NO_VOLUME, dtype=np.int64)
        undecided: BoolArray = np.ones(n, dtype=np.bool_)
        for number, volume in self.kept.items():
            active = undecided.copy()
            # Only the same claim, mounted a second time, can have taken it.
            for others in taken:
                active &= others != number
            matcher = reachability.compiled_affinity(volume.spec.node_affinity)
            within = reachability.mask(matcher, nodes)
            chosen[active if within is None else active & within] = number
            undecided &= ~active
            if not undecided.any():
                return chosen
        return np.where(undecided, self._smallest(nodes, taken), chosen)

    def _smallest(self, nodes: NodesView, taken: Sequence[IntArray]) -> IntArray:
        none = len(self.free)
        best: IntArray = np.full(len(nodes), none, dtype=np.int64)
        for option in self._options(nodes, depth=len(taken) + 1):
            for others in taken:
                option[option == others] = none
            np.minimum(best, option, out=best)
        best[best == none] = NO_VOLUME
        return best

    def _options(self, nodes: NodesView, depth: int) -> Iterator[IntArray]:
        """Yield, for each node, rows of volumes that it can reach; ``len(free)`` for none.

        Of volumes with the same demand only the first few matter: as many as other claims can
        take, and one more.
        """
        n, none = len(nodes), len(self.free)
        for key, values in self.free.values_by_label.items():
            yield from self._options_by_label(nodes, key, values, depth)
        demand_ids = self.free.demand_ids[self.rows]
        for demand_id in distinct(demand_ids).tolist():
            if demand_id == BY_LABEL:
                continue
            first = self.rows[demand_ids == demand_id][:depth].tolist()
            within = None
            if demand_id != ANYWHERE:
                within = reachability.mask(self.free.demands[demand_id], nodes)
            for row in first:
                every = np.full(n, row, dtype=np.int64)
                yield every if within is None else np.where(within, every, none)

    def _options_by_label(
        self, nodes: NodesView, key: str, values: npt.NDArray[np.int32], depth: int
    ) -> Iterator[IntArray]:
        wanted = values[self.rows]
        here = wanted >= 0
        rows, wanted = self.rows[here], wanted[here]
        if not len(rows):
            return
        column, ids = nodes.label(key)
        of_rows = self.free.labels[key].node_ids(column).take(wanted)
        known = of_rows > 0
        rows, of_rows = rows[known], of_rows[known]
        for _ in range(depth):
            if not len(rows):
                return
            table = np.full(len(column.values), len(self.free), dtype=np.int64)
            # Of several writes to one element the last one stays: the smallest volume.
            table[of_rows[::-1]] = rows[::-1]
            yield table.take(ids)
            left = table[of_rows] != rows
            rows, of_rows = rows[left], of_rows[left]


def claim_to_match(
    claim: PersistentVolumeClaim, storage: Storage, free: FreeVolumes, kept_numbers: dict[str, int]
) -> ClaimToMatch:
    """Return a claim with the volumes that could be bound to it.

    Parameters
    ----------
    free
        The free volumes of the claim's class.
    kept_numbers
        Numbers of kept volumes by name, the same for all claims of a pod; grows.

    Raises
    ------
    MalformedObjectError
        When the claim's selector is malformed.

    *Cost*: a pass over a column of the free volumes; a loop over them if the claim selects by
    labels.
    """
    spec = claim.spec
    size = requested_size(claim)
    mode = spec.volume_mode or FILESYSTEM
    attributes_class = spec.volume_attributes_class_name or ""
    wanted = frozenset(spec.access_modes)
    selector = None
    if spec.selector is not None:
        selector = compile_label_selector(spec.selector, "spec.selector")

    def suits(shape: Shape) -> bool:
        return shape.mode == mode and shape.attributes_class == attributes_class

    start = bisect_left(free.keys, (size, 0))
    suitable = np.array(
        [s.is_free and suits(s) and wanted <= s.access_modes for s in free.shapes], dtype=np.bool_
    )
    rows = start + np.flatnonzero(suitable[free.shape_ids[start:]])
    if selector is not None:
        matching = [selector.matches(free.volumes[row].metadata.labels) for row in rows]
        rows = rows[np.array(matching, dtype=np.bool_)]
    kept = {
        kept_numbers.setdefault(volume.metadata.name, NO_VOLUME - 1 - len(kept_numbers)): volume
        for volume in storage.volumes_of_class(claim_class(claim), namespaced_name(claim))
        if volume.metadata.deletion_timestamp is None
        and size_of(volume) >= size
        and suits(shape_of(volume))
        and _is_kept_for(volume, claim)
    }
    return ClaimToMatch(claim, kept, free, rows)


def _is_kept_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume whose reference has the claim's name refers to this very claim."""
    reference = volume.spec.claim_ref
    return reference is not None and reference.uid in ("", claim.metadata.uid)


def _reaches(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    return reachability.matches(reachability.compiled_affinity(volume.spec.node_affinity), labels)
