from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plugins.authoring import Unguarded
from plugins.registry import PLUGINS
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.finding import Found, files_of
from scheduler.user_plugins.loading import PluginLoadError
from scheduler.user_plugins.plugin_source import PluginSource
from tests.scheduler.user_plugins.sources import good, source

if TYPE_CHECKING:
    from pathlib import Path


def put(catalogue: PluginCatalogue, **texts: str) -> frozenset[str]:
    sources = [PluginSource.of_text("directory", f"{name}.py", texts[name]) for name in texts]
    return catalogue.replace("directory", Found(tuple(sources)))


def own(catalogue: PluginCatalogue) -> set[str]:
    return set(catalogue.plugins) - set(PLUGINS)


def test_it_begins_with_the_registry() -> None:
    assert PluginCatalogue().plugins == PLUGINS


def test_plugins_come_and_go_with_their_sources() -> None:
    catalogue = PluginCatalogue()
    assert put(catalogue, a=good("A"), b=good("B")) == {"A", "B"}
    assert own(catalogue) == {"A", "B"}
    assert put(catalogue, b=good("B")) == {"A"}
    assert own(catalogue) == {"B"}


def test_code_that_stays_the_same_stays_the_same_class() -> None:
    catalogue = PluginCatalogue()
    put(catalogue, a=good("A"))
    before = catalogue.plugins["A"]
    assert put(catalogue, a=good("A"), b=good("B")) == {"B"}
    assert catalogue.plugins["A"] is before


def test_code_that_changes_is_another_class() -> None:
    catalogue = PluginCatalogue()
    put(catalogue, a=good("A", default=1))
    before = catalogue.plugins["A"]
    assert put(catalogue, a=good("A", default=2)) == {"A"}
    assert catalogue.plugins["A"] is not before


def test_broken_code_leaves_the_last_good_version() -> None:
    catalogue = PluginCatalogue()
    put(catalogue, a=good("A"))
    before = catalogue.plugins["A"]
    assert put(catalogue, a="nonsense(") == frozenset()
    assert catalogue.plugins["A"] is before
    assert "a.py, line 1" in catalogue.problems["a.py"]
    put(catalogue, a=good("A"))
    assert not catalogue.problems


def test_what_is_read_does_not_change_under_the_reader() -> None:
    catalogue = PluginCatalogue()
    read = catalogue.plugins
    put(catalogue, a=good("A"))
    assert "A" not in read


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("NodeResourcesFit", id="ours"),
        pytest.param("GangScheduling", id="Kubernetes' alone"),
    ],
)
def test_a_name_of_kubernetes_is_taken(name: str) -> None:
    catalogue = PluginCatalogue()
    put(catalogue, a=good(name))
    assert catalogue.plugins.get(name) is PLUGINS.get(name)
    assert f"there is a plugin named {name} already" in catalogue.problems["a.py"]


def test_of_two_files_with_one_name_the_first_counts() -> None:
    catalogue = PluginCatalogue()
    put(catalogue, a=good("A", default=1), b=good("A", default=2))
    assert catalogue.sources["A"].name == "a.py"
    assert "already, that of directory a.py" in catalogue.problems["b.py"]


def test_callers_are_told_what_changed() -> None:
    catalogue, told = PluginCatalogue(), list[frozenset[str]]()
    catalogue.subscribe(told.append)
    put(catalogue, a=good("A"))
    put(catalogue, a=good("A"))
    put(catalogue)
    assert told == [{"A"}, {"A"}]


def test_a_trial_that_names_the_file_is_told_as_it_is() -> None:
    told = "<config-map NS/plugins/cheap.py>, line 2: expected ':'"
    with pytest.raises(PluginLoadError) as raised:
        PluginCatalogue(admit=lambda source: told).load([source(good())])
    assert str(raised.value) == told


def test_code_that_is_not_admitted_is_not_run() -> None:
    catalogue = PluginCatalogue(admit=lambda source: f"{source.stem} is not to be trusted")
    put(catalogue, a="raise SystemExit")
    assert own(catalogue) == set()
    assert catalogue.problems["a.py"] == "a.py: a is not to be trusted"


def test_each_version_has_a_guard_of_its_own() -> None:
    asked: list[tuple[str, str]] = []

    def guard_for(source: PluginSource, cls: type) -> Unguarded:
        asked.append((source.digest[:4], cls.__name__))
        return Unguarded()

    catalogue = PluginCatalogue(guard_for=guard_for)
    put(catalogue, a=good("A", default=1))
    put(catalogue, a=good("A", default=2))
    assert [name for _, name in asked] == ["A", "A"]
    assert asked[0] != asked[1]


def test_the_plugins_of_one_profile_are_nobody_elses() -> None:
    catalogue = PluginCatalogue()
    assert set(catalogue.load([source(good("Mine"))])) == {"Mine"}
    assert own(catalogue) == set()


def test_the_plugins_of_one_profile_stay_the_same_while_their_code_does() -> None:
    catalogue = PluginCatalogue()
    one, other = (catalogue.load([source(good("Mine"))])["Mine"] for _ in range(2))
    assert one is other


def test_a_profile_cannot_take_a_name_that_is_there() -> None:
    catalogue = PluginCatalogue()
    put(catalogue, a=good("A"))
    with pytest.raises(PluginLoadError, match="there is a plugin named A already"):
        catalogue.load([source(good("A"))])


def test_files_are_read_in_order_and_others_passed_over(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "_private.py", ".hidden.py", "notes.txt"):
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "big.py").write_bytes(b"#" * (1 << 21))
    found = files_of(tmp_path)
    assert [each.stem for each in found.sources] == ["a", "b"]
    assert "larger than" in found.problems[str(tmp_path / "big.py")]


def test_a_directory_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    catalogue = PluginCatalogue()
    catalogue.replace("directory", files_of(tmp_path / "none"))
    assert "cannot be read: No such file" in catalogue.problems[str(tmp_path / "none")]
