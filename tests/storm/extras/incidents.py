"""Incidents: what has to meet in one certain order, which dice hardly ever bring about.

They are played in calms, one after the other, on nodes of their own (:mod:`tests.storm.stage`):
nothing else happens that would wake a pod which Berth has forgotten, or excuse a mistake. What must
come of an incident is checked at its end, beside all that holds in every world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.fakes.api_objects import ApiProblemError
from tests.storm.extras.extra import Actions, Extra
from tests.storm.extras.incident_scripts import BETWEEN_STEPS, NEEDS, SCRIPTS
from tests.storm.stage import STAGE, AbandonedError, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.storm.replica import Replica
    from tests.storm.stage import Script
    from tests.storm.world import World

IN_A_CALM: Final = 7
"""Incidents in one calm."""

QUIET_S: Final = 14.0
"""So long after the beginning of a calm whoever was to end has ended."""

TRIED_S: Final = 5.0
LAST_S: Final = 200.0
"""So long after the beginning of a calm no incident begins any more."""


class Incidents(Extra):
    """Who plays incidents."""

    NAME = "incidents"
    PATIENCE_S = 300.0
    actions = Actions()

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._left: list[str] = []
        self._until_s = 0.0
        self._number = 0
        self._under_way: Stage | None = None
        world.cluster.limits.append(_allows)

    def calm(self) -> None:
        """Begin with incidents when all is quiet."""
        there = [
            each for each in sorted(SCRIPTS) if NEEDS.get(each, self.NAME) in self.world.extras
        ]
        always = [each for each in there if each in BETWEEN_STEPS]
        others = [each for each in there if each not in BETWEEN_STEPS]
        self._left = self.rng.sample(others, min(len(others), IN_A_CALM - len(always)))
        if self.simulation.interleave:
            self._left += always
        self._until_s = self.simulation.now_s + LAST_S
        self.simulation.after(QUIET_S, self._next)

    def _next(self) -> None:
        if not self._left:
            return
        leader = self.world.leader()
        if self.simulation.now_s > self._until_s:
            self._left.clear()
        elif leader is None or not self._is_quiet():
            self.simulation.after(TRIED_S, self._next)
        else:
            name = self._left.pop()
            self._number += 1
            self.simulation.note(f"> incident {name}")
            self._under_way = stage = Stage(self.world, f"stage-{self._number}", leader)
            self._go_on(name, SCRIPTS[name](stage))

    def _is_quiet(self) -> bool:
        world = self.world
        if any(each.silent for each in world.network.connections) or world.servers.lossy:
            return False
        return not world.is_blind() and all(each.is_ready for each in world.replicas.values())

    def _go_on(self, name: str, script: Script) -> None:
        stage = self._under_way
        assert stage is not None
        try:
            stage.check_undisturbed()
            delay_s = next(script)
        except StopIteration:
            self.simulation.counts[f"incident {name}"] += 1
        except (AbandonedError, ApiProblemError) as error:
            self.simulation.note(f"  abandoned: {error}")
            self.simulation.counts["incident abandoned"] += 1
        else:
            self.simulation.after(delay_s, lambda: self._go_on(name, script))
            return
        stage.clear()
        self.simulation.after(2.0, self._ended)

    def _ended(self) -> None:
        self._under_way = None
        self._next()

    def unrest(self, leader: Replica) -> Iterator[tuple[str, str]]:
        """Yield that incidents are under way."""
        if self._left or self._under_way is not None:
            yield "I3", "incidents do not end"


def _allows(pod: dict[str, Any], node: dict[str, Any]) -> bool:
    """Return whether a pod may go to a node: only those of an incident to that of one."""
    stage = node["metadata"]["labels"].get(STAGE)
    return stage is None or (pod["spec"].get("nodeSelector") or {}).get(STAGE) == stage
