"""The old name of what users import."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path

import pytest

import berth
from plugins import authoring

FOLDER = Path(authoring.__file__).parent
MODULES = {path.stem: path.stem for path in sorted(FOLDER.glob("[a-z]*.py"))}
OLD_MODULES = {
    **{name: name for name in MODULES if name not in ("checked_results", "view_readings")},
    "answers": "checked_results",
    "questions": "view_readings",
}


def run(text: str) -> dict[str, object]:
    """Run the text of a user's file; return its names."""
    found: dict[str, object] = {}
    exec(compile(text, "theirs.py", "exec"), found)
    return found


def new_import(warning: str) -> object:
    """Follow the advice of a warning; return what is imported."""
    (advice,) = warning.split("`")[1::2]
    return run(advice)[advice.split()[-1]]


@pytest.mark.parametrize("name", authoring.__all__)
def test_everything_is_found_with_a_warning_that_leads_to_it(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=r"removed in version 0\.2\.0") as warned:
        found = run(f"from plugins.policy import {name}")
    assert found[name] is getattr(authoring, name)
    (warning,) = warned
    assert warning.filename == "theirs.py"
    assert new_import(str(warning.message)) is found[name]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import plugins.policy\nA = plugins.policy.Args", id="by its full name"),
        pytest.param("from plugins import policy\nA = policy.Args", id="as a module"),
        pytest.param("import plugins.policy.args as a\nA = a.Args", id="the module of its own"),
        pytest.param("from plugins.policy import args\nA = args.Args", id="below the module"),
        pytest.param("from plugins.policy import *\nA = Args", id="all of it"),
    ],
)
def test_however_it_is_imported(text: str) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert run(text)["A"] is berth.Args
    assert any("`from berth import Args`" in str(each.message) for each in warned)


@pytest.mark.parametrize("old", OLD_MODULES)
def test_modules_below_the_name_are_there(old: str) -> None:
    new = import_module(f"plugins.authoring.{OLD_MODULES[old]}")
    mine = {
        name: each
        for name, each in vars(new).items()
        if getattr(each, "__module__", "") == new.__name__ and not name.startswith("_")
    }
    assert mine
    for name, each in mine.items():
        with pytest.warns(DeprecationWarning, match="will be removed") as warned:
            found = run(f"from plugins.policy.{old} import {name}")
        assert found[name] is each
        assert new_import(str(warned[0].message)) is each


def test_each_module_has_an_old_name() -> None:
    assert sorted(OLD_MODULES.values()) == sorted(MODULES)


@pytest.mark.parametrize("text", ["policy import Nothing", "policy.args import Nothing"])
def test_what_was_never_there_is_not_there(text: str) -> None:
    with pytest.raises((ImportError, AttributeError), match="Nothing"):
        run(f"from plugins.{text}")
