"""Disks that pods mount without a claim, and the nodes on which they are in use.

Only one pod of a node can write a disk of these kinds. Several pods may use it if all of them
mount it read-only; an EBS volume is exclusive even then.

*Source*: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
isVolumeConflict (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from plugins.framework.attempt_budget import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from cache.columns import Columns
    from cache.node_info import NodeInfo
    from cache.objects import Pod, Volume
    from plugins.framework.attempt_budget import AttemptBudget

DisksByUse: TypeAlias = "dict[Hashable, bool]"
"""Disks, and whether any mount of each forbids all others."""


class DiskMount(NamedTuple):
    """One disk of a pod."""

    disk: Hashable
    """The kind of the disk and its name."""
    is_exclusive: bool
    """Whether no other pod may mount it, not even read-only."""


def disk_mounts(volumes: Iterable[Volume]) -> Iterator[DiskMount]:
    """Yield the disks among the volumes of a pod.

    A Ceph image counts once for each of its monitors: two images are one if they share any.
    """
    for volume in volumes:
        gce, ebs = volume.gce_persistent_disk, volume.aws_elastic_block_store
        iscsi, rbd = volume.iscsi, volume.rbd
        if gce is not None:
            yield DiskMount(("gce", gce.pd_name), not gce.read_only)
        if ebs is not None:
            yield DiskMount(("ebs", ebs.volume_id), True)
        if iscsi is not None:
            yield DiskMount(("iscsi", iscsi.iqn), not iscsi.read_only)
        if rbd is not None:
            for monitor in rbd.monitors:
                yield DiskMount(("rbd", monitor, rbd.pool, rbd.image), not rbd.read_only)


def disks_of_node(node_info: NodeInfo) -> DisksByUse:
    """Return the disks that the pods of a node mount."""
    found: DisksByUse = {}
    for info in node_info.pods.values():
        if info.pod.spec.volumes:
            _add(found, info.pod)
    return found


def disks_of_pod(pod: Pod) -> DisksByUse:
    """Return the disks that a pod mounts."""
    found: DisksByUse = {}
    _add(found, pod)
    return found


def conflict(wanted: Iterable[DiskMount], mounted: Mapping[Hashable, bool]) -> bool:
    """Return whether a mount conflicts with the disks that other pods have mounted."""
    return any(
        mount.disk in mounted and (mount.is_exclusive or mounted[mount.disk]) for mount in wanted
    )


def _add(found: DisksByUse, pod: Pod) -> None:
    for disk, is_exclusive in disk_mounts(pod.spec.volumes):
        found[disk] = is_exclusive or found.get(disk, False)


class DisksInUse:
    """The disks of all nodes of some columns, and the rows of each disk.

    Notes
    -----
    *Concurrency*: confined to the thread of the columns.

    *Cost*: each call follows the nodes that have changed; there is no cost without calls.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._cursor = 0
        self._disks: dict[int, DisksByUse] = {}
        self._rows: dict[Hashable, set[int]] = {}

    def conflicting_rows(
        self, wanted: Iterable[DiskMount], budget: AttemptBudget = UNLIMITED
    ) -> list[int]:
        """Return the rows of the nodes on which a pod with these mounts cannot run."""
        self.follow()
        rows: set[int] = set()
        for disk, is_exclusive in wanted:
            budget.check()
            for row in self._rows.get(disk, ()):
                if is_exclusive or self._disks[row][disk]:
                    rows.add(row)
        return sorted(rows)

    def follow(self) -> None:
        """Update the disks of the nodes that have changed."""
        cursor, changed = self.columns.follow(self._cursor)
        for row in changed:
            info = self.columns.info_at(row)
            after = {} if info is None else disks_of_node(info)
            before = self._disks.pop(row, {})
            for disk in before.keys() - after.keys():
                rows = self._rows[disk]
                rows.remove(row)
                if not rows:
                    del self._rows[disk]
            for disk in after:
                self._rows.setdefault(disk, set()).add(row)
            if after:
                self._disks[row] = after
        self._cursor = cursor
