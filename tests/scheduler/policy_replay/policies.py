"""Replays of recorded worlds by the recorded policy and by another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from scheduler.config import EffectiveProfile, parse_config, running_profiles
from scheduler.journal import forms
from scheduler.journal.frames import files_of, read_frames
from scheduler.journal.replay import plain
from scheduler.policy_replay.other_scheduler import OtherScheduler, Tried, TriedGroup
from scheduler.policy_replay.replay import PolicyReplay
from tests.scheduler.journal.journaled import KNOWN, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from scheduler.policy_replay.packing import Packing
    from scheduler.policy_replay.tally import ProfileReport

PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: berth
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources: [{name: cpu, weight: 1}]
"""


def profiles_of(text: str) -> tuple[EffectiveProfile, ...]:
    return running_profiles(parse_config(text, "", KNOWN), KNOWN)


def recorded_profiles(directory: Path) -> tuple[EffectiveProfile, ...]:
    """Return the profiles of the first configuration in a journal."""
    for path in files_of(directory):
        for records in read_frames(path):
            for record in records:
                if record[0] == "config" and record[2]:
                    return tuple(map(_profile, record[2]))
    raise AssertionError("no configuration was recorded")


def _profile(told: Mapping[str, Any]) -> EffectiveProfile:
    points = {point: tuple(names) for point, names in told["points"].items()}
    classes = {name: KNOWN[name] for names in points.values() for name in names}
    args = told["args"]
    return EffectiveProfile(
        told["name"], told["percentage"], points, told["weights"], args, classes
    )


@dataclass
class Replayed:
    """A replay, with each recorded decision beside the one of the other policy, if it made one."""

    replay: PolicyReplay
    compared: list[tuple[Any, Any]] = field(default_factory=list)
    skipped: int = 0
    configured: int = 0
    end: tuple[Packing, Packing] | None = None

    @property
    def profile(self) -> ProfileReport:
        (report,) = self.replay.tallies.reports()
        return report


def replay_by(
    profiles: Sequence[EffectiveProfile], directory: Path, *, one_config: bool = False
) -> Replayed:
    """Replay a journal by a policy; with ``one_config`` up to another configuration of then."""
    found = Replayed(PolicyReplay(profiles, KNOWN))
    seen: list[Any] = []
    try_pod, try_group = OtherScheduler.try_pod, OtherScheduler.try_group

    def seen_pod(*asked: Any) -> Tried:
        tried = try_pod(*asked)
        seen.append(tried.decision)
        return tried

    def seen_group(*asked: Any) -> TriedGroup:
        tried = try_group(*asked)
        seen.append(tried.plan)
        return tried

    def one_by_one(path: Path) -> Iterator[list[Any]]:
        for records in read_frames(path):
            for record in records:
                before = len(seen)
                yield [record]
                found.configured += record[0] == "config" and bool(record[2])
                if found.configured > 1 and one_config:
                    return
                if record[0] == "decision" and len(seen) > before:
                    found.compared.append((record[6], plain(forms.decision_form(seen[-1]))))
                elif record[0] == "plan" and len(seen) > before:
                    found.compared.append((record[8], plain(forms.plan_form(seen[-1]))))
                elif record[0] in ("decision", "plan"):
                    found.skipped += 1

    with (
        quiet(),
        patch.object(OtherScheduler, "try_pod", seen_pod),
        patch.object(OtherScheduler, "try_group", seen_group),
    ):
        for path in files_of(directory):
            found.replay.file(one_by_one(path))
        found.end = found.replay.end()
    return found
