"""The kubectl plugin: krew takes its manifest and archive, and it runs from the archive alone."""

from __future__ import annotations

import copy
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import venv
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.release.archives import write_archive
from tests.release.krew import (
    ARCHITECTURES,
    PROGRAM,
    Parts,
    build_archive,
    manifest,
    write_manifest,
)
from tests.release.krew_rules import API_VERSION, archive_problems, problems
from tests.release.packages import build_wheel
from tests.release.source import ROOT, VERSION, ReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIME = 1_700_000_000
PYTHON = f"3.{sys.version_info[1]}"
HERE = {machine: name for name, machine in ARCHITECTURES.items()}[platform.machine()]
NODE = {
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}},
}
POD = {
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "1"},
    "spec": {
        "schedulerName": "berth",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}],
    },
}
VALID: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": "Plugin",
    "metadata": {"name": "berth"},
    "spec": {
        "version": "v1.2.3",
        "homepage": "https://berth.example",
        "shortDescription": "Explain scheduling",
        "description": "Two\nlines\n",
        "platforms": [
            {
                "selector": {"matchLabels": {"os": "linux", "arch": "amd64"}},
                "uri": "https://berth.example/berth.tar.gz",
                "sha256": "0" * 64,
                "bin": "kubectl-berth",
            }
        ],
    },
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive for this machine, with the packages of this Python only."""
    folder = tmp_path_factory.mktemp("krew")
    wheel = build_wheel(ROOT, folder, TIME)
    return build_archive(Parts(ROOT, wheel, TIME, [PYTHON], level=0), folder, HERE)


@pytest.fixture(scope="module")
def installed(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as krew installs it: extracted, and a link to the program elsewhere."""
    folder = tmp_path_factory.mktemp("store")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    links = tmp_path_factory.mktemp("bin")
    (links / PROGRAM).symlink_to(folder / PROGRAM)
    return links / PROGRAM


def run_plugin(program: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it with a Python that has no package at all, without an index, a home and a network."""
    python = folder / "python"
    if not python.exists():
        venv.create(python, symlinks=True, with_pip=False)
    alone = ["unshare", "--net"] if os.geteuid() == 0 and shutil.which("unshare") else []
    environment = {
        "PATH": f"{python / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder),
        "PIP_NO_INDEX": "1",
        "UV_OFFLINE": "1",
    }
    return subprocess.run(
        [*alone, program, *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_plugin_explains_a_pod_without_any_network(installed: Path, tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "items": [NODE, POD]}))
    done = run_plugin(installed, tmp_path, "explain", "--from", str(dump), "--pod=default/web")
    assert done.stderr == ""
    assert "Insufficient cpu" in done.stdout


def test_a_child_process_has_the_same_packages(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(
        "class Flat:\n    '''All alike.'''\n\n"
        "    def score(self, pod, nodes):\n        return nodes.label_number('x', default=1.0)\n"
    )
    done = run_plugin(installed, tmp_path, "plugin", "check", "plugin.py")
    assert (done.returncode, done.stderr) == (0, "")


def test_other_programs_do_not_see_the_packages(installed: Path, tmp_path: Path) -> None:
    python = tmp_path / "python" / "bin" / "python3"
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import os, subprocess\n"
        f"done = subprocess.run([{str(python)!r}, '-c', 'import numpy'], env=os.environ)\n"
        "raise RuntimeError(f'ended with {done.returncode}')\n"
    )
    shown = ["explain", "--from=none.json", "--pod=a/b", f"--plugin-dir={tmp_path}"]
    assert "ended with 1" in run_plugin(installed, tmp_path, *shown).stderr


def test_an_unsuitable_python_is_told_which_ones_suit(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as opened:
        opened.extract(PROGRAM, tmp_path, filter="data")
    (tmp_path / "lib" / "cp308").mkdir(parents=True)
    done = run_plugin(tmp_path / PROGRAM, tmp_path, "version")
    assert done.returncode == 1
    assert done.stderr == f"kubectl-berth: needs Python 3.8 on $PATH; python3 is {PYTHON}\n"


def test_krew_extracts_the_archive(archive: Path) -> None:
    assert archive_problems(archive, PROGRAM) == []


def test_the_archive_contains_only_locked_packages_and_berth(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        found = {
            part.removesuffix(".dist-info")
            for entry in opened
            for part in entry.name.split("/")[2:3]
            if part.endswith(".dist-info")
        }
    lock = (ROOT / "uv.lock").read_text()
    assert f"berth-{VERSION}" in found
    for name, _, version in (each.rpartition("-") for each in found):
        canonical = name.replace("_", "-").lower()
        assert f'name = "{canonical}"\nversion = "{version}"' in lock


def test_the_manifest_of_a_release_is_valid(archive: Path, tmp_path: Path) -> None:
    content = manifest(ROOT, {HERE: archive}, "https://berth.example/v1")
    file = write_manifest(tmp_path, content)
    assert problems(yaml.safe_load(file.read_text()), "berth") == []


def test_a_manifest_that_krew_refuses_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"spec\.platforms: must have at least one platform"):
        write_manifest(tmp_path, manifest(ROOT, {}, "https://berth.example/v1"))
    assert list(tmp_path.iterdir()) == []


def platform_of(content: dict[str, Any]) -> dict[str, Any]:
    found = content["spec"]["platforms"][0]
    assert isinstance(found, dict)
    return found


P = "spec.platforms[0]"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param(lambda m: m.update(apiVersion="v1"), "apiVersion", id="another API"),
        pytest.param(lambda m: m.update(kind="Plug"), "kind", id="another kind"),
        pytest.param(lambda m: m.update(status={}), "status", id="an unknown field"),
        pytest.param(lambda m: m["metadata"].update(name="b"), "metadata.name", id="another name"),
        pytest.param(lambda m: m["spec"].update(icon="x"), "spec.icon", id="an unknown detail"),
        pytest.param(lambda m: m["spec"].update(version="1.2.3"), "spec.version", id="no v"),
        pytest.param(lambda m: m["spec"].update(version="v1.2"), "spec.version", id="two numbers"),
        pytest.param(lambda m: m["spec"].update(version="v1.02.3"), "spec.version", id="a zero"),
        pytest.param(
            lambda m: m["spec"].update(shortDescription="a\nb"),
            "spec.shortDescription",
            id="two lines",
        ),
        pytest.param(
            lambda m: m["spec"].update(shortDescription="a" * 51),
            "spec.shortDescription",
            id="a long line",
        ),
        pytest.param(lambda m: m["spec"].pop("description"), "spec.description", id="no text"),
        pytest.param(lambda m: m["spec"].pop("homepage"), "spec.homepage", id="no homepage"),
        pytest.param(lambda m: m["spec"].pop("platforms"), "spec.platforms", id="no platform"),
        pytest.param(
            lambda m: platform_of(m).update(uri="http://x/y.tar.gz"), f"{P}.uri", id="plain http"
        ),
        pytest.param(
            lambda m: platform_of(m).update(uri="https://x/y.tar.xz"), f"{P}.uri", id="xz"
        ),
        pytest.param(
            lambda m: platform_of(m).update(sha256="A" * 64), f"{P}.sha256", id="upper case"
        ),
        pytest.param(lambda m: platform_of(m).pop("bin"), f"{P}.bin", id="no program"),
        pytest.param(lambda m: platform_of(m).update(files=[]), f"{P}.files", id="no files"),
        pytest.param(
            lambda m: platform_of(m).update(files=[{"from": "*"}]), f"{P}.files[0].to", id="no goal"
        ),
        pytest.param(
            lambda m: platform_of(m).pop("selector"), f"{P}.selector", id="for no platform"
        ),
        pytest.param(
            lambda m: platform_of(m).update(selector={"matchLabels": {}}),
            f"{P}.selector.matchLabels",
            id="no labels",
        ),
        pytest.param(
            lambda m: platform_of(m).update(selector={"matchLabels": {"libc": "gnu"}}),
            f"{P}.selector",
            id="by something else",
        ),
    ],
)
def test_what_krew_refuses_is_refused(change: Callable[[dict[str, Any]], Any], path: str) -> None:
    content = copy.deepcopy(VALID)
    change(content)
    assert [each.partition(": ")[0] for each in problems(content, "berth")] == [path]


def test_what_krew_takes_is_taken() -> None:
    assert problems(VALID, "berth") == []


@pytest.mark.parametrize(
    ("files", "named"),
    [
        pytest.param([("a..b", b"", False), (PROGRAM, b"", True)], "a..b", id="two dots"),
        pytest.param([("/a", b"", False), (PROGRAM, b"", True)], "/a", id="an absolute name"),
        pytest.param([(PROGRAM, b"", False)], PROGRAM, id="a program that is no program"),
    ],
)
def test_an_archive_that_krew_refuses_is_noticed(
    files: list[tuple[str, bytes, bool]], named: str, tmp_path: Path
) -> None:
    write_archive(tmp_path / "archive", files, TIME)
    found = archive_problems(tmp_path / "archive", PROGRAM)
    assert [each.partition(": ")[0] for each in found] == [named]


def test_a_link_in_an_archive_is_noticed(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).touch(0o755)
    (tmp_path / "link").symlink_to(PROGRAM)
    with tarfile.open(tmp_path / "archive", "w:gz") as opened:
        for name in (PROGRAM, "link"):
            opened.add(tmp_path / name, name)
    (found,) = archive_problems(tmp_path / "archive", PROGRAM)
    assert found.startswith("link: ")
