"""Compare a pending pod's desired condition with its current one, and build the patch.

*Source*: pkg/scheduler/schedule_one.go, updatePod; pkg/api/v1/pod/util.go, UpdatePodCondition and
CalculatePodConditionObservedGeneration (1.36, where its feature gate is locked to on).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from cache.value import Value
from scheduler.client.timestamps import api_time

if TYPE_CHECKING:
    from cache.objects import Pod, PodMeta

POD_SCHEDULED: Final = "PodScheduled"

MESSAGE_LIMIT: Final = 32_768
"""Characters of a message that are kept: the API's limit for conditions of newer kinds. A pod's
has none, but a plugin may have quoted something without end."""

TRUST_S: Final = 30.0
"""For so long what we wrote counts for more than what the pod shows: the watch may not have
brought it back yet."""

_CUT_MARK: Final = " ..."


class WantedStatus(Value, frozen=True):
    """What a pod's status should say: ``PodScheduled`` is False.

    Attributes
    ----------
    reason
        The empty string leaves the condition as it is, whatever ``message`` says.
    nominated_node_name
        The empty string for none; None leaves what there is.
    """

    pod: Pod
    reason: str
    message: str
    nominated_node_name: str | None

    @property
    def metadata(self) -> PodMeta:
        """Which pod it is about."""
        return self.pod.metadata

    @property
    def key(self) -> str:
        """``namespace/name``, for people."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def after(self, older: WantedStatus) -> WantedStatus:
        """Return this status as it is when it takes the place of an older one, never written.

        What this one leaves open is as the older one wanted it.
        """
        nominated = self.nominated_node_name
        if nominated is None:
            nominated = older.nominated_node_name
        told = self if self.reason else older
        return replace(
            self, reason=told.reason, message=told.message, nominated_node_name=nominated
        )


class ShownStatus(Value, frozen=True):
    """What a pod's status says.

    Attributes
    ----------
    is_false
        Whether it has a condition ``PodScheduled`` with status False.
    since
        That condition's lastTransitionTime.
    """

    is_false: bool = False
    reason: str = ""
    message: str = ""
    since: str | None = None
    nominated_node_name: str = ""

    @classmethod
    def of(cls, pod: Pod) -> ShownStatus:
        """Return what a pod's own status says."""
        nominated = pod.status.nominated_node_name
        for condition in pod.status.conditions:
            if condition.type == POD_SCHEDULED:
                return cls(
                    condition.status == "False",
                    condition.reason,
                    condition.message,
                    condition.last_transition_time,
                    nominated,
                )
        return cls(nominated_node_name=nominated)


def cut_message(message: str) -> str:
    """Return a message of at most `MESSAGE_LIMIT` characters, with a mark where it was cut."""
    if len(message) <= MESSAGE_LIMIT:
        return message
    return message[: MESSAGE_LIMIT - len(_CUT_MARK)] + _CUT_MARK


def status_patch(
    wanted: WantedStatus, shown: ShownStatus, wall_s: float
) -> tuple[dict[str, Any], ShownStatus]:
    """Return what is to be changed in a pod's status, and what it will say then.

    Parameters
    ----------
    wall_s
        Now, in seconds since the epoch.

    Returns
    -------
    A strategic merge patch of the status, empty when nothing changes. The time of the last
    transition stays as long as the condition is False: a new reason is no transition.
    """
    patch: dict[str, Any] = {}
    is_said = shown.is_false and (shown.reason, shown.message) == (wanted.reason, wanted.message)
    if wanted.reason and not is_said:
        since = (shown.since if shown.is_false else None) or api_time(wall_s)
        condition: dict[str, Any] = {
            "type": POD_SCHEDULED,
            "status": "False",
            "reason": wanted.reason,
            "message": wanted.message,
            "lastProbeTime": None,
            "lastTransitionTime": since,
        }
        if wanted.metadata.generation:
            condition["observedGeneration"] = wanted.metadata.generation
        patch["conditions"] = [condition]
        shown = ShownStatus(True, wanted.reason, wanted.message, since, shown.nominated_node_name)
    nominated = wanted.nominated_node_name
    if nominated is not None and nominated != shown.nominated_node_name:
        patch["nominatedNodeName"] = nominated or None
        shown = replace(shown, nominated_node_name=nominated)
    return patch, shown


class WrittenStatuses:
    """What we wrote into pods lately, and what they therefore say or are about to say.

    Parameters
    ----------
    capacity
        Pods to remember; more than that push the oldest out.

    Notes
    -----
    *Concurrency*: loop-confined.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._by_uid: dict[str, tuple[float, ShownStatus]] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._by_uid)

    def shown_by(self, pod: Pod, now_s: float) -> ShownStatus:
        """Return what a pod says, as far as is known at `now_s` (monotonic seconds)."""
        at_s, shown = self._by_uid.get(pod.metadata.uid, (now_s, None))
        if shown is None or now_s - at_s > TRUST_S:
            return ShownStatus.of(pod)
        return shown

    def remember(self, uid: str, shown: ShownStatus, now_s: float) -> None:
        """Note what was written just now, and forget what nobody would trust any more."""
        self.forget(uid)
        self._by_uid[uid] = now_s, shown
        while True:
            oldest_uid, (at_s, _) = next(iter(self._by_uid.items()))
            if now_s - at_s <= TRUST_S and len(self._by_uid) <= self._capacity:
                return
            del self._by_uid[oldest_uid]

    def forget(self, uid: str) -> None:
        """Believe the pod again."""
        self._by_uid.pop(uid, None)
