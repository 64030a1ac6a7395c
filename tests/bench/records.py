"""What is measured: one struct for each series of a file of figures.

Each record has the number of its session, which knows the conditions, and a key: a record that is
measured again replaces the one with the same key.
"""

from __future__ import annotations

from typing import Final

import msgspec

FIRST_BIND: Final = "first bind"
LAST_BIND: Final = "last bind"
MANY: Final = 200
MANY_BOUND: Final = f"{MANY} bound"
START_PHASES: Final = (
    *("imported", "connected", "listed", "scheduling"),
    *(FIRST_BIND, MANY_BOUND, LAST_BIND),
)
"""Phases of a start in their order: what the log of Berth says, and what a watch shows."""


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


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """One start of one contender, from the start of the process.

    Attributes
    ----------
    running, pods
        How many pods ran already, how many waited.
    bound
        The start ended with so many bindings.
    wall_s, cpu_s
        By phase: the time, and the CPU that the process had used by then, in seconds.
    server_cpu_s
        CPU of etcd and kube-apiserver until the last binding that was waited for.
    rss_mib
        Of the process, then.
    """

    nodes: int
    running: int
    pods: int
    bound: int
    contender: str
    number: int
    session: int
    wall_s: dict[str, float]
    cpu_s: dict[str, float]
    server_cpu_s: float
    rss_mib: float

    @property
    def key(self) -> tuple[int, int, int, int, str, int]:
        """What makes two starts the same start."""
        return self.nodes, self.running, self.pods, self.bound, self.contender, self.number


class LargeRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run against the stand-in for an API server.

    Lists have one item for each leader, in the order of the pools.

    Attributes
    ----------
    pods, waiting
        How many pods ran already, how many were created at once.
    start_s, start_cpu_s, rss_mib
        From the start of the process to its first binding: wall and CPU time; resident memory then.
    cpu_s_per_1000, stand_in_cpu_s_per_1000
        Of all leaders, and of the stand-in, while the pods that waited were bound.
    cycle_mean_ms, cycle_p50_ms, cycle_p99_ms
        Of one cycle, from the histogram of the process.
    after_kill_s
        From the SIGKILL of a leader until all pods were bound; None with one pool.
    new_leader
        Whether the standby led then.
    handed_on_s, hops
        Until a pod was bound that fits only the last pool, and how often it was handed on.
    problems
        How many nodes had more than they can run, and pods that were bound outside their pool; ten
        at most are counted.
    refused_bindings
        Bindings of pods that were bound already.
    """

    nodes: int
    pods: int
    pools: int
    waiting: int
    session: int
    start_s: list[float]
    start_cpu_s: list[float]
    rss_mib: list[int]
    pods_per_s: float
    cpu_s_per_1000: float
    stand_in_cpu_s_per_1000: float
    cycle_mean_ms: list[float]
    cycle_p50_ms: list[float]
    cycle_p99_ms: list[float]
    problems: int
    refused_bindings: int
    after_kill_s: float | None = None
    new_leader: bool | None = None
    handed_on_s: float | None = None
    hops: int | None = None

    @property
    def key(self) -> tuple[int, int, int, int]:
        """What makes two runs the same run."""
        return self.nodes, self.pods, self.pools, self.waiting


class TailPart(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies, stalls and garbage collection of one contender beside one disturbance.

    Attributes
    ----------
    part
        The disturbance.
    before, rate, pods, bound
        How many pods ran already, how many came a second and in all, how many of these were bound.
    p50_ms, p99_ms, max_ms
        From the moment at which a pod was due to its binding.
    longest_stall_ms, longest_own_stall_ms
        Of the stalls of the event loop of more than 20 ms; without the time in which the process
        had no core. 0 without stalls.
    stalls
        Their number by cause: ``loop``, ``interpreter`` or ``system``.
    gc_runs, full_gc_runs, gc_cpu_ms, longest_gc_ms, garbage
        Runs of the garbage collector, those of the oldest generation, CPU time of all and of the
        longest one, and the objects that were garbage.
    cpu_share
        CPU of the process as a share of one core.
    """

    part: str
    nodes: int
    before: int
    rate: int
    contender: str
    number: int
    session: int
    pods: int
    bound: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    longest_stall_ms: float
    longest_own_stall_ms: float
    stalls: dict[str, int]
    gc_runs: int
    full_gc_runs: int
    gc_cpu_ms: float
    longest_gc_ms: float
    garbage: int
    cpu_share: float

    @property
    def key(self) -> tuple[str, int, int, int, str, int]:
        """What makes two parts the same part."""
        return self.part, self.nodes, self.rate, self.pods, self.contender, self.number

    @property
    def own_stalls(self) -> int:
        """Stalls of more than 20 ms that other processes did not cause."""
        return sum(count for cause, count in self.stalls.items() if cause != "system")


class Variety(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions about pods of many kinds in turn, without an API server.

    Attributes
    ----------
    kinds
        How many different requests come in turn.
    cycle_us
        Median CPU time of the deciding thread for a cycle.
    """

    kinds: int
    nodes: int
    number: int
    session: int
    decisions: int
    cycle_us: float

    @property
    def key(self) -> tuple[int, int, int]:
        """What makes two points the same point."""
        return self.kinds, self.nodes, self.number
