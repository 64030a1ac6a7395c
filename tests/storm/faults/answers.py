"""What befalls requests: answers and effects that are lost, refusals, and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.fakes.api_objects import ApiProblemError
from tests.storm.faults.registry import (
    action,
    is_bind,
    is_delete,
    is_event,
    is_write,
    more_pods,
    trouble,
)
from tests.storm.objects import NAMESPACES
from tests.storm.troubles import FORBIDDEN, GATEWAY, INTERNAL, SHUTTING_DOWN, TOO_MANY, Fate

if TYPE_CHECKING:
    import random

    from tests.storm.requests import Request
    from tests.storm.world import World

MISSING: Final = ApiProblemError(404, "NotFound", 'admission webhook "bind" denied: not found')
QUOTA: Final = ApiProblemError(
    429, "TooManyRequests", 'admission webhook "bind" denied: not now', retry_after_s=25
)
"""What a webhook on bindings says of its own."""


_CONCERNS: Final = (is_bind, is_bind, is_write, is_write, is_delete)


@action()
def answers_get_lost(world: World, dice: random.Random) -> None:
    """F16: a write has its effect, and its answer never comes."""
    fate, how = dice.choice(
        (
            (Fate(reset=True), "connection reset"),
            (Fate(hangs=True), "no answer"),
            (Fate(problem=INTERNAL), "500"),
            (Fate(problem=GATEWAY), "504"),
        )
    )
    concerns = dice.choice(_CONCERNS)
    trouble(world, dice, f"F16 effect, then {how}", dice.choice((0.3, 1.0)), concerns, fate)


@action()
def requests_get_lost(world: World, dice: random.Random) -> None:
    """F16: a write has no effect, and nobody says so."""
    fate, how = dice.choice(
        (
            (Fate(False, reset=True), "connection reset"),
            (Fate(False, hangs=True), "no answer"),
            (Fate(False, problem=INTERNAL), "500"),
        )
    )
    concerns = dice.choice(_CONCERNS)
    trouble(world, dice, f"F16 no effect, {how}", dice.choice((0.3, 1.0)), concerns, fate)


@action(1.0)
def forbidden(world: World, dice: random.Random) -> None:
    """F18: bindings are forbidden."""
    trouble(world, dice, "F18 bind 403", 1.0, is_bind, Fate(False, FORBIDDEN))


@action()
def refusals(world: World, dice: random.Random) -> None:
    """F19: writes are refused for now."""
    problem = dice.choice((TOO_MANY, SHUTTING_DOWN, INTERNAL))
    label = f"F19 write refused with {problem.status}"
    trouble(world, dice, label, dice.choice((0.3, 1.0)), is_write, Fate(False, problem))


@action()
def slow_binds(world: World, dice: random.Random) -> None:
    """F20: some bindings take long, with or without an effect at the end."""
    fate = Fate(delay_s=dice.choice((0.5, 5.0, 29.0)))
    trouble(world, dice, "F20 slow bind", dice.choice((0.1, 0.5)), is_bind, fate)


@action()
def slow_writes(world: World, dice: random.Random) -> None:
    """F20: some writes take long."""
    fate = Fate(delay_s=dice.choice((0.5, 5.0)))
    trouble(world, dice, "F20 slow write", dice.choice((0.1, 0.5)), is_write, fate)


@action(1.0)
def events_fail(world: World, dice: random.Random) -> None:
    """F30: nobody takes Events."""
    fate = Fate(False, dice.choice((INTERNAL, TOO_MANY)))
    trouble(world, dice, "F30 Event refused", 1.0, is_event, fate)


@action(1.5)
def webhook_fails(world: World, dice: random.Random) -> None:
    """F18, F19: a webhook on the bindings of one namespace answers for itself, maybe for long."""
    namespace, problem = dice.choice(NAMESPACES), dice.choice((MISSING, INTERNAL, INTERNAL, QUOTA))

    def concerns(replica: str, request: Request) -> bool:
        return request.verb == "bind" and request.namespace == namespace

    label = f"F19 webhook answers {problem.status}"
    trouble(world, dice, label, 1.0, concerns, Fate(False, problem), (4.0, 45.0))
    for after_s in (0.0, 0.5, 2.0):
        world.simulation.after(after_s, lambda: more_pods(world, dice))
