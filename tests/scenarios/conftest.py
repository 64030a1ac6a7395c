"""What several scenarios live in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.scenarios.profile_world import World


@pytest.fixture(scope="module")
def shared(controlplane_binaries: None) -> Iterator[World]:
    """A control plane that knows SchedulingProfiles, for all tests of a file."""
    from tests.controlplane.blocking_api import BlockingApi
    from tests.controlplane.control_plane import ControlPlane
    from tests.scenarios.profile_world import make_world

    with ControlPlane() as plane, BlockingApi(plane.admin_kubeconfig) as api:
        world = make_world(plane, api)
        world.profiles.install()
        yield world


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    """The shared world, without SchedulingProfiles before and after."""
    yield shared
    shared.clear()
