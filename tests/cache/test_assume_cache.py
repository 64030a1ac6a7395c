"""What is assumed lies over what the API has, for as long as the API says nothing newer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from cache.assume_cache import AssumeCache, AssumeError
from tests.storage_builders import volume

if TYPE_CHECKING:
    from cache.storage_objects import PersistentVolume

NAMES = ("a", "b", "c")
CLASSES = ("", "fast", "slow")


def new_cache() -> AssumeCache[str, PersistentVolume]:
    return AssumeCache(
        "persistentvolumes", lambda v: v.metadata.name, lambda v: v.spec.storage_class_name
    )


def at(version: int, class_name: str = "fast") -> PersistentVolume:
    return volume("a").version(version).of_class(class_name).build()


def test_an_assumed_object_is_the_latest_and_not_the_apis() -> None:
    cache = new_cache()
    cache.changed(None, at(1))
    cache.assume(at(1, "slow"))
    assert (cache.get("a"), cache.get_api("a")) == (at(1, "slow"), at(1))


def test_restoring_shows_the_apis_version_again() -> None:
    cache = new_cache()
    cache.changed(None, at(1))
    cache.assume(at(1, "slow"))
    cache.restore(at(1, "slow"))
    assert cache.get("a") == at(1)


def test_restoring_what_was_made_from_another_version_changes_nothing() -> None:
    cache = new_cache()
    cache.changed(None, at(2))
    cache.assume(at(2, "slow"))
    cache.restore(at(1, "slow"))
    assert cache.get("a") == at(2, "slow")


def test_a_newer_version_ends_the_assumption() -> None:
    cache = new_cache()
    cache.changed(None, at(1))
    cache.assume(at(1, "slow"))
    cache.changed(at(1), at(2))
    assert cache.get("a") == at(2)


def test_the_same_version_again_keeps_the_assumption() -> None:
    cache = new_cache()
    cache.changed(None, at(1))
    cache.assume(at(1, "slow"))
    cache.changed(at(1), at(1))
    assert cache.get("a") == at(1, "slow")


def test_an_older_version_is_passed_over() -> None:
    cache = new_cache()
    cache.changed(None, at(10))
    assert not cache.changed(None, at(9))
    assert cache.get("a") == at(10)


@pytest.mark.parametrize("version", [9, 10, 11])
def test_after_a_restore_whatever_the_api_has_is_taken_over(version: int) -> None:
    cache = new_cache()
    cache.changed(None, at(10))
    cache.assume(at(10, "slow"))
    assert cache.changed(at(10), at(version, ""), restored=True)
    assert cache.get("a") == cache.get_api("a") == at(version, "")
    assert not cache._assumed
    cache.assume(at(version, "slow"))
    assert cache.by_index("slow") == (at(version, "slow"),)


def test_a_deletion_ends_everything() -> None:
    cache = new_cache()
    cache.changed(None, at(1))
    cache.assume(at(1, "slow"))
    cache.changed(at(1), None)
    assert (cache.get("a"), cache.get_api("a"), cache.by_index("slow")) == (None, None, ())


@pytest.mark.parametrize(
    ("known", "why"),
    [
        pytest.param(2, r'"a" is out of sync \(stored: 2, assume: 1\)', id="newer-at-the-api"),
        pytest.param(None, 'persistentvolumes "a" not found', id="gone"),
    ],
)
def test_what_the_api_does_not_have_cannot_be_assumed(known: int | None, why: str) -> None:
    cache = new_cache()
    if known is not None:
        cache.changed(None, at(known))
    with pytest.raises(AssumeError, match=why):
        cache.assume(at(1, "slow"))
    assert not cache._assumed


def test_the_index_follows_what_is_assumed() -> None:
    cache = new_cache()
    cache.changed(None, at(1))
    cache.assume(at(1, "slow"))
    assert (cache.by_index("fast"), cache.by_index("slow")) == ((), (at(1, "slow"),))


def test_a_listener_hears_of_the_api_and_not_of_assumptions() -> None:
    cache, heard = new_cache(), []
    cache.listen("a", lambda: heard.append(cache.get_api("a")))
    cache.changed(None, at(1))
    cache.assume(at(1, "slow"))
    cache.changed(None, volume("b").build())
    cache.changed(at(1), None)
    assert heard == [at(1), None]


def test_who_no_longer_listens_hears_nothing() -> None:
    cache, heard = new_cache(), []

    def listener() -> None:
        heard.append(1)

    cache.listen("a", listener)
    cache.unlisten("a", listener)
    cache.unlisten("a", listener)
    cache.changed(None, at(1))
    assert heard == []


class AssumeHistory(RuleBasedStateMachine):
    """A watch that may repeat itself and go back, and somebody who assumes and restores."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = new_cache()
        self.api: dict[str, PersistentVolume] = {}
        self.assumed: dict[str, PersistentVolume] = {}
        self.shown: list[PersistentVolume] = []
        self.clock = 100

    def _next(self, name: str, class_name: str) -> PersistentVolume:
        self.clock += 1
        made = volume(name).version(self.clock).of_class(class_name).build()
        self.shown.append(made)
        return made

    @rule(name=st.sampled_from(NAMES), class_name=st.sampled_from(CLASSES))
    def watch_brings_a_change(self, name: str, class_name: str) -> None:
        new = self._next(name, class_name)
        self.cache.changed(self.api.get(name), new)
        self.api[name] = new
        self.assumed.pop(name, None)

    @rule(data=st.data())
    def watch_repeats_or_goes_back(self, data: st.DataObject) -> None:
        if self.shown:
            again = data.draw(st.sampled_from(self.shown))
            name = again.metadata.name
            if name in self.api:
                self.cache.changed(self.api[name], again)

    @rule(name=st.sampled_from(NAMES))
    def watch_brings_a_deletion(self, name: str) -> None:
        self.cache.changed(self.api.pop(name, volume(name).build()), None)
        self.assumed.pop(name, None)

    @rule(data=st.data(), class_name=st.sampled_from(CLASSES))
    def assumed_from_some_version(self, data: st.DataObject, class_name: str) -> None:
        if not self.shown:
            return
        seen = data.draw(st.sampled_from(self.shown))
        name = seen.metadata.name
        wanted = replace(seen, spec=replace(seen.spec, storage_class_name=class_name))
        known = self.api.get(name)
        same = known is not None and (
            known.metadata.resource_version == seen.metadata.resource_version
        )
        try:
            self.cache.assume(wanted)
        except AssumeError:
            assert not same
        else:
            assert same
            self.assumed[name] = wanted

    @rule(data=st.data())
    def restored_from_some_version(self, data: st.DataObject) -> None:
        if not self.shown:
            return
        seen = data.draw(st.sampled_from(self.shown))
        name = seen.metadata.name
        held = self.assumed.get(name)
        self.cache.restore(seen)
        if held is not None and (held.metadata.resource_version == seen.metadata.resource_version):
            del self.assumed[name]

    @invariant()
    def shows_what_is_assumed_over_what_the_api_has(self) -> None:
        latest = {**self.api, **self.assumed}
        for name in NAMES:
            assert self.cache.get(name) == latest.get(name)
            assert self.cache.get_api(name) == self.api.get(name)
        assert sorted({**self.cache._api, **self.cache._assumed}) == sorted(latest)
        assert self.cache._assumed == self.assumed

    @invariant()
    def finds_by_class_what_it_shows(self) -> None:
        latest = {**self.api, **self.assumed}
        for class_name in CLASSES:
            found = sorted(v.metadata.name for v in self.cache.by_index(class_name))
            wanted = sorted(n for n, v in latest.items() if v.spec.storage_class_name == class_name)
            assert found == wanted


TestAssumeHistory = AssumeHistory.TestCase
TestAssumeHistory.settings = settings(deadline=None, stateful_step_count=30)
