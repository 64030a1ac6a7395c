"""What watches know, made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class FakeObjects:
    """Objects of one kind, by name."""

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        self._objects: dict[tuple[str, str], Any] = {}
        for each in objects:
            self.put(each)

    def put(self, obj: Any) -> None:
        """Add an object, or another version of it."""
        self._objects[getattr(obj.metadata, "namespace", ""), obj.metadata.name] = obj

    def get(self, namespace: str, name: str) -> Any:
        return self._objects.get((namespace, name))

    def list(self) -> Sequence[Any]:
        return list(self._objects.values())

    def staleness_s(self, now: float) -> float:
        return 0.0


class FakeWatched:
    """Pods and nodes as the watches brought them: :class:`scheduler.informers.watched.Watched`."""

    def __init__(self, nodes: Iterable[Any] = (), pods: Iterable[Any] = ()) -> None:
        self.nodes = FakeObjects(nodes)
        self.pods = FakeObjects(pods)
        self.all: tuple[Any, ...] = ()
