"""What may befall a request at the API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.fakes.api_objects import ApiProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.storm.requests import Request
    from tests.storm.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a request.

    Attributes
    ----------
    carried_out
        Whether it has its effect.
    problem
        The answer, if it is not the one that it deserves.
    reset
        There is no answer: the connection breaks.
    hangs
        There is no answer, and the connection stays.
    delay_s
        How long it takes until it has its effect.
    late_s
        How long its answer takes after that.
    """

    carried_out: bool = True
    problem: ApiProblemError | None = None
    reset: bool = False
    hangs: bool = False
    delay_s: float = 0.0
    late_s: float = 0.0

    @property
    def is_bad(self) -> bool:
        """Whether the answer is lost or another one."""
        return self.problem is not None or self.reset or self.hangs


@dataclass(slots=True)
class Trouble:
    """A share of some requests has a fate, for some time."""

    label: str
    share: float
    until_s: float
    concerns: Callable[[str, Request], bool]
    fate: Fate


NEVER_S: Final = 1e9


class Troubles:
    """All that befalls requests at this time."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._rng = simulation.rng("troubles")
        self.active: list[Trouble] = []
        self.last_s = {"leases": -NEVER_S, "reads": -NEVER_S, "writes": -NEVER_S}
        """When a request was answered otherwise than it should be the last time, by its sort."""
        self.hung_s = -NEVER_S
        """When a request was answered late, or never, the last time."""

    def fate(self, replica: str, request: Request) -> Fate | None:
        """Return what becomes of a request; None when it is answered as it should be."""
        active = self.active
        if not active:
            return None
        now_s = self._simulation.now_s
        for trouble in list(active):
            if trouble.until_s <= now_s:
                active.remove(trouble)
            elif trouble.concerns(replica, request) and self._rng.random() < trouble.share:
                self._simulation.counts[trouble.label] += 1
                sort = "writes" if request.is_write else "reads"
                self.last_s["leases" if request.resource == "leases" else sort] = now_s
                if trouble.fate.hangs or trouble.fate.delay_s or trouble.fate.late_s:
                    self.hung_s = now_s
                return trouble.fate
        return None


SHUTTING_DOWN: Final = ApiProblemError(
    503, "ServiceUnavailable", "apiserver is shutting down", retry_after_s=1
)
TOO_MANY: Final = ApiProblemError(
    429, "TooManyRequests", "Too many requests, please try again later.", retry_after_s=1
)
INTERNAL: Final = ApiProblemError(500, "InternalError", "etcdserver: request timed out")
FORBIDDEN: Final = ApiProblemError(403, "Forbidden", "pods/binding is forbidden")
CONFLICT: Final = ApiProblemError(409, "Conflict", "the object has been modified")
GATEWAY: Final = ApiProblemError(504, "Timeout", "the server was unable to return a response")
