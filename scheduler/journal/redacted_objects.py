"""Objects of a journal with aliases in place of their strings, field by field.

The rules follow the types of the objects. A string without a rule of its own gets an alias, so that
a field that is added later is not forgotten; a field that no type has is left out.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import inspect

from cache import device_objects as devices
from cache import objects, storage_objects
from cache.label_selectors import GT, LT, METADATA_NAME
from cache.pod_group_objects import TopologyConstraint
from cache.workload_objects import PodDisruptionBudgetStatus, ServiceSpec, WorkloadMeta
from plugins.framework.go_duration import GoDuration
from plugins.node_resources_fit.args import NodeResourcesFitArgs
from plugins.resource_scorer import ResourceSpec
from scheduler.journal import redacted_texts as texts
from scheduler.journal.frames import decode, encode
from scheduler.journal.records import TYPES
from scheduler.journal.redacted_cel import redacted_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scheduler.journal.aliases import Names

    Walk: TypeAlias = Callable[[Any, Names], Any]


def _plain(text: str, names: Names) -> str:
    return names.plain(text)


def _word(text: str, names: Names) -> str:
    return names.word(text)


def _claim(text: str, names: Names) -> str:
    return names.claim(text)


def _requirement(given: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Return a requirement on a label or on a field."""
    key, operator, values = given.get("key", ""), given.get("operator", ""), given.get("values", ())
    if operator in (GT, LT):
        names.compare(key)
    if key == METADATA_NAME:
        told = [names.plain(value) for value in values]
    else:
        told = [texts.label_value(key, value, names) for value in values]
    return {"key": names.word(key), "operator": names.plain(operator), "values": told}


_STRINGS: Final[dict[tuple[type, str], Walk]] = {
    (objects.NodeMeta, "resource_version"): texts.resource_version,
    (objects.NodeMeta, "creation_timestamp"): texts.time,
    (objects.NodeMeta, "deletion_timestamp"): texts.time,
    (WorkloadMeta, "resource_version"): texts.resource_version,
    (objects.PodAffinityTerm, "topology_key"): _word,
    (objects.PodAffinityTerm, "match_label_keys"): _word,
    (objects.PodAffinityTerm, "mismatch_label_keys"): _word,
    (objects.TopologySpreadConstraint, "topology_key"): _word,
    (objects.TopologySpreadConstraint, "match_label_keys"): _word,
    (TopologyConstraint, "key"): _word,
    (objects.ResizePolicy, "resource_name"): texts.resource,
    (objects.ResourceClaimUse, "request"): texts.request,
    (objects.Container, "image"): texts.image,
    (objects.ImageVolumeSource, "reference"): texts.image,
    (objects.ContainerImage, "names"): texts.image_of_node,
    (objects.ClaimVolumeSource, "claim_name"): _claim,
    (objects.AWSElasticBlockStoreVolumeSource, "volume_id"): texts.ebs_volume,
    (objects.AzureDiskVolumeSource, "disk_uri"): texts.handle,
    (objects.CinderVolumeSource, "volume_id"): texts.handle,
    (objects.PortworxVolumeSource, "volume_id"): texts.handle,
    (objects.PodCondition, "last_transition_time"): texts.time,
    (objects.PodStatus, "start_time"): texts.time,
    (objects.ContainerExtendedResourceRequest, "resource_name"): texts.resource,
    (objects.ContainerExtendedResourceRequest, "request_name"): texts.request,
    (PodDisruptionBudgetStatus, "disrupted_pods"): texts.time,
    (storage_objects.ObjectReference, "name"): _claim,
    (storage_objects.ObjectReference, "resource_version"): texts.resource_version,
    (storage_objects.CSIPersistentVolumeSource, "volume_handle"): texts.handle,
    (storage_objects.AzureFilePersistentVolumeSource, "secret_name"): texts.azure_secret,
    (storage_objects.CSINodeDriver, "topology_keys"): _word,
    (devices.CELDeviceSelector, "expression"): redacted_expression,
    (devices.DeviceAttribute, "version_value"): texts.version,
    (devices.DeviceTaint, "time_added"): texts.time,
    (devices.DeviceClassSpec, "extended_resource_name"): texts.resource,
    (devices.DeviceConstraint, "requests"): texts.request,
    (devices.DeviceConstraint, "match_attribute"): texts.attribute,
    (devices.DeviceConstraint, "distinct_attribute"): texts.attribute,
    (devices.DeviceClaimConfiguration, "requests"): texts.request,
    (devices.DeviceAllocationConfiguration, "requests"): texts.request,
    (devices.DeviceRequestAllocationResult, "request"): texts.request,
    (devices.AllocationResult, "allocation_timestamp"): texts.time,
    (NodeResourcesFitArgs, "ignored_resources"): texts.resource,
    (NodeResourcesFitArgs, "ignored_resource_groups"): texts.resource_group,
    (ResourceSpec, "name"): texts.resource,
}
"""What to do with the strings of a field, those of a mapping's values included."""

_KEYS: Final[dict[tuple[type, str], Walk]] = {
    (devices.Device, "attributes"): texts.attribute,
    (devices.Device, "capacity"): texts.attribute,
    (devices.CapacityRequirements, "requests"): texts.attribute,
    (devices.DeviceRequestAllocationResult, "consumed_capacity"): texts.attribute,
}
"""What to do with the keys of a mapping."""

_WHOLE: Final[dict[tuple[type, str], Walk]] = {
    (objects.NodeMeta, "labels"): texts.redacted_labels,
    (objects.NodeMeta, "annotations"): texts.redacted_annotations,
    (objects.PodSpec, "node_selector"): texts.redacted_labels,
    (objects.LabelSelector, "match_labels"): texts.redacted_labels,
    (ServiceSpec, "selector"): texts.redacted_labels,
    (devices.DeviceClassConfiguration, "opaque"): texts.opaque,
    (devices.DeviceClaimConfiguration, "opaque"): texts.opaque,
    (devices.DeviceAllocationConfiguration, "opaque"): texts.opaque,
}
"""Fields that are taken as a whole."""

_STRUCTS: Final[dict[type, Walk]] = {
    objects.LabelSelectorRequirement: _requirement,
    objects.NodeSelectorRequirement: _requirement,
    storage_objects.TopologySelectorLabelRequirement: _requirement,
}
"""Structs that are taken as a whole."""


def redacted_object(index: int, content: bytes, names: Names) -> bytes:
    """Return an object as it stands in a journal, with aliases in place of its strings.

    Parameters
    ----------
    index
        Its type: a place in :data:`~scheduler.journal.records.TYPES`.
    """
    kind = TYPES[index]
    given = decode(content)
    if issubclass(kind, objects.Pod):
        _derive(given, names)
    found = walk_of(kind)(given, names)
    if issubclass(kind, storage_objects.PersistentVolumeClaim) and "metadata" in given:
        found["metadata"]["name"] = names.claim(given["metadata"].get("name", ""))
    return encode(found)


def _derive(pod: Mapping[str, Any], names: Names) -> None:
    name = pod.get("metadata", {}).get("name", "")
    for volume in pod.get("spec", {}).get("volumes", ()):
        if volume.get("ephemeral") is not None:
            names.derive(name, volume.get("name", ""))


@cache
def walk_of(struct: type[msgspec.Struct]) -> Walk:
    """Return what redacts an object of a type, as plain mappings and lists."""
    found = inspect.type_info(struct)
    if not isinstance(found, inspect.StructType):
        raise TypeError(f"{struct.__name__} is no struct")
    return _struct_walk(found)


def _struct_walk(struct: inspect.StructType) -> Walk:
    whole = next((_STRUCTS[base] for base in struct.cls.__mro__ if base in _STRUCTS), None)
    if whole is not None:
        return whole
    walks: dict[str, Walk] = {}

    def walk(given: Mapping[str, Any], names: Names) -> dict[str, Any]:
        if not walks:
            # Not before: a type may contain itself.
            walks.update((f.encode_name, _field_walk(struct.cls, f)) for f in struct.fields)
        return {
            name: None if value is None else walks[name](value, names)
            for name, value in given.items()
            if name in walks
        }

    return walk


def _field_walk(struct: type, field: inspect.Field) -> Walk:
    whole = _rule(_WHOLE, struct, field.name)
    if whole is not None:
        return whole
    strings = _rule(_STRINGS, struct, field.name) or _plain
    return _walk(field.type, strings, _rule(_KEYS, struct, field.name))


def _rule(rules: Mapping[tuple[type, str], Walk], struct: type, name: str) -> Walk | None:
    found = (rules.get((base, name)) for base in struct.__mro__)
    return next((rule for rule in found if rule is not None), None)


def _walk(kind: inspect.Type, strings: Walk, keys: Walk | None) -> Walk:
    if isinstance(kind, inspect.StructType):
        return _struct_walk(kind)
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        item = _walk(kind.item_type, strings, keys)
        return lambda given, names: [item(each, names) for each in given]
    if isinstance(kind, inspect.DictType):
        return _mapping_walk(kind, strings, keys)
    if isinstance(kind, inspect.UnionType):
        return _union_walk(kind, strings, keys)
    if isinstance(kind, _AS_THEY_ARE):
        return lambda given, _: given
    if isinstance(kind, inspect.AnyType):
        return lambda given, names: _anything(given, names, strings)
    if isinstance(kind, inspect.SetType | inspect.FrozenSetType):
        item = _walk(kind.item_type, strings, keys)
        return lambda given, names: [item(each, names) for each in given]
    if isinstance(kind, inspect.CustomType) and kind.cls is GoDuration:
        strings = texts.duration
    return lambda given, names: _string(given, names, strings)


_AS_THEY_ARE: Final = (
    inspect.IntType
    | inspect.FloatType
    | inspect.BoolType
    | inspect.NoneType
    | inspect.LiteralType
    | inspect.EnumType
)
"""Types whose values are numbers, or words of the code."""


def _anything(given: Any, names: Names, strings: Walk) -> Any:
    """Return a value of which the type says nothing."""
    if isinstance(given, dict):
        return {names.word(key): _anything(each, names, strings) for key, each in given.items()}
    if isinstance(given, list | tuple):
        return [_anything(each, names, strings) for each in given]
    return _string(given, names, strings)


def _string(given: Any, names: Names, strings: Walk) -> Any:
    return strings(given, names) if isinstance(given, str) else given


def _mapping_walk(kind: inspect.DictType, strings: Walk, keys: Walk | None) -> Walk:
    value = _walk(kind.value_type, strings, keys)
    if keys is None:
        keys = texts.resource if _is_quantity(kind.value_type) else _plain
    key = keys
    return lambda given, names: {
        key(name, names): value(each, names) for name, each in given.items()
    }


def _union_walk(kind: inspect.UnionType, strings: Walk, keys: Walk | None) -> Walk:
    if _is_quantity(kind):
        return lambda given, names: _string(given, names, texts.quantity)
    walks = [_walk(each, strings, keys) for each in kind.types if _is_nested(each)]

    def walk(given: Any, names: Names) -> Any:
        if isinstance(given, dict | list) and walks:
            return walks[0](given, names)
        return _string(given, names, strings)

    return walk


def _is_nested(kind: inspect.Type) -> bool:
    nested = inspect.StructType | inspect.DictType | inspect.VarTupleType | inspect.ListType
    return isinstance(kind, nested)


def _is_quantity(kind: inspect.Type) -> bool:
    """Return whether values are quantities: texts or numbers."""
    if not isinstance(kind, inspect.UnionType):
        return False
    types = {type(each) for each in kind.types}
    return {inspect.StrType, inspect.IntType} <= types
