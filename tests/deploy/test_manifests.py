"""The plain manifests say what the chart says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.deploy.chart import ROOT, manifests_in, rendered
from tests.deploy.kubectl import kubectl
from tests.deploy.manifests import (
    DEPLOY,
    HELM_LABELS,
    MONITORED,
    WITH_POD_GROUPS,
    WITH_PROFILES,
    files,
)

if TYPE_CHECKING:
    from pathlib import Path


def by_name(manifests: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the manifests without the labels that name helm."""
    for manifest in manifests:
        for label in HELM_LABELS:
            manifest["metadata"].get("labels", {}).pop(label, None)
    return {(each["kind"], each["metadata"]["name"]): each for each in manifests}


def built(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return by_name(manifests_in(kubectl("kustomize", folder)[0]))


@pytest.mark.parametrize("path", [path.relative_to(ROOT).as_posix() for path in files()])
def test_what_is_made_of_the_chart_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == files()[ROOT / path], "make manifests"


def test_kustomize_and_the_chart_are_equal() -> None:
    kustomized = built(DEPLOY)
    namespace = kustomized.pop(("Namespace", "berth-system"))
    assert kustomized == by_name(rendered())
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}


def test_what_monitors_is_what_the_chart_adds() -> None:
    plain, monitored = by_name(rendered()), by_name(rendered(MONITORED))
    assert built(DEPLOY / "monitoring") == {
        name: manifest for name, manifest in monitored.items() if name not in plain
    }


def test_what_is_added_for_profiles_is_what_the_chart_adds_or_changes() -> None:
    plain, profiled = by_name(rendered()), by_name(rendered(WITH_PROFILES))
    assert built(DEPLOY / "scheduling-profiles") == {
        name: manifest for name, manifest in profiled.items() if plain.get(name) != manifest
    }


def test_what_is_added_for_pod_groups_is_what_the_chart_adds() -> None:
    plain, grouped = by_name(rendered()), by_name(rendered(WITH_POD_GROUPS))
    assert built(DEPLOY / "pod-groups") == {
        name: manifest for name, manifest in grouped.items() if name not in plain
    }
