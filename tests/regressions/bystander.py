"""Plugins that a scenario tells what to do: somebody's own, beside all the default ones."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from plugins.framework.cluster_events import Action, ClusterEvent, EventRegistration, Hint, Resource
from plugins.framework.interfaces import (
    FilterPlugin,
    PermitPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from plugins.framework.results import PROCEED
from plugins.framework.status import SUCCESS, Code, Status, unschedulable
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Any, Self

    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.runtime.profile_map import Profiles


HELD_S = 900.0
"""Longer than any scenario takes: nobody waits for it."""

_STRIDE_S: Final = 1 / 1024
"""CPU seconds between two looks at the budget: no sum of them is rounded."""

P = TypeVar("P", bound="Plugin")


def made_for(profiles: Profiles, kind: type[P]) -> P:
    """Return the plugin of a kind that was made for the only profile."""
    (framework,) = profiles
    plugins = {each for point in framework.points.values() for each in point}
    (found,) = (each for each in plugins if isinstance(each, kind))
    return found


class Bystander(PreEnqueuePlugin, PreFilterPlugin, ReservePlugin, PermitPlugin):
    """Keeps pods out, holds them, fails, or lets something happen in the middle of a cycle.

    Attributes
    ----------
    kept_out
        Names of pods that may not be tried. They may be worth a look when a node is new.
    meanwhile
        What happens in the middle of the next cycle: the snapshot is taken, the filters have
        not been asked.
    held
        Names of pods that Permit holds until somebody decides.
    fails_reserve
        The next Reserve ends with an error.
    needs_s
        CPU seconds that it needs to judge a pod, by the pod's name.
    used_s
        What it has used of ``cpu`` so far, by namespace.
    """

    name = "Bystander"

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.kept_out: set[str] = set()
        self.meanwhile: list[Callable[[], None]] = []
        self.held: set[str] = set()
        self.fails_reserve = False
        self.cpu = FakeClock()
        self.needs_s: dict[str, float] = {}
        self.used_s: Counter[str] = Counter()

    def in_place_of(self, other: Bystander) -> Self:
        """Go on with what the plugin of an earlier profile was told; return itself."""
        vars(self).update(
            kept_out=other.kept_out,
            meanwhile=other.meanwhile,
            held=other.held,
            fails_reserve=other.fails_reserve,
            cpu=other.cpu,
            needs_s=other.needs_s,
            used_s=other.used_s,
        )
        return self

    def pre_enqueue(self, pod: Pod) -> Status:
        return unschedulable("kept out") if pod.metadata.name in self.kept_out else SUCCESS

    def events_to_register(self) -> Sequence[EventRegistration]:
        new_node = ClusterEvent(Resource.NODE, Action.ADD)
        return (EventRegistration(new_node, lambda pod, old, new: Hint.QUEUE),)

    def pre_filter(self, state, info, nodes):
        happening, self.meanwhile = self.meanwhile, []
        for each in happening:
            each()
        for _ in range(round(self.needs_s.get(info.name, 0.0) / _STRIDE_S)):
            state.budget.check()
            self.cpu.advance(_STRIDE_S)
            self.used_s[info.namespace] += _STRIDE_S
        return PROCEED

    def reserve(self, state, info, node_name):
        fails, self.fails_reserve = self.fails_reserve, False
        return Status(Code.ERROR, ("no luck",)) if fails else SUCCESS

    def unreserve(self, state, info, node_name):
        pass

    def permit(self, state, info, node_name):
        return (Status(Code.WAIT), HELD_S) if info.name in self.held else (SUCCESS, 0.0)


class Judge(FilterPlugin):
    """Lets every pod onto every node and signs it, so that its answers are kept; fails on request.

    Attributes
    ----------
    fails
        The next question raises.
    """

    name = "Judge"
    reads_pods = False

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.fails = False

    def signature(self, info) -> Hashable:
        return ()

    def filter_one(self, state, info, node_info):
        fails, self.fails = self.fails, False
        if fails:
            raise RuntimeError("no luck")
        return SUCCESS
