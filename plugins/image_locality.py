"""ImageLocality: prefers nodes that have the pod's images already.

Each image counts with its size, times the share of the nodes that have it, so that a rare image
does not attract all its pods to one node.

*Source*: kube-scheduler 1.36, plugins/imagelocality/image_locality.go.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from cache.columns import ColumnSpec, NodesView
from cache.image_states import normalized_image_name
from cache.quantity import INT64_MAX
from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState, StateKey
from plugins.framework.interfaces import PreScorePlugin, ScorePlugin
from plugins.framework.normalize import MAX_NODE_SCORE
from plugins.framework.status import SUCCESS, Status

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.cluster_events import EventRegistration
    from plugins.framework.results import IntArray

_MB = 1024 * 1024

MIN_THRESHOLD_BYTES = 23 * _MB
"""Images with a smaller total size count 0: upstream's constant."""

MAX_CONTAINER_THRESHOLD_BYTES = 1000 * _MB
"""Sizes above this for each container count no more: upstream's constant."""

MAX_SHARED_IMAGES: Final = 32
"""Images of a pod up to which verdicts are kept for the next pod like it."""

MAX_BY_COLUMN: Final = 16
"""Images of a pod that get a column each. Real pods have a few."""

_NODES_BETWEEN_CHECKS: Final = 64
_ABSENT: Final = -1


class _Image(NamedTuple):
    """An image of the pod, as often as the pod names it, and its share of the nodes."""

    name: str
    times: int
    share: float


_IMAGES: StateKey[tuple[_Image, ...]] = StateKey("PreScoreImageLocality")


class ImageLocality(PreScorePlugin, ScorePlugin):
    """Prefers nodes that have the images of the pod's containers and image volumes.

    Notes
    -----
    Upstream has no PreScore here. This one counts, in the snapshot's columns, how many nodes
    have each image, so that the vector form and its scalar twin use the same and latest number;
    the ``num_nodes`` of a node's own summary is as old as the node's last change.

    *Cost*: 20 us with 5 000 nodes for each distinct image of the pod that some node has; for the
    first use of an image, one pass over all nodes. For a pod with very many such images, one pass
    over the images of each node.
    """

    name: ClassVar[str] = "ImageLocality"
    reads_pods = False

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return nothing: the plugin rejects no pod."""
        return ()

    def signature(self, info: PodInfo) -> Hashable | None:
        """Return the images, as often as they are named; None for a pod with many images."""
        images = tuple(islice(_image_names(info.pod), MAX_SHARED_IMAGES + 1))
        return None if len(images) > MAX_SHARED_IMAGES else (images, _max_threshold(info.pod))

    def cluster_facts(self, info: PodInfo, nodes: NodesView) -> Hashable:
        """Return the share of the nodes that have each image."""
        return _images_of(info.pod, nodes)

    def pre_score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> Status:
        """Count the nodes that have each image; ``nodes.columns`` are all nodes."""
        state.write(_IMAGES, _images_of(info.pod, NodesView(nodes.columns), state.budget))
        return SUCCESS

    def score(self, state: CycleState, info: PodInfo, nodes: NodesView) -> IntArray:
        """Return scores 0..100, int64 of shape (len(nodes),)."""
        images = state.get(_IMAGES)
        if images is None:
            images = _images_of(info.pod, NodesView(nodes.columns), state.budget)
        total = np.zeros(len(nodes), dtype=np.int64)
        if not images:
            return total
        highest = _max_threshold(info.pod)
        if len(images) > MAX_BY_COLUMN:
            _add_one_by_one(total, images, nodes, highest, state.budget)
            images = ()
        for image in images:
            state.budget.check()
            sizes = nodes.derived(_column(image.name))
            counted = np.maximum(sizes, 0) * image.share
            # More than the highest sum makes no difference, but could leave int64.
            np.minimum(counted, float(highest), out=counted)
            total += counted.astype(np.int64) * image.times
        np.clip(total, MIN_THRESHOLD_BYTES, highest, out=total)
        total -= MIN_THRESHOLD_BYTES
        total *= MAX_NODE_SCORE
        return total // (highest - MIN_THRESHOLD_BYTES)

    def score_one(self, state: CycleState, info: PodInfo, node_info: NodeInfo) -> int:
        """Return the score of one node; without a PreScore it counts as the only node."""
        images = state.get(_IMAGES)
        if images is None:
            images = _images_of(info.pod, NodesView.of([node_info]))
        total = 0
        held = node_info.image_states
        for image in images:
            if image.name in held:
                total += _counted(node_info, image)
        highest = _max_threshold(info.pod)
        total = min(max(total, MIN_THRESHOLD_BYTES), highest)
        return MAX_NODE_SCORE * (total - MIN_THRESHOLD_BYTES) // (highest - MIN_THRESHOLD_BYTES)


def _add_one_by_one(
    total: IntArray,
    images: Sequence[_Image],
    nodes: NodesView,
    highest: int,
    budget: AttemptBudget,
) -> None:
    """Add the amounts of each node's images, node by node: a node reports some fifty images."""
    by_name = {image.name: image for image in images}
    for index, node_info in enumerate(nodes.node_infos()):
        if not index % _NODES_BETWEEN_CHECKS:
            budget.check()
        held = by_name.keys() & node_info.image_states.keys()
        if held:
            amount = sum(_counted(node_info, by_name[name]) for name in held)
            total[index] = min(amount, highest)


def _counted(node_info: NodeInfo, image: _Image) -> int:
    """Return the amount that an image adds on a node that has it."""
    return int(float(max(_size(node_info, image.name), 0)) * image.share) * image.times


def _images_of(pod: Pod, every: NodesView, budget: AttemptBudget = UNLIMITED) -> tuple[_Image, ...]:
    """Return the pod's images that some node has, with the share of the nodes that have them."""
    times: dict[str, int] = {}
    for name in _image_names(pod):
        times[name] = times.get(name, 0) + 1
    found = []
    num_nodes_with = every.columns.num_nodes_with_image
    for name, count in times.items():
        budget.check()
        holders = num_nodes_with.get(name)
        if holders:
            found.append(_Image(name, count, float(holders) / float(len(every))))
    return tuple(found)


def _image_names(pod: Pod) -> Iterator[str]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield normalized_image_name(container.image)
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield normalized_image_name(volume.image.reference)


def _max_threshold(pod: Pod) -> int:
    # The API server accepts no pod without containers; one is assumed for unchecked pods.
    containers = len(pod.spec.init_containers) + len(pod.spec.containers)
    return MAX_CONTAINER_THRESHOLD_BYTES * max(containers, 1)


def _column(image: str) -> ColumnSpec:
    """Return the column of sizes in bytes, -1 where the node lacks the image."""
    return ColumnSpec(("image", image), lambda node_info: _size(node_info, image))


def _size(node_info: NodeInfo, image: str) -> int:
    summary = node_info.image_states.get(image)
    if summary is None:
        return _ABSENT
    return min(max(summary.size_bytes, 0), INT64_MAX)
