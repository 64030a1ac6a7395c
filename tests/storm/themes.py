"""Faults that stress one part of Berth, to be played together and often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.storm.faults import WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Mapping

ELECTIONS: Final = "elections"

THEMES: Final[Mapping[str, tuple[str, ...]]] = {
    ELECTIONS: (
        "pause_leader",
        "pause_leader",
        "pause_replica",
        "partition",
        "lease_refused",
        "lease_hangs",
        "jump_wall_clock",
        "slow_binds",
    ),
    "starts": ("kill_replica", "all_watches_expire", "slow_caches"),
    "history": ("stale_server", "repeat_events", "slow_caches", "compact", "close_watches"),
    "losses": ("drop_events", "lose_events", "lose_events", "half_open", "bad_line"),
    "answers": (
        "answers_get_lost",
        "requests_get_lost",
        "slow_binds",
        "slow_caches",
        "bound_by_another",
    ),
    "refusals": ("refusals", "forbidden", "events_fail", "all_watches_expire", "slow_writes"),
    "names": ("recreate_assumed_pods", "recreate_pods", "compact", "error_events", "slow_writes"),
    "nodes": (
        "nodes_go_while_binding",
        "bound_by_another",
        "slow_caches",
        "close_watches",
        "terminate_replica",
    ),
    "webhooks": ("webhook_fails", "webhook_fails", "slow_binds", "recreate_pods", "events_fail"),
    "neighbours": (
        "room_taken_while_binding",
        "room_taken_while_binding",
        "bound_by_another",
        "nodes_go_while_binding",
        "kubelet_rejects_app",
        "kubelet_rejects_app",
    ),
    "oddities": (
        "unreadable_pods",
        "bound_pods_become_unreadable",
        "hand_over_breaks_down",
        "bad_line",
        "kill_replica",
    ),
    "preemption": ("dead_kubelet", "recreate_pods", "slow_writes", "answers_get_lost", "flood"),
}
"""A fault that is named twice is twice as frequent."""


_NAMES: Final = tuple(THEMES)


def theme_of(seed: int) -> str:
    """Return the theme of a seed's world; the empty string for odd ones, which have none."""
    return "" if seed % 2 else _NAMES[seed // 2 % len(_NAMES)]


def weights(theme: str, total: float) -> dict[str, float]:
    """Return the weights of the faults of a theme, `total` in all."""
    kinds = THEMES[theme]
    share = total / sum(WEIGHTS[kind] for kind in kinds)
    return {kind: share * WEIGHTS[kind] * kinds.count(kind) for kind in kinds}
