"""Build the body of an Event within the API server's limits.

*Source*: k8s.io/api/events/v1 and client-go tools/events, event_recorder.go (1.36); the limits are
those of kube-apiserver, pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scheduler.api_writes.event_series import POD
from scheduler.client.timestamps import api_micro_time

if TYPE_CHECKING:
    from cache.objects import PodMeta
    from scheduler.api_writes.event_series import ObjectType, Occurrence

API_VERSION: Final = "events.k8s.io/v1"

NOTE_LIMIT_BYTES: Final = 1024
NAME_LIMIT: Final = 253
INSTANCE_LIMIT: Final = 128

POLICY_API_VERSION: Final = "scheduling.berth.dev/v1alpha1"
POLICY_KIND: Final = "SchedulingProfile"

POLICY_ANNOTATION: Final = "scheduling.berth.dev/policy"
"""Says which policy decided, such as ``schedulingprofile/gpu@7``."""

DEFAULT_NAMESPACE: Final = "default"
"""Of Events about what has no namespace."""

_CUT_MARK: Final = " ..."


def cut_note(note: str) -> str:
    """Return a note of at most `NOTE_LIMIT_BYTES` bytes of UTF-8, with a mark where it was cut.

    *Source*: kube-scheduler 1.36, pkg/scheduler/schedule_one.go, truncateMessage, which counts
    bytes too but may cut a character in two.
    """
    if note.isascii():
        if len(note) <= NOTE_LIMIT_BYTES:
            return note
        return note[: NOTE_LIMIT_BYTES - len(_CUT_MARK)] + _CUT_MARK
    # Half a surrogate pair, from a message that was not text, cannot be sent at all.
    encoded = note.encode(errors="replace")
    if len(encoded) > NOTE_LIMIT_BYTES:
        encoded = encoded[: NOTE_LIMIT_BYTES - len(_CUT_MARK)] + _CUT_MARK.encode()
    return encoded.decode(errors="ignore")


def event_name(pod_name: str, stamp: int) -> str:
    """Return the name of an Event: the pod's and `stamp` in hex, always a valid one.

    Parameters
    ----------
    stamp
        Different for each Event of this process: what makes the name unique.

    Notes
    -----
    Differs: where kube-scheduler falls back to a bare UUID, a name that is too long is cut, so
    that it still says whose Event it is.
    """
    suffix = f".{stamp:x}"
    name = pod_name + suffix
    if len(name) <= NAME_LIMIT:
        return name
    # A cut may leave a dot or a dash at the end, which cannot stand before a dot.
    return pod_name[: NAME_LIMIT - len(suffix)].rstrip(".-") + suffix


def valid_instance(instance: str) -> str:
    """Return `instance` as a reportingInstance: cut to its limit, never empty."""
    return instance[:INSTANCE_LIMIT] or "unknown"


def event_body(
    first: Occurrence, name: str, count: int, last_s: float, component: str, instance: str
) -> dict[str, Any]:
    """Return a whole Event about a pod or another object, to be created.

    The policy that decided it is told in an annotation, and as what is related if it is an object
    of the API and nothing else is. References have no field for a generation.

    Parameters
    ----------
    first
        How it happened first.
    count
        How often; more than once makes it a series.
    last_s
        When it happened last, in seconds since the epoch.
    """
    pod, policy = first.pod, first.policy
    namespace = pod.namespace or DEFAULT_NAMESPACE
    body: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": api_micro_time(first.at_s),
        "reportingController": component,
        "reportingInstance": instance,
        "regarding": _reference(pod, first.type),
        "type": first.event_type,
        "reason": first.reason,
        "action": first.action,
        "note": first.note,
    }
    if policy is not None:
        body["metadata"]["annotations"] = {POLICY_ANNOTATION: str(policy)}
        if policy.uid:
            body["related"] = {
                "apiVersion": POLICY_API_VERSION,
                "kind": POLICY_KIND,
                "name": policy.resource_name,
                "uid": policy.uid,
            }
    if first.related is not None:
        body["related"] = _reference(first.related, POD)
    if count > 1:
        body |= series_patch(count, last_s)
    return body


def _reference(metadata: PodMeta, type_: ObjectType) -> dict[str, str]:
    return {
        "apiVersion": type_.api_version,
        "kind": type_.kind,
        "namespace": metadata.namespace or DEFAULT_NAMESPACE,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }


def series_patch(count: int, last_s: float) -> dict[str, Any]:
    """Return what tells the API server that an Event has happened `count` times by now."""
    return {"series": {"count": count, "lastObservedTime": api_micro_time(last_s)}}
