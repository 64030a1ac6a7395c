"""What all extras have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tests.storm.cluster import OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scheduler.client.credentials import Credentials
    from scheduler.informers.reflector_options import ReflectorOptions
    from scheduler.kinds import WatchedKind
    from scheduler.profiles.live_profiles import LiveProfiles
    from tests.storm.etcd import Change
    from tests.storm.machine import Machine
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World


class Actions:
    """The actions of one extra.

    Attributes
    ----------
    acts
        By name; the names of all extras are different.
    weights
        How often each is chosen, beside those of :mod:`tests.storm.users`.
    """

    def __init__(self) -> None:
        self.acts: dict[str, Callable[..., object]] = {}
        self.weights: dict[str, float] = {}

    def __call__(self, weight: float) -> Callable[[Any], Any]:
        """Register a function that is called with the world and with dice."""

        def register(act: Any) -> Any:
            self.acts[act.__name__] = act
            self.weights[act.__name__] = weight
            return act

        return register


class Extra:
    """An extra in one world; all methods may do nothing.

    Attributes
    ----------
    NAME
        In settings and on the command line.
    KINDS
        What replicas watch besides.
    PATIENCE_S
        By how much longer it may take to come to rest.
    actions
        What may happen.
    """

    NAME: ClassVar[str]
    KINDS: ClassVar[tuple[WatchedKind[Any], ...]] = ()
    PATIENCE_S: ClassVar[float] = 0.0
    actions: ClassVar[Actions]

    def __init__(self, world: World) -> None:
        self.world = world
        self.simulation = world.simulation
        self.etcd = world.servers.etcd
        self.rng = world.simulation.rng(f"extra/{self.NAME}")

    def begin(self) -> None:
        """Fill the cluster, before the first action."""

    def changed(self, resource: str, change: Change) -> None:
        """Act on a change of an object, as somebody in the cluster does."""

    def credentials(self, machine: Machine) -> Credentials | None:
        """Return what a process proves itself with; None for nothing."""
        return None

    def reading(self, options: ReflectorOptions) -> ReflectorOptions:
        """Return how a process lists and watches."""
        return options

    def make_profiles(self, replica: Replica) -> LiveProfiles | None:
        """Return what changes the profiles of a replica; None for the default one for ever."""
        return None

    def names(self) -> set[str]:
        """Return the schedulerNames that Berth serves."""
        return {OWN}

    def calm(self) -> None:
        """End what may keep pods from their nodes."""

    def is_decided_elsewhere(self, pod: dict[str, Any]) -> bool:
        """Return whether it takes more to tell where a pod fits than its resources."""
        return False

    def may_refuse_writes(self) -> bool:
        """Return whether writes may be refused, or not be sent, by what the extra does."""
        return False

    def written(self, replica: Replica, request: Request, status: int) -> None:
        """Check a write about a pod, which has been carried out or refused."""

    def unrest(self, leader: Replica) -> Iterator[tuple[str, str]]:
        """Yield what does not hold yet at rest, as an invariant and a reason."""
        yield from ()
