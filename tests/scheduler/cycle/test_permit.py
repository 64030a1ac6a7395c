"""What all Permit plugins of a profile say together."""

from __future__ import annotations

import pytest

from plugins.default_binder import DefaultBinder
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import PermitPlugin
from plugins.framework.status import SUCCESS, Code, Status, unschedulable
from plugins.priority_sort import PrioritySort
from scheduler.runtime.framework_runner import FrameworkRunner
from tests.builders import pod
from tests.plugins.conformance import RecordingHandle

WAIT = Status(Code.WAIT)


class Doorman(PermitPlugin):
    def __init__(self, name: str, status: Status, timeout_s: float = 0.0) -> None:
        super().__init__(None, RecordingHandle())
        self.name = name  # type: ignore[misc]
        self.answer = (status, timeout_s)

    def permit(self, state, info, node_name):
        return self.answer


class Fallen(Doorman):
    def permit(self, state, info, node_name):
        raise RuntimeError("it fell over")


def ask(*doormen: PermitPlugin) -> tuple[Status, dict[str, float]]:
    handle = RecordingHandle()
    points = {
        "queueSort": [PrioritySort(None, handle)],
        "permit": doormen,
        "bind": [DefaultBinder(None, handle)],
    }
    runner = FrameworkRunner("berth", points, {})
    return runner.run_permit(CycleState(), pod("p").info(), "n1")


@pytest.mark.parametrize(
    ("doormen", "code", "waits"),
    [
        pytest.param((), Code.SUCCESS, {}, id="nobody there"),
        pytest.param((Doorman("A", SUCCESS),), Code.SUCCESS, {}, id="one lets it go"),
        pytest.param((Doorman("A", WAIT, 5),), Code.WAIT, {"A": 5}, id="one holds it"),
        pytest.param(
            (Doorman("A", WAIT, 5), Doorman("B", SUCCESS), Doorman("C", WAIT, 7)),
            Code.WAIT,
            {"A": 5, "C": 7},
            id="two hold it",
        ),
        pytest.param(
            (Doorman("A", WAIT, 3600),), Code.WAIT, {"A": 900}, id="a quarter of an hour at most"
        ),
        pytest.param(
            (Doorman("A", WAIT, 5), Doorman("B", unschedulable("no"))),
            Code.UNSCHEDULABLE,
            {},
            id="a rejection beats a hold",
        ),
        pytest.param(
            (Doorman("A", Status(Code.PENDING, ("later",))),), Code.PENDING, {}, id="pending"
        ),
        pytest.param((Fallen("A", SUCCESS),), Code.ERROR, {}, id="one falls over"),
    ],
)
def test_what_they_say_together(doormen, code, waits):
    status, held = ask(*doormen)
    assert (status.code, held) == (code, waits)


def test_the_one_who_rejects_is_named():
    status, _ = ask(Doorman("A", WAIT, 5), Doorman("B", unschedulable("no")))
    assert (status.plugin, status.message) == ("B", "no")
