"""What befalls watches and the caches of API servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.api_objects import ApiProblemError
from tests.storm.faults.registry import action, happened, is_list, more_pods, trouble, when_binding
from tests.storm.troubles import GATEWAY, TOO_MANY, Fate

if TYPE_CHECKING:
    import random

    from tests.storm.api_server import ApiServer
    from tests.storm.replica import Replica
    from tests.storm.watch_cache import Watch
    from tests.storm.world import World


def _watches(world: World) -> list[tuple[ApiServer, Watch]]:
    return [(each, watch) for each in world.servers.frontends for watch in each.watches()]


def _a_watch(world: World, dice: random.Random, *resources: str) -> tuple[ApiServer, Watch] | None:
    found = [
        (server, watch)
        for server, watch in _watches(world)
        if not resources or watch.resource in resources
    ]
    return dice.choice(found) if found else None


@action()
def close_watches(world: World, dice: random.Random) -> None:
    """F1: watches end cleanly, or break."""
    reset = dice.random() < 0.5
    for server, watch in _watches(world):
        if dice.random() < 0.4:
            happened(world, "F1 watch closed" if not reset else "F1 watch broken")
            server.end_watch(watch, reset=reset)


@action(1.5)
def half_open(world: World, dice: random.Random) -> None:
    """F2: a connection brings nothing any more."""
    found = _a_watch(world, dice, "pods", "nodes")
    if found is not None:
        found[1].connection.silent = True
        world.blind_until_s = max(world.blind_until_s, world.simulation.now_s + 180.0)
        happened(world, "F2 half-open watch")


@action()
def compact(world: World, dice: random.Random) -> None:
    """F3: what watches want to go on from is forgotten."""
    world.servers.etcd.compact()
    for server, watch in _watches(world):
        if dice.random() < 0.5:
            server.end_watch(watch)


@action(1.5)
def error_events(world: World, dice: random.Random) -> None:
    """F3: watches end with 410 as an ERROR event."""
    for server, watch in _watches(world):
        if dice.random() < 0.5:
            happened(world, "F3 410 as ERROR event")
            server.fail_watch(watch, ApiProblemError(410, "Expired", "too old resource version"))


@action(1.0)
def all_watches_expire(world: World, dice: random.Random) -> None:
    """F4: all watches end with 410, and lists are refused for a while."""
    world.servers.etcd.compact()
    problem = dice.choice((TOO_MANY, GATEWAY))
    trouble(
        world, dice, "F4 list refused after 410", 0.8, is_list, Fate(False, problem), (2.0, 8.0)
    )
    for server, watch in _watches(world):
        server.end_watch(watch)


@action(1.0)
def restart_servers(world: World, dice: random.Random) -> None:
    """F5: API servers are down for a while."""
    happened(world, "F5 API server restarts")
    for server in world.servers.frontends:
        if server.is_up and dice.random() < 0.7:
            server.stop()
            world.simulation.after(dice.choice((0.5, 5.0, 30.0)), server.start)


@action()
def stale_server(world: World, dice: random.Random) -> None:
    """F6: the watch cache of a server hears nothing, and maybe answers all the same."""
    server = dice.choice(world.servers.frontends)
    server.frozen.update(dice.sample(("pods", "nodes"), dice.choice((1, 2))))
    server.lies = dice.random() < 0.5
    world.blind_until_s = max(world.blind_until_s, world.simulation.now_s + 90.0)
    happened(world, "F6 stale API server")
    for_s = dice.choice((0.5, 4.0, 20.0))

    def compact() -> None:
        """Let everybody list, once others have seen more than the server that is behind."""
        world.servers.etcd.compact()
        for each, watch in _watches(world):
            each.end_watch(watch)

    if server.lies and dice.random() < 0.7:
        more_pods(world, dice)
        world.simulation.after(dice.choice((0.0, 0.3, 0.8)) * for_s, compact)
    world.simulation.after(for_s, server.thaw)


@action(2.0)
def slow_caches(world: World, dice: random.Random) -> None:
    """F11 and others: watches lag, each resource for itself."""
    happened(world, "watch caches lag")
    for server in world.servers.frontends:
        server.lag_s = dice.choice((0.003, 0.1, 1.0, 5.0))
        world.simulation.after(10.0, lambda server=server: setattr(server, "lag_s", 0.003))


@action()
def repeat_events(world: World, dice: random.Random) -> None:
    """F7: events come again."""
    found = _a_watch(world, dice, "pods", "nodes")
    if found is not None:
        found[0].repeat(found[1], dice.choice((1, 5, 50)), dice.choice((0, 1, 5, 20, 60)))
        happened(world, "F7 events repeated")


@action(1.0)
def drop_events(world: World, dice: random.Random) -> None:
    """F8, F9, F10: a watch is not told of something."""
    resource, kind = dice.choice(
        (("pods", "DELETED"), ("pods", "ADDED"), ("pods", "MODIFIED"), ("nodes", "DELETED"))
    )
    for _, watch in _watches(world):
        if watch.resource == resource and dice.random() < 0.7:
            watch.drop.append(kind)
            happened(world, f"to be dropped: {resource} {kind}")


@action(1.5)
def lose_events(world: World, dice: random.Random) -> None:
    """F8, F9: a watch is told of nothing that happens for a while, and goes on."""
    for_s = dice.choice((0.2, 1.5, 5.0))

    def lose(watches: list[Watch]) -> None:
        for watch in watches:
            watch.deaf_until_s = world.simulation.now_s + for_s
            happened(world, "F8-F10 watch that loses all events for a while")

    def lose_confirmations(leader: Replica) -> None:
        found = [each for _, each in _watches(world) if each.connection.machine is leader.machine]
        lose([each for each in found if each.resource == "pods"])

    if dice.random() < 0.6:
        when_binding(world, dice, lose_confirmations)
    elif (found := _a_watch(world, dice, "pods", "nodes")) is not None:
        lose([found[1]])
        more_pods(world, dice)


@action(1.5)
def bad_line(world: World, dice: random.Random) -> None:
    """F28: a line that is no event, or an event that nobody understands."""
    found = _a_watch(world, dice, "pods", "nodes")
    if found is not None:
        line = dice.choice(
            (
                b"{\n",
                b'{"type":"MODIFIED"}\n',
                b'{"type":"FANCY","object":{"metadata":{"name":"x"}}}\n',
                b'{"type":"MODIFIED","object":{"kind":"Pod","spec":7}}\n',
            )
        )
        found[0].send_line(found[1], line)
        happened(world, "F28 malformed line")
