"""Fixtures of the real control plane, as a pytest plugin that a conftest.py names.

``control_plane`` is one server for the whole session; a test that uses it leaves no nodes and
binds no pods of others, or keeps to objects of its own. ``fresh_control_plane`` is a server of
the test's own, to be filled, killed and restarted at will (about two seconds).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.binaries import find_or_build
from tests.controlplane.control_plane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def controlplane_binaries(request: pytest.FixtureRequest) -> None:
    """Build etcd and kube-apiserver where they are missing, and let the user see it happen."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        find_or_build(["etcd", "kube-apiserver"])
        return
    with capture.global_and_fixture_disabled():
        find_or_build(["etcd", "kube-apiserver"])


@pytest.fixture(scope="session")
def control_plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    """The session's control plane."""
    with ControlPlane() as started:
        yield started


@pytest.fixture
def fresh_control_plane(controlplane_binaries: None) -> Iterator[ControlPlane]:
    """A control plane of the test's own."""
    with ControlPlane() as started:
        yield started
