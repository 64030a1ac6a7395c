"""A real deployment from its installation to its removal, with everything that goes wrong between.

The tests are chapters: each begins with what the one before it left, a whole deployment.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import signal
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.e2e import devices
from tests.e2e.cluster import NODES
from tests.e2e.evidence import LEASE_S, Evidence
from tests.e2e.images import BUSYBOX, NEXT_VERSION, VERSION
from tests.e2e.load import NAMESPACE as LOAD_NAMESPACE
from tests.e2e.load import RATE_VARIABLE, Load
from tests.e2e.prometheus import JOB
from tests.e2e.release import CLUSTER_NAME, NAME, NAMESPACE, USER, version_of
from tests.e2e.report import now

if TYPE_CHECKING:
    from tests.e2e.cluster import Cluster
    from tests.e2e.devices import DeviceDriver
    from tests.e2e.prometheus import Prometheus
    from tests.e2e.release import Release
    from tests.e2e.report import Report

REPLICAS: Final = 8
PORT: Final = 10_259
PACKING: Final = "berth-packing"
DEVICE_PODS: Final = tuple(
    f"device-{number}" for number in range(len(NODES) * len(devices.WANTED) + 1)
)
"""One more than there are devices."""
RATE: Final = float(os.environ.get(RATE_VARIABLE) or 10)

# When berth was meant to be refused: nothing outside of these times may be.
refusals: list[tuple[dt.datetime, dt.datetime]] = []

WORKLOAD: Final = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: default}}
spec:
  replicas: {REPLICAS}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      schedulerName: berth
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: {BUSYBOX}
          imagePullPolicy: Never
          command: [/bin/sh, -c, 'echo "runs on $NODE"; sleep 1000000']
          env: [{{name: NODE, valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}}}]
          resources: {{requests: {{cpu: 10m, memory: 8Mi}}}}
"""


PROFILE: Final = f"""
apiVersion: scheduling.berth.dev/v1alpha1
kind: SchedulingProfile
metadata: {{name: packing}}
spec:
  schedulerName: {PACKING}
  pluginConfig:
    - name: NodeResourcesFit
      args: {{scoringStrategy: {{type: MostAllocated}}}}
"""


def test_a_cluster_with_real_nodes(cluster: Cluster, report: Report) -> None:
    report.show(cluster.kubectl("get", "nodes", "-o", "wide", "-l", "berth.e2e/node"))
    cluster.kubectl("create", "namespace", LOAD_NAMESPACE)


def test_the_chart_installs(cluster: Cluster, release: Release, report: Report) -> None:
    report.heading("helm install")
    started = time.monotonic()
    report.show(release.install())
    cluster.wait("two replicas and a leader", release.is_whole)
    report.fact("helm install until two replicas are ready", f"{time.monotonic() - started:.0f} s")
    report.show(cluster.kubectl("get", "pods,lease", "-n", NAMESPACE, "-o", "wide"))
    for pod in release.pods():
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert {pod["spec"]["nodeName"] for pod in release.pods()} == set(NODES)


def test_the_container_is_confined(cluster: Cluster, release: Release, report: Report) -> None:
    report.heading("the container")
    for pod in release.pods():
        name = pod["metadata"]["name"]
        container = pod["status"]["containerStatuses"][0]
        node = cluster.nodes[pod["spec"]["nodeName"]]
        process = Path(f"/proc/{node.container_pid(container['containerID'])}/status").read_text()
        facts = dict(line.split(":\t", 1) for line in process.splitlines() if ":\t" in line)
        report.fact(
            f"{name}: user, effective capabilities, seccomp mode",
            f"{facts['Uid'].split()[1]}, {int(facts['CapEff'], 16)}, {facts['Seccomp']}",
        )
        assert (facts["Uid"].split()[1], int(facts["CapEff"], 16)) == ("65532", 0)
        said = cluster.kubectl(
            "exec", "-n", NAMESPACE, name, "--", "python3", "-c",
            "import errno, pathlib\n"
            "try: pathlib.Path('/opt/berth/x').touch()\n"
            "except OSError as error: print(errno.errorcode[error.errno])",
        )  # fmt: skip
        assert said.strip() == "EROFS"
        # The one part of the client library that berth uses; its sources are not in the image.
        cluster.kubectl(
            "exec", "-n", NAMESPACE, name, "--",
            "python3", "-c", "import scheduler.client.auth_provider",
        )  # fmt: skip
        started = dt.datetime.fromisoformat(container["state"]["running"]["startedAt"])
        ready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
        took = dt.datetime.fromisoformat(ready["lastTransitionTime"]) - started
        report.fact(f"{name}: started to ready", f"{took.total_seconds():.0f} s")


def test_a_deployment_runs_where_berth_placed_it(cluster: Cluster, report: Report) -> None:
    report.heading("a Deployment with schedulerName: berth")
    cluster.kubectl("apply", "-f", "-", given=WORKLOAD)
    took = cluster.wait("the workload to run", lambda: running(cluster) == REPLICAS)
    report.fact(f"Deployment of {REPLICAS} pods, created to running", f"{took:.1f} s")
    report.show(cluster.kubectl("get", "pods", "-n", "default", "-o", "wide"))
    for pod in cluster.get("/api/v1/namespaces/default/pods")["items"]:
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        assert cluster.kubectl("logs", name).strip() == f"runs on {node}"


def test_a_container_sees_the_device_of_its_claim(
    cluster: Cluster, drivers: dict[str, DeviceDriver], report: Report
) -> None:
    report.heading("pods with resource claims, and a device driver on each node")
    everything = {f"{node}/{name}" for node in NODES for name in devices.DEVICES}
    cluster.wait("the drivers' slices", lambda: devices.published(cluster) == everything)
    devices.create_namespace(cluster)
    devices.create_pods(cluster, *DEVICE_PODS)
    count = len(DEVICE_PODS) - 1
    took = cluster.wait("a pod on each device", lambda: len(devices.running_pods(cluster)) == count)
    report.fact(f"{count} pods with claims, created to running", f"{took:.1f} s")
    allocated = {c.pod: c for c in devices.claims(cluster) if c.device}
    seen = {pod: devices.seen_device(cluster, pod) for pod in devices.running_pods(cluster)}
    report.fact("devices that the containers see", ", ".join(sorted(seen.values())))
    assert seen == {pod: claim.device for pod, claim in allocated.items()}
    assert set(seen.values()) == {f"{node}/{name}" for node in NODES for name in devices.WANTED}
    for node, driver in drivers.items():
        ours = {c.uid for c in allocated.values() if c.device.startswith(f"{node}/")}
        assert driver.prepared() == ours


def test_a_device_that_is_free_again_goes_to_the_pod_that_waits(
    cluster: Cluster, report: Report
) -> None:
    allocated = {c.pod: c.device for c in devices.claims(cluster) if c.device}
    (waiting,) = set(DEVICE_PODS) - set(allocated)
    reason = "cannot allocate all claims"
    cluster.wait("the reason", lambda: reason in devices.unschedulable_reason(cluster, waiting))
    deleted = min(allocated)
    cluster.kubectl("delete", "pod", deleted, "-n", devices.NAMESPACE, "--wait=false")
    took = cluster.wait("its pod to run", lambda: waiting in devices.running_pods(cluster))
    report.fact("pod with a claim deleted, until the next one runs", f"{took:.1f} s")
    assert devices.seen_device(cluster, waiting) == allocated[deleted]


def test_the_claims_of_deleted_pods_are_taken_back(
    cluster: Cluster, drivers: dict[str, DeviceDriver], report: Report
) -> None:
    before = {claim.uid for claim in devices.claims(cluster) if claim.device}
    assert {uid for driver in drivers.values() for uid in driver.prepared()} == before
    cluster.kubectl("delete", "pods", "--all", "-n", devices.NAMESPACE, "--wait=false")
    took = cluster.wait("the claims to be gone", lambda: not devices.claims(cluster))
    assert [driver.prepared() for driver in drivers.values()] == [set(), set()]
    report.fact(f"{len(before)} pods deleted, until claims and devices are free", f"{took:.1f} s")
    check(cluster)


def test_a_scheduling_profile_is_taken_over(cluster: Cluster, report: Report) -> None:
    report.heading("a SchedulingProfile")
    cluster.kubectl("apply", "-f", "-", given=PROFILE)
    cluster.wait("the profile to be active", lambda: profile(cluster)[2:] == PROFILE_IN_FORCE)
    report.show(cluster.kubectl("get", "schedulingprofiles"))


def test_helm_test(cluster: Cluster, report: Report) -> None:
    report.heading("helm test")
    said = cluster.helm("test", "berth", "--namespace", NAMESPACE)
    report.show(said.partition("NOTES:")[0])
    assert "Succeeded" in said


def test_who_may_read_metrics(
    cluster: Cluster, release: Release, prometheus: Prometheus, report: Report
) -> None:
    report.heading("GET /metrics")
    stranger = cluster.kubectl("create", "token", "default", "-n", "default").strip()
    for pod in release.pods():
        url = f"https://{pod['status']['podIP']}:{PORT}"
        answers = [status(f"{url}/metrics", token) for token in (None, stranger, prometheus.token)]
        report.fact(
            f"GET /metrics of {pod['metadata']['name']}: nobody, a stranger, Prometheus",
            ", ".join(map(str, answers)),
        )
        assert answers == [401, 403, 200]
        assert [status(f"{url}/{path}", None) for path in ("livez", "readyz")] == [200, 200]


def test_prometheus_scrapes_and_evaluates(
    cluster: Cluster, prometheus: Prometheus, report: Report
) -> None:
    report.heading("Prometheus, through its ServiceAccount's token")
    up = f'up{{job="{JOB}"}} == 1'
    cluster.wait("both replicas to be up", lambda: len(prometheus.query(up)) == 2)
    cluster.wait("all rules to be evaluated", lambda: all_evaluated(prometheus))
    with Load(cluster.control_plane.admin_kubeconfig, "scraped") as load:
        load.wait_for(100)
        # Rates need two scrapes that see the pods.
        cluster.wait("a rate", lambda: any(v > 0 for _, v in prometheus.query(QUERIES[2])))
        for query in QUERIES:
            report.show(f"{query}\n{series_text(prometheus.query(query))}\n")
    rules = prometheus.rules()
    report.fact("alert rules loaded, evaluated without error", f"{len(rules)}, {len(rules)}")
    firing = [rule["name"] for rule in rules if rule["state"] == "firing"]
    report.fact("alerts that fire", ", ".join(firing) or "none")
    assert not firing


def test_the_leaders_container_is_killed(
    cluster: Cluster, release: Release, report: Report
) -> None:
    report.heading("kill -9 of the leader's container under load")
    leader = leader_of(cluster, release)
    transitions = release.lease()["leaseTransitions"]
    with Load(cluster.control_plane.admin_kubeconfig, "killed") as load:
        container = leader["status"]["containerStatuses"][0]["containerID"]
        node = cluster.nodes[leader["spec"]["nodeName"]]
        killed_at = now()
        os.kill(node.container_pid(container), signal.SIGKILL)
        cluster.wait("another leader", lambda: release.lease()["leaseTransitions"] > transitions)
        load.wait_for(50)
    address = leader["status"]["podIP"]
    first = evidence(cluster).first_bind(killed_at, not_from=address)
    assert first is not None
    took_s = (first.time - killed_at).total_seconds()
    report.fact("kill -9 of the leader, until the standby binds", f"{took_s:.1f} s")
    report.fact("kill -9 of the leader, load", load.placed.describe())
    assert took_s <= LEASE_S + 2
    cluster.wait("the killed container to be back", release.is_whole)
    check(cluster)


def test_an_upgrade_to_another_version(
    cluster: Cluster, release: Release, prometheus: Prometheus, report: Report
) -> None:
    report.heading(f"helm upgrade from {VERSION} to {NEXT_VERSION} under load")
    cluster.wait("berth to be whole", release.is_whole)
    transitions = release.lease()["leaseTransitions"]
    before, since = profile(cluster), now()
    with load_of_both_profiles(cluster, "upgraded") as load:
        release.begin_upgrade()
        cluster.wait("the new version", lambda: NEXT_VERSION in map(version_of, release.pods()))
        # It goes no further: both versions stay side by side for as long as it is looked at.
        cluster.kubectl("rollout", "pause", "deployment/berth", "-n", NAMESPACE)
        together = {VERSION: 2, NEXT_VERSION: 1}
        cluster.wait("both versions", lambda: release.ready_versions() == together)
        cluster.wait("Prometheus to see both", lambda: seen_versions(prometheus) == together)
        both_since = now()
        load.wait_for(150)
        both_until = now()
        leaders = prometheus.query(f'sum(leader_election_master_status{{job="{JOB}"}})')
        report.show(cluster.kubectl("get", "pods,lease", "-n", NAMESPACE, "-o", "wide"))
        cluster.kubectl("rollout", "resume", "deployment/berth", "-n", NAMESPACE)
        cluster.wait(
            "the new version alone",
            lambda: release.is_whole() and release.ready_versions() == {NEXT_VERSION: 2},
        )
        load.wait_for(50)
    report.fact(f"helm upgrade to {NEXT_VERSION}, load", load.placed.describe())
    seen = check(cluster)
    binders = {(b.address, b.version) for b in seen.binds if both_since < b.time < both_until}
    report.fact(
        "both versions side by side: leaders by Prometheus, versions that bind",
        f"{leaders[0][1]:g}, {', '.join(version for _, version in binders)}",
    )
    assert [value for _, value in leaders] == [1.0]
    assert [version for _, version in binders] == [VERSION]
    check_succession(release, seen, since, transitions, NEXT_VERSION, report)
    check_profile(cluster, before, report)


def test_a_rollback_to_the_version_before(
    cluster: Cluster, release: Release, report: Report
) -> None:
    report.heading(f"helm rollback from {NEXT_VERSION} to {VERSION} under load")
    transitions = release.lease()["leaseTransitions"]
    before, since = profile(cluster), now()
    with load_of_both_profiles(cluster, "rolled-back") as load:
        release.rollback()
        cluster.wait(
            "the old version alone",
            lambda: release.is_whole() and release.ready_versions() == {VERSION: 2},
        )
        load.wait_for(50)
    report.fact(f"helm rollback to {VERSION}, load", load.placed.describe())
    check_succession(release, check(cluster), since, transitions, VERSION, report)
    check_profile(cluster, before, report)
    for pod in release.pods():
        said = cluster.kubectl(
            "exec", "-n", NAMESPACE, pod["metadata"]["name"], "--", "berth", "version"
        )
        assert said == f"berth {VERSION}\n"
    report.show(cluster.helm("history", "berth", "--namespace", NAMESPACE))


def test_a_drained_node(cluster: Cluster, release: Release, report: Report) -> None:
    report.heading("a node is drained under load")
    leader = leader_of(cluster, release)
    node = leader["spec"]["nodeName"]
    with Load(cluster.control_plane.admin_kubeconfig, "drained") as load:
        report.show(
            cluster.kubectl(
                "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"
            )
        )
        cluster.wait("the workload to run elsewhere", lambda: running(cluster) == REPLICAS)
        cluster.wait("berth to be whole", release.is_whole)
        load.wait_for(20)
    report.fact(f"drain of {node}, where the leader was, load", load.placed.describe())
    report.show(cluster.kubectl("get", "pods", "-A", "-l", "app!=none", "-o", "wide"))
    for pod in cluster.get("/api/v1/namespaces/default/pods")["items"]:
        assert pod["spec"]["nodeName"] != node
    cluster.kubectl("uncordon", node)
    check(cluster)


def test_the_lease_is_deleted(cluster: Cluster, release: Release, report: Report) -> None:
    report.heading("the Lease is deleted under load")
    with Load(cluster.control_plane.admin_kubeconfig, "leaseless") as load:
        cluster.kubectl("delete", "lease", "berth", "-n", NAMESPACE)
        took = cluster.wait("a leader", release.is_whole)
        load.wait_for(100)
    report.fact("Lease deleted, until there is one again", f"{took:.1f} s")
    report.fact("Lease deleted, load", load.placed.describe())
    check(cluster)


def test_a_right_is_taken_away(
    cluster: Cluster, release: Release, prometheus: Prometheus, report: Report
) -> None:
    report.heading("the right to bind is taken away and given back, under load")
    role = json.loads(cluster.kubectl("get", "clusterrole", CLUSTER_NAME, "-o", "json"))
    del role["metadata"]["resourceVersion"]
    less = {**role, "rules": [r for r in role["rules"] if "pods/binding" not in r["resources"]]}
    assert len(less["rules"]) == len(role["rules"]) - 1
    restarts = restarts_of(release)
    with Load(cluster.control_plane.admin_kubeconfig, "forbidden", pods_per_s=3.0) as load:
        since = now()
        apply(cluster, less)
        cluster.wait("berth to be refused", lambda: len(evidence(cluster).forbidden) >= 10)
        cluster.wait("the alert BerthForbidden", lambda: state(prometheus, "BerthForbidden"))
        apply(cluster, role)
        cluster.wait("berth to be allowed again", lambda: allowed(cluster))
        # A request may have been under way, and the authorizer follows by a watch.
        refusals.append((since, now()))
        load.wait_for(20)
    seen = evidence(cluster).forbidden
    report.fact("right to bind taken away: refused requests", str(len(seen)))
    report.fact("right to bind given back, load", load.placed.describe())
    assert {request.path.rsplit("/", 1)[-1].partition("?")[0] for request in seen} == {"binding"}
    assert restarts_of(release) == restarts
    check(cluster)


def test_what_the_audit_log_says(cluster: Cluster, report: Report) -> None:
    report.heading("the API server's audit log")
    seen = check(cluster)
    reigns = seen.reigns()
    report.fact("requests of berth in the audit log", str(seen.requests))
    report.fact("accepted binds, pods bound twice", f"{len(seen.binds)}, 0")
    report.fact("who bound, in order", ", ".join(f"{who} {count}" for who, count in reigns))
    report.fact("forbidden outside of the phase that took a right away", "0")


def test_what_berth_says_of_itself(
    cluster: Cluster, prometheus: Prometheus, report: Report
) -> None:
    report.heading("the cache's comparisons and the loop's lag, by Prometheus")
    ours = f'{{job="{JOB}"}}'
    ((_, comparisons),) = prometheus.query(
        f"sum(max_over_time(berth_cache_comparisons_total{ours}[30m]))"
    )
    ((_, mismatches),) = prometheus.query(f"max(max_over_time(berth_cache_mismatches{ours}[30m]))")
    report.fact("comparisons of the cache, most mismatches", f"{comparisons:g}, {mismatches:g}")
    assert comparisons > 0
    assert mismatches == 0
    lag = "sum by (le) (max_over_time(berth_loop_lag_seconds_bucket" + ours + "[30m]))"
    quantiles = [
        prometheus.query(f"histogram_quantile({q}, {lag})")[0][1] * 1000 for q in (0.5, 0.99, 0.999)
    ]
    report.fact(
        "lag of the I/O loop, p50, p99, p99.9",
        ", ".join(f"{milliseconds:.1f} ms" for milliseconds in quantiles),
    )


def test_it_goes_without_a_trace(cluster: Cluster, report: Report) -> None:
    report.heading("helm uninstall")
    cluster.kubectl("delete", "deployment", "web", "-n", "default")
    report.show(cluster.helm("uninstall", "berth", "--namespace", NAMESPACE, "--wait"))
    kinds = "all,configmaps,leases,clusterroles,clusterrolebindings,flowschemas"
    ours = ("-A", "-l", "app.kubernetes.io/instance=berth", "-o", "name")
    # helm waits for the Deployment; its pods take their time to end.
    cluster.wait("nothing to be left", lambda: cluster.kubectl("get", kinds, *ours) == "")


QUERIES: Final = (
    f'up{{job="{JOB}"}}',
    f'leader_election_master_status{{job="{JOB}"}}',
    f'sum by (result) (rate(scheduler_schedule_attempts_total{{job="{JOB}"}}[30s]))',
    "histogram_quantile(0.99, sum by (le) (rate("
    f'scheduler_scheduling_attempt_duration_seconds_bucket{{job="{JOB}"}}[1m])))',
)


PROFILE_IN_FORCE: Final = (
    {"generation": 1, "observed": 1, "active": 1},
    {"Accepted": "True", "Active": "True", "Degraded": "False"},
)


def profile(cluster: Cluster) -> tuple[str, Any, dict[str, int], dict[str, str]]:
    """Return the SchedulingProfile's UID, its spec, its generations and its conditions."""
    found = json.loads(cluster.kubectl("get", "schedulingprofile", "packing", "-o", "json"))
    metadata, status = found["metadata"], found.get("status", {})
    return (
        metadata["uid"],
        found["spec"],
        {
            "generation": metadata["generation"],
            "observed": status.get("observedGeneration"),
            "active": status.get("activeGeneration"),
        },
        {each["type"]: each["status"] for each in status.get("conditions", ())},
    )


def check_profile(cluster: Cluster, before: tuple[Any, ...], report: Report) -> None:
    """What must hold of the SchedulingProfile after a change of versions."""
    after = profile(cluster)
    report.fact("the SchedulingProfile", f"the same, {after[2]}")
    assert after == before
    assert after[2:] == PROFILE_IN_FORCE


def load_of_both_profiles(cluster: Cluster, name: str) -> Load:
    """Half of the pods ask for the file's profile, half for that of the SchedulingProfile."""
    kubeconfig = cluster.control_plane.admin_kubeconfig
    return Load(kubeconfig, name, scheduler_names=("berth", PACKING), pods_per_s=RATE)


def evidence(cluster: Cluster) -> Evidence:
    return Evidence.of(cluster.control_plane.audit_events(), USER, (NAMESPACE, NAME))


def check(cluster: Cluster) -> Evidence:
    """What must hold after each chapter: no pod bound twice, nothing refused without reason."""
    seen = evidence(cluster)
    assert not seen.violations
    stray = [f for f in seen.forbidden if not any(a <= f.time <= b for a, b in refusals)]
    assert not stray
    return seen


def check_succession(
    release: Release,
    seen: Evidence,
    since: dt.datetime,
    transitions: int,
    last: str,
    report: Report,
) -> None:
    """What must hold after a change of versions: each leader counted, the last of the right one."""
    led = seen.led_since(since)
    grown = release.lease()["leaseTransitions"] - transitions
    report.fact(
        "leaders since then, by version; leaseTransitions grew by", f"{', '.join(led)}; {grown}"
    )
    assert grown == len(led)
    assert led[-1] == last
    assert {bind.version for bind in seen.binds if bind.time > since} <= {VERSION, NEXT_VERSION}
    assert seen.binds[-1].version == last


def seen_versions(prometheus: Prometheus) -> dict[str, int]:
    """Return how many replicas say that they are of which version."""
    query = f'sum by (version) (berth_build_info{{job="{JOB}"}} and on (instance) up == 1)'
    return {labels["version"]: int(value) for labels, value in prometheus.query(query)}


def running(cluster: Cluster) -> int:
    """Return how many pods of the workload run, those on their way out not counted."""
    items = cluster.get("/api/v1/namespaces/default/pods")["items"]
    return sum(
        pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        for pod in items
    )


def leader_of(cluster: Cluster, release: Release) -> dict[str, Any]:
    cluster.wait("berth to be whole", release.is_whole)
    leader = release.leader()
    assert leader is not None
    return leader


def restarts_of(release: Release) -> dict[str, int]:
    return {
        pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["restartCount"]
        for pod in release.pods()
    }


def apply(cluster: Cluster, manifest: dict[str, Any]) -> None:
    cluster.kubectl("replace", "-f", "-", given=yaml.safe_dump(manifest))


def allowed(cluster: Cluster) -> bool:
    answer = cluster.kubectl(
        "auth", "can-i", "create", "pods", "--subresource=binding", f"--as={USER}", check=False
    )
    return answer.strip() == "yes"


def status(url: str, token: str | None) -> int:
    """GET `url` of a server with a certificate of its own making; the answer's status."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with contextlib.closing(
            opener.open(urllib.request.Request(url, headers=headers), timeout=10)
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def all_evaluated(prometheus: Prometheus) -> bool:
    rules = prometheus.rules()
    assert rules
    wrong = [(rule["name"], rule["lastError"]) for rule in rules if rule.get("lastError")]
    assert not wrong
    return all(rule["health"] == "ok" for rule in rules)


def state(prometheus: Prometheus, alert: str) -> bool:
    """Return whether the condition of `alert` holds by now."""
    return any(r["name"] == alert and r["state"] != "inactive" for r in prometheus.rules())


def series_text(series: list[tuple[dict[str, str], float]]) -> str:
    lines = []
    for labels, value in series:
        shown = ", ".join(f"{k}={v}" for k, v in labels.items() if not k.startswith("__"))
        lines.append(f"  {{{shown}}} {value:g}")
    return "\n".join(lines)
