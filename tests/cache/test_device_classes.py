from __future__ import annotations

from cache.device_classes import DeviceClass, DeviceClasses, DeviceClassSpec
from cache.objects import ObjectMeta

GPU = "example.com/gpu"


def device_class(name: str, resource: str = "") -> DeviceClass:
    return DeviceClass(ObjectMeta(name=name), DeviceClassSpec(resource))


def test_a_class_stands_for_the_resource_that_it_names() -> None:
    classes = DeviceClasses()
    classes.changed(None, device_class("gpus", GPU))
    classes.changed(None, device_class("plain"))
    assert classes.class_of(GPU) == "gpus"
    assert classes.class_of("example.com/other") is None


def test_a_resource_may_name_its_class() -> None:
    assert DeviceClasses().class_of("deviceclass.resource.kubernetes.io/gpus") == "gpus"


def test_a_class_that_changes_or_goes_leaves_nothing_behind() -> None:
    classes = DeviceClasses()
    one, two = device_class("one", GPU), device_class("two", GPU)
    classes.changed(None, one)
    classes.changed(None, two)
    classes.changed(one, device_class("one", "example.com/other"))
    assert (classes.class_of(GPU), classes.class_of("example.com/other")) == ("two", "one")
    classes.changed(two, None)
    assert classes.class_of(GPU) is None
    classes.changed(device_class("one", "example.com/other"), None)
    assert not classes._classes.all()
