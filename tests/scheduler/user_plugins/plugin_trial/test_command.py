"""``berth plugin check`` and ``berth plugin bench``."""

from __future__ import annotations

import pytest

from scheduler.cli import main

GOOD = """
class Cheap:
    def score(self, pod, nodes):
        return nodes.label_number("example.com/cost-per-hour", 1.0)
"""
BAD = """
class Cheap:
    def filter_one(self, pod, node):
        return node.labels["rack"] == "a"
"""


def test_a_good_plugin_is_told_so(tmp_path, capsys):
    (tmp_path / "cheap.py").write_text(GOOD)
    assert main(["plugin", "check", str(tmp_path / "cheap.py")]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{tmp_path}/cheap.py\n  Cheap\n    ok      It answers about every pod")
    assert "FAILED" not in told


def test_a_bad_one_is_told_what_is_wrong_and_the_status_says_so(tmp_path, capsys):
    (tmp_path / "cheap.py").write_text(BAD)
    assert main(["plugin", "check", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "    FAILED  It answers about every pod what its methods may answer\n" in told
    assert "KeyError: 'rack' (cheap.py, line 4); with 1 generated node" in told


def test_bench_prints_a_line_for_each_method(tmp_path, capsys):
    (tmp_path / "cheap.py").write_text(GOOD)
    assert main(["plugin", "bench", str(tmp_path / "cheap.py"), "--nodes", "20"]) == 0
    line = capsys.readouterr().out.splitlines()[-1].split()
    assert line[:3] == ["Cheap", "score", "20"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["/nowhere.py"], "there is no such file, folder or entry point", id="nothing"),
        pytest.param(["."], "holds no plugin", id="an empty folder"),
        pytest.param(["cheap.py", "--args", "{]"], "--args: is no JSON", id="no JSON"),
        pytest.param(
            ["cheap.py", "--args", "Cheap:7"], "--args: must be a JSON object", id="no object"
        ),
        pytest.param(["notes.txt"], "is no Python file", id="no Python"),
    ],
)
def test_a_mistake_on_the_command_line_is_told(tmp_path, monkeypatch, capsys, arguments, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("")
    if arguments != ["."]:
        (tmp_path / "cheap.py").write_text(GOOD)
    assert main(["plugin", "check", *arguments]) == 1
    assert told in capsys.readouterr().err
