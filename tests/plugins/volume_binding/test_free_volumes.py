"""The rows of a class that were kept up equal rows put together anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cache.quantity import exact_value
from cache.storage_objects import ObjectReference
from plugins.volume_binding import free_volumes
from plugins.volume_binding.free_volumes import BY_LABEL, FreeVolumesByClass
from tests.builders import requirement, term
from tests.storage_builders import storage_of, tell, volume

if TYPE_CHECKING:
    from cache.storage import Storage
    from cache.storage_objects import PersistentVolume
    from plugins.volume_binding.free_volumes import FreeVolumes

NAMES = ("a", "b", "c", "d")
CLASSES = ("", "fast")
DEMANDS = (
    None,
    term(requirement("zone", "In", "x")),
    term(requirement("zone", "In", "y")),
    term(requirement("host", "In", "h")),
    term(requirement("zone", "Exists")),
    term(requirement("zone", "In", "x", "y")),
)
CLAIM = ObjectReference("PersistentVolumeClaim", "default", "data", "uid")


def what_is_said(free: FreeVolumes) -> dict[str, object]:
    """Return what the columns say of each volume, in words."""
    said: dict[str, object] = {}
    for row, held in enumerate(free.volumes):
        demand_id = int(free.demand_ids[row])
        demands: object = free.demands[demand_id] if demand_id != BY_LABEL else None
        values = {
            key: next(
                value for value, number in free.labels[key].ids.items() if number == column[row]
            )
            for key, column in free.values_by_label.items()
            if column[row] >= 0
        }
        shape = free.shapes[int(free.shape_ids[row])]
        said[held.metadata.name] = (held, free.keys[row][0], shape, demands, values)
    return said


def made(name: str, version: int, class_name: str, size: str, demand: int) -> PersistentVolume:
    built = volume(name).version(version).of_class(class_name).size(size)
    wanted = DEMANDS[demand]
    return (built if wanted is None else built.node_affinity(wanted)).build()


changes = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "claim", "assume", "restore", "delete", "look"]),
        st.sampled_from(NAMES),
        st.sampled_from(CLASSES),
        st.sampled_from(["1Gi", "2Gi", "1500m"]),
        st.integers(0, len(DEMANDS) - 1),
    ),
    max_size=30,
)


def apply(storage: Storage, version: int, change: tuple[str, str, str, str, int]) -> None:
    kind, name, class_name, size, demand = change
    known = storage.volume(name)
    if kind == "put":
        tell(storage, known, made(name, version, class_name, size, demand))
    elif known is None:
        return
    elif kind == "claim":
        metadata = replace(known.metadata, resource_version=str(version))
        spec = replace(known.spec, claim_ref=CLAIM)
        tell(storage, known, replace(known, metadata=metadata, spec=spec))
    elif kind == "assume":
        storage.volumes.assume(replace(known, spec=replace(known.spec, claim_ref=CLAIM)))
    elif kind == "restore":
        storage.volumes.restore(known)
    elif kind == "delete":
        tell(storage, known, None)


@pytest.mark.parametrize("few", [pytest.param(64, id="row-by-row"), pytest.param(1, id="anew")])
@given(history=changes)
@settings(deadline=None)
def test_after_any_history_the_rows_equal_those_put_together_anew(
    few: int, history: list[tuple[str, str, str, str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(free_volumes, "_FEW", few)
        storage, kept = storage_of(), FreeVolumesByClass()
        for version, change in enumerate(history, start=10):
            apply(storage, version, change)
            if change[0] != "look":
                continue
            for class_name in CLASSES:
                free = kept.of_class(storage, class_name)
                assert free.keys == sorted(free.keys)
                assert what_is_said(free) == what_is_said(
                    FreeVolumesByClass().of_class(storage, class_name)
                )
                expected = {v.metadata.name for v in storage.volumes_of_class(class_name)}
                assert {v.metadata.name for v in free.volumes} == expected


def test_what_was_given_out_does_not_change() -> None:
    storage, by_class = storage_of(made("a", 1, "fast", "1Gi", 1)), FreeVolumesByClass()
    before = by_class.of_class(storage, "fast")
    said = what_is_said(before)
    tell(storage, None, made("b", 2, "fast", "1Gi", 3))
    by_class.of_class(storage, "fast")
    assert what_is_said(before) == said


def test_of_one_size_the_one_that_is_known_longest_comes_first() -> None:
    storage, by_class = storage_of(), FreeVolumesByClass()
    for version, name in enumerate(("c", "a", "b"), start=1):
        tell(storage, None, made(name, version, "fast", "1Gi", 0))
        by_class.of_class(storage, "fast")
    free = by_class.of_class(storage, "fast")
    assert [v.metadata.name for v in free.volumes] == ["c", "a", "b"]


def test_demands_of_volumes_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_volumes, "_MIN_DISTINCT", 8)
    storage, by_class = storage_of(), FreeVolumesByClass()
    for index in range(40):
        demand = term(requirement("host", "In", f"host-{index}"))
        local = volume("a").version(index + 1).of_class("fast").node_affinity(demand).build()
        tell(storage, storage.volume("a"), local)
        free = by_class.of_class(storage, "fast")
    assert len(free.labels["host"].ids) <= 11
    assert exact_value("1Gi") == free.keys[0][0]
