"""The profiles by ``schedulerName``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.framework.status import SUCCESS, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cache.objects import Pod
    from plugins.framework.cluster_events import EventRegistration
    from scheduler.runtime.framework_runner import FrameworkRunner


class Profiles:
    """Store all profiles, and return the profile that is responsible for a pod.

    Notes
    -----
    *Concurrency*: any thread; :meth:`swap` replaces all of them at once. A cycle and its binding
    use the profile with which they started, so they never see a partial change.

    At the start of the scheduler there are no profiles until the first ones are created, and no pod
    belongs to this scheduler.
    """

    def __init__(self, frameworks: Iterable[FrameworkRunner] = ()) -> None:
        self.version = 0
        """Grows whenever other profiles take over."""
        self._by_name: Mapping[str, FrameworkRunner] = _by_name(frameworks)

    def __iter__(self) -> Iterator[FrameworkRunner]:
        return iter(self._by_name.values())

    def swap(self, frameworks: Iterable[FrameworkRunner]) -> None:
        """Put these profiles in place of those that there are.

        A caller must then notify every object that stores results of a profile: see
        :class:`scheduler.profiles.profile_swap.ProfileSwap`.

        Raises
        ------
        ValueError
            When there is none; those that there are stay.
        """
        by_name = _by_name(frameworks)
        if not by_name:
            raise ValueError("there must be at least one profile")
        self._by_name = by_name
        self.version += 1

    def names(self) -> frozenset[str]:
        """Return every schedulerName that is served."""
        return frozenset(self._by_name)

    def get(self, scheduler_name: str) -> FrameworkRunner | None:
        """Return the profile for a schedulerName, or None when it is somebody else's."""
        return self._by_name.get(scheduler_name)

    def is_ours(self, pod: Pod) -> bool:
        """Return whether the pod asks for one of the profiles."""
        return pod.spec.scheduler_name in self._by_name

    def pre_enqueue(self, pod: Pod) -> Status:
        """Ask the pod's profile whether it may become active."""
        framework = self._by_name.get(pod.spec.scheduler_name)
        return SUCCESS if framework is None else framework.pre_enqueue(pod)

    def sort_key(self, pod: Pod, since_s: float) -> tuple[float, ...]:
        """Return the pod's place in the queue; all profiles sort alike."""
        return next(iter(self._by_name.values())).sort_key(pod, since_s)

    def account(self, pod: Pod) -> tuple[str, float] | None:
        """Return who is charged with the pod's attempts, and by which weight, if anybody is."""
        return next(iter(self._by_name.values())).account(pod)

    def registrations(self, scheduler_name: str) -> Mapping[str, tuple[EventRegistration, ...]]:
        """Return what each plugin of a profile wants to hear of."""
        framework = self._by_name.get(scheduler_name)
        return {} if framework is None else framework.event_registrations()


def _by_name(frameworks: Iterable[FrameworkRunner]) -> Mapping[str, FrameworkRunner]:
    return {framework.profile_name: framework for framework in frameworks}
