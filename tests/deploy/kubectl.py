"""kubectl, as people use it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from tests.controlplane.binaries import find_or_build
from tests.deploy.discovery_cache import without_traces

if TYPE_CHECKING:
    from pathlib import Path

STUBS: Final = [
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }
    for kind, plural in (
        ("ServiceMonitor", "servicemonitors"),
        ("PodMonitor", "podmonitors"),
        ("PrometheusRule", "prometheusrules"),
    )
]
"""The kinds of the Prometheus operator, whatever stands in them."""


def kubectl(
    *arguments: str | Path,
    kubeconfig: Path | None = None,
    given: str = "",
    may_fail: bool = False,
) -> tuple[str, str]:
    """Return what kubectl prints, and its warnings.

    Raises
    ------
    AssertionError
        It failed; with what it said.
    """
    program = find_or_build(["kubectl"])["kubectl"]
    where = [] if kubeconfig is None else [f"--kubeconfig={kubeconfig}"]
    answer = subprocess.run(
        [program, *where, *arguments],
        env=without_traces(),
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert may_fail or answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout, answer.stderr
