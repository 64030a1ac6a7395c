"""Berths that have been through something, and what they say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.deploy.eventful_life import Life
    from tests.deploy.queries import Exposed
    from tests.deploy.troubled_life import TroubledLife


@pytest.fixture(scope="session")
def life(controlplane_binaries: None) -> Life:
    """A berth that has elected itself, placed pods, refused one, evicted one, bound a volume."""
    from tests.deploy.eventful_life import live

    return live()


@pytest.fixture(scope="session")
def troubled_life(controlplane_binaries: None) -> TroubledLife:
    """A berth whose profile, plugin, node metric and configuration file have all gone wrong."""
    from tests.deploy.troubled_life import live

    return live()


@pytest.fixture(scope="session")
def exposed(life: Life, troubled_life: TroubledLife) -> Exposed:
    """What these berths exposed."""
    from tests.deploy.queries import Exposed

    return Exposed(life.metrics, troubled_life.unwatched)
