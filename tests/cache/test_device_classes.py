from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from cache.device_classes import DeviceClasses
from tests.cache.devices import device_class

if TYPE_CHECKING:
    from cache.device_objects import DeviceClass

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpus"

OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_a_class_stands_for_the_resource_that_it_names() -> None:
    classes = DeviceClasses()
    classes.changed(None, device_class("gpus", resource=GPU))
    classes.changed(None, device_class("plain"))
    assert classes.class_of(GPU) == "gpus"
    assert classes.class_of("example.com/other") is None


def test_a_resource_may_name_its_class() -> None:
    assert DeviceClasses().class_of(IMPLICIT) == "gpus"


def test_only_a_class_that_exists_provides_the_resource_of_its_name() -> None:
    classes = DeviceClasses()
    assert classes.for_resource(IMPLICIT) is None
    gpus = device_class("gpus")
    classes.changed(None, gpus)
    assert classes.for_resource(IMPLICIT) == gpus


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        pytest.param(
            [
                device_class("a", resource=GPU, created=OLD),
                device_class("b", resource=GPU, created=YOUNG),
            ],
            "b",
            id="the youngest",
        ),
        pytest.param(
            [
                device_class("b", resource=GPU, created=OLD),
                device_class("a", resource=GPU, created=OLD),
                device_class("c", resource=GPU, created=OLD),
            ],
            "a",
            id="of equal age the first by name",
        ),
        pytest.param(
            [device_class("b", resource=GPU, created=OLD), device_class("a", resource=GPU)],
            "b",
            id="one without a time is the oldest",
        ),
    ],
)
def test_of_several_classes_one_provides_the_resource(
    existing: list[DeviceClass], expected: str
) -> None:
    for order in permutations(existing):
        classes = DeviceClasses()
        for each in order:
            classes.changed(None, each)
        assert classes.class_of(GPU) == expected


def test_a_class_that_lost_to_a_younger_one_still_provides_the_resource_of_its_name() -> None:
    classes = DeviceClasses()
    classes.changed(None, device_class("new", resource=GPU, created=YOUNG))
    classes.changed(None, device_class("gpus", resource=GPU, created=OLD))
    known = classes.for_resource(IMPLICIT)
    assert known is not None
    assert known.metadata.name == "gpus"


def test_when_the_youngest_goes_the_next_one_provides_the_resource() -> None:
    classes = DeviceClasses()
    young = device_class("young", resource=GPU, created=YOUNG)
    classes.changed(None, device_class("old", resource=GPU, created=OLD))
    classes.changed(None, young)
    classes.changed(young, None)
    assert classes.class_of(GPU) == "old"


def test_an_update_that_keeps_the_resource_is_taken_over() -> None:
    classes = DeviceClasses()
    before = device_class("gpus", resource=GPU)
    after = device_class("gpus", "device.driver == 'x'", resource=GPU)
    classes.changed(None, before)
    classes.changed(before, after)
    assert classes.for_resource(GPU) == classes.get("gpus") == after


def test_a_class_that_changes_or_goes_leaves_nothing_behind() -> None:
    classes = DeviceClasses()
    one, two = device_class("one", resource=GPU), device_class("two", resource=GPU)
    other = device_class("one", resource="example.com/other")
    classes.changed(None, one)
    classes.changed(None, two)
    classes.changed(one, other)
    assert (classes.class_of(GPU), classes.class_of("example.com/other")) == ("two", "one")
    classes.changed(two, None)
    assert classes.class_of(GPU) is None
    classes.changed(other, None)
    assert not classes.names(1)
    assert not classes._of_resource


def test_so_many_names_as_asked_for() -> None:
    classes = DeviceClasses()
    for name in "bca":
        classes.changed(None, device_class(name))
    assert classes.names(2) == ["b", "c"]
