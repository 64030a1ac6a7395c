"""The data that plugins store between the extension points of one pod's cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from plugins.framework.attempt_budget import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugins.framework.attempt_budget import AttemptBudget
    from plugins.framework.status import Code

T = TypeVar("T")


Mark: TypeAlias = "tuple[str, str, Code, float]"
"""An extension point, the plugin that has answered there, what it answered, and when, as
``time.perf_counter`` tells. No plugin: the whole point is over. Neither: what comes next begins."""


class StateKey(Generic[T]):
    """A typed name under which one plugin keeps one value in the cycle state.

    Two keys are the same only if they are the same object, so two plugins cannot collide.
    """

    __slots__ = ("clone", "name")

    def __init__(self, name: str, clone: Callable[[T], T] | None = None) -> None:
        self.name = name
        self.clone = clone
        """Copies the value for a what-if; None for a value that nobody changes."""

    def __repr__(self) -> str:
        return f"StateKey({self.name})"


class CycleState:
    """One pod's cycle: values by key, and the plugins that have nothing to do for this pod.

    *Concurrency*: belongs to the scheduling thread until the pod is handed to its binding cycle,
    and to that one afterwards; never to both.
    """

    __slots__ = (
        "_values",
        "budget",
        "marks",
        "parallel_pre_bind",
        "skip_filter",
        "skip_pre_bind",
        "skip_score",
        "waits_in_pre_bind",
    )

    def __init__(self, budget: AttemptBudget = UNLIMITED) -> None:
        self._values: dict[StateKey[Any], Any] = {}
        self.budget = budget
        """What is left for this attempt: asked between terms, constraints and keys of a pod."""
        self.skip_filter: set[str] = set()
        """Names of plugins whose PreFilter said Skip."""
        self.skip_score: set[str] = set()
        """Names of plugins whose PreScore said Skip."""
        self.skip_pre_bind: set[str] = set()
        """Names of plugins whose PreBindPreFlight said Skip."""
        self.parallel_pre_bind: set[str] = set()
        """Names of plugins whose PreBindPreFlight allows others beside it."""
        self.waits_in_pre_bind = False
        """Whether a PreBind may wait for more than its own requests."""
        self.marks: list[Mark] | None = None
        """What has ended when in this cycle; None where nobody measures, as in every what-if."""

    def read(self, key: StateKey[T]) -> T:
        """Return the value under ``key``.

        Raises
        ------
        KeyError
            When nothing was written under it in this cycle.
        """
        try:
            return cast("T", self._values[key])
        except KeyError:
            raise KeyError(f"nothing was written under {key.name} in this cycle") from None

    def get(self, key: StateKey[T]) -> T | None:
        """Return the value under ``key``, or None."""
        return cast("T | None", self._values.get(key))

    def write(self, key: StateKey[T], value: T) -> None:
        """Store ``value`` under ``key``, in place of an earlier value."""
        self._values[key] = value

    def reset(self) -> None:
        """Remove all values, durations included: the cycle begins anew."""
        if self.marks is not None:
            self.marks.clear()
        self._values.clear()
        self.skip_filter = set()
        self.skip_score = set()
        self.skip_pre_bind = set()
        self.waits_in_pre_bind = False

    def copy(self) -> CycleState:
        """Return a state for a what-if, in which each value is cloned by its key's rule."""
        twin = CycleState(self.budget)
        twin._values = {
            key: value if key.clone is None else key.clone(value)
            for key, value in self._values.items()
        }
        twin.skip_filter = set(self.skip_filter)
        twin.skip_score = set(self.skip_score)
        twin.skip_pre_bind = set(self.skip_pre_bind)
        twin.parallel_pre_bind = set(self.parallel_pre_bind)
        twin.waits_in_pre_bind = self.waits_in_pre_bind
        return twin
