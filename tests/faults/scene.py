"""A simulated world in which a test decides what happens, in virtual time."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.storm import objects
from tests.storm.playing import quiet
from tests.storm.troubles import Fate, Trouble
from tests.storm.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.storm.replica import Replica
    from tests.storm.requests import Request

_LOOK_S = 0.05


class Scene:
    """A world with nodes and pods of which a test decides.

    Attributes
    ----------
    world
        The world; nothing happens in it by chance but the order of events.
    requests
        Every request that API servers have answered or carried out: who, what, and the status.
    """

    def __init__(self, *, seed: int = 1, replicas: int = 1) -> None:
        self.world = World(seed, replicas=replicas)
        self.requests: list[tuple[str, Request, int]] = []
        self.etcd = self.world.servers.etcd
        seen = self.world.servers.written

        def written(name: str, request: Request, status: int, is_answered: bool) -> None:
            self.requests.append((name, request, status))
            seen(name, request, status, is_answered)

        self.world.servers.written = written
        for name in objects.NAMESPACES:
            self.etcd.create("namespaces", {"metadata": {"name": name}})

    # --- what happens -------------------------------------------------------------------------

    def node(self, name: str, cpu_milli: int = 4000) -> None:
        """Create a node, or create it again with another size."""
        if self.etcd.find("nodes", ("", name)) is not None:
            self.etcd.delete("nodes", ("", name))
        self.etcd.create("nodes", objects.node(name, cpu_milli, 65536, "east", pods=500))

    def pods(
        self, name: str, count: int = 1, *, cpu: str = "1", namespace: str = "default", **spec: Any
    ) -> None:
        """Create pods, named after the first one."""
        requests = {"cpu": cpu, "memory": "1Mi"}
        container = {"name": "main", "image": "image", "resources": {"requests": requests}}
        for number in range(count):
            metadata = {"name": f"{name}-{number}", "namespace": namespace, "labels": {}}
            whole = {"schedulerName": "berth", "containers": [container], "priority": 0, **spec}
            self.etcd.create("pods", {"metadata": metadata, "spec": whole, "status": {}})

    def trouble(
        self, concerns: Callable[[Request], bool], fate: Fate, for_s: float = 1e6, share: float = 1
    ) -> None:
        """Have requests meet a fate for some time."""
        until_s = self.world.simulation.now_s + for_s
        self.world.troubles.active.append(
            Trouble("trouble", share, until_s, lambda name, request: concerns(request), fate)
        )

    def drop(self, resource: str, kind: str) -> None:
        """Have all watches of a resource lose their next event of a kind."""
        for server in self.world.servers.frontends:
            for watch in server.watches(resource):
                watch.drop.append(kind)

    def wait(self, holds: Callable[[], bool], within_s: float) -> None:
        """Let time pass until something holds.

        Raises
        ------
        AssertionError
            It did not in so many simulated seconds.
        """
        until_s = self.world.simulation.now_s + within_s
        while not holds():
            assert self.world.simulation.now_s < until_s, f"not within {within_s} s"
            self.world.run(_LOOK_S)

    def run(self, for_s: float) -> None:
        """Let time pass."""
        self.world.run(for_s)

    # --- what is there ------------------------------------------------------------------------

    def leader(self) -> Replica:
        """Wait for a replica that schedules, and return it."""
        self.wait(lambda: self.world.leader() is not None, 60.0)
        found = self.world.leader()
        assert found is not None
        return found

    def pod(self, name: str, namespace: str = "default") -> dict[str, Any]:
        """Return a pod as it is stored."""
        data: dict[str, Any] = self.etcd.get("pods", (namespace, name)).data
        return data

    def bound(self, prefix: str = "") -> dict[str, str]:
        """Return the nodes of the pods that have one, by name."""
        return {
            key[1]: each.data["spec"]["nodeName"]
            for key, each in self.etcd.objects["pods"].items()
            if each.data["spec"].get("nodeName") and key[1].startswith(prefix)
        }

    def sent(self, verb: str, name: str = "") -> int:
        """Return how many requests of a kind there were, about a pod or about all."""
        return sum(
            request.verb == verb and request.name.startswith(name)
            for _, request, _ in self.requests
        )

    def at_rest(self) -> bool:
        """Return whether all that must hold at rest does."""
        return self.world.invariants.unrest() is None


@contextmanager
def scene(*, seed: int = 1, replicas: int = 1) -> Iterator[Scene]:
    """Yield a scene whose log lines are counted and not written."""
    with quiet(Counter()):
        made = Scene(seed=seed, replicas=replicas)
        try:
            yield made
        finally:
            made.world.close()


def is_bind(request: Request) -> bool:
    """Return whether it is a binding."""
    return request.verb == "bind"


def is_list(request: Request) -> bool:
    """Return whether it is a list, in pages or as the beginning of a watch."""
    return request.verb == "list" or "sendInitialEvents" in request.query


def is_event(request: Request) -> bool:
    """Return whether it writes an Event."""
    return request.resource == "events"
