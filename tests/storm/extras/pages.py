"""Lists of pods and nodes in pages, as API servers from 1.34 on are asked for them.

Other worlds stream all lists. Here changes happen between two pages, a server forgets what the
next page is of, a page does not come, and watches that end in large numbers have everybody list.
What must hold is what holds in all worlds: I4, that a store is what the cluster was at its version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from scheduler.event_handlers.watches import NUMEROUS
from tests.storm import users
from tests.storm.extras.extra import Actions, Extra
from tests.storm.faults.registry import happened, more_pods, trouble
from tests.storm.troubles import GATEWAY, Fate

if TYPE_CHECKING:
    import random

    from scheduler.informers.reflector_options import ReflectorOptions
    from tests.storm.requests import Request
    from tests.storm.world import World

action: Final = Actions()


class Pages(Extra):
    """Pages of so few objects that there are many of them."""

    NAME = "pages"
    PATIENCE_S = 75.0  # a page that does not come is given up after a minute
    actions = action

    def reading(self, options: ReflectorOptions) -> ReflectorOptions:
        """Have pods and nodes listed in pages, of a size that differs from process to process."""
        return replace(options, paged=NUMEROUS, page_size=self.rng.choice((1, 3, 7, 500)))


def _relist(world: World) -> None:
    """Have everybody list pods and nodes again."""
    world.servers.etcd.compact()
    for server in world.servers.frontends:
        for watch in server.watches():
            if watch.resource in NUMEROUS:
                server.end_watch(watch)


def _is_next_page(_: str, request: Request) -> bool:
    return request.verb == "list" and "continue" in request.query


@action(3.0)
def change_between_pages(world: World, dice: random.Random) -> None:
    """Everybody lists, and while the pages come pods and nodes come, change and go."""
    happened(world, "listed in pages while things change")
    _relist(world)
    for _ in range(4):
        world.simulation.after(dice.random() * 0.6, lambda: users.delete_pod(world, dice))
        world.simulation.after(dice.random() * 0.6, lambda: more_pods(world, dice))
        world.simulation.after(dice.random() * 0.6, lambda: users.change_node(world, dice))


@action(2.0)
def pages_expire(world: World, dice: random.Random) -> None:
    """What the next page is of is forgotten while lists are under way."""
    _relist(world)
    for _ in range(3):
        world.simulation.after(dice.random() * 0.6, world.servers.forget_pages)
    more_pods(world, dice)


@action(2.0)
def pages_fail(world: World, dice: random.Random) -> None:
    """Some next pages are refused, or never come."""
    fate = Fate(False, GATEWAY)
    if dice.random() < 0.3:
        fate = Fate(False, hangs=True)
        world.blind_until_s = max(world.blind_until_s, world.simulation.now_s + 90.0)
    trouble(world, dice, "next page fails", 0.3, _is_next_page, fate)
    _relist(world)
    more_pods(world, dice)
