"""A world: API servers, a cluster, replicas of Berth, and a plan of what befalls them."""

from __future__ import annotations

import asyncio.events
import math
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tests.storm import objects, users
from tests.storm.api_servers import ApiServers
from tests.storm.cluster import OWN, Cluster
from tests.storm.extras import EXTRAS
from tests.storm.invariants import TAKEOVER_S, Invariants
from tests.storm.machine import EPOCH_S, Machine, drift
from tests.storm.network import Network
from tests.storm.replica import Replica
from tests.storm.simulation import InvariantError, Simulation
from tests.storm.troubles import Troubles

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.storm.plans import Action

RESTART_S: Final = 2.0
"""How long a kubelet waits before it starts a container again."""


class World:
    """Everything that one seed plays with.

    Parameters
    ----------
    seed
        Decides everything that the plan does not.
    replicas
        How many there are.
    interleave
        See :class:`~tests.storm.simulation.Simulation`.
    extras
        Names; see :mod:`tests.storm.extras`.
    """

    def __init__(
        self, seed: int, *, replicas: int = 1, interleave: float = 0.0, extras: Sequence[str] = ()
    ) -> None:
        self.simulation = simulation = Simulation(seed, interleave=interleave)
        self.rng = simulation.rng("world")
        self.troubles = Troubles(simulation)
        self.servers = ApiServers(simulation, self.troubles, count=self.rng.choice((1, 2, 3)))
        self.cluster = Cluster(simulation, self.servers)
        self.network = Network(simulation, list(self.servers.frontends))
        self.replicas: dict[int, Replica] = {}
        self.graveyard: list[Replica] = []
        self.incarnations = 0
        self.blind_until_s = 0.0
        """Until when what is known may be old without anybody's mistake."""
        self.calm_s = 0.0
        """When the present calm began; infinite while there is none."""
        self.extras = {name: EXTRAS[name](self) for name in extras}
        self.cluster.others += [extra.changed for extra in self.extras.values()]
        self.invariants = Invariants(self)
        for number in range(replicas):
            self.start_replica(number)

    # --- replicas -----------------------------------------------------------------------------

    def start_replica(self, number: int) -> None:
        """Start a process of Berth in a slot that has none."""
        if number in self.replicas:
            return
        self.incarnations += 1
        name = f"berth-{number}-{self.incarnations}"
        machine = Machine(self.simulation, name, rate=drift(self.rng))
        machine.loop.network = self.network
        asyncio.events._set_running_loop(machine.loop)
        try:
            replica = Replica(
                machine,
                lambda replica, status: self._exited(number, status),
                list(self.extras.values()),
            )
        finally:
            asyncio.events._set_running_loop(None)
        self.replicas[number] = replica
        self.simulation.note(f"start {name}")
        self.invariants.watch(replica)

    def _exited(self, number: int, status: int) -> None:
        """Take in that a process has ended by itself, and start it again."""
        replica = self.replicas[number]
        self.simulation.note(f"exit {replica.name} {status}")
        self.simulation.counts[f"exit {status}"] += 1
        self.invariants.exited(replica, status)
        self.simulation.after(0.0, lambda: self.end_replica(number))

    def end_replica(self, number: int) -> None:
        """End a process at once; it is started again after a while."""
        replica = self.replicas.pop(number, None)
        if replica is None:
            return
        replica.machine.kill()
        for connection in list(self.network.connections):
            if connection.machine is replica.machine:
                self.network.connections.pop(connection)
                connection.frontend.closed(connection)
        self.graveyard.append(replica)
        self.simulation.after(RESTART_S, lambda: self.start_replica(number))

    def leader(self) -> Replica | None:
        """Return the replica that schedules, if there is one."""
        for replica in self.replicas.values():
            if replica.is_scheduling and replica.leads():
                return replica
        return None

    def names(self) -> set[str]:
        """Return the schedulerNames that Berth serves."""
        return {OWN}.union(*(extra.names() for extra in self.extras.values()))

    def is_blind(self) -> bool:
        """Whether what is known may be old without anybody's mistake."""
        return bool(self.servers.lossy) or self.simulation.now_s < self.blind_until_s

    def is_excused(self) -> bool:
        """Whether the same holds, or a leader has begun without knowing all of the one before."""
        since_s = self.simulation.now_s - TAKEOVER_S
        return self.is_blind() or any(
            replica.began_behind_s > since_s
            for replica in (*self.replicas.values(), *self.graveyard)
        )

    # --- running ------------------------------------------------------------------------------

    def begin(self, nodes: int) -> None:
        """Fill the cluster."""
        for name in objects.NAMESPACES:
            self.servers.etcd.create("namespaces", {"metadata": {"name": name}})
        for _ in range(nodes):
            self.add_node(self.rng)
        for _ in range(3):
            users.new_app(self, self.rng)
        for extra in self.extras.values():
            extra.begin()

    def add_node(self, dice: random.Random) -> str:
        """Create a node."""
        self.cluster.nodes_made += 1
        name = f"node-{self.cluster.nodes_made}"
        cpu = dice.choice((2000, 4000, 4000, 8000))
        node = objects.node(name, cpu, dice.choice((2048, 4096)), dice.choice(objects.ZONES))
        self.servers.etcd.create("nodes", node)
        return name

    def plan(self, actions: Sequence[Action]) -> None:
        """Have actions happen at their times from now on."""
        self.calm_s = math.inf
        begun_s = self.simulation.now_s
        for action in actions:
            self.simulation.at(begun_s + action.at_s, lambda action=action: action.happen(self))

    def run(self, for_s: float) -> None:
        """Let time pass."""
        now = self.simulation.now_s
        # Preemption asks the wall clock itself whether a victim is late, and the policies thread
        # its own clock when to look at the configuration again.
        wall = _Wall(self.simulation)
        with (
            patch("plugins.default_preemption.plugin.time", wall),
            patch("scheduler.profiles.live_profiles.monotonic", wall.time),
        ):
            self.simulation.run(now + for_s)

    def calm(self) -> None:
        """End all faults, and wait until everything is at rest.

        Raises
        ------
        InvariantError
            Something does not come to rest.
        """
        simulation = self.simulation
        self.troubles.active.clear()
        self.network.slow_s = 0.0
        self.cluster.dead_kubelets.clear()
        self.cluster.unwanted.clear()
        for name in sorted(self.network.cut_off):
            self.network.heal(name)
        for server in self.servers.frontends:
            server.lag_s = 0.003
            if not server.is_up:
                server.start()
            server.thaw()
            for watch in server.watches():
                watch.drop.clear()
                watch.deaf_until_s = 0.0
        for replica in self.replicas.values():
            replica.machine.resume()
        for extra in self.extras.values():
            extra.calm()
        for controller in self.cluster.controllers.values():
            self.cluster.reconcile(controller)
        self.cluster.sweep()
        simulation.note("calm")
        self.calm_s = simulation.now_s
        self._rest(self._patience_s())
        if self.rng.random() < 0.6:
            # Room appears, and nothing else happens: who waits for it has to be woken.
            simulation.note("room")
            self.cluster.make_room()
            self._rest(45.0 + self._extras_s() + self._silence_s())
        # Standbys do not look for what they have lost; a leader has found it.
        leader = self.leader()
        self.servers.lossy &= {each.name for each in self.replicas.values() if each is not leader}
        simulation.note("at rest")

    def _rest(self, patience_s: float) -> None:
        """Wait until everything is at rest."""
        simulation = self.simulation
        until_s = simulation.now_s + patience_s
        while True:
            self.run(5.0)
            unrest = self.invariants.unrest()
            if unrest is None:
                break
            if simulation.now_s < until_s:
                continue
            if not self.cluster.has_an_overlooked_nomination():
                raise InvariantError(*unrest)
            simulation.counts["evicted again and again, as by kube-scheduler"] += 1
            break

    def _patience_s(self) -> float:
        """Return how long it may take until everything is at rest."""
        patience_s = 40.0 + self._extras_s()
        if self.leader() is None:
            patience_s += 35.0
        patience_s += self._silence_s()
        if self.servers.lossy:
            patience_s += 240.0
        return patience_s

    def _extras_s(self) -> float:
        """Return how much longer it may take by what the extras have done before the calm."""
        return sum(extra.PATIENCE_S for extra in self.extras.values())

    def _silence_s(self) -> float:
        """Return how long it may take until a connection that has fallen silent is given up."""
        return 90.0 if any(each.silent for each in self.network.connections) else 0.0

    def close(self) -> None:
        """End all processes."""
        for replica in [*self.replicas.values()]:
            replica.machine.kill()

    def state(self) -> dict[str, Any]:
        """Return a few counts."""
        pods = [each.data for each in self.servers.etcd.objects["pods"].values()]
        return {
            "pods": len(pods),
            "bound": sum(bool(pod["spec"].get("nodeName")) for pod in pods),
            "pending": len(self.cluster.pending()),
            "nodes": len(self.servers.etcd.objects["nodes"]),
        }


class _Wall:
    """The time, for whoever asks the module ``time``."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def time(self) -> float:
        return EPOCH_S + self._simulation.now_s
