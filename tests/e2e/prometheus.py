"""Debian's Prometheus, set up from the chart's own ServiceMonitor and PrometheusRule.

What its operator would make of the two is made here: a scrape configuration that finds berth
through the API server, asks with the token of Prometheus's ServiceAccount, and the alert rules.
"""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.controlplane.binaries import ControlPlaneError
from tests.controlplane.server_process import ServerProcess
from tests.e2e.release import NAME, NAMESPACE, SCRAPER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.e2e.cluster import Cluster
    from tests.e2e.release import Release

_ADDRESS: Final = "127.0.0.1:9090"
_INTERVAL: Final = "2s"
_DEADLINE_S: Final = 60.0
# What Prometheus needs of the API server to find targets; that of berth comes with berth's chart.
_ACCESS: Final = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {SCRAPER[1]}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {SCRAPER[0]}, namespace: {SCRAPER[1]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: {SCRAPER[0]}, namespace: {NAMESPACE}}}
rules:
  - apiGroups: [""]
    resources: [services, pods]
    verbs: [get, list, watch]
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {SCRAPER[0]}, namespace: {NAMESPACE}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {SCRAPER[0]}}}
subjects:
  - {{kind: ServiceAccount, name: {SCRAPER[0]}, namespace: {SCRAPER[1]}}}
"""


class Prometheus:
    """A Prometheus that scrapes one release; end it with `stop`.

    Concurrency
    -----------
    Asked from any thread.
    """

    def __init__(self, cluster: Cluster, release: Release) -> None:
        self._folder = cluster.folder / "prometheus"
        self._folder.mkdir()
        cluster.kubectl("apply", "-f", "-", given=_ACCESS)
        self.token = cluster.kubectl(
            "create", "token", SCRAPER[0], "--namespace", SCRAPER[1], "--duration=12h"
        ).strip()
        (self._folder / "token").write_text(self.token)
        objects = release.render(
            "metrics.serviceMonitor.enabled=true",
            f"metrics.serviceMonitor.interval={_INTERVAL}",
            f"metrics.serviceMonitor.scrapeTimeout={_INTERVAL}",
            "metrics.prometheusRule.enabled=true",
        )
        by_kind = {manifest["kind"]: manifest for manifest in objects}
        (self._folder / "rules.yml").write_text(yaml.safe_dump(by_kind["PrometheusRule"]["spec"]))
        api = {
            "api_server": cluster.control_plane.url,
            "tls_config": {"ca_file": str(cluster.control_plane.ca_file)},
            "authorization": {"credentials_file": str(self._folder / "token")},
        }
        config = self._folder / "prometheus.yml"
        config.write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": _INTERVAL, "evaluation_interval": _INTERVAL},
                    "rule_files": ["rules.yml"],
                    "scrape_configs": [self._scrape_config(by_kind["ServiceMonitor"], api)],
                }
            )
        )
        self._process = ServerProcess(
            [
                "/usr/bin/prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address={_ADDRESS}",
            ],
            self._folder / "prometheus.log",
        )
        self._await_start()

    def stop(self) -> None:
        """End it."""
        self._process.kill()

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and the value of each series of an instant query."""
        result = self._get("query", query=expression)["result"]
        return [(series["metric"], float(series["value"][1])) for series in result]

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules with their health and state."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def targets(self) -> list[dict[str, Any]]:
        """Return the targets that are scraped, with the error of each last scrape."""
        active = self._get("targets")["activeTargets"]
        assert isinstance(active, list)
        return active

    def _scrape_config(self, monitor: Mapping[str, Any], api: Mapping[str, Any]) -> dict[str, Any]:
        spec = monitor["spec"]
        endpoint = spec["endpoints"][0]
        relabelings = [
            {
                "source_labels": [f"__meta_kubernetes_service_label_{_label(key)}"],
                "regex": value,
                "action": "keep",
            }
            for key, value in spec["selector"]["matchLabels"].items()
        ]
        relabelings += [
            {
                "source_labels": ["__meta_kubernetes_endpointslice_port_name"],
                "regex": endpoint["port"],
                "action": "keep",
            },
            {
                "source_labels": [f"__meta_kubernetes_service_label_{_label(spec['jobLabel'])}"],
                "target_label": "job",
            },
            *(
                {"source_labels": [f"__meta_kubernetes_{source}"], "target_label": target}
                for source, target in (
                    ("namespace", "namespace"),
                    ("service_name", "service"),
                    ("pod_name", "pod"),
                )
            ),
        ]
        return {
            "job_name": monitor["metadata"]["name"],
            "scheme": endpoint["scheme"],
            "metrics_path": endpoint["path"],
            "scrape_interval": endpoint["interval"],
            "scrape_timeout": endpoint["scrapeTimeout"],
            "tls_config": {
                "insecure_skip_verify": endpoint["tlsConfig"].get("insecureSkipVerify", False)
            },
            "authorization": {"credentials_file": str(self._folder / "token")},
            "kubernetes_sd_configs": [
                {
                    "role": "endpointslice",
                    "namespaces": {"names": spec["namespaceSelector"]["matchNames"]},
                    **api,
                }
            ],
            "relabel_configs": relabelings,
        }

    def _await_start(self) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            if not self._process.running or time.monotonic() > deadline:
                raise ControlPlaneError(f"prometheus is not up:\n{self._process.log_tail()}")
            try:
                self.rules()
                return
            except OSError:
                time.sleep(0.05)

    def _get(self, what: str, **query: str) -> dict[str, Any]:
        url = f"http://{_ADDRESS}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=10) as answer:
            data = json.load(answer)["data"]
        assert isinstance(data, dict)
        return data


def _label(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


JOB: Final = NAME
"""Prometheus's job of berth: what the ServiceMonitor's job label says."""
