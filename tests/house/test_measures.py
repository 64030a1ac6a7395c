from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.__main__ import main
from tests.house.measures import measure, way_of
from tests.house.report import as_text

if TYPE_CHECKING:
    from tests.house.conftest import Build

ROOT = Path(__file__).resolve().parents[2]

LONG = "def long():\n" + "    pass\n" * 60
WIDE = "class Wide:\n    def __init__(self, a, b, c, d, e, f, g): ...\n"
SMALL = "class Small:\n    def __init__(self, a): ...\n"
FILES = {
    "scheduler/app.py": 'import scheduler.config.load\nimport scheduler.loop\n"""Why."""\n',
    "scheduler/loop.py": LONG,
    "scheduler/config/__init__.py": "",
    "scheduler/config/load.py": WIDE + "import scheduler.client.api",
    "scheduler/client/__init__.py": "",
    "scheduler/client/api.py": SMALL + "if TYPE_CHECKING:\n    import scheduler.config.load\n",
}


def test_a_checkout_is_measured(build: Build) -> None:
    house = measure(build(FILES), "made up", follow_pod=False)
    assert house.sizes["all"].code == 2 + 61 + 3 + 4
    assert house.sizes["all"].docstrings == 1
    assert house.sizes["all"].files == len(FILES) + 3
    assert house.sizes["scheduler"].files == len(FILES) + 1
    assert house.longest_file == ("scheduler.loop", 61)
    assert house.num_functions == 3
    assert house.long_functions == [("scheduler.loop.long", 61)]
    assert house.constructors == [("scheduler.config.load.Wide", 7)]
    assert house.most_parameters == 7
    assert house.top_files == ["scheduler", "scheduler.app", "scheduler.loop"]
    assert house.folders == ["scheduler", "scheduler.client", "scheduler.config"]
    assert (house.num_imports, house.num_imports_for_types) == (4, 1)


def test_circles_and_floors_are_told_by_all_imports_and_by_those_that_are_run(
    build: Build,
) -> None:
    house = measure(build(FILES), "made up", follow_pod=False)
    assert house.floors.knots == [["scheduler.client", "scheduler.config"]]
    assert len(house.floors.back) == 1
    assert house.runtime.knots == house.runtime.back == []
    assert house.runtime.floors == [
        ["scheduler", "scheduler.client", "scheduler.loop"],
        ["scheduler.config"],
        ["scheduler.app"],
    ]


def test_a_way_counts_its_returns() -> None:
    way = way_of([("", "a"), ("a", "b"), ("b", "c"), ("a", "b"), ("", "a")])
    assert way.rooms == {"a": 2, "b": 2, "c": 1}
    assert way.returns == 2


def test_a_checkout_in_which_no_pod_can_be_followed_says_so(build: Build) -> None:
    house = measure(build({}), "made up")
    assert house.ways is None
    assert house.why_no_ways == "there is no tests/regressions/world.py"
    assert house.why_no_ways in as_text([house])


def test_a_pod_is_followed_from_the_watch_to_its_binding() -> None:
    house = measure(ROOT, "this")
    assert house.ways is not None, house.why_no_ways
    new, like = house.ways.values()
    assert len(like.calls) <= len(new.calls)
    for way in (new, like):
        assert way.calls[0][0] == "", "it begins on the loop"
        entered = [room.rpartition(".")[2] for room in way.rooms]
        assert entered.index("event_handlers") < entered.index("queueing")
        assert way.returns == len(way.calls) - len(way.rooms)


@pytest.mark.parametrize(
    "line",
    [
        "lines of code 70 70",
        "functions above 50 lines 1 1",
        "functions above 80 lines 0 0",
        "2 rooms: client, config",
        "config -> client runs back:",
        "Circles of rooms, by the imports that are run: none",
        "Floors of scheduler, the highest first 2 app, client 1 scheduler, config, loop",
        "61 scheduler.loop.long",
        "7 scheduler.config.load.Wide",
    ],
)
def test_houses_are_shown_side_by_side(build: Build, line: str) -> None:
    house = measure(build(FILES), "made up", follow_pod=False)
    assert line in " ".join(as_text([house, house]).split())


def test_everything_is_told_as_json(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    root = build(FILES)
    assert main([str(root), str(root), "--json", "--no-pod"]) == 0
    one, other = json.loads(capsys.readouterr().out)
    assert one == other
    assert one["sizes"]["all"]["code"] == 70
    assert one["floors"]["knots"] == [["scheduler.client", "scheduler.config"]]
