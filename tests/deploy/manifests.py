"""Plain manifests made of the chart: ``make manifests``.

    deploy/rbac.yaml                      the namespace, the service account and what it may do
    deploy/berth.yaml                     all else that runs berth
    deploy/kustomization.yaml             both: kubectl apply -k deploy
    deploy/monitoring/                    for the Prometheus operator and Grafana
    deploy/pod-groups/                    the kind PodGroup, for a cluster that has none
    deploy/scheduling-profiles/           the kind SchedulingProfile, and a berth that reads it
    deploy/charts/berth/README.md         the table of values, from values.yaml and its schema
    deploy/charts/berth/templates/rbac/scheduling.yaml
                                          what may be watched, from scheduler/kinds.py

All but the last two are what ``helm template`` renders in the namespace berth-system, without the
labels that name helm.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import yaml

from scheduler.kinds import WATCHED
from tests.deploy.chart import CHART, NAMESPACE, ROOT, rendered_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from scheduler.kinds import WatchedKind

DEPLOY: Final = ROOT / "deploy"
MONITORED: Final = {
    "metrics": {
        "serviceMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True},
        "grafanaDashboard": {"enabled": True},
    }
}
WITH_POD_GROUPS: Final = {"podGroups": {"crd": True}}
WITH_PROFILES: Final = {"schedulingProfiles": {"enabled": True}}
HELM_LABELS: Final = ("app.kubernetes.io/managed-by", "helm.sh/chart")

_RIGHTS: Final = {
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
}
_NOTICE: Final = "# Generated from charts/berth by `make manifests`: change the chart instead.\n"
_TABLE: Final = re.compile(r"(?<=<!-- values -->\n).*(?=<!-- end of values -->)", re.DOTALL)
_ROLE: Final = CHART / "templates" / "rbac" / "scheduling.yaml"
_WATCHED: Final = re.compile(
    r"(?<=  # Generated from scheduler/kinds\.py by `make manifests`:\n).*"
    r"(?=  # End of the generated rules\.\n)",
    re.DOTALL,
)
_NAMESPACE: Final = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""


def files() -> dict[Path, str]:
    """Return the text of each file that is made: of the chart as it is, but for its role."""
    plain, monitored, profiled, grouped = (
        list(_documents(rendered_text(values)))
        for values in ({}, MONITORED, WITH_PROFILES, WITH_POD_GROUPS)
    )
    rights = [each for each in plain if _kind(each) in _RIGHTS]
    others = [each for each in plain if _kind(each) not in _RIGHTS]
    monitoring = [each for each in monitored if each not in plain]
    return {
        **role(),
        DEPLOY / "rbac.yaml": _stream([_NAMESPACE, *rights]),
        DEPLOY / "berth.yaml": _stream(others),
        DEPLOY / "kustomization.yaml": _kustomization("rbac.yaml", "berth.yaml"),
        DEPLOY / "monitoring" / "monitoring.yaml": _stream(monitoring),
        DEPLOY / "monitoring" / "kustomization.yaml": _kustomization("monitoring.yaml"),
        DEPLOY / "pod-groups" / "crd.yaml": _stream(each for each in grouped if each not in plain),
        DEPLOY / "pod-groups" / "kustomization.yaml": _kustomization("crd.yaml"),
        DEPLOY / "scheduling-profiles" / "profiles.yaml": _stream(
            each for each in profiled if each not in plain
        ),
        DEPLOY / "scheduling-profiles" / "kustomization.yaml": _kustomization("profiles.yaml"),
        CHART / "README.md": _TABLE.sub(
            lambda _: values_table(), (CHART / "README.md").read_text(encoding="utf-8")
        ),
    }


def role() -> dict[Path, str]:
    """Return the text of the chart's role: it may watch what is in the table of kinds."""
    text = _ROLE.read_text(encoding="utf-8")
    return {_ROLE: _WATCHED.sub(lambda _: watch_rules(WATCHED), text)}


def watch_rules(kinds: Iterable[WatchedKind[Any]]) -> str:
    """Return the rules for some kinds: one a group, and one for each that berth can do without."""
    rules: dict[tuple[str, str], list[str]] = defaultdict(list)
    for kind in kinds:
        rules[kind.without, kind.group].append(kind.resource)
    lines: list[str] = []
    for (without, group), names in rules.items():
        if without:
            lines += textwrap.wrap(f"# Without it {without}.", 100, subsequent_indent="# ")
        lines.append(f"- apiGroups: [{group or json.dumps(group)}]")
        listed = f"  resources: [{', '.join(names)}]"
        lines += textwrap.wrap(listed, 100, subsequent_indent="    ", break_long_words=False)
        lines.append("  verbs: [list, watch]")
    return textwrap.indent("\n".join(lines) + "\n", "  ")


def values_table() -> str:
    """Return the values as a table: name, default and what the schema says."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    lines = ["| value | default | what it is |", "|---|---|---|"]
    for path, text, default in _rows(schema, values, ""):
        shown = json.dumps(default).replace("|", "\\|")
        lines.append(f"| `{path}` | `{shown}` | {text} |")
    return "\n".join(lines) + "\n"


def _rows(
    schema: Mapping[str, Any], values: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, str, Any]]:
    for name, default in values.items():
        field = schema["properties"][name]
        path = f"{prefix}{name}"
        if field.get("additionalProperties") is False and isinstance(default, dict) and default:
            yield from _rows(field, default, f"{path}.")
        else:
            yield path, field["description"], default


def _documents(text: str) -> Iterator[str]:
    """Yield each manifest's text without the lines that speak of helm."""
    for document in re.split(r"^---\n", text, flags=re.MULTILINE):
        kept = [
            line
            for line in document.splitlines()
            if not line.startswith("# Source: ")
            and not line.strip().startswith(tuple(f"{label}:" for label in HELM_LABELS))
        ]
        if any(line and not line.startswith("#") for line in kept):
            yield "\n".join(kept).strip("\n") + "\n"


def _kind(document: str) -> str:
    kind = yaml.safe_load(document)["kind"]
    assert isinstance(kind, str)
    return kind


def _stream(documents: Iterable[str]) -> str:
    return _NOTICE + "---\n" + "---\n".join(documents)


def _kustomization(*resources: str) -> str:
    lines = [
        "apiVersion: kustomize.config.k8s.io/v1beta1",
        "kind: Kustomization",
        "resources:",
        *(f"  - {each}" for each in resources),
    ]
    return _NOTICE + "\n".join(lines) + "\n"


def main() -> int:
    """Write the files that differ, and name them."""
    _write(role())  # the chart is rendered with it
    _write(files())
    return 0


def _write(made: Mapping[Path, str]) -> None:
    for path, text in made.items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
