from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.house.imports import Import, imports_of, room_of, rooms_graph
from tests.house.source import Module, read_modules

if TYPE_CHECKING:
    from tests.house.conftest import Build

APP = "scheduler.app"
API = "scheduler.client.api"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("import scheduler.client.api", [(API, False)], id="import"),
        pytest.param("import os, scheduler.client.api as api", [(API, False)], id="as"),
        pytest.param("from scheduler.client.api import get", [(API, False)], id="a name"),
        pytest.param("from scheduler.client import api", [(API, False)], id="a module as a name"),
        pytest.param(
            "from scheduler.client import get", [("scheduler.client", False)], id="of a package"
        ),
        pytest.param("from .client.api import get", [(API, False)], id="relative"),
        pytest.param("from . import app", [], id="itself"),
        pytest.param("def late():\n    import scheduler.client.api", [(API, False)], id="late"),
        pytest.param(
            "if TYPE_CHECKING:\n    from scheduler.client.api import get", [(API, True)], id="type"
        ),
        pytest.param(
            "if typing.TYPE_CHECKING:\n    from scheduler.client.api import get",
            [(API, True)],
            id="type by its module",
        ),
        pytest.param(
            "if TYPE_CHECKING:\n    pass\nelse:\n    import scheduler.client.api",
            [(API, False)],
            id="not for types",
        ),
        pytest.param(
            "import scheduler.client.api\nif TYPE_CHECKING:\n    import scheduler.client.api",
            [(API, False)],
            id="both",
        ),
        pytest.param("import scheduler.missing, numpy", [], id="not ours"),
    ],
)
def test_an_import_is_found(build: Build, text: str, found: list[tuple[str, bool]]) -> None:
    modules = read_modules(
        build(
            {
                "scheduler/app.py": text,
                "scheduler/client/__init__.py": "",
                "scheduler/client/api.py": "",
            }
        )
    )
    assert imports_of(modules) == tuple(Import(APP, *each) for each in found)


@pytest.mark.parametrize(
    ("module", "room"),
    [
        pytest.param(Module(API, ""), "scheduler.client", id="in a folder"),
        pytest.param(Module(APP, ""), APP, id="at the top"),
        pytest.param(
            Module("scheduler.a.b", "", is_package=True), "scheduler.a.b", id="a folder in a folder"
        ),
        pytest.param(Module("plugins", "", is_package=True), "plugins", id="a package"),
    ],
)
def test_a_room_is_a_folder_or_a_file_at_the_top(module: Module, room: str) -> None:
    assert room_of(module) == room


def test_rooms_import_rooms(build: Build) -> None:
    modules = read_modules(
        build(
            {
                "scheduler/app.py": "from scheduler.client import api",
                "scheduler/client/__init__.py": "",
                "scheduler/client/api.py": "import scheduler.client.http",
                "scheduler/client/http.py": "if TYPE_CHECKING:\n    import cache.objects",
                "cache/objects.py": "",
            }
        )
    )
    imports = imports_of(modules)
    graph = rooms_graph(modules, imports)
    assert {room: others for room, others in graph.items() if others} == {
        APP: {"scheduler.client"},
        "scheduler.client": {"cache.objects"},
    }
    assert rooms_graph(modules, imports, types_too=False)["scheduler.client"] == set()
