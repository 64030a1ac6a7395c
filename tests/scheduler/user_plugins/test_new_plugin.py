from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from scheduler.cli import main
from scheduler.config import ConfigError
from scheduler.user_plugins.finding import files_of
from scheduler.user_plugins.loading import load_source
from scheduler.user_plugins.new_plugin import write_new_plugin


@pytest.mark.parametrize(
    ("name", "file"),
    [
        pytest.param("CheapNodesFirst", "cheap_nodes_first.py", id="words"),
        pytest.param("GPUFirst", "gpu_first.py", id="capitals"),
        pytest.param("X", "x.py", id="one letter"),
    ],
)
def test_a_new_plugin_can_be_loaded_as_it_is(tmp_path: Path, name: str, file: str) -> None:
    assert write_new_plugin(name, tmp_path).name == file
    (found,) = files_of(tmp_path).sources
    assert set(load_source(found)) == {name}


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, id=each or "empty") for each in ("", "9lives", "lower", "A-b", "A/b")],
)
def test_a_name_that_no_class_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="NAME: must be letters and digits"):
        write_new_plugin(name, tmp_path)


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = write_new_plugin("Mine", tmp_path)
    path.write_text("my work")
    with pytest.raises(ConfigError, match="is there already"):
        write_new_plugin("Mine", tmp_path)
    assert path.read_text() == "my work"


def test_the_command_says_what_to_do_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugin", "new", "Mine", "--dir", str(tmp_path)]) == 0
    assert f"berth run --plugin-dir {tmp_path}" in capsys.readouterr().out


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: Mine}]}}
    pluginConfig: [{name: Mine, args: {label: price}}]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.yaml"
    path.write_text(CONFIG)
    return path


def test_a_configuration_that_names_it_is_checked_with_it(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_new_plugin("Mine", tmp_path)
    assert main(["check-config", str(config), "--plugin-dir", str(tmp_path)]) == 0
    assert "label: price" in capsys.readouterr().out


def test_a_pod_is_explained_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_new_plugin("Mine", tmp_path)
    objects = [
        {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"pods": "9"}}}
        for name in ("a", "b")
    ]
    objects.append({"kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {}})
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": objects}))
    given = ["--from", str(dump), "--pod", "p", "--plugin-dir", str(tmp_path)]
    assert main(["explain", *given]) == 0
    assert "Mine" in capsys.readouterr().out


def test_the_example_of_the_page_can_be_loaded(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "plugins.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "example.py").write_text(example)
    (found,) = files_of(tmp_path).sources
    assert set(load_source(found)) == {"CheapNodesFirst"}


def test_without_the_directory_the_plugin_is_unknown(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-config", str(config)]) == 1
    assert "there is no plugin 'Mine'" in capsys.readouterr().err
