"""Debian's Prometheus, set up from the chart's own ServiceMonitor and PrometheusRule.

What its operator would make of the two is made here: a scrape configuration that asks with the
token of Prometheus's ServiceAccount, and the alert rules. Debian builds it without discovery
through Kubernetes, so a thread does that, with the same token, and writes the targets to a file.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.controlplane.binaries import ControlPlaneError
from tests.controlplane.server_process import ServerProcess
from tests.e2e.release import NAME, NAMESPACE, SCRAPER

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster
    from tests.e2e.release import Release

_ADDRESS: Final = "127.0.0.1:9090"
_INTERVAL: Final = "2s"
_DISCOVERY_S: Final = 1.0
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
    resources: [services]
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
        self._call = cluster.control_plane.call
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
        self._monitor = by_kind["ServiceMonitor"]
        config = {
            "global": {"scrape_interval": _INTERVAL, "evaluation_interval": _INTERVAL},
            "rule_files": ["rules.yml"],
            "scrape_configs": [self._scrape_config()],
        }
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._discover()
        self._stopping = threading.Event()
        self._discovery = threading.Thread(target=self._discover_always, name="discovery")
        self._process = ServerProcess(
            [
                "/usr/bin/prometheus",
                f"--config.file={self._folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address={_ADDRESS}",
            ],
            self._folder / "prometheus.log",
        )
        self._discovery.start()
        try:
            self._await_start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it."""
        self._stopping.set()
        self._discovery.join()
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

    def _scrape_config(self) -> dict[str, Any]:
        endpoint = self._monitor["spec"]["endpoints"][0]
        tls = endpoint["tlsConfig"]
        return {
            "job_name": self._monitor["metadata"]["name"],
            "scheme": endpoint["scheme"],
            "metrics_path": endpoint["path"],
            "scrape_interval": endpoint["interval"],
            "scrape_timeout": endpoint["scrapeTimeout"],
            "tls_config": {"insecure_skip_verify": tls.get("insecureSkipVerify", False)},
            "authorization": {"credentials_file": str(self._folder / "token")},
            "file_sd_configs": [
                {"files": [str(self._folder / "targets.json")], "refresh_interval": _INTERVAL}
            ],
        }

    def _discover_always(self) -> None:
        while not self._stopping.wait(_DISCOVERY_S):
            # The next round does what this one could not.
            with contextlib.suppress(OSError):
                self._discover()

    def _discover(self) -> None:
        """Write the endpoints of the Services that the ServiceMonitor selects, by port name."""
        spec = self._monitor["spec"]
        targets = []
        for namespace in spec["namespaceSelector"]["matchNames"]:
            selector = ",".join(f"{k}={v}" for k, v in spec["selector"]["matchLabels"].items())
            for service in self._list(f"/api/v1/namespaces/{namespace}/services", selector):
                name = service["metadata"]["name"]
                slices = self._list(
                    f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
                    f"kubernetes.io/service-name={name}",
                )
                job = service["metadata"]["labels"][spec["jobLabel"]]
                for part in slices:
                    targets += [
                        {
                            "targets": [f"{address}:{port['port']}"],
                            "labels": {
                                "job": job,
                                "namespace": namespace,
                                "service": name,
                                "pod": endpoint["targetRef"]["name"],
                            },
                        }
                        for port in part["ports"]
                        if port["name"] == spec["endpoints"][0]["port"]
                        for endpoint in part["endpoints"]
                        for address in endpoint["addresses"]
                    ]
        partial = self._folder / "targets.partial"
        partial.write_text(json.dumps(targets))
        partial.rename(self._folder / "targets.json")

    def _list(self, path: str, selector: str) -> list[dict[str, Any]]:
        query = urllib.parse.urlencode({"labelSelector": selector})
        items = self._call("GET", f"{path}?{query}", token=self.token)["items"]
        assert isinstance(items, list)
        return items

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


JOB: Final = NAME
"""Prometheus's job of berth: what the ServiceMonitor's job label says."""
