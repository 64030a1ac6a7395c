from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scheduler.config import load_config
from scheduler.profiles.config_reload import ConfigReload, ConfigSource
from tests.scheduler.profiles.compiling import KNOWN, Compiling

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ONE = f"{HEAD}profiles: [{{schedulerName: a}}]\n"
TWO = f"{HEAD}profiles: [{{schedulerName: a}}, {{schedulerName: b}}]\n"
BROKEN = f"{HEAD}profiles: [{{schedulerNam: a}}]\n"
RETRY = f"{ONE}leaderElection: {{retryPeriod: 1s}}\npodMaxBackoffSeconds: 20\n"


class Reloading:
    """A file, and the policies that follow it."""

    def __init__(self, path: Path, text: str = ONE) -> None:
        self.path = path
        path.write_text(text)
        source = ConfigSource(lambda: load_config(path, KNOWN), path)
        config = source.read()
        self.world = Compiling(config=config)
        self.results: list[str] = []
        self.reload = ConfigReload(source, self.world.policies, config, self.results.append)

    def write(self, text: str) -> None:
        """Change the file, and look until it has settled."""
        self.path.write_text(text)
        self.reload.look()
        self.reload.look()


@pytest.fixture
def reloading(tmp_path):
    return Reloading(tmp_path / "berth.yaml")


def test_a_file_that_stays_is_not_read_again(reloading):
    assert not reloading.reload.look()
    assert reloading.results == []


def test_a_new_content_is_taken_over(reloading):
    reloading.write(TWO)
    assert reloading.world.running() == {"a": "file@1", "b": "file@2"}
    assert reloading.results == ["applied"]


def test_a_file_that_is_still_being_written_is_left_alone(reloading):
    reloading.path.write_text(TWO)
    assert not reloading.reload.look()


def test_the_same_content_at_another_time_is_no_change(reloading):
    reloading.write(ONE)
    assert reloading.results == []


def test_another_content_that_comes_to_the_same_is_told_apart(reloading):
    reloading.write(f"# nothing new\n{ONE}")
    assert reloading.results == ["unchanged"]
    assert reloading.world.running() == {"a": "file@1"}


def test_a_broken_file_leaves_the_last_good_one(reloading):
    reloading.write(BROKEN)
    assert reloading.world.running() == {"a": "file@1"}
    assert reloading.results == ["refused"]
    assert "schedulerNam" in reloading.reload.problem


def test_a_file_that_is_gone_leaves_the_last_good_one(reloading):
    reloading.path.unlink()
    reloading.reload.look()
    reloading.reload.look()
    assert reloading.results == ["refused"]
    assert reloading.world.running() == {"a": "file@1"}


def test_a_file_that_is_good_again_has_no_problem(reloading):
    reloading.write(BROKEN)
    reloading.write(TWO)
    assert reloading.reload.problem == ""


def test_a_symlink_that_is_swapped_is_seen(tmp_path):
    """As the kubelet does it for a mounted ConfigMap."""
    for name, text in (("v1", ONE), ("v2", TWO)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "berth.yaml").write_text(text)
    data, new = tmp_path / "..data", tmp_path / "..new"
    data.symlink_to("v1")
    mounted = tmp_path / "berth.yaml"
    mounted.symlink_to("..data/berth.yaml")
    source = ConfigSource(lambda: load_config(mounted, KNOWN), mounted)
    world = Compiling(config=source.read())
    reload = ConfigReload(source, world.policies, source.read(), lambda _: None)
    new.symlink_to("v2")
    new.replace(data)
    reload.look()
    reload.look()
    assert set(world.running()) == {"a", "b"}


def test_what_needs_a_restart_is_named(reloading):
    reloading.write(RETRY)
    assert reloading.reload.needs_restart == ("leaderElection.retryPeriod", "podMaxBackoffSeconds")


def test_what_is_as_at_the_start_again_needs_none(reloading):
    reloading.write(RETRY)
    reloading.write(ONE)
    assert reloading.reload.needs_restart == ()
