"""What is measured: one struct for each series of a file of figures.

Each record has the number of its session, which knows the conditions, and a key: a record that is
measured again replaces the one with the same key.
"""

from __future__ import annotations

import msgspec


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One contender's work on one workload.

    Attributes
    ----------
    before, pods
        How many pods ran already, how many were to be placed.
    bound
        How many of them were, when the round ended.
    seconds
        From the first binding to the last.
    start_to_first_bind_s
        From the start of the process.
    cpu_s_per_1000_pods, server_cpu_s_per_1000_pods
        Of the contender from its start; of etcd and kube-apiserver in the same time.
    load_cpu_s_per_1000_pods
        Of the process that measures.
    peak_rss_mib, rss_mib
        Of the contender: the most, and at the end.
    curve_s
        When each fiftieth of the pods was bound, counted from the first.
    watch_restarts
        How often the server has ended the watch that measures, because it was not read in time.
    group_attempts, group_attempt_ms
        Attempts for groups of pods, and the mean time of one, by the contender's own metrics.
    """

    workload: str
    nodes: int
    before: int
    pods: int
    contender: str
    number: int
    session: int
    bound: int
    seconds: float
    pods_per_s: float
    start_to_first_bind_s: float
    cpu_s_per_1000_pods: float
    server_cpu_s_per_1000_pods: float
    load_cpu_s_per_1000_pods: float
    peak_rss_mib: float
    rss_mib: float
    curve_s: list[float] = []
    watch_restarts: int = 0
    group_attempts: int = 0
    group_attempt_ms: float = 0.0

    @property
    def key(self) -> tuple[str, int, int, str, int]:
        """What makes two rounds the same round."""
        return self.workload, self.nodes, self.pods, self.contender, self.number


class LatencyRound(msgspec.Struct, frozen=True, kw_only=True):
    """One contender's answer to pods that come at a steady rate.

    Times are in milliseconds, from the moment at which a pod was due to be created to the watch
    event that shows it on its node.

    Attributes
    ----------
    rate
        Pods a second.
    created_p50_ms
        Of the same pods until the API server had answered their creation.
    quantiles_ms
        At 0, 1, 2 ... 100 %.
    """

    nodes: int
    before: int
    rate: int
    contender: str
    number: int
    session: int
    pods: int
    bound: int
    created_p50_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    cpu_share: float
    quantiles_ms: list[float] = []

    @property
    def key(self) -> tuple[int, int, str, int]:
        """What makes two rounds the same round."""
        return self.nodes, self.rate, self.contender, self.number


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions without an API server: one point of a series.

    Attributes
    ----------
    series
        What varies: ``nodes``, ``pods`` or ``terms``.
    kind
        What the pods ask for.
    cycle_us, p99_us
        From the snapshot's update to the assumed pod: median and 99th percentile.
    """

    series: str
    kind: str
    nodes: int
    pods: int
    terms: int
    session: int
    decisions: int
    per_s: float
    cycle_us: float
    p99_us: float

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """What makes two points the same point."""
        return self.series, self.kind, self.nodes, self.pods, self.terms


class DeviceDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions about pods with claims, without an API server: one point of a series.

    Times are CPU time of the scheduling thread.

    Attributes
    ----------
    series
        What varies: ``nodes``, ``devices``, ``allocated`` or ``claims``.
    devices, allocated, claims
        The devices of all nodes, the claims that have a device already, the claims of each pod.
    cold_ms, first_ms
        The first decision: without preparation, and after reading ahead.
    ahead_ms, longest_ahead_ms
        Reading ahead: all of it, and its longest piece.
    cycle_us, p99_us
        Of the decisions after that: median and 99th percentile.
    """

    series: str
    kind: str
    nodes: int
    devices: int
    allocated: int
    claims: int
    session: int
    decisions: int
    cold_ms: float
    ahead_ms: float
    longest_ahead_ms: float
    first_ms: float
    cycle_us: float
    p99_us: float

    @property
    def key(self) -> tuple[str, str, int, int, int, int]:
        """What makes two points the same point."""
        return self.series, self.kind, self.nodes, self.devices, self.allocated, self.claims


class CyclesUnderLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Cycles beside a thread that takes in watch events.

    Attributes
    ----------
    rate
        Watch events a second that were sent.
    taken
        Watch events a second that were taken in.
    wall_*, thread_*
        Of one cycle in microseconds, by the clock on the wall and by that of the thread.
    loop_share
        CPU of the I/O thread, as a share of one core.
    core_wait_share, blocked_share
        Of the scheduling thread's time: ready to run but without a core; waiting for the
        interpreter or a lock.
    """

    kind: str
    nodes: int
    pods: int
    rate: int
    session: int
    cycles: int
    taken: float
    wall_p50_us: float
    wall_p99_us: float
    thread_p50_us: float
    thread_p99_us: float
    loop_share: float
    core_wait_share: float = 0.0
    blocked_share: float = 0.0

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What makes two points the same point."""
        return self.kind, self.nodes, self.pods, self.rate


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a process that holds so many bound pods.

    Attributes
    ----------
    rss_mib, peak_rss_mib
        Once all is taken in; the most until then.
    base_rss_mib
        Before the first object.
    seconds
        From the first request to the whole list taken in.
    """

    nodes: int
    pods: int
    session: int
    base_rss_mib: float
    rss_mib: float
    peak_rss_mib: float
    seconds: float

    @property
    def key(self) -> tuple[int, int]:
        """What makes two points the same point."""
        return self.nodes, self.pods
