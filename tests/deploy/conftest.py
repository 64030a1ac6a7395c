"""A berth that has been through something, and what it says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.deploy.eventful_life import Life
    from tests.deploy.queries import Exposed


@pytest.fixture(scope="session")
def life(controlplane_binaries: None) -> Life:
    """A berth that has elected itself, placed pods, refused one, evicted one, bound a volume."""
    from tests.deploy.eventful_life import live

    return live()


@pytest.fixture(scope="session")
def exposed(life: Life) -> Exposed:
    """What that berth exposed."""
    from tests.deploy.queries import Exposed

    return Exposed(life.metrics)
