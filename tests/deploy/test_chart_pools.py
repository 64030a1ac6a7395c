"""What the chart makes of several pools of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scheduler.cli import parser
from scheduler.config import load_config
from scheduler.pools import pool_options
from tests.deploy.chart import ChartError, of_kind, only, rendered

if TYPE_CHECKING:
    from pathlib import Path

POOLS = [
    {"name": "cpu", "nodeSelector": {"pool": "cpu"}},
    {
        "name": "gpu",
        "nodeSelector": {"pool": ["gpu", "spot"], "arch": "amd64"},
        "schedulerNames": ["berth-gpu"],
        "replicaCount": 3,
        "resources": {"limits": {"memory": "8Gi"}},
    },
]


def with_pools(**others: Any) -> list[dict[str, Any]]:
    return rendered({"pools": POOLS, **others})


def test_each_pool_has_its_own_deployment_lease_configuration_and_budget(tmp_path: Path) -> None:
    manifests = with_pools()
    assert [each["metadata"]["name"] for each in of_kind(manifests, "Deployment")] == [
        "berth-cpu",
        "berth-gpu",
    ]
    for index, name in enumerate(("cpu", "gpu")):
        mine = {"scheduling.berth.dev/pool": name}
        deployment, budget, configmap = (
            of_kind(manifests, kind)[index]
            for kind in ("Deployment", "PodDisruptionBudget", "ConfigMap")
        )
        template = deployment["spec"]["template"]
        selector = deployment["spec"]["selector"]["matchLabels"]
        assert mine.items() <= selector.items() <= template["metadata"]["labels"].items()
        assert budget["spec"]["selector"]["matchLabels"] == selector
        for spread in template["spec"]["topologySpreadConstraints"]:
            assert spread["labelSelector"]["matchLabels"] == selector
        path = tmp_path / f"{name}.yaml"
        path.write_text(configmap["data"]["config.yaml"])
        config = load_config(path)
        assert config.leader_election.resource_name == f"berth-{name}"
        volume = next(each for each in template["spec"]["volumes"] if each["name"] == "config")
        assert volume["configMap"]["name"] == configmap["metadata"]["name"] == f"berth-{name}"
    gpu = of_kind(manifests, "Deployment")[1]["spec"]
    assert gpu["replicas"] == 3
    assert gpu["template"]["spec"]["containers"][0]["resources"] == POOLS[1]["resources"]
    assert [each.scheduler_name for each in config.profiles] == ["berth-gpu"]


def test_berth_reads_the_pools(tmp_path: Path) -> None:
    manifests = with_pools(poolHandOverAfter="90s")
    for deployment, configmap, selector in zip(
        of_kind(manifests, "Deployment"),
        of_kind(manifests, "ConfigMap"),
        ("pool=cpu", "arch=amd64,pool in (gpu,spot)"),
        strict=True,
    ):
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        flags = parser().parse_args(arguments)
        assert str(flags.pools) == "/etc/berth/pools.yaml"
        flags.pools = tmp_path / "pools.yaml"
        flags.pools.write_text(configmap["data"]["pools.yaml"])
        options = pool_options(flags)
        assert str(options.node_selector) == selector
        assert deployment["metadata"]["name"] == f"berth-{options.name}"
        assert options.hand_over_after_s == 90
        assert [(each.lease, *each.scheduler_names) for each in options.pools] == [
            ("berth-cpu", "berth"),
            ("berth-gpu", "berth-gpu"),
        ]


def test_every_lease_may_be_written_and_asked_for() -> None:
    roles = {each["metadata"]["name"]: each for each in of_kind(with_pools(), "Role")}
    for name in ("berth-leader-election", "berth-asker"):
        named = [rule["resourceNames"] for rule in roles[name]["rules"] if "resourceNames" in rule]
        assert ["berth-cpu", "berth-gpu"] in named


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor"])
def test_all_metrics_of_a_pool_have_its_label(kind: str) -> None:
    monitor = {"enabled": True, "relabelings": [{"action": "labeldrop", "regex": "pod"}]}
    if kind == "PodMonitor":
        monitor["tokenSecret"] = {"name": "token", "key": "token"}
    made = only(with_pools(metrics={kind[0].lower() + kind[1:]: monitor}), kind)["spec"]
    (endpoint,) = made.get("endpoints") or made["podMetricsEndpoints"]
    assert endpoint["relabelings"] == [
        {
            "sourceLabels": ["__meta_kubernetes_pod_label_scheduling_berth_dev_pool"],
            "targetLabel": "node_pool",
        },
        {"action": "labeldrop", "regex": "pod"},
    ]


def test_alerts_look_at_each_pool_by_itself() -> None:
    rule = only(with_pools(metrics={"prometheusRule": {"enabled": True}}), "PrometheusRule")
    expressions = [each["expr"] for group in rule["spec"]["groups"] for each in group["rules"]]
    grouped = [text for text in expressions if " by (job, namespace" in text]
    assert len(grouped) > 10
    for text in grouped:
        assert text.count("by (job, namespace") == text.count("by (job, namespace, node_pool")


def changed_pool(**others: Any) -> list[dict[str, Any]]:
    return [POOLS[0], {**POOLS[1], **others}]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        pytest.param(
            {"pools": changed_pool(nodeSelector={"arch": "amd64"})},
            r"pools\[1\]\.nodeSelector: a node could also be in the pool \"cpu\"",
            id="no-label-in-common",
        ),
        pytest.param(
            {"pools": changed_pool(nodeSelector={"pool": ["gpu", "cpu"]})},
            r"pools\[1\]\.nodeSelector",
            id="a-value-in-common",
        ),
        pytest.param({"pools": changed_pool(name="cpu")}, r"pools\[1\]\.name", id="one-name"),
        pytest.param(
            {"pools": POOLS, "existingConfigMap": "mine"}, "existingConfigMap", id="one-config"
        ),
        pytest.param(
            {"pools": POOLS, "leaderElection": {"enabled": False}}, "leaderElection", id="no-lease"
        ),
        pytest.param({"pools": changed_pool(nodeSelector={})}, "nodeSelector", id="all-the-nodes"),
        pytest.param({"pools": changed_pool(name="GPU")}, "name", id="no-name-of-an-object"),
    ],
)
def test_pools_that_are_none_are_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(ChartError, match=told):
        rendered(values)
