"""A cluster with devices, the plugin, and an API behind it that only answers."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from cache.devices import Devices
from cache.objects import Node
from cache.snapshot import Snapshot
from plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from plugins.framework.cycle_state import CycleState
from plugins.framework.go_duration import duration_of_seconds
from plugins.framework.status import Code, Status
from scheduler.api_writes.claim_writer import ClaimWriter
from scheduler.kinds import RESOURCE_CLAIMS
from tests.builders import cache_of, node
from tests.device_builders import device_class, resource_slice
from tests.fakes.object_api import FakeObjectApi
from tests.fakes.ports import FakeExecutor, fake_ports
from tests.plugins.conformance import RecordingHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from cache.columns import NodesView
    from cache.device_objects import ResourceClaim
    from cache.objects import Pod
    from tests.builders import NodeBuilder, PodBuilder
    from tests.device_builders import (
        DeviceBuilder,
        DeviceClassBuilder,
        ResourceClaimBuilder,
    )

NOW_S = 1_750_000_000.0
STAMP = "2025-06-15T15:06:40Z"
GPU = device_class("gpu")


@cache
def the_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of all worlds; whoever runs the tests closes it."""
    return asyncio.new_event_loop()


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


class Reports:
    """What was reported."""

    def __init__(self) -> None:
        self.waits: list[str] = []
        self.results: list[str] = []
        self.collisions: list[str] = []

    def waiting(self, pod: Pod, node_name: str) -> None:
        self.waits.append(f"{pod.metadata.name} on {node_name}")

    def waited(
        self, pod: Pod, claims: Sequence[ResourceClaim], result: str, seconds: float
    ) -> None:
        self.results.append(result)

    def collision(self, driver: str) -> None:
        self.collisions.append(driver)


class DeviceHandle(RecordingHandle):
    """What is lent to the plugin."""

    def __init__(self, devices: Devices, writer: ClaimWriter) -> None:
        super().__init__()
        self.devices = devices
        self.claim_writer = writer
        self.device_reports = Reports()


class DeviceWorld:
    """Nodes with devices, and claims that an API stores and a watch brings at once."""

    def __init__(self, *nodes: NodeBuilder | Node | str, binding_timeout_s: int = 600) -> None:
        self.api, self.known, self.now_s = FakeObjectApi(), Devices(), NOW_S
        self.api.watch(RESOURCE_CLAIMS, self.known.claims.changed)
        named = [node(each) if isinstance(each, str) else each for each in nodes or ("n1",)]
        built = [each if isinstance(each, Node) else each.build() for each in named]
        snapshot = Snapshot()
        cache_of(built).update_snapshot(snapshot)
        self.nodes: NodesView = snapshot.all_nodes()
        self._loop = the_loop()
        executor = FakeExecutor(no_wait)
        executor.loop = self._loop
        ports = fake_ports(self.api, wall=lambda: self.now_s, executor=executor)
        self.waiting: list[str] = []
        writer = ClaimWriter(ports, self.known.claims.stored, only_waits=self.waiting.append)
        self.handle = DeviceHandle(self.known, writer)
        self.args = DynamicResourcesArgs(binding_timeout=duration_of_seconds(binding_timeout_s))
        self.plugin = DynamicResources(self.args, self.handle)
        self.classes(GPU)

    # --- the cluster --------------------------------------------------------------------------

    def classes(self, *classes: DeviceClassBuilder) -> DeviceWorld:
        for each in classes:
            self.known.classes.changed(None, each.build())
        return self

    def local(self, node_name: str, *devices: DeviceBuilder | str) -> DeviceWorld:
        """Publish devices of one node, in a pool of its own."""
        published = resource_slice(f"slice-{node_name}", pool=node_name).on_node(node_name)
        self.known.slices.changed(None, published.devices(*devices).build())
        return self

    def claim(self, claim: ResourceClaimBuilder) -> ResourceClaim:
        """Create or replace a claim, as somebody else does."""
        raw = msgspec.to_builtins(claim.build())
        name = raw["metadata"]["name"]
        self.api.put(RESOURCE_CLAIMS, "default", name, raw)
        found = self.known.claims.get("default", name)
        assert found is not None
        return found

    def change(self, name: str, patch: Any) -> None:
        self.api.change(RESOURCE_CLAIMS, "default", name, patch)

    def shown(self, name: str) -> ResourceClaim:
        claim = self.known.claims.get("default", name)
        assert claim is not None
        return claim

    # --- one cycle ----------------------------------------------------------------------------

    def cycle(self, pod: PodBuilder) -> Cycle:
        return Cycle(self, pod)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something on the loop, and what it left to be done soon."""

        async def play() -> Any:
            try:
                return await work
            finally:
                for _ in range(50):
                    await asyncio.sleep(0)

        return self._loop.run_until_complete(play())

    def settle(self) -> None:
        """Let everything be written that nobody waits for."""

        async def nothing() -> None:
            pass

        self.run(nothing())

    def place(self, pod: PodBuilder) -> str:
        """Return the node that the pod is bound to, or why it is not."""
        cycle = self.cycle(pod)
        why = cycle.refusal()
        if why:
            return why
        name = cycle.feasible()[0]
        assert cycle.reserve(name).is_success
        return cycle.pre_bind(name) or name


class Cycle:
    """One pod on its way through the plugin."""

    def __init__(self, world: DeviceWorld, pod: PodBuilder) -> None:
        self.world, self.info, self.state = world, pod.info(), CycleState()
        self.plugin = world.plugin
        self.pre_filter = self.plugin.pre_filter(self.state, self.info, world.nodes).status
        self.said: dict[str, Status] = {}
        if self.pre_filter.is_success:
            verdicts = self.plugin.filter(self.state, self.info, world.nodes)
            infos = world.nodes.node_infos()
            self.said = {each.name: verdicts.status_of(i) for i, each in enumerate(infos)}

    def refusal(self) -> str:
        """Return why no node can do; empty if one can."""
        if not self.pre_filter.is_success:
            return self.pre_filter.message
        if self.feasible():
            return ""
        return ", ".join(sorted({status.message for status in self.said.values()}))

    def feasible(self) -> list[str]:
        return sorted(name for name, status in self.said.items() if status.is_success)

    def post_filter(self) -> str:
        nominated, status = self.plugin.post_filter(
            self.state,
            self.info,
            self.world.nodes,
            {},  # type: ignore[arg-type] # not looked at
        )
        assert nominated is None
        assert status.code in (Code.UNSCHEDULABLE, Code.ERROR)
        self.world.settle()
        return status.message

    def scores(self) -> dict[str, tuple[int, int]]:
        """Return the raw and the normalized score of each feasible node."""
        names = self.feasible()
        rows = [self.world.nodes.columns.row_of[name] for name in names]
        view = self.world.nodes.subset(rows)
        raw = self.plugin.score(self.state, self.info, view)
        normal = self.plugin.normalize(self.state, self.info, raw)
        return dict(zip(names, zip(raw.tolist(), normal.tolist(), strict=True), strict=True))

    def reserve(self, name: str = "n1") -> Status:
        return self.plugin.reserve(self.state, self.info, name)

    def unreserve(self, name: str = "n1") -> None:
        self.plugin.unreserve(self.state, self.info, name)
        self.world.settle()

    def pre_bind(self, name: str = "n1", meanwhile: Callable[[], None] | None = None) -> str:
        """Return why the pod cannot be bound; empty if it can."""

        async def play() -> Status:
            if meanwhile is not None:
                asyncio.get_running_loop().call_soon(meanwhile)
            return await self.plugin.pre_bind(self.state, self.info, name)

        try:
            status: Status = self.world.run(play())
        except Exception as error:  # noqa: BLE001 - the text is what is promised
            return str(error)
        return status.message
