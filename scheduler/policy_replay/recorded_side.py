"""The recorded cluster: each decision is made again by the policy of then, and judged by the other.

The other policy's verdict is about each decision by itself (*open loop*): the cluster is as it was
recorded, whatever the other policy would have done before.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from plugins.framework.attempt_budget import UNLIMITED
from plugins.framework.cycle_state import CycleState
from scheduler.cycle.scheduling_cycle import SchedulingCycle
from scheduler.journal import forms
from scheduler.journal.replay import Replay
from scheduler.policy_replay.frameworks import frameworks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile

DECISION: Final = "decision"
PLAN: Final = "plan"


@dataclass(slots=True)
class OpenLoop:
    """How single decisions would have come out, each in the cluster as it was recorded.

    Attributes
    ----------
    same
        Those with the same node, or without a node both times.
    other_node, only_then, only_now
        Those placed elsewhere, and those that only one of the policies placed.
    """

    same: int = 0
    other_node: int = 0
    only_then: int = 0
    only_now: int = 0

    @property
    def decisions(self) -> int:
        """All decisions compared."""
        return self.same + self.other_node + self.only_then + self.only_now

    def count(self, then: str, now: str) -> None:
        """Count a decision by its nodes; the empty name is none."""
        if then == now:
            self.same += 1
        elif then and now:
            self.other_node += 1
        elif then:
            self.only_then += 1
        else:
            self.only_now += 1


class RecordedSide(Replay):
    """Replay the recorded decisions, measure them, and judge them by the other policy.

    Parameters
    ----------
    plugins
        The plugins that profiles may name.
    profiles
        The other policy.
    on_cost
        Receives the seconds of each decision, after the name of its profile.

    Attributes
    ----------
    on_change
        Receives each record of a change when the recorded cluster follows it.
    on_decision
        Receives each record of a decision, or of a plan for a group, before the changes that were
        not seen then are followed.
    open_loop
        The comparison of single decisions, by the name of the profile.
    """

    def __init__(
        self,
        plugins: Mapping[str, type[Plugin]],
        profiles: Sequence[EffectiveProfile],
        on_cost: Callable[[str, float], object],
    ) -> None:
        self.on_change: Callable[[Sequence[Any]], object] = lambda _: None
        self.on_decision: Callable[[Sequence[Any]], object] = lambda _: None
        self.open_loop: dict[str, OpenLoop] = {}
        self._others_of = profiles
        self._on_cost = on_cost
        self._record: Sequence[Any] | None = None
        super().__init__(plugins)

    def begin(self) -> None:
        """Begin another file."""
        self._begin()

    def _begin(self) -> None:
        super()._begin()
        apply = self.state.apply

        def apply_to_both(record: Sequence[Any]) -> None:
            apply(record)
            self.on_change(record)

        self.state.apply = apply_to_both  # type: ignore[method-assign]
        self._others = frameworks_of(
            self._others_of, self._plugins, self.services, self.profiles.nominated
        )
        self._other_cycle = SchedulingCycle(self.state.snapshot, self.ties, self.services)

    def take(self, record: Sequence[Any]) -> None:
        """Replay one record."""
        self._record = record if record[0] in (DECISION, PLAN) else None
        super().take(record)
        self._pass_on()  # one that could not be made again

    def _pass_on(self) -> None:
        record, self._record = self._record, None
        if record is not None:
            self.on_decision(record)

    def _compare(
        self,
        about: str,
        asked: Sequence[Any],
        then: Any,
        decide: Callable[[], Any],
        unsure: str = "",
    ) -> bool:
        seconds: list[float] = []

        def timed() -> Any:
            began = perf_counter()
            found = decide()
            seconds.append(perf_counter() - began)
            return found

        is_equal = super()._compare(about, asked, then, timed, unsure)
        record = self._record
        if record is None:
            return is_equal
        self._on_cost(record[3], seconds[0])
        if record[0] == DECISION and record[4] is None:
            self._judge(record, asked)
        self._pass_on()
        return is_equal

    def _judge(self, record: Sequence[Any], asked: Sequence[Any]) -> None:
        framework = self._others.get(record[3])
        if framework is None:
            return
        self._answer(asked)
        self._other_cycle.next_start = asked[1]
        decision = self._other_cycle.decide(
            framework, CycleState(UNLIMITED), self.state.info(record[2]), post_filters=False
        )
        counts = self.open_loop.setdefault(record[3], OpenLoop())
        counts.count(record[6][forms.NODE], decision.node_name)
