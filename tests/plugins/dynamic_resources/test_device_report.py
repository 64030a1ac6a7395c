from __future__ import annotations

from typing import TYPE_CHECKING

from cache.devices import Devices
from cache.objects import Toleration
from plugins.dynamic_resources.device_report import Change, Help, Obstacle, device_reports
from plugins.dynamic_resources.pools import PoolIndex
from plugins.dynamic_resources.requests import RequestReader
from plugins.dynamic_resources.selector_cache import SelectorCache
from tests.builders import node
from tests.device_builders import (
    allocated,
    alternative,
    device,
    device_class,
    resource_claim,
    resource_slice,
)

if TYPE_CHECKING:
    from cache.device_objects import ResourceClaim
    from plugins.dynamic_resources.device_report import DeviceReport
    from tests.device_builders import DeviceBuilder, ResourceClaimBuilder

GPU = device_class("gpu").selecting('device.driver == "gpu.example.com"').build()
LARGE = "device.attributes['gpu.example.com'].size > 1"
ASKED = resource_claim("asked").request("r", "gpu")


def reports(
    asked: ResourceClaimBuilder,
    *nodes: tuple[DeviceBuilder, ...],
    claims: tuple[ResourceClaim, ...] = (),
) -> tuple[DeviceReport, ...]:
    """Return the reports for a claim in a cluster; the devices of each node are a pool."""
    devices = Devices()
    devices.classes.changed(None, GPU)
    for index, of_node in enumerate(nodes):
        made = resource_slice(f"s{index}", pool=f"n{index}").on_node(f"n{index}")
        devices.slices.changed(None, made.devices(*of_node).build())
    for claim in claims:
        devices.claims.changed(None, claim)
    reader = RequestReader(devices.classes.get, SelectorCache())
    listed = [node(f"n{index}").build() for index in range(len(nodes))]
    return device_reports(
        [reader.read(0, asked.build())],
        listed,
        PoolIndex(devices.slices.view()),
        devices.allocated(),
    )


def report(
    asked: ResourceClaimBuilder,
    *nodes: tuple[DeviceBuilder, ...],
    claims: tuple[ResourceClaim, ...] = (),
) -> DeviceReport:
    (found,) = reports(asked, *nodes, claims=claims)
    return found


def holder(name: str, *devices: str, pool: str) -> ResourceClaim:
    held = [allocated(each, request="r", pool=pool) for each in devices]
    return resource_claim(name).request("r", "gpu").allocated(*held).build()


def sized(name: str, size: int) -> DeviceBuilder:
    return device(name).attribute("size", size)


def test_devices_that_match_are_free_tainted_or_in_use() -> None:
    found = report(
        ASKED,
        (device("a"), device("b").taint("odd"), device("c")),
        (device("a"),),
        claims=(holder("h", "a", pool="n0"),),
    )
    assert (found.num_devices, found.matching) == (4, 4)
    assert (found.in_use, found.users) == (1, (("default/h", 1),))
    assert (found.tainted, found.taints) == (1, (("odd:NoSchedule", 1),))
    assert (found.free, found.most_free, found.enough_on) == (2, 1, 2)


def test_each_selector_counts_what_those_before_it_match() -> None:
    asked = resource_claim("asked").request("r", "gpu", LARGE)
    found = report(asked, (sized("a", 1), sized("b", 2), device("c")))
    assert [(each.name, each.matching, each.failed) for each in found.selectors] == [
        ("class gpu, selector #0", 3, 0),
        ("request r, selector #0", 1, 1),
    ]
    assert found.matching == found.free == 1


def test_a_taint_that_is_tolerated_keeps_nobody_off() -> None:
    asked = resource_claim("asked").request(
        "r", "gpu", tolerations=(Toleration(key="odd", operator="Exists"),)
    )
    found = report(asked, (device("a").taint("odd"),))
    assert (found.tainted, found.free) == (0, 1)


def test_each_alternative_of_a_prioritized_list_has_a_report() -> None:
    asked = resource_claim("asked").first_available(
        "r", alternative("large", "gpu", LARGE), alternative("any", "gpu")
    )
    found = reports(asked, (sized("a", 1),))
    assert [(each.request, each.free) for each in found] == [("r/large", 0), ("r/any", 1)]


def test_a_class_that_is_gone_is_an_error() -> None:
    found = report(resource_claim("asked").request("r", "gone"), (device("a"),))
    assert 'deviceclass.resource.k8s.io "gone" not found' in found.error


class TestWhatWouldHelp:
    def test_another_claim_goes(self) -> None:
        found = report(ASKED, (device("a"),), claims=(holder("h", "a", pool="n0"),))
        assert found.help == (Help(Obstacle(Change.FREE_CLAIM, "default/h"), 1),)

    def test_a_taint_is_tolerated(self) -> None:
        found = report(ASKED, (device("a").taint("odd"),), (device("a").taint("odd"),))
        assert found.help == (Help(Obstacle(Change.TOLERATE_TAINT, "odd:NoSchedule"), 2),)

    def test_a_selector_is_dropped(self) -> None:
        asked = resource_claim("asked").request("r", "gpu", LARGE, count=2)
        found = report(asked, (sized("a", 1), sized("b", 2)), (sized("a", 1),))
        without = Obstacle(Change.DROP_SELECTOR, "request r, selector #0")
        assert Help(without, 1) in found.help

    def test_fewer_devices_are_enough(self) -> None:
        asked = resource_claim("asked").request("r", "gpu", count=3)
        found = report(asked, (device("a"), device("b")), (device("a"),))
        assert found.help == (Help(Obstacle(Change.ASK_FOR_FEWER, "2"), 1),)

    def test_two_obstacles_at_once_are_no_single_change(self) -> None:
        found = report(ASKED, (device("a").taint("odd"),), claims=(holder("h", "a", pool="n0"),))
        assert (found.in_use, found.tainted, found.help) == (1, 0, ())

    def test_nothing_where_all_is_well(self) -> None:
        assert report(ASKED, (device("a"), device("b"))).help == ()
