"""Which code is not run any more."""

from __future__ import annotations

import pytest

from scheduler.user_plugins.containment.crash_note import AtWork, StateDirError
from scheduler.user_plugins.containment.plugin_code import PluginCode
from scheduler.user_plugins.containment.quarantine import LeftOut

CODE = PluginCode("Cheap", "digest")
KILLED = AtWork("Cheap", "digest", "filter", 7)
HUNG = AtWork("Cheap", "digest", "filter", 7, hung=True)


def judge(left_out: LeftOut, last: AtWork, *, held_the_lock: bool = False) -> str:
    left_out.judge(last, held_the_lock=held_the_lock, timeout_s=10.0)
    return left_out.why(CODE)


@pytest.mark.parametrize(
    ("last", "held_the_lock"),
    [
        pytest.param(HUNG, False, id="other threads ran meanwhile"),
        pytest.param(KILLED, True, id="it kept the interpreter to itself"),
    ],
)
def test_what_did_not_come_back_is_left_out_at_once(last, held_the_lock):
    why = judge(LeftOut(None), last, held_the_lock=held_the_lock)
    assert why == "filter did not come back within 10 s"


def test_one_death_in_a_call_is_a_suspicion_a_second_one_is_enough():
    left_out = LeftOut(None)
    assert judge(left_out, KILLED) == ""
    assert "killed 2 times in the middle of filter" in judge(left_out, KILLED)


def test_a_suspicion_is_dropped_after_a_long_life():
    left_out = LeftOut(None)
    judge(left_out, KILLED)
    left_out.acquit(CODE)
    assert judge(left_out, KILLED) == ""


def test_what_is_left_out_is_never_acquitted():
    left_out = LeftOut(None)
    judge(left_out, HUNG)
    left_out.acquit(CODE)
    assert left_out.why(CODE)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(PluginCode("Cheap", "changed"), id="the file was changed"),
        pytest.param(PluginCode("Other", "digest"), id="another plugin of the file"),
    ],
)
def test_other_code_gets_its_chance(other):
    left_out = LeftOut(None)
    judge(left_out, HUNG)
    assert left_out.why(other) == ""


def test_code_that_nobody_knows_again_is_not_blamed():
    left_out = LeftOut(None)
    assert left_out.judge(AtWork("Cheap", "", "filter", 1), held_the_lock=True, timeout_s=1) is None


def test_the_next_process_knows(tmp_path):
    path = tmp_path / "left-out.json"
    judge(LeftOut(path), HUNG)
    assert LeftOut(path).why(CODE) == "filter did not come back within 10 s"


def test_a_file_that_makes_no_sense_is_begun_anew(tmp_path):
    path = tmp_path / "left-out.json"
    path.write_text("{]")
    assert judge(LeftOut(path), HUNG)
    assert LeftOut(path).why(CODE)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(StateDirError, match="Is a directory"):
        LeftOut(tmp_path)
