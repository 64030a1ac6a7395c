"""What only some worlds have besides pods and nodes: kinds of objects and of troubles.

An extra brings the kinds that replicas watch for it, actions with their weights, who acts in the
cluster because of it, and what must hold. A seed decides which extras a world has; most have none
or one, so that a world stays as fast as what it plays with.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from tests.storm.extras.credentials import CredentialFiles
from tests.storm.extras.devices import Devices
from tests.storm.extras.gates import Gates
from tests.storm.extras.groups import Groups
from tests.storm.extras.hostile import Hostile
from tests.storm.extras.incidents import Incidents
from tests.storm.extras.pages import Pages
from tests.storm.extras.policies import Policies
from tests.storm.extras.volumes import Volumes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.storm.extras.extra import Extra

_ALL: Final = (
    Groups,
    Volumes,
    Policies,
    Devices,
    CredentialFiles,
    Hostile,
    Gates,
    Incidents,
    Pages,
)

EXTRAS: Final[Mapping[str, type[Extra]]] = {extra.NAME: extra for extra in _ALL}

ACTIONS: Final[Mapping[str, Callable[..., object]]] = {
    name: act for extra in EXTRAS.values() for name, act in extra.actions.acts.items()
}

SHARE: Final = 0.12
"""Of the worlds that have an extra. Each extra has dice of its own: a new one changes no old world
that it does not join."""


def extras_of(seed: int) -> tuple[str, ...]:
    """Return the names of the extras of a seed."""
    return tuple(name for name in EXTRAS if random.Random(f"extra/{name}/{seed}").random() < SHARE)


__all__ = ["ACTIONS", "EXTRAS", "SHARE", "extras_of"]
