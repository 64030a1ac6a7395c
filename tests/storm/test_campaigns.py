"""What a campaign remembers of the seeds that it has played."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from tests.storm.campaigns import FAULTS, Campaign
from tests.storm.playing import Played, Setting

if TYPE_CHECKING:
    from pathlib import Path

SETTING = Setting(replicas=1, nodes=2, interleave=0.0)


def played(seed: int, **counts: int) -> Played:
    labels = {label.replace("_", " "): count for label, count in counts.items()}
    return Played(seed, SETTING, steps=10, seconds=2.0, counts=Counter(labels))


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    state = tmp_path / "state"
    Campaign(state).passed(played(1, F1_watch_closed=3))
    Campaign(state).passed(played(2, F1_watch_broken=4, F11_early=1))

    campaign = Campaign(state)

    assert campaign.seeds == {1, 2}
    assert (campaign.steps, campaign.seconds) == (20, 4.0)
    assert {number: count for number, count in campaign.faults().items() if count} == {1: 7, 11: 1}


def test_a_seed_counts_once(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "state")
    campaign.passed(played(1, F1_watch_closed=3))
    campaign.passed(played(1, F1_watch_closed=3))

    assert campaign.faults()[1] == 3


def test_what_has_no_number_is_no_fault() -> None:
    campaign = Campaign(None)
    campaign.passed(played(1, write=3, F99_unheard_of=1, Fine=1))

    assert not any(campaign.faults().values())


def test_seeds_of_a_file_that_says_no_commit_are_counted_as_such(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text(json.dumps({"seed": 7, "steps": 5, "counts": {}}) + "\n", encoding="utf-8")

    assert Campaign(state).revisions == {"unknown": 1}


def test_a_report_has_a_row_for_each_fault() -> None:
    campaign = Campaign(None)
    campaign.passed(played(1, F35_process_cut_off=12))

    rows = [line for line in campaign.report() if line.startswith("| F")]

    assert len(rows) == len(FAULTS)
    assert rows[-1] == "| F35 | a process that is cut off | 12 |"
