"""The check of policies: which files a process can be expected to have taken in."""

from __future__ import annotations

import pytest

from tests.storm.plans import of_text
from tests.storm.playing import Setting, play

SETTING = Setting(replicas=1, nodes=2, interleave=0.0, extras=("policies",))


@pytest.mark.parametrize("kind", ["new_config", "new_plugin"])
def test_a_text_that_was_spoilt_before_it_was_read_is_not_asked_for(kind: str) -> None:
    plan = of_text(f"2.0 {kind} 0\n2.01 {kind} 1\n")

    played = play(1, setting=SETTING, history=[(3.0, plan)])

    assert not played.broken, played.message
