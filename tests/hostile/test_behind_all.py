"""All hostile specs at once on a real API server: others are placed, and nothing stays behind."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench.contenders import Berth
from tests.controlplane.blocking_api import BlockingApi
from tests.controlplane.control_plane import ControlPlane, free_ports
from tests.controlplane.objects import make_namespace, make_node, make_pod
from tests.hostile import arranging
from tests.hostile.catalogue import SPECS, ground
from tests.hostile.tenant import TENANT, Tenant

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

pytestmark = pytest.mark.controlplane

FEW = 1
"""Of objects of one kind, which are alike: each takes the API server long."""

AT_A_TIME = 8
"""Tenants who make their objects: a request may take no longer than half a minute."""

NODES = 30
ORDINARY = 20
DEADLINE_S = 240.0

MOST = 50_000
"""Items of one kind of table when sixty pods and half as many nodes are left: hostile
pods have more in all."""

TENANTS = [Tenant("berth", ("node-000", "node-001"), f"{TENANT}-{spec.name}") for spec in SPECS]


def ordinary(prefix: str) -> list[dict[str, Any]]:
    return [make_pod(f"{prefix}-{i}", cpu="10m", labels={"of": prefix}) for i in range(ORDINARY)]


async def all_of(work: list[Coroutine[Any, Any, None]]) -> None:
    room = asyncio.Semaphore(AT_A_TIME)

    async def one(each: Coroutine[Any, Any, None]) -> None:
        async with room:
            await each

    await asyncio.gather(*map(one, work))


@pytest.fixture(scope="module")
def plane(controlplane_binaries) -> Iterator[ControlPlane]:
    with ControlPlane(audit=False, load=True) as plane:
        yield plane


def ask(port: int, path: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return json.load(answer)


def test_others_are_placed_beside_all_of_them_and_nothing_stays_behind(plane) -> None:
    port = free_ports(1)[0]
    with BlockingApi(plane.admin_kubeconfig) as api:
        api.create_many(ground())
        api.create_many(make_namespace(tenant.namespace) for tenant in TENANTS)
        api.create_many(make_node(f"node-{index:03}", pods="1000") for index in range(NODES))
        hostile = [
            list(arranging.by_kind(spec.make(tenant), FEW))
            for spec, tenant in zip(SPECS, TENANTS, strict=True)
        ]
        process = Berth(http_port=port).start(plane)
        try:
            api.create_many(ordinary("before"))
            api.wait_bound(ORDINARY, label_selector="of=before", timeout_s=DEADLINE_S)
            api.run(all_of([arranging.create(api.client, objects) for objects in hostile]))
            api.create_many(ordinary("beside"))
            api.wait_bound(ORDINARY, label_selector="of=beside", timeout_s=DEADLINE_S)
            api.run(all_of([arranging.delete(api.client, objects) for objects in hostile]))
            api.create_many(ordinary("after"))
            api.wait_bound(ORDINARY, label_selector="of=after", timeout_s=DEADLINE_S)

            def only_ordinary_pods_are_left() -> bool:
                report = ask(port, "/debug/cache")
                waiting = sum(room["count"] for room in report["queue"].values())
                pods = report["cache"]["pods"]
                return (pods, waiting, report["comparison"]["count"]) == (3 * ORDINARY, 0, 0)

            api.wait_until(
                only_ordinary_pods_are_left, "nothing of theirs is left", timeout_s=DEADLINE_S
            )
            left = ask(port, "/debug/cache?tables")
        finally:
            process.kill()
    assert {name: each["items"] for name, each in left.items() if each["items"] > MOST} == {}
