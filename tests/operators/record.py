"""Record what operators write for their users: ``make operators``.

    kuberay    the operator itself, ray-operator 1.4.2 with --batch-scheduler=scheduler-plugins, on
               a control plane: a RayCluster of a head and three workers, then one worker less twice
    trainer    Kubeflow Trainer 2.0.0's runtime: a TrainJob of three nodes whose runtime asks for a
               gang, then scaled down while it runs, and while it is suspended

Each has a Go module of its own in this folder, since they do not resolve beside others. What they
write is kept in ``recorded``, without what no scheduler reads. ``test_operators.py`` lets berth
read it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.pod_groups import LABEL_API, groups_path
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FOLDER: Final = Path(__file__).resolve().parent
RECORDED: Final = FOLDER / "recorded"
ROOT: Final = FOLDER.parents[1]
KUBERAY: Final = "github.com/ray-project/kuberay/ray-operator"
_KINDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RAY_CLUSTERS: Final = "/apis/ray.io/v1/namespaces/default/rayclusters"
_PODS: Final = "/api/v1/namespaces/default/pods"
_MERGE: Final = "application/merge-patch+json"
_DEADLINE_S: Final = 120.0

Recording = dict[str, list[dict[str, Any]]]


def build(module: str, package: str) -> Path:
    """Return a program of one of the modules."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    program = cache / "berth" / "operators" / module
    command = ["go", "build", "-o", program, package]
    subprocess.run(command, cwd=FOLDER / module, check=True)
    return program


def trimmed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a PodGroup or a pod a scheduler may read."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    made: dict[str, Any] = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {key: metadata[key] for key in kept if key in metadata},
    }
    for owner in made["metadata"].get("ownerReferences", ()):
        owner["uid"] = f"{owner['name']}-uid"
    if manifest["kind"] == "PodGroup":
        return made | {"spec": spec}
    containers = [
        {"name": each["name"], "image": each["image"], "resources": each.get("resources", {})}
        for each in spec["containers"]
    ]
    return made | {"spec": {"schedulerName": spec["schedulerName"], "containers": containers}}


# --- KubeRay ------------------------------------------------------------------------------------


def kuberay() -> dict[str, Recording]:
    """Return the PodGroup and the pods of a RayCluster: new, and with fewer workers."""
    operator = build("kuberay", KUBERAY)
    with ControlPlane(audit=False) as plane:
        for definition in _definitions():
            plane.call("POST", _KINDS, definition)
        _wait(lambda: _list(plane, _RAY_CLUSTERS) == [])
        _wait(lambda: _list(plane, groups_path(LABEL_API)) == [])
        process = ServerProcess(
            [
                operator,
                f"--kubeconfig={plane.admin_kubeconfig}",
                "--batch-scheduler=scheduler-plugins",
                "--enable-leader-election=false",
                "--metrics-addr=127.0.0.1:0",
                "--health-probe-bind-address=127.0.0.1:0",
            ],
            plane.folder / "ray-operator.log",
        )
        try:
            plane.call("POST", _RAY_CLUSTERS, _ray_cluster(3))
            new = _written(plane, pods=4)
            plane.call("PUT", f"{_RAY_CLUSTERS}/ray", _scaled(plane, 1))
            return {"new": new, "scaled down": _written(plane, pods=2)}
        except BaseException:
            print(process.log_tail(), file=sys.stderr)
            raise
        finally:
            process.kill()


def _definitions() -> list[dict[str, Any]]:
    command = ["go", "list", "-m", "-f", "{{.Dir}}", KUBERAY]
    answer = subprocess.run(
        command, cwd=FOLDER / "kuberay", capture_output=True, text=True, check=True
    )
    folder = Path(answer.stdout.strip()) / "config" / "crd" / "bases"
    files = [*sorted(folder.glob("*.yaml")), ROOT / "deploy" / "pod-groups" / "crd.yaml"]
    return [
        each
        for file in files
        for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))
        if each
    ]


def _ray_cluster(workers: int) -> dict[str, Any]:
    def template(name: str, cpu: str) -> dict[str, Any]:
        requests = {"cpu": cpu, "memory": "2Gi"}
        container = {"name": name, "image": "rayproject/ray:2.46.0"}
        container |= {"resources": {"requests": requests, "limits": requests}}
        return {"spec": {"schedulerName": "berth", "containers": [container]}}

    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "ray", "labels": {"ray.io/gang-scheduling-enabled": "true"}},
        "spec": {
            "rayVersion": "2.46.0",
            "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head", "1")},
            "workerGroupSpecs": [
                {
                    "groupName": "workers",
                    "replicas": workers,
                    "minReplicas": 0,
                    "maxReplicas": 10,
                    "rayStartParams": {},
                    "template": template("ray-worker", "2"),
                }
            ],
        },
    }


def _scaled(plane: ControlPlane, workers: int) -> dict[str, Any]:
    made = plane.call("GET", f"{_RAY_CLUSTERS}/ray")
    made["spec"]["workerGroupSpecs"][0]["replicas"] = workers
    return made


def _written(plane: ControlPlane, pods: int) -> list[dict[str, Any]]:
    """Return the groups and pods once there are so many pods, and one group."""

    def members() -> list[dict[str, Any]]:
        return [each for each in _list(plane, _PODS) if "deletionTimestamp" not in each["metadata"]]

    _wait(lambda: len(members()) == pods and len(_list(plane, groups_path(LABEL_API))) == 1)
    groups = [
        {**each, "apiVersion": LABEL_API, "kind": "PodGroup"}
        for each in _list(plane, groups_path(LABEL_API))
    ]
    made = [{**each, "apiVersion": "v1", "kind": "Pod"} for each in members()]
    return [trimmed(each) for each in (*groups, *_numbered(made))]


def _numbered(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return pods with numbers for the random ends of their names."""
    pods = sorted(pods, key=lambda pod: str(pod["metadata"]["generateName"]))
    for number, pod in enumerate(pods):
        pod["metadata"]["name"] = f"{pod['metadata'].pop('generateName')}{number}"
    return pods


def _list(plane: ControlPlane, path: str) -> list[dict[str, Any]] | None:
    """Return the objects; None while their kind is not served."""
    try:
        items = plane.call("GET", path)["items"]
    except urllib.error.HTTPError as error:
        with error:
            return None
    assert isinstance(items, list)
    return items


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the operator has not written what was waited for")
        time.sleep(0.1)


# --- Kubeflow Trainer ---------------------------------------------------------------------------


def trainer() -> dict[str, Recording]:
    """Return the PodGroup and a pod of each node, as the JobSet's template makes it."""
    answer = subprocess.run([build("trainer", ".")], capture_output=True, text=True, check=True)
    return {case: _of_trainer(objects) for case, objects in json.loads(answer.stdout).items()}


def _of_trainer(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made = [trimmed(each) for each in objects if each["kind"] == "PodGroup"]
    for job_set in (each for each in objects if each["kind"] == "JobSet"):
        for job in job_set["spec"]["replicatedJobs"]:
            spec = job["template"]["spec"]
            template = spec["template"]
            for index in range(spec.get("parallelism", 1) * job.get("replicas", 1)):
                name = f"{job_set['metadata']['name']}-{job['name']}-{index}"
                metadata = {**template["metadata"], "name": name, "namespace": "default"}
                pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}
                made.append(trimmed(pod))
    return made


def main() -> int:
    """Write the recordings."""
    RECORDED.mkdir(exist_ok=True)
    for name, record in (("kuberay", kuberay), ("trainer", trainer)):
        text = json.dumps(record(), indent=1, sort_keys=True)
        (RECORDED / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"recorded/{name}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
