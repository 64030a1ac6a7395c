"""Selectors: compiled once, evaluated once for each distinct device, limited in bytes."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from cache.device_objects import CELDeviceSelector, DeviceSelector
from plugins.dynamic_resources.errors import AllocationError
from plugins.dynamic_resources.pooled_device import PooledDevice
from plugins.dynamic_resources.selector_cache import SelectorCache, SelectorList
from tests.device_builders import device, version
from tests.plugins.dynamic_resources.device_worlds import here


def pooled(*devices):
    built = here(*devices).build()
    return [PooledDevice(built, each) for each in built.spec.devices]


def listed(cache, *expressions):
    cel = [DeviceSelector(CELDeviceSelector(each)) for each in expressions]
    return SelectorList(cel, "class c", cache)


def test_an_expression_is_compiled_once():
    cache = SelectorCache()
    assert cache.get("true") is cache.get("true")


def test_equal_devices_share_a_result():
    cache = SelectorCache()
    first, second = pooled(device("d").attribute("x", 1), device("e").attribute("x", 1))
    selector = cache.get('device.attributes["gpu.example.com"].x == 1')
    assert selector.evaluate(first) is True
    grown = selector.bytes
    assert selector.evaluate(second) is True
    assert selector.bytes == grown


def test_one_and_true_are_different_devices():
    cache = SelectorCache()
    one, true = pooled(device("d").attribute("x", 1), device("e").attribute("x", True))
    selector = cache.get('device.attributes["gpu.example.com"].x == 1')
    assert selector.evaluate(one) is True
    assert selector.evaluate(true) is not True


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ((), True),
        (("true", "true"), True),
        (("true", "false"), False),
        (("false", "device.attributes.x.y"), False),
    ],
)
def test_all_must_match_and_the_first_that_does_not_decides(expressions, expected):
    (one,) = pooled("d")
    assert listed(SelectorCache(), *expressions).matches(one) is expected


def test_an_error_names_the_selector():
    (one,) = pooled("d")
    with pytest.raises(
        AllocationError, match=r"^class c: selector #1: CEL runtime error: no such key: y$"
    ):
        listed(SelectorCache(), "true", "device.attributes.x.y == 1", "false").matches(one)


def test_an_error_is_remembered_as_an_error():
    (one,) = pooled("d")
    wanted = listed(SelectorCache(), "device.attributes.x.y == 1")
    for _ in range(2):
        with pytest.raises(AllocationError):
            wanted.matches(one)


def test_the_cache_is_limited_in_bytes():
    limit = 1 << 20
    cache = SelectorCache(limit)
    for index in range(2000):
        cache.get(f"device.driver == '{index}'")
    assert cache.bytes <= limit


def test_results_count():
    limit = 1 << 20
    cache = SelectorCache(limit)
    devices = pooled(*(device(f"d{i}").attribute("x", i) for i in range(200)))
    for index in range(20):
        selector = cache.get(f"device.driver != '{index}'")
        for one in devices:
            assert selector.evaluate(one) is True
    assert cache.bytes <= limit


def test_devices_that_differ_in_what_is_not_read_share_a_result():
    cache = SelectorCache()
    first, second = pooled(
        device("d").attribute("x", 1).attribute("uuid", "a"),
        device("e").attribute("x", 1).attribute("uuid", "b"),
    )
    selector = cache.get('device.attributes["gpu.example.com"].x == 1')
    assert selector.evaluate(first) is True
    grown = selector.bytes
    assert selector.evaluate(second) is True
    assert selector.bytes == grown


def test_a_device_that_cannot_be_evaluated_is_told_from_others():
    cache = SelectorCache()
    good, bad = pooled(
        device("d").attribute("x", 1), device("e").attribute("x", 1).attribute("v", version("?"))
    )
    selector = cache.get('device.attributes["gpu.example.com"].x == 1')
    assert selector.evaluate(good) is True
    assert "parse semantic version" in str(selector.evaluate(bad))


def test_several_devices_at_once_are_judged_as_one_by_one():
    wanted = listed(SelectorCache(), "device.attributes['gpu.example.com'].x > 1", "true")
    devices = pooled(*(device(f"d{x}").attribute("x", x) for x in range(4)))
    assert list(wanted.matching(devices)) == [each for each in devices if wanted.matches(each)]
    with pytest.raises(AllocationError, match="selector #0"):
        wanted.matching([*devices, *pooled("without")])


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("device.driver != '{}'", id="short"),
        pytest.param("device.attributes['gpu.example.com'].x >= {}", id="one attribute"),
        pytest.param("[{}].exists(a, [1].exists(b, [2].exists(c, a > b + c)))", id="loops"),
        pytest.param("device.driver.matches('^gpu[.]{}')", id="pattern"),
    ],
)
def test_the_memory_of_distinct_expressions_is_bounded(expression):
    limit = 1 << 20
    devices = pooled(*(device(f"d{x}").attribute("x", x) for x in range(16)))
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        cache = SelectorCache(limit)
        for index in range(1000):
            cache.get(expression.format(index)).results(devices)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken <= limit
