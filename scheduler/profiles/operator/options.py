"""What the command line says about SchedulingProfiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    """Which SchedulingProfiles are taken over, and what they may bring.

    Parameters
    ----------
    enabled
        Whether there is an operator at all.
    allow_python
        Whether a SchedulingProfile may name Python in a ConfigMap: code with all rights of ours.
    namespace
        Where such ConfigMaps have to be; empty for nowhere.
    selector
        Labels that a SchedulingProfile must have to be ours, for clusters with several berths.
    scheduler_names
        The only names that they may serve; None for any.
    extender_urls
        Where their extenders may be: these URLs and what is below. None of them, no extenders.
    kopf_kubeconfig
        Another way to the API server for kopf alone; None for that of everything else.
    """

    enabled: bool = False
    allow_python: bool = False
    namespace: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    scheduler_names: frozenset[str] | None = None
    extender_urls: tuple[str, ...] = ()
    kopf_kubeconfig: str | None = None
