"""The text form of the devices for a pod's claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.dynamic_resources.device_report import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from plugins.dynamic_resources.device_report import DeviceReport, Help


def device_lines(reports: Iterable[DeviceReport]) -> Iterator[str]:
    """Yield the lines of all reports."""
    for report in reports:
        yield from _lines(report)


def _lines(report: DeviceReport) -> Iterator[str]:
    wanted = "all devices" if report.wanted is None else _devices(report.wanted)
    of_class = f" of class {report.device_class}" if report.device_class else ""
    yield f"Claim {report.claim}, request {report.request}: {wanted}{of_class}"
    if report.error:
        yield f"{'':9}{report.error}"
        return
    yield f"{report.num_devices:7}  can be reached by the nodes"
    for selector in report.selectors:
        failed = f"; it fails on {selector.failed}" if selector.failed else ""
        expression = " ".join(selector.expression.split())
        yield f"{selector.matching:7}  match {selector.name}: {expression}{failed}"
    if report.in_use:
        yield f"{report.in_use:7}  of them in use: {_counts(report.users)}"
    if report.tainted:
        yield f"{report.tainted:7}  of them tainted: {_counts(report.taints)}"
    most = f", most of them on {report.most_free_on}: {report.most_free}" if report.free else ""
    yield f"{report.free:7}  of them free{most}"
    if report.wanted:
        yield f"{report.enough_on:7}  {_nodes(report.enough_on)} enough of them"
    for pool in report.unusable_pools:
        yield f"{'':9}pool {pool} cannot be used"
    for each in report.help:
        yield f"{'':9}{_help(each)}"


def _help(each: Help) -> str:
    change, subject = each.obstacle
    action = {
        Change.DROP_SELECTOR: f"without {subject}",
        Change.TOLERATE_TAINT: f"tolerating the taint {subject}",
        Change.FREE_CLAIM: f"once claim {subject} is deallocated",
        Change.ASK_FOR_FEWER: f"for {subject} instead",
    }[change]
    return f"{action}: {each.num_nodes} more {'node' if each.num_nodes == 1 else 'nodes'}"


def _counts(counted: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counted)


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def _nodes(count: int) -> str:
    return "node has" if count == 1 else "nodes have"
