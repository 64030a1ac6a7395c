"""Texts that decisions take apart, with aliases in place of their parts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from cache.csi_translation import MIGRATED_PLUGINS, ebs_volume_id, storage_account
from cache.device_classes import IMPLICIT_PREFIX
from cache.image_states import normalized_image_name
from cache.pod_group_objects import PARTIAL_GANG_GRACE, PREFERRED_TOPOLOGY_KEY, TOPOLOGY_KEY
from cache.quantity import QuantityError, exact_value
from cache.resources import MalformedObjectError, is_extended_resource_name
from plugins.cel import is_version
from scheduler.journal.aliases import is_kept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.journal.aliases import Names

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_DURATION: Final = re.compile(r"-?(\d{1,9}(\.\d{1,9})?(ns|us|µs|ms|s|m|h)){1,4}|0")
_RESOURCE_VERSION: Final = re.compile(r"[0-9]{1,39}")
_AMOUNT: Final = re.compile(r"[0-9]{1,9}[KMGTP]?i?")
_ZONES: Final = "__"
_FLAGS: Final = frozenset({"true", "false", "yes", "no"})
_ABOUT_KEYS: Final = frozenset({TOPOLOGY_KEY, PREFERRED_TOPOLOGY_KEY})
_HANDLE_WORDS: Final = frozenset({"projects", "zones", "regions", "disks", "UNSPECIFIED"})


def quantity(text: str, names: Names) -> str:
    """Return a quantity as it is; what is none gets an alias, which is none either."""
    try:
        exact_value(text)
    except QuantityError:
        return names.plain(text)
    return text


def time(text: str, names: Names) -> str:
    """Return a time as it is."""
    return text if _TIME.fullmatch(text) else names.plain(text)


def duration(text: str, names: Names) -> str:
    """Return a duration as it is."""
    return text if _DURATION.fullmatch(text) else names.plain(text)


def resource_version(text: str, names: Names) -> str:
    """Return a resourceVersion as it is: it is compared as a number."""
    return text if _RESOURCE_VERSION.fullmatch(text) else names.plain(text)


def resource(name: str, names: Names) -> str:
    """Return the name of a resource of the same sort: native, huge pages, or somebody's own."""
    if is_kept(name):
        return name
    for prefix in (IMPLICIT_PREFIX, "attachable-volumes-"):
        if name.startswith(prefix):
            return prefix + names.plain(name.removeprefix(prefix))
    if name.startswith("hugepages-"):
        size = name.removeprefix("hugepages-")
        return name if _AMOUNT.fullmatch(size) else f"hugepages-{names.plain(size)}"
    if name.startswith("requests."):
        return f"requests.{resource(name.removeprefix('requests.'), names)}"
    if "kubernetes.io/" in name:
        return f"kubernetes.io/{names.plain(name)}"
    group, _, rest = name.partition("/")
    if is_extended_resource_name(name):
        return f"{names.plain(group)}/{names.plain(rest)}"
    return names.word(name)


def resource_group(name: str, names: Names) -> str:
    """Return the part before the slash of somebody's own resources."""
    return names.plain(name)


def image(name: str, names: Names) -> str:
    """Return the image of a pod: with a tag, as nodes list it."""
    return f"{names.plain(normalized_image_name(name))}:t"


def image_of_node(name: str, names: Names) -> str:
    """Return the name that a node lists; without a tag no pod's image is equal to it."""
    return image(name, names) if normalized_image_name(name) == name else names.plain(name)


def attribute(name: str, names: Names) -> str:
    """Return the name of a device's attribute or capacity: ``domain/name``, or the name alone."""
    domain, slash, rest = name.partition("/")
    return f"{names.plain(domain)}/{names.plain(rest)}" if slash else names.plain(name)


def request(name: str, names: Names) -> str:
    """Return a request for devices, or one of its alternatives: ``request/alternative``."""
    return "/".join(map(names.plain, name.split("/")))


def version(text: str, names: Names) -> str:
    """Return a semantic version with the same numbers, and aliases for the words in it."""
    if not is_version(text):
        return names.plain(text)
    numbers, plus, build = text.partition("+")
    numbers, dash, release = numbers.partition("-")
    found = numbers
    for mark, words in ((dash, release), (plus, build)):
        if mark:
            parts = (each if each.isdecimal() else names.plain(each) for each in words.split("."))
            found += mark + ".".join(parts)
    return found


def handle(text: str, names: Names) -> str:
    """Return a CSI volume's handle, with the parts of which those of in-tree volumes are made."""
    for separator in ("/", "#"):
        parts = text.split(separator)
        if len(parts) > 2:
            return separator.join(
                each if each in _HANDLE_WORDS else names.plain(each) for each in parts
            )
    return names.plain(text)


def ebs_volume(text: str, names: Names) -> str:
    """Return an EBS volume's id: the same for its two spellings."""
    try:
        return handle(ebs_volume_id(text), names)
    except MalformedObjectError:
        return f"aws://{names.plain(text)}"


def azure_secret(text: str, names: Names) -> str:
    """Return the storage account that a secret is named after."""
    return names.plain(storage_account(text))


def label_value(key: str, text: str, names: Names) -> str:
    """Return the value of a label; a volume may name several zones in one."""
    if _ZONES in text:
        return _ZONES.join(names.value(key, each) for each in text.split(_ZONES))
    return names.value(key, text)


def redacted_labels(given: Mapping[str, str], names: Names) -> dict[str, str]:
    """Return labels, or what selects by them."""
    return {names.word(key): label_value(key, text, names) for key, text in given.items()}


def redacted_annotations(given: Mapping[str, str], names: Names) -> dict[str, str]:
    """Return annotations."""
    return {names.word(key): _annotation(key, text, names) for key, text in given.items()}


def _annotation(key: str, text: str, names: Names) -> str:
    if is_kept(key) and text in _FLAGS:
        return text
    if key == PARTIAL_GANG_GRACE:
        return duration(text, names)
    if key == MIGRATED_PLUGINS:
        return ",".join(map(names.plain, text.split(",")))
    return names.word(text) if key in _ABOUT_KEYS else names.plain(text)


def opaque(given: Any, names: Names) -> dict[str, str]:
    """Return what stands for parameters that only a driver reads."""
    return {"redacted": names.hidden(json.dumps(given, sort_keys=True, default=str))}
