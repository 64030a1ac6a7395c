"""The result of a plugin: a code, the plugin that returned it, and readable reasons.

A status is a value, never an exception, and never true or false: ``if status:`` could be read as
"it succeeded" or as "there is a status", so it raises.

*Source*: k8s.io/kube-scheduler framework/interface.go, Code and Status (1.36).
"""

from __future__ import annotations

from enum import IntEnum
from typing import NoReturn

from cache.value import Value


class Code(IntEnum):
    """The decision of a plugin. The numbers are kube-scheduler's and appear in ``explain``."""

    SUCCESS = 0
    """Go on."""
    ERROR = 1
    """The plugin itself failed: the pod is tried again after its backoff, as if nobody had refused
    it."""
    UNSCHEDULABLE = 2
    """Not here now; preempting other pods may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Not here, and preempting other pods cannot help."""
    WAIT = 4
    """Permit only: hold the pod until it is allowed, rejected or times out."""
    SKIP = 5
    """Nothing to do for this pod: the coupled Filter, Score or Bind is passed over."""
    PENDING = 6
    """Not now, and the plugin will say when: requeued without backoff."""

    @property
    def title(self) -> str:
        """kube-scheduler's spelling, for example ``UnschedulableAndUnresolvable``."""
        return _TITLES[self]


_TITLES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

REJECTIONS = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})
"""The codes that say "no" about a pod, as opposed to a failure of the scheduler's own."""


class Status(Value, frozen=True):
    """The result of one plugin call.

    Parameters
    ----------
    code
        The decision.
    reasons
        Short readable sentences, counted over nodes in the pod's condition.
    plugin
        The plugin that decided; set by the framework runner when the plugin leaves it empty.
    error
        The exception behind ``Code.ERROR``, for the log; never shown to users.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: BaseException | None = None

    @property
    def is_success(self) -> bool:
        """Whether to go on. ``Skip`` and ``Wait`` are not success: ask for them by code."""
        return self.code is Code.SUCCESS

    @property
    def is_rejection(self) -> bool:
        """Whether this is a rejection of the pod rather than an error."""
        return self.code in REJECTIONS

    @property
    def message(self) -> str:
        """The reasons joined in one line."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the same status with ``plugin`` as its plugin, unless it has one already."""
        return self if self.plugin else Status(self.code, self.reasons, plugin, self.error)

    def __bool__(self) -> NoReturn:
        raise TypeError("a Status is neither true nor false: ask is_success, or look at code")


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return "not here now; preemption may help"."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return "not here, and preemption cannot help"."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def failure(error: BaseException, doing: str) -> Status:
    """Return the ``Error`` status of an exception caught while ``doing`` something."""
    text = str(error) or type(error).__name__
    return Status(Code.ERROR, (f"{doing}: {text}",), error=error)
