"""What befalls processes, clocks, networks and the lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.storm.faults.registry import (
    a_replica,
    action,
    happened,
    is_lease,
    more_pods,
    trouble,
    when_binding,
)
from tests.storm.troubles import CONFLICT, Fate

if TYPE_CHECKING:
    import random

    from scheduler.cycle.binding_cycle import BindingJob
    from tests.storm.replica import Replica
    from tests.storm.world import World


@action(2.0)
def pause_replica(world: World, dice: random.Random) -> None:
    """F23: a process stands still."""
    replica = a_replica(world, dice)
    if replica is not None:
        happened(world, "F23 process stands still")
        for_s = dice.choice((0.05, 1.0, 9.0, 20.0))
        more_pods(world, dice)
        world.simulation.after(dice.choice((0.0, 0.002, 0.003)), replica.machine.pause)
        world.simulation.after(for_s / 2, lambda: more_pods(world, dice))
        world.simulation.after(for_s, replica.machine.resume)


@action(1.0)
def pause_leader(world: World, dice: random.Random) -> None:
    """F23: the leader stands still while it binds, and another one leads when it goes on."""
    for_s = dice.choice((16.0, 20.0))

    def pause(leader: Replica) -> None:
        happened(world, "F23 leader stands still while it binds")
        leader.machine.pause()
        world.simulation.after(for_s, leader.machine.resume)

    when_binding(world, dice, pause)


@action(1.5)
def kill_replica(world: World, dice: random.Random) -> None:
    """F26: a process is killed."""
    number = _a_slot(world, dice)
    if number is not None:
        happened(world, "F26 process killed")
        world.simulation.note(f"kill {world.replicas[number].name}")
        world.end_replica(number)


@action(1.5)
def terminate_replica(world: World, dice: random.Random) -> None:
    """F25: a process is told to end."""
    replica = a_replica(world, dice)
    if replica is not None:
        happened(world, "F25 process told to end")
        replica.terminate()
        more_pods(world, dice)


@action()
def jump_wall_clock(world: World, dice: random.Random) -> None:
    """F24: a wall clock jumps."""
    replica = a_replica(world, dice)
    if replica is not None:
        replica.machine.wall_offset_s += dice.choice((-3600.0, 3600.0, 3600.0, 1.0))
        happened(world, "F24 wall clock jumps")
        for after_s in (0.3, 0.8, 1.5):
            world.simulation.after(after_s, lambda: more_pods(world, dice))


@action(1.5)
def partition(world: World, dice: random.Random) -> None:
    """F35: a process cannot reach the API servers."""
    replica = a_replica(world, dice)
    if replica is not None:
        name = replica.name
        world.network.cut_off.add(name)
        happened(world, "F35 process cut off")
        world.simulation.after(
            dice.choice((0.5, 5.0, 14.0, 40.0)), lambda: world.network.heal(name)
        )


@action(1.0)
def slow_network(world: World, dice: random.Random) -> None:
    """Messages take long."""
    world.network.slow_s = dice.choice((0.01, 0.1, 0.5))
    happened(world, "slow network")
    world.simulation.after(5.0, lambda: setattr(world.network, "slow_s", 0.0))


@action(1.5, standbys=True)
def lease_refused(world: World, dice: random.Random) -> None:
    """F21: renewals are refused."""
    fate = Fate(False, CONFLICT)
    trouble(world, dice, "F21 lease 409", 1.0, is_lease, fate, (1.0, 12.0))


@action(1.5)
def lease_hangs(world: World, dice: random.Random) -> None:
    """F22: requests about the lease are not answered, with or without an effect."""
    fate = Fate(dice.random() < 0.5, hangs=True)
    trouble(world, dice, "F22 lease hangs", 1.0, is_lease, fate, (1.0, 6.0, 20.0))


@action(0.7)
def lease_taken(world: World, dice: random.Random) -> None:
    """F21: somebody else writes their name into the lease, or deletes it."""
    etcd = world.servers.etcd
    for key in list(etcd.objects["leases"]):
        happened(world, "F21 lease taken")
        if dice.random() < 0.3:
            world.invariants.requests.lease_deleted_s = world.simulation.now_s
            etcd.delete("leases", key)
            continue
        etcd.edit("leases", key, lambda lease: lease["spec"].update(holderIdentity="somebody-else"))


def _a_slot(world: World, dice: random.Random) -> int | None:
    replica = a_replica(world, dice)
    for number, each in world.replicas.items():
        if each is replica:
            return number
    return None


@action(0.7)
def hand_over_breaks_down(world: World, dice: random.Random) -> None:
    """An error of Berth itself: after a pod is assumed something raises, once or a few times."""
    leader = world.leader()
    if leader is None:
        return
    bindings, left = leader.acting.bindings, [dice.choice((1, 3))]
    if "start" in vars(bindings):
        return

    def start(job: BindingJob) -> None:
        left[0] -= 1
        if left[0] <= 0:
            del bindings.start  # type: ignore[method-assign]
        happened(world, "hand-over breaks down")
        raise MemoryError("simulated")

    bindings.start = start  # type: ignore[method-assign]
    more_pods(world, dice)
