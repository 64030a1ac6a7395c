from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scheduler.cli import main
from tests.builders import node, pod
from tests.scheduler.explain.cluster_files import as_object, write_dump

if TYPE_CHECKING:
    from pathlib import Path

NODES = (node("n1").capacity(cpu="4"), node("n2").capacity(cpu="1"))
WEB = pod("web").scheduler("berth").request(cpu="2")


@pytest.fixture
def dump(tmp_path: Path) -> str:
    return write_dump(tmp_path / "dump.json", *NODES, WEB)


def explain(*arguments: str) -> int:
    return main(["explain", *arguments])


def test_a_pod_of_a_dump_is_explained(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain("--from", dump, "--pod", "default/web") == 0
    text = capsys.readouterr().out
    assert text.startswith("Pod default/web: 1 of 2 nodes can run it\n")
    assert "n2: cpu 2 wanted, 1 of 1 free" in text


def test_a_bare_name_is_in_the_default_namespace(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain("--from", dump, "--pod", "web", "-o", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["pod"] == "default/web"
    assert sorted(answer["nodes"]) == ["n1", "n2"]


def test_only_the_nodes_of_a_pool_are_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [each.label("pool", name) for each, name in zip(NODES, "ab", strict=True)]
    running = pod("db").request(cpu="1").on("n2")
    dump = write_dump(tmp_path / "dump.json", *nodes, running, WEB)
    assert explain("--from", dump, "--pod", "web", "--node-selector", "pool=b") == 0
    text = capsys.readouterr().out
    assert text.startswith("Pod default/web: 0 of 1 node can run it\n")
    assert "n2: cpu 2 wanted, 0 of 1 free" in text


def test_a_dump_may_be_in_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = write_dump(tmp_path / "nodes.json", *NODES)
    pods = write_dump(tmp_path / "pods.json", WEB)
    assert explain("--from", nodes, "--from", pods, "--pod", "web") == 0
    assert "1 of 2 nodes" in capsys.readouterr().out


def test_a_pod_that_runs_is_explained_as_if_it_did_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = write_dump(tmp_path / "d.json", node("n1").capacity(cpu="2"), WEB.on("n1"))
    assert explain("--from", dump, "--pod", "web") == 0
    text = capsys.readouterr().out
    assert "1 of 1 node can run it" in text
    assert "It is on n1; this is what would be said of it if it were not." in text


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        pytest.param(WEB.gate("quota"), "waiting for scheduling gates: [quota]", id="gated"),
        pytest.param(
            WEB.scheduler("other"), "asks for the scheduler 'other', not 'berth'", id="not ours"
        ),
    ],
)
def test_what_keeps_a_pod_waiting_besides_nodes_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: object, note: str
) -> None:
    dump = write_dump(tmp_path / "d.json", *NODES, asked)
    assert explain("--from", dump, "--pod", "web") == 0
    assert note in capsys.readouterr().out


def test_a_configuration_counts(
    tmp_path: Path, dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        "- schedulerName: berth\n"
        "  plugins: {filter: {disabled: [{name: '*'}]}}\n"
    )
    assert explain("--from", dump, "--pod", "web", "--config", str(config)) == 0
    assert "2 of 2 nodes can run it" in capsys.readouterr().out


def test_extenders_are_not_asked_and_that_is_said(
    tmp_path: Path, dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n"
    )
    assert explain("--from", dump, "--pod", "web", "--config", str(config)) == 0
    assert "The extenders of the configuration were not called." in capsys.readouterr().out


def test_an_object_that_cannot_be_read_costs_itself_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = write_dump(tmp_path / "d.json", *NODES, node("n3").capacity(cpu="1x"), WEB)
    assert explain("--from", dump, "--pod", "web") == 0
    output = capsys.readouterr()
    assert "1 of 2 nodes" in output.out
    assert output.err.startswith("berth: left out: Node n3: status.allocatable[cpu]: '1x'")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--from", "DUMP"], "which pod? --pod NS/NAME is missing", id="no pod"),
        pytest.param(
            ["--from", "DUMP", "--pod", "webb"],
            "there is no pod default/webb among 1; did you mean web?",
            id="unknown pod",
        ),
        pytest.param(
            ["--from", "/no/such", "--pod", "web"],
            "/no/such cannot be read: No such file or directory",
            id="no file",
        ),
        pytest.param(
            ["--from", "DUMP", "--kubeconfig", "k", "--pod", "web"],
            "--from and --kubeconfig contradict each other",
            id="two sources",
        ),
        pytest.param(
            ["--batch", "--pod", "web"],
            "--batch reads all from its lines, it does not go with --pod",
            id="batch and a pod",
        ),
        pytest.param(
            ["--kubeconfig", "/no/such", "--pod", "web"],
            "kubeconfig /no/such cannot be read: No such file or directory",
            id="no kubeconfig",
        ),
    ],
)
def test_a_question_that_cannot_be_answered_gets_one_sentence(
    dump: str, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert explain(*(dump if each == "DUMP" else each for each in arguments)) == 1
    assert capsys.readouterr().err == f"berth: {sentence}\n"


def test_a_list_of_one_kind_need_not_repeat_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = [{k: v for k, v in as_object(each).items() if k != "kind"} for each in NODES]
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps({"kind": "NodeList", "items": bare}))
    pods = write_dump(tmp_path / "pods.json", WEB)
    assert explain("--from", str(nodes), "--from", pods, "--pod", "web") == 0
    assert "1 of 2 nodes" in capsys.readouterr().out


def test_a_reader_that_has_seen_enough_is_no_fault(dump: str) -> None:
    command = [sys.executable, "-m", "scheduler", "explain", "--from", dump, "--pod", "web"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 1


def test_what_is_logged_meanwhile_is_not_part_of_the_answer(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "broken.py").write_text("class Broken:\n    pass\n")
    assert explain("--from", dump, "--pod", "web", "-o", "json", "--plugin-dir", str(folder)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "plugin code is not used" in err


def test_the_text_ends_with_what_would_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_dump(tmp_path / "full.json", *NODES, pod("big").request(cpu="5"))
    assert explain("--from", path, "--pod", "default/big") == 0
    text = capsys.readouterr().out
    assert text.endswith(
        "\n\nWhat would help, by the filters' verdict on the changed pod:\n"
        "      2  Insufficient cpu [NodeResourcesFit]\n"
        "           request 1 less cpu (4 instead of 5): n1\n"
        "A node that would do: of a new shape, with cpu 5\n"
    )


def test_json_holds_the_relaxations(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain("--from", dump, "--pod", "default/web", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["relaxations"]["deciding"]["node"] == "n1"
