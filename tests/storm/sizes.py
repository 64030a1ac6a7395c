"""I9: whatever a process keeps is in proportion to what the cluster has, not to what it has had.

Everything that can be reached from the parts of a process is walked through, and each container is
named by the class and the attribute that hold it. A container that grows with each pod that ever
was is longer than the cluster is large after some hundred pods have come and gone.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.value import PLAIN_VALUES
from scheduler.cycle.signature_reuse import MAX_POD_BYTES
from tests.storm.simulation import InvariantError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.storm.replica import Replica
    from tests.storm.world import World

OWN: Final = ("cache.", "plugins.", "scheduler.")
_LEAVES: Final = (str, bytes, int, float, bool, type(None), type, types.ModuleType)

_BY_BYTES: Final = "ByteBounded."
"""What is bounded in bytes has values of any size."""

_BYTES_OF_TOLERATION: Final = 250
"""The least that one weighs, with its texts."""

PER_OBJECT: Final = 3
AT_LEAST: Final = 150
"""A container may have so many entries, and so many for each object in etcd."""

BOUNDED: Final[Mapping[str, int]] = {
    "ChangeJournal._keys": 8_192,
    "RecentDecisions._new": 4_096,
    "Samples._waiting": 65_536,
    "SeriesCache._by_type[]": 16_384,
    "ToleratedTaints._covered": MAX_POD_BYTES // _BYTES_OF_TOLERATION,
}
"""Containers that have a bound of their own; the second is emptied four times a second by the
program, and by nobody here, the third by whoever asks for metrics, a series of Events ends after
six minutes, and the verdicts about a signature, which are kept with what a plugin prepared of its
pod, are those of a pod that is not heavy."""


def check_sizes(world: World) -> None:
    """Report containers that are longer than anything in the cluster explains.

    *Cost*: some 100 ms for each process.

    Raises
    ------
    InvariantError
        One is.
    """
    etcd = world.servers.etcd.objects
    objects = sum(len(each) for name, each in etcd.items() if name != "events")
    objects += sum(_lists(each.data) for each in etcd["pods"].values())
    most = AT_LEAST + PER_OBJECT * objects
    for replica in world.replicas.values():
        for name, length in sorted(sizes(replica).items()):
            if length > BOUNDED.get(name, most):
                why = f"{replica.name}: {name} has {length} entries, the cluster {objects}"
                raise InvariantError("I9", why)


def _lists(pod: dict[str, Any]) -> int:
    """Return how long the lists of a pod are that users make long."""
    metadata, spec = pod["metadata"], pod["spec"]
    affinity = spec.get("affinity", {}).get("podAntiAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ())
    lists = (metadata.get("labels", ()), spec["containers"], spec.get("tolerations", ()), terms)
    return sum(map(len, lists))


def sizes(replica: Replica) -> dict[str, int]:
    """Return how long the longest container is of each name."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    # Whoever is in `waiting` is kept, so that no other object takes its identity.
    waiting: deque[tuple[str, Any]] = deque([("parts", replica.parts), ("api", replica.api)])
    kept: list[Any] = []
    while waiting:
        name, one = waiting.popleft()
        if isinstance(one, _LEAVES) or id(one) in seen:
            continue
        seen.add(id(one))
        kept.append(one)
        if isinstance(one, (Mapping, Set, list, deque)):
            found[name] = max(found.get(name, 0), len(one))
        if not name.startswith(_BY_BYTES):
            waiting.extend(_inside(name, one))
    return found


def _inside(name: str, one: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(one, Mapping):
        for key, value in list(one.items()):
            yield f"{name}[]", key
            yield f"{name}[]", value
    elif isinstance(one, (Set, list, tuple, deque)):
        for value in list(one):
            yield f"{name}[]", value
    elif isinstance(one, functools.partial):
        yield from ((name, part) for part in (one.func, *one.args, *one.keywords.values()))
    elif isinstance(one, types.MethodType):
        yield name, one.__self__
    elif isinstance(one, types.FunctionType):
        yield from ((name, cell.cell_contents) for cell in one.__closure__ or () if _is_set(cell))
    elif type(one).__module__.startswith(OWN) and (
        isinstance(one, PLAIN_VALUES) or not isinstance(one, msgspec.Struct)
    ):
        # Structs are objects of the API, which users make as large as they like.
        yield from _attributes(one)


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _attributes(one: Any) -> Iterator[tuple[str, Any]]:
    name = type(one).__name__
    for attribute, value in getattr(one, "__dict__", {}).items():
        yield f"{name}.{attribute}", value
    for cls in type(one).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if hasattr(one, slot):
                yield f"{name}.{slot}", getattr(one, slot)
