"""Berth as its users have it: the chart, installed by helm, and what one sees of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.e2e.images import BERTH, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.cluster import Cluster

NAME: Final = "berth"
NAMESPACE: Final = "berth-system"
CLUSTER_NAME: Final = f"{NAMESPACE}-{NAME}"
USER: Final = f"system:serviceaccount:{NAMESPACE}:{NAME}"
CHART: Final = ROOT / "deploy" / "charts" / "berth"
SCRAPER: Final = ("prometheus", "monitoring")

_REPOSITORY, _, _TAG = BERTH.partition(":")
_VALUES: Final[dict[str, Any]] = {
    "image": {"repository": _REPOSITORY, "tag": _TAG, "pullPolicy": "Never"},
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

    def install(self) -> str:
        """Install the chart and wait until every replica is ready; what helm says."""
        return self._cluster.helm(
            "install", NAME, str(CHART), "--namespace", NAMESPACE, "--create-namespace",
            "--values", str(self._values), "--wait", "--timeout", "120s",
        )  # fmt: skip

    def upgrade(self, *settings: str) -> None:
        """Upgrade with ``key=value`` settings and wait for the rollout."""
        options = [option for setting in settings for option in ("--set", setting)]
        self._cluster.helm(
            "upgrade", NAME, str(CHART), "--namespace", NAMESPACE,
            "--values", str(self._values), *options, "--wait", "--timeout", "120s",
        )  # fmt: skip

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
        ready = [pod for pod in self.pods() if _is_ready(pod)]
        return len(ready) == replicas and self.leader() is not None

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


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True"
