"""Berth as its users have it: the chart, installed by helm, and what one sees of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.e2e.images import NEXT_VERSION, REPOSITORY, ROOT, VERSION, source_of

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster

NAME: Final = "berth"
NAMESPACE: Final = "berth-system"
CLUSTER_NAME: Final = f"{NAMESPACE}-{NAME}"
USER: Final = f"system:serviceaccount:{NAMESPACE}:{NAME}"
_CHART: Final = Path("deploy", "charts", "berth")
CHART: Final = ROOT / _CHART
SCRAPER: Final = ("prometheus", "monitoring")
COMPARISON_PERIOD_S: Final = 3

_VALUES: Final[dict[str, Any]] = {
    # The tag is the chart's own version.
    "image": {"repository": REPOSITORY, "pullPolicy": "Never"},
    "extraArgs": [f"--cache-comparison-period={COMPARISON_PERIOD_S}"],
    "schedulingProfiles": {"enabled": True},
    "metrics": {"readers": [{"name": SCRAPER[0], "namespace": SCRAPER[1]}]},
}


class Release:
    """One release of the chart, named berth, in namespace berth-system.

    Concurrency
    -----------
    From any thread.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._values: Path = cluster.folder / "values.json"
        self._values.write_text(json.dumps(_VALUES))
        self._charts = {version: self._package(version) for version in (VERSION, NEXT_VERSION)}

    def _package(self, version: str) -> Path:
        folder = self._cluster.folder / "charts"
        folder.mkdir(exist_ok=True)
        self._cluster.helm(
            "package", str(source_of(version) / _CHART), "--destination", str(folder),
            "--version", version, "--app-version", version,
        )  # fmt: skip
        return folder / f"{NAME}-{version}.tgz"

    def install(self) -> str:
        """Install the chart and wait until every replica is ready; what helm says."""
        return self._cluster.helm(
            "install", NAME, str(self._charts[VERSION]), "--namespace", NAMESPACE,
            "--create-namespace", "--values", str(self._values), "--wait", "--timeout", "120s",
        )  # fmt: skip

    def begin_upgrade(self) -> None:
        """Upgrade to the next version; does not wait for the rollout."""
        self._cluster.helm(
            "upgrade", NAME, str(self._charts[NEXT_VERSION]), "--namespace", NAMESPACE,
            "--values", str(self._values),
        )  # fmt: skip

    def rollback(self) -> None:
        """Go back to what there was before the last upgrade, and wait for the rollout."""
        self._cluster.helm(
            "rollback", NAME, "--namespace", NAMESPACE, "--wait", "--timeout", "120s"
        )

    def render(self, *settings: str) -> list[dict[str, Any]]:
        """Return the chart's objects with more settings, as ``helm template`` makes them."""
        import yaml

        options = [option for setting in settings for option in ("--set", setting)]
        text = self._cluster.helm(
            "template", NAME, str(CHART), "--namespace", NAMESPACE,
            "--values", str(self._values), *options,
        )  # fmt: skip
        return [manifest for manifest in yaml.safe_load_all(text) if manifest]

    def pods(self) -> list[dict[str, Any]]:
        """Return berth's pods that are not on their way out."""
        selector = f"app.kubernetes.io%2Fname%3D{NAME}"
        items = self._cluster.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}")[
            "items"
        ]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def is_whole(self, replicas: int = 2) -> bool:
        """Return whether `replicas` pods are ready, and one of them leads."""
        return self.ready_versions().total() == replicas and self.leader() is not None

    def ready_versions(self) -> Counter[str]:
        """Return how many pods are ready, by the version of their image."""
        return Counter(version_of(pod) for pod in self.pods() if _is_ready(pod))

    def lease(self) -> dict[str, Any]:
        """Return the Lease's spec."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
        spec = self._cluster.get(path)["spec"]
        assert isinstance(spec, dict)
        return spec

    def leader(self) -> dict[str, Any] | None:
        """Return the pod that holds the Lease; None when nobody of those that exist does."""
        holder = self.lease().get("holderIdentity", "")
        return next((p for p in self.pods() if holder.startswith(p["metadata"]["name"])), None)


def version_of(pod: dict[str, Any]) -> str:
    """Return the version that a pod of berth's runs, by its image."""
    image: str = pod["spec"]["containers"][0]["image"]
    return image.rpartition(":")[2]


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True"
