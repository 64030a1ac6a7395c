"""Thirteen mistakes that Berth once had, put back one at a time.

They were found by reading and trying, before there was a simulation, and each has a test since. A
mistake whose place has changed since is put back at the place where the same thing happens now.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from cache.pod_table import _Values
from plugins.inline_disks import DisksInUse
from plugins.node_volume_limits.usage import VolumeUsage
from scheduler.client.errors import RETRY_AFTER_CAP_S
from scheduler.client.transport import Transport
from tests.regressions.broken_variants import VARIANTS
from tests.storm.mutations.registry import FORMER, Mutation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

_REGRESSION: Final = "tests/regressions/test_regressions.py::test_the_mistake_is_not_made"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake.

    Attributes
    ----------
    text
        What was wrong.
    put_back
        Returns a context in which Berth makes it again.
    test
        A test that finds it without the simulation.
    theme
        Of the worlds that shall notice it; empty for all.
    extra
        That those worlds have; empty for any.
    """

    text: str
    put_back: Callable[[], AbstractContextManager[None]]
    test: str
    theme: str = ""
    extra: str = ""


def _scenario(name: str) -> str:
    return f"{_REGRESSION}[{name}]"


def _variants(*names: str) -> Callable[[], AbstractContextManager[None]]:
    @contextmanager
    def all_of_them() -> Iterator[None]:
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(VARIANTS[name]())
            yield

    return all_of_them


@contextmanager
def _followers_are_kept() -> Iterator[None]:
    """Keep what follows the columns for ever, as the columns themselves once did."""
    followers: list[object] = []

    def kept(real: Any) -> Any:
        def init(self: Any, *args: Any) -> None:
            followers.append(self)
            real(self, *args)

        return init

    with (
        patch.object(DisksInUse, "__init__", kept(DisksInUse.__init__)),
        patch.object(VolumeUsage, "__init__", kept(VolumeUsage.__init__)),
    ):
        yield


@contextmanager
def _tables_are_never_tidied() -> Iterator[None]:
    with patch.object(_Values, "is_crowded", property(lambda self: False)):
        yield


@contextmanager
def _every_retry_after_holds_everything() -> Iterator[None]:
    def hold(self: Any, limiter: Any, error: Any, retry_after_s: float) -> None:
        limiter.hold_until(self._clock() + min(retry_after_s, RETRY_AFTER_CAP_S))

    with patch.object(Transport, "_hold", hold):
        yield


MISTAKES: Final[dict[str, Mistake]] = {
    "B1": Mistake(
        "A binding that is answered 5xx is sent again for ever, and holds its room and its slot",
        _variants("bindings-are-sent-for-ever"),
        _scenario("96579-bind-fails-for-ever"),
        theme="webhooks",
    ),
    "B2": Mistake(
        "The reaper confirms a pod whatever the watch has reported since, and what it has "
        "confirmed is not removed when the watch never showed it with its node",
        _variants(
            "answers-count-whatever-has-happened-since", "only-what-is-assumed-is-given-back"
        ),
        _scenario("own-deleted-before-its-confirmation"),
        "losses",
    ),
    "B3": Mistake(
        "A plugin that signs and fails once leaves its kept verdicts half updated",
        _variants("half-followed-verdicts-are-kept"),
        _scenario("own-plugin-that-fails-once"),
        extra="policies",
    ),
    "B4": Mistake(
        "A 404 at the binding loses a pod that still exists",
        _variants("not-found-means-gone"),
        _scenario("96579-not-found-and-still-there"),
        theme="webhooks",
    ),
    "B5": Mistake(
        "A pod whose last version cannot be decoded is never removed",
        _variants("what-leaves-has-to-be-readable"),
        _scenario("own-unreadable-pod-leaves"),
        theme="oddities",
    ),
    "B6": Mistake(
        "An exception after the assumption leaves the pod assumed, and one in the report of a "
        "failure ends the scheduling thread",
        _variants(
            "broken-cycles-leave-their-pods-assumed",
            "failures-are-reported-or-nothing-is-scheduled",
        ),
        _scenario("50106-hand-over-breaks-down"),
        theme="oddities",
    ),
    "B7": Mistake(
        "Profiles and shadows that were replaced leave what follows the columns behind",
        _followers_are_kept,
        "tests/scheduler/cycle/test_reloads_leave_nothing.py::"
        "test_a_thousand_reloads_and_shadows_with_storage_plugins_leave_everything_as_it_was",
        extra="policies+incidents",
    ),
    "B8": Mistake(
        "A profile that goes and comes back during a binding that fails then loses the pod",
        _variants("profiles-that-were-away-lose-their-pods"),
        _scenario("102790-profile-comes-back"),
        extra="policies",
    ),
    "B9": Mistake(
        "Tables of label values are tidied only when somebody asks, and grow with every value "
        "ever seen",
        _tables_are_never_tidied,
        "tests/cache/test_term_index.py::"
        "test_values_of_pods_that_are_gone_are_forgotten_though_nobody_asks",
        extra="incidents+hostile",
    ),
    "B10": Mistake(
        "After a restore of etcd what is known does not go back with it",
        _variants("stores-never-go-back"),
        _scenario("own-etcd-is-restored"),
        "history",
    ),
    "B11": Mistake(
        "A Retry-After of one tenant's webhook holds every request",
        _every_retry_after_holds_everything,
        "tests/scheduler/client/test_transport_limits.py::test_retry_after_holds_what_it_is_about",
        theme="webhooks",
    ),
    "B12": Mistake(
        "An assigned pod that cannot be decoded holds nothing on its node",
        _variants("what-cannot-be-read-holds-nothing"),
        _scenario("own-unreadable-pod-holds-room"),
        theme="oddities",
    ),
    "B13": Mistake(
        "Events and pods that are lost are never looked for",
        _variants("nobody-looks-for-lost-events", "nobody-looks-for-lost-pods"),
        _scenario("102790-events-that-a-watch-lost"),
        "losses",
    ),
}

FORMER.update(
    {
        name: Mutation(each.text, each.put_back, each.theme, each.extra)
        for name, each in MISTAKES.items()
    }
)
