"""The list of faults, and what several of them need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.storm.troubles import Fate, Trouble

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.storm.cluster import Controller
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World

ACTIONS: Final[dict[str, Callable[[World, random.Random], object]]] = {}
WEIGHTS: Final[dict[str, float]] = {}
ONLY_WITH_STANDBYS: Final[set[str]] = set()

SEVERAL_S: Final = (0.05, 0.5, 2.0, 8.0)


def action(weight: float = 3.0, *, standbys: bool = False) -> Callable[[Any], Any]:
    """Register a fault, with its weight among all."""

    def register(act: Any) -> Any:
        ACTIONS[act.__name__] = act
        WEIGHTS[act.__name__] = weight
        if standbys:
            ONLY_WITH_STANDBYS.add(act.__name__)
        return act

    return register


def happened(world: World, what: str) -> None:
    """Count a fault."""
    world.simulation.counts[what] += 1


def trouble(
    world: World,
    dice: random.Random,
    label: str,
    share: float,
    concerns: Callable[[str, Request], bool],
    fate: Fate,
    for_s: tuple[float, ...] = SEVERAL_S,
) -> None:
    """Have something befall a share of some requests for a while."""
    until_s = world.simulation.now_s + dice.choice(for_s)
    world.troubles.active.append(Trouble(label, share, until_s, concerns, fate))


def end_app(world: World, controller: Controller) -> None:
    """Have a controller want no pods any more."""
    controller.wanted = 0
    world.cluster.reconcile(controller)


def more_pods(world: World, dice: random.Random) -> None:
    """Give the scheduler something to do just now."""
    controllers = list(world.cluster.controllers.values())
    if controllers:
        controller = dice.choice(controllers)
        controller.wanted = min(controller.wanted + 2, 12)
        world.cluster.reconcile(controller)


def when_binding(
    world: World, dice: random.Random, happen: Callable[[Replica], object], for_s: float = 0.3
) -> None:
    """Give the leader something to do, and have something happen while it binds."""
    until_s = world.simulation.now_s + for_s

    def look() -> None:
        leader = world.leader()
        if leader is not None and leader.acting.bindings.in_flight:
            happen(leader)
        elif world.simulation.now_s < until_s:
            world.simulation.after(0.0003, look)

    more_pods(world, dice)
    look()


def a_replica(world: World, dice: random.Random) -> Any:
    """Return a process, the leader more often than others; None if there is none."""
    leader = world.leader()
    if leader is not None and dice.random() < 0.6:
        return leader
    replicas = list(world.replicas.values())
    return dice.choice(replicas) if replicas else None


# --- requests that faults are about -------------------------------------------------------------


def is_list(replica: str, request: Request) -> bool:
    """Whether a request lists or watches."""
    return request.verb in ("list", "watch")


def is_bind(replica: str, request: Request) -> bool:
    """Whether a request binds a pod."""
    return request.verb == "bind"


def is_write(replica: str, request: Request) -> bool:
    """Whether a request writes something other than the lease."""
    return request.is_write and request.resource != "leases"


def is_lease(replica: str, request: Request) -> bool:
    """Whether a request is about the lease."""
    return request.resource == "leases"


def is_event(replica: str, request: Request) -> bool:
    """Whether a request writes an Event."""
    return request.resource == "events"


def is_delete(replica: str, request: Request) -> bool:
    """Whether a request deletes something."""
    return request.verb == "delete"
