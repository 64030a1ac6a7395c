"""Records the GPUs that each pod uses on its node.

The API contains how much GPU a pod requests, but not which of the node's devices it gets. The
node's device plugin, which assigns the devices, may report them in an annotation, which is
trusted. For a pod without this annotation, the plugin makes its own choice when the pod is first
seen on its node, and keeps it as long as the pod is there.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from plugins.examples.gpu_fragments import WHOLE, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from berth import Node, Pod

Devices: TypeAlias = tuple[int, ...]

MAX_NODES: Final = 16_384
"""Nodes that are stored. A dropped node only needs new choices."""

_SPARE: Final = 16
"""Pods that may have left a node before its page is tidied up. Who only looks as if he had left,
because somebody asks what would be without him, keeps his devices by this."""


class GpuDemand(NamedTuple):
    """The GPU demand of a pod: ``gpu_milli`` of each of ``gpus`` devices."""

    gpu_milli: int
    gpus: int


class GpuBooks:
    """The devices of every pod that was seen on a node.

    Parameters
    ----------
    resource
        The extended resource that counts thousandths of GPUs.
    annotation
        The annotation of a pod with the numbers of its devices, separated by commas.
    choose
        Chooses the device for a share of one GPU: receives the node, the pod and the free share of
        each device, of which at least one has enough; returns the device's index.

    Notes
    -----
    *Concurrency*: confined to one thread.
    """

    def __init__(
        self, resource: str, annotation: str, choose: Callable[[Node, Pod, Sequence[int]], int]
    ) -> None:
        self._resource = resource
        self._annotation = annotation
        self._choose = choose
        self._pages: OrderedDict[str, dict[str, Devices]] = OrderedDict()

    def left(self, node: Node) -> tuple[list[int], list[Pod]]:
        """Return the free share of each GPU of a node, in thousandths, and the new pods.

        The free share is never negative: an overcommitted node has 0 left.

        *Cost*: half a microsecond for each pod on the node, and a choice for each new pod.
        """
        left = [WHOLE] * (node.allocatable(self._resource) // WHOLE)
        page = self._pages.get(node.name, {})
        guessed: list[tuple[Pod, GpuDemand, Devices]] = []
        unknown: list[tuple[Pod, GpuDemand]] = []
        present = 0
        for pod in node.pods:
            demand = _demand(pod.requests(self._resource))
            if not demand.gpus:
                continue
            present += 1
            told = self._told(pod, len(left))
            if told:
                _take(left, told, demand.gpu_milli)
            elif pod.uid in page:
                guessed.append((pod, demand, page[pod.uid]))
            else:
                unknown.append((pod, demand))
        for pod, demand, devices in guessed:
            # A pod with an annotation may have been assigned this device meanwhile.
            if all(at < len(left) and left[at] >= demand.gpu_milli for at in devices):
                _take(left, devices, demand.gpu_milli)
            else:
                unknown.append((pod, demand))
        # The largest first: the following pods are then most likely to fit.
        unknown.sort(key=lambda item: (-item[1].gpus, -item[1].gpu_milli, item[0].uid))
        new = []
        for pod, demand in unknown:
            devices = self._pick(node, pod, demand, left)
            _take(left, devices, demand.gpu_milli)
            if pod.uid not in page:
                new.append(pod)
            page[pod.uid] = devices
        if unknown:
            self._keep(node.name, page, present, (pod.uid for pod in node.pods))
        return left, new

    def _told(self, pod: Pod, count: int) -> Devices:
        text = pod.annotations.get(self._annotation, "")
        if not text:
            return ()
        parts = [part.strip() for part in text.split(",")]
        if not all(part.isascii() and part.isdigit() for part in parts):
            return ()
        devices = tuple(int(part) for part in parts)
        return devices if all(at < count for at in devices) else ()

    def _pick(self, node: Node, pod: Pod, demand: GpuDemand, left: Sequence[int]) -> Devices:
        enough = [at for at, amount in enumerate(left) if amount >= demand.gpu_milli]
        if len(enough) < demand.gpus:
            # The node is overcommitted: take the devices with the largest free share.
            fullest_last = sorted(range(len(left)), key=lambda at: -left[at])
            return tuple(fullest_last[: demand.gpus])
        if demand.gpu_milli == WHOLE:
            return tuple(enough[: demand.gpus])
        return (enough[0] if len(enough) == 1 else self._choose(node, pod, left),)

    def _keep(self, name: str, page: dict[str, Devices], present: int, uids: Iterable[str]) -> None:
        if len(page) > 2 * present + _SPARE:
            there = set(uids)
            page = {uid: devices for uid, devices in page.items() if uid in there}
        self._pages[name] = page
        self._pages.move_to_end(name)
        if len(self._pages) > MAX_NODES:
            self._pages.popitem(last=False)


def _demand(milli: int) -> GpuDemand:
    """Return what a number of thousandths means; what is no shape takes whole GPUs, rounded up."""
    shape = shape_of(0, milli) or shape_of(0, -(-milli // WHOLE) * WHOLE)
    assert shape is not None  # noqa: S101 - a multiple of 1000 always is a shape
    return GpuDemand(shape.gpu_milli, shape.gpus)


def _take(left: list[int], devices: Devices, milli: int) -> None:
    for at in devices:
        left[at] = max(left[at] - milli, 0)
