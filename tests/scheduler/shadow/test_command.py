from __future__ import annotations

import json

import pytest
import structlog

from scheduler.cli import main
from tests.builders import node, pod
from tests.scheduler.explain.cluster_files import write_dump

NEW = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: berth
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
"""


@pytest.fixture(autouse=True)
def no_log():
    """Leave the log of this process as it is: the command turns it to the standard error."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


@pytest.fixture
def dump(tmp_path):
    tainted = node("tainted").capacity(cpu="4", pods="9").taint("gpu")
    return write_dump(
        tmp_path / "dump.json", node("n1").capacity(cpu="4", pods="9"), tainted, pod("web")
    )


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.yaml"
    path.write_text(NEW)
    return str(path)


def report(*arguments: str) -> int:
    return main(["shadow", "report", *arguments])


def test_two_files_are_held_against_each_other(dump, new, capsys):
    assert report("--config", new, "--from", dump) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{new} beside berth's default profile, pods of berth:\n")
    assert "default/web: tainted refused by live alone" in text


def test_the_other_file_may_be_the_one_that_is(dump, new, capsys):
    assert report("--config", new, "--against", new, "--from", dump) == 0
    assert "the same nodes in all decisions" in capsys.readouterr().out


def test_programs_get_a_line_of_json_for_each_report(dump, new, capsys):
    assert report("--config", new, "--from", dump, "-o", "json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["nodesGained"] == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param(["--from", "x"], "--from needs --config", id="a dump alone"),
        pytest.param(["--against", "x"], "--against needs --config", id="half a question"),
        pytest.param(["gpu", "--config", "x"], "NAME is for a running berth", id="both kinds"),
        pytest.param(
            ["--config", "x", "--from", "y", "--kubeconfig", "z"],
            "--from and --kubeconfig contradict",
            id="two sources",
        ),
        pytest.param(
            ["--config", "x", "--decisions", "0"], "--decisions must be at least 1", id="none"
        ),
    ],
)
def test_contradictions_are_told(arguments, why, capsys):
    assert report(*arguments) == 1
    assert why in capsys.readouterr().err


PLUGIN = """
class NotOnTainted:
    reason = "tainted nodes are for others"

    def filter_one(self, pod, node):
        return node.name != "n1"
"""


def test_a_plugin_is_tried_without_a_file_that_names_it(tmp_path, dump, capsys):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text(PLUGIN)
    assert report("--plugin-dir", str(tmp_path / "plugins"), "--from", dump) == 0
    text = capsys.readouterr().out
    assert "1 pod would find no node any more" in text
    assert "n1 refused by shadow alone: tainted nodes are for others [NotOnTainted]" in text


def test_a_plugin_that_cannot_be_used_is_told(tmp_path, dump, capsys):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text("class Mine")
    assert report("--plugin-dir", str(tmp_path / "plugins"), "--from", dump) == 1
    assert "mine.py" in capsys.readouterr().err


def test_an_empty_dump_is_told(tmp_path, new, capsys):
    empty = write_dump(tmp_path / "empty.json")
    assert report("--config", new, "--from", empty) == 1
    assert "nothing to compare: 0 nodes and 0 pods" in capsys.readouterr().err
