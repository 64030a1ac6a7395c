"""The options of the operator, from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping


class OperatorOptions(Value, frozen=True):
    """Which SchedulingProfiles are applied, and what they may contain.

    Parameters
    ----------
    enabled
        Whether the operator runs.
    allow_python
        Whether a SchedulingProfile may name Python code in a ConfigMap, which then runs with all
        permissions of Berth.
    namespace
        The namespace of these ConfigMaps; if it is empty, none can be used.
    selector
        Labels that a SchedulingProfile must have to be applied, for clusters with several Berths.
    scheduler_names
        The schedulerNames that SchedulingProfiles may serve; None for any.
    extender_urls
        Allowed URL prefixes of their extenders; if it is empty, extenders are not allowed.
    kopf_kubeconfig
        A separate kubeconfig for kopf; None for the kubeconfig of the other connections.
    """

    enabled: bool = False
    allow_python: bool = False
    namespace: str = ""
    selector: Mapping[str, str] = msgspec.field(default_factory=dict)
    scheduler_names: frozenset[str] | None = None
    extender_urls: tuple[str, ...] = ()
    kopf_kubeconfig: str | None = None
