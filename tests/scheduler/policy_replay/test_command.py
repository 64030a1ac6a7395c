"""``berth replay DIR --config NEW`` as people call it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plugins.registry import PLUGINS
from scheduler.cli import main
from scheduler.policy_replay import command
from scheduler.policy_replay.command import Progress
from scheduler.policy_replay.replay import PolicyReplay
from tests.regressions.bystander import Bystander, Judge
from tests.scheduler.journal.journaled import play_steps
from tests.scheduler.policy_replay.policies import PACKING, profiles_of
from tests.scheduler.policy_replay.test_other_policy import FOUR, scheduled

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know the plugins of the recorded worlds."""
    plugins = {**PLUGINS, Bystander.name: Bystander, Judge.name: Judge}
    monkeypatch.setattr(command, "known_plugins", lambda _: plugins)


def call(directory: Path, config: str, *more: str) -> int:
    path = directory / "new.yaml"
    path.write_text(config)
    return main(["replay", str(directory), "--config", str(path), *more])


@pytest.mark.usefixtures("known")
def test_people_get_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play_steps(FOUR, tmp_path)
    assert call(tmp_path, PACKING) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "4 pods of profile berth then now" in lines
    assert "placed 4 3" in lines
    assert "refused 0 1" in lines
    assert "default/d: n1 -> no node" in lines or "default/d: n2 -> no node" in lines
    assert "used 2 2" in lines
    assert "cpu requested on used nodes 100.0% 62.5%" in lines


@pytest.mark.usefixtures("known")
def test_programs_get_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play_steps([*FOUR, *scheduled("vip cpu=3 priority=9")], tmp_path)
    assert call(tmp_path, PACKING, "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    (profile,) = told["profiles"]
    assert (profile["pods"], profile["then"]["placed"]) == (5, 4)
    assert profile["now"]["placed"] + profile["now"]["refused"] == 5
    assert profile["now"]["victimPriorities"] == {"0": 1}
    assert profile["now"]["cycleMs"]["count"] >= 4
    assert told["journal"]["notExact"] == 0
    assert told["packing"]["now"]["requested"]["cpu"] > 0
    assert told["openLoop"][0]["decisions"] == 5


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        pytest.param(
            PACKING.replace("MostAllocated", "Most"),
            "new.yaml: profiles[0].pluginConfig[0].args.scoringStrategy.type",
            id="a bad value",
        ),
        pytest.param(
            PACKING.replace("schedulerName: berth", "schedulerName: gpu"),
            "new.yaml: profiles: none has the schedulerName of a profile that decided in the "
            "journal: berth",
            id="another schedulerName",
        ),
        pytest.param("{", "new.yaml", id="no YAML"),
    ],
)
def test_mistakes_are_told_with_their_path(
    config: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play_steps(FOUR, tmp_path)
    assert call(tmp_path, config) == 1
    captured = capsys.readouterr()
    assert told in captured.err
    assert not captured.out


def test_a_journal_that_is_missing_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tmp_path, PACKING) == 1
    assert "holds no journal" in capsys.readouterr().err


def test_it_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    progress = Progress(3, PolicyReplay(profiles_of(PACKING), PLUGINS), lambda: now[0])
    for second in range(12):
        now[0] = float(second)
        progress(2)
    assert capsys.readouterr().err == "berth: 0 decisions, file 2 of 3\n" * 2
