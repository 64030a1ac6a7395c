"""Container images by node, and their sizes.

*Source*: kube-scheduler 1.36, pkg/scheduler/backend/cache/cache.go (addNodeImageStates,
removeNodeImageStates), plugins/imagelocality/image_locality.go (normalizedImageName).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cache.objects import ContainerImage


class ImageState:
    """The size of one image name and the nodes that have the image.

    All nodes that hold the image share one, so ``num_nodes`` is always today's: a node's own
    summary would be out of date as soon as another node pulled the image.

    *Concurrency*: changed under the owner's lock; ``size_bytes`` and ``num_nodes`` may be read by
    anybody, and may grow or shrink by a node while a scheduling cycle looks.
    """

    __slots__ = ("nodes", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.nodes: set[str] = set()

    @property
    def num_nodes(self) -> int:
        """The number of nodes that have the image."""
        return len(self.nodes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageState):
            return NotImplemented
        return self.size_bytes == other.size_bytes and self.nodes == other.nodes

    __hash__ = None  # type: ignore[assignment] # it changes

    def __repr__(self) -> str:
        return f"ImageState(size_bytes={self.size_bytes}, num_nodes={self.num_nodes})"


class ImageStates:
    """All image names that some node has.

    Where nodes disagree on the size of an image, the first to hold it is believed until no
    node holds it any more.

    *Concurrency*: not thread-safe; guarded by the owner's lock.
    """

    __slots__ = ("_images", "_names_of")

    def __init__(self) -> None:
        self._images: dict[str, ImageState] = {}
        self._names_of: dict[str, tuple[str, ...]] = {}

    def add_node(self, name: str, images: Iterable[ContainerImage]) -> None:
        """Set the images of the node to ``images``, in place of its earlier images.

        Parameters
        ----------
        name : str
            The node.
        images : iterable of ContainerImage
            Each counts under all its names, each name once for the node.

        Notes
        -----
        *Cost*: proportional to the number of image names of the node.
        """
        held = self._names_of.pop(name, ())
        names: dict[str, None] = {}
        for image in images:
            for image_name in image.names:
                if image_name in names:
                    continue
                names[image_name] = None
                state = self._images.get(image_name)
                if state is None:
                    state = self._images[image_name] = ImageState(image.size_bytes)
                elif len(state.nodes) == 1 and name in state.nodes:
                    # Nobody else has said anything about the size. The state itself must stay,
                    # and the node in it: a scheduling cycle may be looking at it.
                    state.size_bytes = image.size_bytes
                state.nodes.add(name)
        if names:
            self._names_of[name] = tuple(names)
        for image_name in held:
            if image_name not in names:
                self._drop(name, image_name)

    def remove_node(self, name: str) -> None:
        """Remove the node and the images that only it had; an unknown node is ignored."""
        for image_name in self._names_of.pop(name, ()):
            self._drop(name, image_name)

    def _drop(self, name: str, image_name: str) -> None:
        nodes = self._images[image_name].nodes
        nodes.remove(name)
        if not nodes:
            del self._images[image_name]

    def node_images(self, name: str) -> Mapping[str, ImageState]:
        """Return the images of the node, by name.

        The mapping belongs to the caller; the states in it still change with the other nodes.
        """
        images = self._images
        return {image_name: images[image_name] for image_name in self._names_of.get(name, ())}


def normalized_image_name(name: str) -> str:
    """Return the name under which nodes report the image: with ``:latest`` if it has no tag.

    A colon before the last slash belongs to the registry's port, not to a tag.
    """
    if name.rfind(":") <= name.rfind("/"):
        return name + ":latest"
    return name
