from __future__ import annotations

import json

import pytest

from cache import kept_annotations
from scheduler.cli import main
from tests.builders import pod
from tests.scheduler.explain.cluster_files import write_dump
from tests.scheduler.what_if.clusters import PACKING, machine, manifest

POD = """
# A comment before the first document.
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  schedulerName: berth
  containers:
  - name: main
    resources: {requests: {cpu: 1}}
"""


@pytest.fixture(autouse=True)
def annotations(monkeypatch):
    """Let the command keep annotations in this test only."""
    monkeypatch.setattr(kept_annotations, "_prefixes", kept_annotations._prefixes)


@pytest.fixture
def dump(tmp_path):
    return write_dump(tmp_path / "dump.json", machine("n1"), machine("n2"), pod("old").on("n1"))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pod.yaml"
    path.write_text(POD)
    return str(path)


def what_if(*arguments: str) -> int:
    return main(["what-if", *arguments])


def test_the_text_says_how_many_fit_and_what_stops_the_next(dump, file, capsys):
    assert what_if("--pod", file, "--replicas", "50", "--from", dump) == 0
    text = capsys.readouterr().out
    assert text.startswith("Pods default/web: 8 of 50 would be placed, 42 would wait.\n")
    assert "  42 pods not placed (default/web-9 ...): 0/2 nodes are available" in text


def test_programs_get_json(dump, file, capsys):
    assert what_if("--pod", file, "--replicas", "9", "--from", dump, "-o", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["placed"], answer["refused"]) == (8, 1)
    assert answer["nodes"] == {"n1": 4, "n2": 4}
    assert answer["reason"].startswith("0/2 nodes are available")


def test_all_flags_together(dump, file, tmp_path, capsys):
    new = tmp_path / "new.yaml"
    new.write_text(PACKING)
    assert (
        what_if(
            *("--pod", file, "--replicas", "2", "--drain", "n1", "--add", "1", "--like", "n2"),
            *("--remove", "n2", "--config", str(new), "--pending", "--from", dump),
        )
        == 0
    )
    text = capsys.readouterr().out
    assert "Drain of n1: 1 pod evicted." in text
    assert "Running pods by the new configuration:" in text
    assert "lost, for no controller replaces them (--force is needed): default/old" in text


def test_json_and_several_documents_are_read(dump, tmp_path, capsys):
    two, one = tmp_path / "two.yaml", tmp_path / "one.json"
    two.write_text(f"{POD}---\n{POD.replace('web', 'db')}")
    one.write_text(json.dumps({"kind": "List", "items": [manifest("third")]}))
    assert what_if("--pod", str(two), "--pod", str(one), "--from", dump, "-o", "json") == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert {part["subject"] for part in parts} == {"default/web", "default/db", "default/third"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(
            POD.replace("cpu: 1", "cpu: much"),
            "spec.containers[0].resources.requests[cpu]",
            id="a quantity",
        ),
        pytest.param(POD.replace("  - name: main", "  - nam: [main"), "is not YAML", id="no YAML"),
        pytest.param("", "is empty", id="empty"),
        pytest.param("# nothing", "is empty", id="a comment"),
        pytest.param("- a", "must be a mapping, not a list", id="a list"),
        pytest.param(
            f"{POD}---\nkind: Pod\n",
            "document 3: metadata.name: is required",
            id="a later document",
        ),
        pytest.param(
            json.dumps({"kind": "List", "items": [manifest(), {"kind": "Pod"}]}),
            "items[1]: metadata.name: is required",
            id="an item",
        ),
        pytest.param(f"{POD}kind: Pod\n", "kind: stands there twice", id="a repeated key"),
    ],
)
def test_a_mistake_in_a_file_is_reported_with_file_and_path(dump, tmp_path, capsys, text, why):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert what_if("--pod", str(path), "--from", dump) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"berth: {path}: ")
    assert why in told


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param([], "the question asks for nothing", id="nothing"),
        pytest.param(["--add", "3"], "each --add needs a --like NODE", id="like what"),
        pytest.param(["--like", "n1"], "each --add needs a --like NODE", id="how many"),
        pytest.param(["--replicas", "3"], "--replicas: needs objects", id="of what"),
        pytest.param(["--drain", "n8"], "--drain: there is no node 'n8'", id="no such node"),
        pytest.param(["--add", "0", "--like", "n1"], "--add: must be", id="no nodes"),
        pytest.param(["--drain", "n1", "n1"], "--drain: 'n1' stands there twice", id="twice"),
        pytest.param(["--podgroup", "a/b"], "--podgroup: there is no pod group a/b", id="group"),
        pytest.param(["--pod", "no.yaml"], "no.yaml: cannot be read", id="no file"),
        pytest.param(["--drain", "n1", "--config", "no.yaml"], "no.yaml: cannot be", id="config"),
        pytest.param(["--drain", "n1", "--kubeconfig", "x"], "contradict", id="two sources"),
    ],
)
def test_wrong_use_is_reported(dump, capsys, arguments, why):
    assert what_if(*arguments, "--from", dump) == 1
    assert why in capsys.readouterr().err


def test_all_mistakes_of_a_configuration_are_listed_with_its_file(dump, tmp_path, capsys):
    new = tmp_path / "new.yaml"
    new.write_text(PACKING.replace("profiles:", "profils:"))
    assert what_if("--config", str(new), "--from", dump) == 1
    assert f"{new}: profils: unknown field" in capsys.readouterr().err


def test_the_present_configuration_decides_where_it_is_given(dump, file, tmp_path, capsys):
    old = tmp_path / "old.yaml"
    old.write_text(PACKING)
    flags = ("--pod", file, "--replicas", "3", "--from", dump, "-o", "json")
    assert what_if(*flags, "--against", str(old)) == 0
    assert len(json.loads(capsys.readouterr().out)["nodes"]) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--against", "F"], "--against takes --lists or --from", id="configuration"),
        pytest.param(["--plugin-dir", "."], "--plugin-dir takes --lists or --from", id="plugins"),
        pytest.param(["--cpu-seconds", "9"], "--cpu-seconds takes --lists or", id="time"),
        pytest.param(["--keep-annotations", "x/"], "--keep-annotations takes", id="annotations"),
        pytest.param(["--lists", "--from", "F"], "--from and --lists contradict", id="both"),
    ],
)
def test_what_the_leader_decides_itself_is_not_asked(arguments, sentence, capsys):
    assert what_if("--drain", "n1", *arguments) == 1
    assert sentence in capsys.readouterr().err


def test_without_a_leader_another_way_is_named(tmp_path, capsys):
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {}}]
    config = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    assert what_if("--drain", "n1", "--kubeconfig", str(kubeconfig)) == 1
    told = capsys.readouterr().err
    assert "the Lease berth-system/berth cannot be read" in told
    assert told.endswith("(--lists forecasts over your own lists)\n")
