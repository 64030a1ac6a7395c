"""``make conformance``: Kubernetes' own tests of scheduling, with berth as the default scheduler.

Runs ``e2e.test`` of the Kubernetes version in ``go.mod`` against a cluster of its own and ends with
status 1 when a test of ``expected.txt`` (those that kube-scheduler passes here) does not pass.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench.contenders import Berth, KubeScheduler
from tests.conformance.cluster import NODES, Cluster
from tests.conformance.results import (
    EXPECTED,
    ReportError,
    not_passed,
    read_expected,
    read_report,
    table,
    write_expected,
)
from tests.controlplane.binaries import ControlPlaneError, find_or_build
from tests.controlplane.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.contenders import Contender

FOCUS: Final = (r"\[sig-scheduling\]", r"\[DRA\] control plane")
_SKIP: Final = "FeatureGate:DRAResourcePoolStatus"  # alpha, and a controller's work
_EXPECTED_FILE: Final = Path(__file__).with_name(EXPECTED)
_SCHEDULER_NAME: Final = "default-scheduler"
_PROGRESS_S: Final = 60.0
_POLL_S: Final = 1.0


def main() -> int:
    """Return 0 when every expected test passed, 1 when one did not or nothing could be run."""
    options = _parser().parse_args()
    focus = options.focus or FOCUS
    contender = _contender(options.contender, options.switch_off)
    # Left behind when a test fails; the cluster's own logs only with --keep.
    report = Path(tempfile.mkdtemp(prefix="berth-conformance-")) / "report.json"
    log_file = report.with_name("e2e.log")
    try:
        find_or_build(["etcd", "kube-apiserver", "kube-controller-manager", "kwok", "e2e.test"])
        with Cluster(contender, keep=options.keep) as cluster:
            _run(cluster, focus, report, log_file)
        results = read_report(report)
    except (ControlPlaneError, ReportError) as error:
        _say(f"{error}\nThe tests' output: {log_file}")
        return 1
    expected = read_expected(_EXPECTED_FILE)
    for line in table(results, expected):
        _say(line)
    if options.record:
        write_expected(_EXPECTED_FILE, results, focus)
        return 0
    missing = not_passed(expected, results, focus)
    for name in missing:
        _say(f"did not pass, and must: {name}")
    without = f" without {options.switch_off}" if options.switch_off else ""
    _say(f"{contender.name}{without}: {len(missing)} of the expected tests did not pass.")
    if missing or options.keep:
        _say(f"The tests' output: {log_file}")
    else:
        shutil.rmtree(report.parent)
    return 1 if missing else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--contender", choices=("berth", "kube-scheduler"), default="berth")
    parser.add_argument("--focus", action="append", help="run the tests with names that match")
    parser.add_argument("--switch-off", metavar="PLUGIN", help="run the scheduler without a plugin")
    parser.add_argument("--record", action="store_true", help=f"write what passed to {EXPECTED}")
    parser.add_argument("--keep", action="store_true", help="leave the cluster's logs behind")
    return parser


def _contender(name: str, switch_off: str | None) -> Contender:
    profile: dict[str, object] = {"schedulerName": _SCHEDULER_NAME}
    if switch_off:
        profile["plugins"] = {"multiPoint": {"disabled": [{"name": switch_off}]}}
    config: dict[str, object] = {"profiles": [profile]}
    if name == "berth":
        return Berth(config, scheduler_name=_SCHEDULER_NAME)
    return KubeScheduler(config, scheduler_name=_SCHEDULER_NAME)


def _run(cluster: Cluster, focus: Sequence[str], report: Path, log_file: Path) -> None:
    """Run the tests to their end; `report` and `log_file` are theirs.

    Raises
    ------
    ControlPlaneError
        A server of the cluster, such as the scheduler, ended meanwhile.
    """
    tests = ServerProcess(
        [
            find_or_build(["e2e.test"])["e2e.test"],
            f"--kubeconfig={cluster.control_plane.admin_kubeconfig}",
            "--provider=skeleton",
            f"--num-nodes={NODES}",
            "--node-schedulable-timeout=1m",
            "--system-pods-startup-timeout=1m",
            "--ginkgo.no-color",
            "--ginkgo.v",
            "--ginkgo.timeout=2h",
            f"--ginkgo.skip={_SKIP}",
            f"--ginkgo.json-report={report}",
            *(f"--ginkgo.focus={text}" for text in focus),
        ],
        log_file,
    )
    started = said = time.monotonic()
    try:
        while tests.running:
            cluster.ensure_running()
            time.sleep(_POLL_S)
            if time.monotonic() - said > _PROGRESS_S:
                said = time.monotonic()
                ended = log_file.read_text(errors="replace").count("\n• ")
                _say(f"  {said - started:4.0f} s: {ended} tests have ended")
    finally:
        tests.kill()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
