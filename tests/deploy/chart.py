"""The chart as helm renders it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.controlplane.binaries import find_or_build, module_version
from tests.deploy.discovery_cache import without_traces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "deploy" / "charts" / "berth"
RELEASE: Final = "berth"
NAMESPACE: Final = "berth-system"
# helm itself would take the cluster for one of its own time.
KUBE_VERSION: Final = f"--kube-version={module_version('k8s.io/kubernetes')}"

Manifest = dict[str, Any]


class ChartError(Exception):
    """helm refused; what it said."""


def helm(*arguments: str | Path, given: str = "") -> str:
    """Return what helm prints."""
    program = find_or_build(["helm"])["helm"]
    answer = subprocess.run(
        [program, *arguments],
        env=without_traces(),
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise ChartError(answer.stdout + answer.stderr)
    return answer.stdout


def rendered_text(
    values: Mapping[str, Any] | None = None,
    *,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
    files: Sequence[Path] = (),
    tests: bool = False,
) -> str:
    """Return the manifests as text, with their comments.

    Parameters
    ----------
    values
        On top of those in `files`.
    tests
        Whether those of ``helm test`` are among them.
    """
    return helm(
        "template",
        release,
        CHART,
        f"--namespace={namespace}",
        KUBE_VERSION,
        *(f"--values={file}" for file in files),
        "--values=-",
        *(() if tests else ("--skip-tests",)),
        given=yaml.safe_dump(dict(values or {})),
    )


def rendered(values: Mapping[str, Any] | None = None, **options: Any) -> list[Manifest]:
    """Return the manifests; see :func:`rendered_text`."""
    return manifests_in(rendered_text(values, **options))


def manifests_in(text: str) -> list[Manifest]:
    """Return the objects in a stream of YAML documents."""
    return [each for each in yaml.safe_load_all(text) if each]


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    """Return those of a kind."""
    return [each for each in manifests if each["kind"] == kind]


def only(manifests: Sequence[Manifest], kind: str) -> Manifest:
    """Return the only one of a kind."""
    (found,) = of_kind(manifests, kind)
    return found
