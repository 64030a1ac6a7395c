"""Every hostile spec is valid: the real API server takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import make_node
from tests.hostile import arranging
from tests.hostile.catalogue import SPECS, ground
from tests.hostile.tenant import HostileSpec, Tenant

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.controlplane

FEW = 10
"""Of objects of one kind, which are alike."""

TENANT = Tenant("berth", tuple(f"node-{index:06}" for index in range(FEW)))


@pytest.fixture(scope="module")
def api(controlplane_binaries) -> Iterator[BlockingApi]:
    with ControlPlane(audit=False) as plane, BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many([*ground(), *map(make_node, TENANT.node_names)])
        yield api


def test_there_are_at_least_forty_of_them() -> None:
    assert len({spec.name for spec in SPECS}) == len(SPECS) >= 40


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_api_server_takes_it(api: BlockingApi, spec: HostileSpec) -> None:
    objects = list(arranging.by_kind(spec.make(TENANT), FEW))
    api.run(arranging.create(api.client, objects))
    if spec.change is not None:
        api.run(arranging.change(api.client, spec, objects[0][0], 1))
    api.run(arranging.delete(api.client, objects))
    assert api.pods(TENANT.namespace) == []
