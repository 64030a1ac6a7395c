from __future__ import annotations

import linecache
import traceback

import msgspec
import pytest

from plugins.authoring import adapt
from scheduler.user_plugins.finding import entry_points
from scheduler.user_plugins.loading import PluginLoadError, forget_source, load_source
from scheduler.user_plugins.plugin_source import PluginSource
from tests.scheduler.user_plugins.sources import good, source


def test_a_text_brings_its_classes_by_name() -> None:
    assert set(load_source(source(good("Cheap") + good("Cheaper")))) == {"Cheap", "Cheaper"}


def test_a_class_has_the_name_that_it_gives_itself() -> None:
    text = good().replace('"""Prefers', 'name = "cheap-first"\n    """Prefers')
    assert set(load_source(source(text))) == {"cheap-first"}


def test_helpers_are_no_plugins() -> None:
    text = "import numpy\nfrom berth import Nodes, Pod\n\nclass Helper: ...\n" + good()
    assert set(load_source(source(text + good("_Hidden")))) == {"Cheap"}


def test_every_load_makes_new_classes() -> None:
    one, other = (load_source(source(good()))["Cheap"] for _ in range(2))
    assert one is not other


def test_arguments_of_a_loaded_class_are_decoded_strictly() -> None:
    args_type = adapt(load_source(source("from __future__ import annotations\n" + good()))["Cheap"])
    assert args_type.args_type is not None
    with pytest.raises(msgspec.ValidationError, match="Expected `str`"):
        msgspec.convert({"label": 1}, args_type.args_type)


def test_a_traceback_shows_the_line_of_the_text() -> None:
    text = "class Broken:\n    def score(self, pod, nodes):\n        return 1 / 0  # here\n"
    cls = load_source(source(text))["Broken"]
    with pytest.raises(ZeroDivisionError) as caught:
        cls().score(None, None)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.lineno, last.line) == (3, "return 1 / 0  # here")


def test_a_version_that_is_forgotten_leaves_the_lines_of_the_next() -> None:
    old, new = source(good(default=1)), source(good(default=2))
    for each in (old, new):
        load_source(each)
    forget_source(old)
    assert "default=2" in "".join(linecache.getlines(new.file))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("x = (\n", r"cheap.py>, line 1: '\(' was never closed", id="syntax"),
        pytest.param("\n\nimport no_such_thing\n", "line 3: ModuleNotFoundError", id="import"),
        pytest.param("x = 1\nraise SystemExit(3)\n", "line 2: SystemExit: 3", id="exit"),
        pytest.param("x = 1\n", "has no plugin", id="no class"),
        pytest.param("a\0b", "null", id="null characters"),
        pytest.param(
            "class Two:\n    def score(self, pod): ...\n",
            r"line 2: Two.score must take \(self, pod, nodes\)",
            id="a method's arguments",
        ),
        pytest.param(
            good("Cheap")
            + good("Other")
            .replace("label: str", "label: str")
            .replace('"""Prefers', 'name = "Cheap"\n    """Prefers'),
            "there are two plugins named Cheap",
            id="one name twice",
        ),
        pytest.param(
            good().replace('"""Prefers', 'name = "no name"\n    """Prefers'),
            "cannot be a plugin's name",
            id="a name with a space",
        ),
    ],
)
def test_code_that_cannot_be_used_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(PluginLoadError, match=told):
        load_source(source(text))


@pytest.mark.parametrize("found", [pytest.param(each, id=each.name) for each in entry_points()])
def test_an_installed_plugin_has_the_name_of_its_entry_point(found: PluginSource) -> None:
    assert set(load_source(found)) == {found.name}


def test_an_entry_point_that_is_not_there_is_told() -> None:
    with pytest.raises(PluginLoadError, match=r"is not installed in the group berth\.plugins"):
        load_source(PluginSource("entry-point", "NoSuchPlugin", ""))
