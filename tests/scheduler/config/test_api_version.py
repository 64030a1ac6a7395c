from __future__ import annotations

import pytest

from scheduler.config.load import check_version
from tests.scheduler.config.documents import API_VERSION, KIND

GROUP = "kubescheduler.config.k8s.io"


def problems(version: object = API_VERSION, kind: object = KIND) -> list[str]:
    return [str(mistake) for mistake in check_version({"apiVersion": version, "kind": kind})]


def test_version_v1_is_read() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("version", "hint"),
    [
        pytest.param("v1beta3", "SelectorSpread", id="v1beta3"),
        pytest.param("v1beta2", "give weights of 1", id="v1beta2"),
        pytest.param("v1beta1", "scoringStrategy.type", id="v1beta1"),
        pytest.param("v1alpha2", "scoringStrategy.type", id="v1alpha2"),
        pytest.param("v1alpha1", "write a new file", id="v1alpha1"),
    ],
)
def test_a_former_version_is_refused_with_the_way_to_move(version: str, hint: str) -> None:
    (problem,) = problems(f"{GROUP}/{version}")
    assert problem.startswith(f"apiVersion: {GROUP}/{version} was removed")
    assert hint in problem
    assert API_VERSION in problem


@pytest.mark.parametrize(
    ("version", "kind", "problem"),
    [
        pytest.param(
            None, KIND, f"apiVersion: is required; it must be {API_VERSION}", id="no-version"
        ),
        pytest.param(API_VERSION, None, f"kind: is required; it must be {KIND}", id="no-kind"),
        pytest.param(
            "v1", KIND, f"apiVersion: must be {API_VERSION}, not 'v1'", id="another-version"
        ),
        pytest.param(1, KIND, f"apiVersion: must be {API_VERSION}, not 1", id="no-text"),
        pytest.param([], KIND, f"apiVersion: must be {API_VERSION}, not a list", id="list"),
        pytest.param(API_VERSION, "Pod", f"kind: must be {KIND}, not 'Pod'", id="another-kind"),
        pytest.param(
            "v1",
            "Policy",
            "kind: scheduling policies were removed in Kubernetes 1.23; write a "
            "KubeSchedulerConfiguration instead",
            id="policy",
        ),
    ],
)
def test_anything_else_is_refused(version: object, kind: object, problem: str) -> None:
    assert problems(version, kind) == [problem]
