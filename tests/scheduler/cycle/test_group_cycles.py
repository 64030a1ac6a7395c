"""Groups from the watch to the binding, as text: the steps are those of ``tests/regressions``."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.regressions import expectations, steps
from tests.regressions.world import World


def play(text: str) -> None:
    """Do all steps, everything at rest in between."""

    async def run() -> None:
        async with World() as world:
            for number, line in enumerate(text.strip().splitlines()):
                step = re.sub(r"#.*", "", line).strip()
                if not step:
                    continue
                if step.startswith("expect "):
                    try:
                        expectations.of(step.removeprefix("expect "))(world)
                    except expectations.Unmet as unmet:
                        raise AssertionError(f"line {number}: {step}: {unmet}") from unmet
                else:
                    _action(step)(world)
                    await world.settle()

    asyncio.run(run())


def _action(step: str):
    if step.startswith("meanwhile "):
        return steps.in_the_middle(steps.of(step.removeprefix("meanwhile ")))
    return steps.of(step)


SCENARIOS = {
    "1, 2: two gangs, room for one": """
        node a cpu=3
        group x min=3
        group y min=3
        pod x-1 group=x
        pod y-1 group=y
        pod x-2 group=x
        pod y-2 group=y
        pod x-3 group=x
        pod y-3 group=y
        cycle
        expect bound: x-1=a x-2=a x-3=a
        cycle
        expect bound: x-1=a x-2=a x-3=a
        expect assumed: nobody
        expect nominated: nobody
        end pod x-1
        end pod x-2
        end pod x-3
        advance 20s
        cycle
        expect bound: y-1=a y-2=a y-3=a
        expect rest
    """,
    "4: one member too many, and a single pod behind": """
        node a cpu=3
        group x min=4
        pod x copies=4 group=x
        pod single
        cycle
        expect bound: nobody
        expect message of x-0: 3 of 4 members needed fit
        expect free on a: 3
        cycle
        expect bound: single=a
    """,
    "5: more members than the minimum": """
        node a cpu=4
        group x min=3
        pod x copies=5 group=x
        cycle
        expect bound: 4 pods
        expect unschedulable: 1 pods
        node b cpu=1
        advance 20s
        cycle
        expect bound: 5 pods
        expect rest
    """,
    "6: members before the object": """
        node a cpu=4
        pod x copies=2 group=x
        cycle
        expect tried: nobody
        group x min=2
        cycle
        expect bound: 2 pods
    """,
    "7: one attempt after the last member": """
        node a cpu=4
        group x min=3
        pod x-1 group=x
        pod x-2 group=x
        cycle
        expect tried: nobody
        pod x-3 group=x
        cycle
        expect bound: 3 pods
        cycle
        expect tried: nobody
    """,
    "8: a member is deleted while it waits": """
        node a cpu=4
        group x min=2
        pod x-1 group=x
        pod x-2 group=x
        delete pod x-2
        cycle
        expect bound: nobody
        expect gated: x-1
        pod x-3 group=x
        cycle
        expect bound: x-1=a x-3=a
        expect rest
    """,
    "10: the object is made again with a smaller minimum": """
        node a cpu=2
        group x min=3
        pod x copies=3 group=x
        cycle
        expect bound: nobody
        delete group x
        expect gated: 3 pods
        group x min=2
        advance 20s
        cycle
        expect bound: 2 pods
    """,
    "11: the minimum is lowered": """
        node a cpu=2
        group x min=3
        pod x copies=3 group=x
        cycle
        expect bound: nobody
        group x min=2
        cycle
        expect bound: 2 pods
    """,
    "13: a gang that never fits pauses for longer and longer": """
        node a cpu=1
        group x min=2
        pod x copies=2 group=x
        cycle
        expect unschedulable: 2 pods
        node b cpu=0
        cycle
        expect tried: nobody
    """,
    "15: the gang of a higher priority first": """
        node a cpu=2
        group x min=2
        group y min=2
        pod x copies=2 group=x
        pod y copies=2 group=y priority=5
        cycle
        expect bound: y-0=a y-1=a
    """,
    "22: a gated member": """
        node a cpu=4
        group x min=2
        pod x-1 group=x
        pod x-2 group=x gate=wait
        cycle
        expect tried: nobody
        ungate pod x-2
        cycle
        expect bound: 2 pods
    """,
    "24: a gang preempts, its rooms are kept, then it is whole": """
        node a cpu=2
        node b cpu=2
        pod low copies=4 cpu=1
        cycle
        cycle
        cycle
        cycle
        expect bound: 4 pods
        group x min=3
        pod x copies=3 group=x priority=10
        cycle
        expect evicted: 3 pods
        expect nominated: 3 pods
        expect assumed: nobody
        pod rival priority=5
        cycle
        end pod low-0
        end pod low-1
        end pod low-2
        end pod low-3
        advance 3s
        cycle
        cycle
        expect bound: 4 pods
        expect rest
    """,
    "24: a gang waits for its victims without an attempt": """
        node a cpu=2
        pod low copies=2 cpu=1 on=a
        group x min=2
        pod x copies=2 group=x priority=10
        hold deletes
        cycle
        expect nominated: 2 pods
        advance 20s
        node b cpu=1
        cycle
        expect tried: nobody
        release deletes
        end pod low-0
        end pod low-1
        advance 20s
        cycle
        expect bound: x-0=a x-1=a
        expect rest
    """,
    "a gang that preempted and lost a member holds nothing": """
        node a cpu=2
        pod low copies=2 cpu=1 on=a
        group x min=2
        pod x copies=2 group=x priority=10
        cycle
        expect nominated: 2 pods
        delete pod x-1
        end pod low-0
        end pod low-1
        pod other copies=2 priority=5
        advance 20s
        expect nominated: nobody
        expect nominated in the API: nobody
        cycle
        cycle
        expect bound: other-0=a other-1=a
        expect rest
    """,
    "24: a gang whose victims cannot be evicted is tried again": """
        node a cpu=2
        pod low copies=2 cpu=1 on=a
        group x min=2
        pod x copies=2 group=x priority=10
        hold deletes
        cycle
        advance 20s
        node b cpu=1
        cycle
        expect tried: nobody
        release deletes with 403
        cycle
        expect nominated: 2 pods
    """,
    "24: the victims of a gang are gone before they are evicted": """
        node a cpu=2
        pod low copies=2 cpu=1 on=a
        group x min=2
        pod x copies=2 group=x priority=10
        hold deletes
        cycle
        end pod low-0
        end pod low-1
        advance 20s
        cycle
        expect tried: nobody
        release deletes
        cycle
        expect bound: x-0=a x-1=a
    """,
    "25: one member cannot fit even then": """
        node a cpu=2
        pod low copies=2 cpu=1
        cycle
        cycle
        group x min=3
        pod x copies=3 group=x priority=10
        cycle
        expect evicted: nobody
        expect nominated: nobody
        expect bound: low-0=a low-1=a
    """,
    "26: surplus members go, a gang at its minimum stays whole": """
        node a cpu=4
        group low min=2
        pod low copies=3 group=low
        cycle
        expect bound: 3 pods
        group x min=2
        pod x copies=2 group=x priority=10
        cycle
        expect evicted: 1 pods
    """,
    "26: no new member joins a gang whose members are leaving": """
        node a cpu=3
        group low min=3
        pod low copies=3 group=low
        cycle
        expect bound: 3 pods
        delete pod low-2
        pod low-3 group=low gate=wait
        group high min=2
        pod high copies=2 group=high priority=10 cpu=1
        cycle
        expect evicted: low-0 low-1
        node b cpu=1
        ungate pod low-3
        cycle
        expect tried: nobody
        expect gated: high-0 high-1 low-3
    """,
    "30: a gang that is deleted and made again gathers anew": """
        node a cpu=4
        group x min=2
        pod x copies=2 group=x
        cycle
        expect bound: 2 pods
        delete pod x-0
        delete pod x-1
        pod x-2 group=x
        cycle
        expect tried: nobody
        pod x-3 group=x
        cycle
        expect bound: 4 pods
    """,
    "27: a single pod preempts a gang whole": """
        node a cpu=2
        group low min=2
        pod low copies=2 group=low
        cycle
        pod high priority=10
        cycle
        expect evicted: 2 pods
    """,
    "29: the binding of one member is refused for good": """
        node a cpu=2
        group x min=2
        pod x copies=2 group=x
        refuse binds of x-1 with 422
        cycle
        expect bound: x-0=a
        expect free on a: 1
        refuse binds of x-1 no longer
        advance 20s
        cycle
        expect bound: x-0=a x-1=a
        expect rest
    """,
    "30: a gang that lost a member is completed before others": """
        node a cpu=2
        group x min=2
        pod x copies=2 group=x
        cycle
        expect bound: x-0=a x-1=a
        pod other
        pod x-2 group=x
        end pod x-0
        cycle
        expect bound: x-1=a x-2=a
    """,
    "34: members finish one by one, one of the rest is replaced": """
        node a cpu=3
        group x min=3
        pod x copies=3 group=x
        cycle
        expect bound: 3 pods
        finish pod x-0
        finish pod x-1
        end pod x-2
        pod x-3 group=x
        cycle
        expect assumed: nobody
        expect free on a: 2
    """,
    "no binding starts before Permit lets all of them go": """
        node a cpu=2
        group x min=2
        plugin holds x-1
        pod x copies=2 group=x
        cycle
        expect bind requests: nobody
        expect assumed: x-0 x-1
        plugin allows x-1
        expect bound: x-0=a x-1=a
        expect rest
    """,
    "one member that Permit refuses takes all of them back": """
        node a cpu=2
        group x min=2
        plugin holds x-1
        pod x copies=2 group=x
        cycle
        plugin rejects x-1
        expect bind requests: nobody
        expect assumed: nobody
        expect free on a: 2
        expect in-flight: nobody
    """,
    "9: a member that is needed is deleted during the decision": """
        node a cpu=2
        group x min=2
        pod x copies=2 group=x
        meanwhile delete pod x-1
        cycle
        expect bind requests: nobody
        expect assumed: nobody
        expect free on a: 2
        pod x-2 group=x
        advance 20s
        cycle
        expect bound: x-0=a x-2=a
        expect rest
    """,
    "9: one that is not needed is deleted during the decision": """
        node a cpu=3
        group x min=2
        pod x copies=3 group=x
        meanwhile delete pod x-2
        cycle
        expect bound: x-0=a x-1=a
        expect rest
    """,
    "9: a member that is deleted while Permit holds it takes all of them back": """
        node a cpu=2
        group x min=2
        plugin holds x-1
        pod x copies=2 group=x
        cycle
        delete pod x-1
        expect bind requests: nobody
        expect free on a: 2
        pod x-2 group=x
        advance 20s
        cycle
        expect bound: x-0=a x-2=a
        expect rest
    """,
    "23: a Reserve that fails is undone, and another way is found": """
        node a cpu=2
        group x min=2
        plugin fails next reserve
        pod x copies=2 group=x
        cycle
        expect bound: 2 pods
        expect free on a: 0
        expect rest
    """,
    "29: a binding whose answer is an error of the server keeps its room": """
        node a cpu=2
        group x min=2
        pod x copies=2 group=x
        refuse binds of x-1 with 500
        cycle
        pod rival
        cycle
        expect bound: x-0=a
        expect assumed: x-1
        refuse binds of x-1 no longer
        expect bound: x-0=a x-1=a
        expect bound: 2 pods
    """,
    "31: the node dies while Permit holds a member": """
        node a cpu=2
        group x min=2
        plugin holds x-1
        pod x copies=2 group=x
        cycle
        delete node a
        plugin rejects x-1
        expect assumed: nobody
        node b cpu=2
        advance 20s
        cycle
        expect bound: x-0=b x-1=b
    """,
    "32, 43: another scheduler has bound a part": """
        node a cpu=3
        group x min=3
        pod x copies=3 group=x
        another scheduler binds x-0 to a
        cycle
        cycle
        expect bound: 3 pods
        expect rest
    """,
    "a label is taken off while the group waits": """
        node a cpu=3
        group x min=3
        pod x copies=3 group=x gate=wait
        ungate pod x-0
        cycle
        expect tried: nobody
        label pod x-0 scheduling.x-k8s.io/pod-group=y
        group y min=1
        cycle
        expect bound: x-0=a
    """,
    "36: one rack for all": """
        node a-1 cpu=1 rack=a
        node a-2 cpu=1 rack=a
        node b-1 cpu=2 rack=b
        node b-2 cpu=2 rack=b
        group x min=3 rack=required
        pod x copies=3 group=x
        cycle
        expect free on a-1: 1
        expect free on a-2: 1
        expect bound: 3 pods
    """,
    "36: no rack fits though the sum does": """
        node a-1 cpu=2 rack=a
        node b-1 cpu=2 rack=b
        group x min=3 rack=required
        pod x copies=3 group=x
        cycle
        expect bound: nobody
        expect refused in the API: 3 pods
        node b-2 cpu=1 rack=b
        advance 20s
        cycle
        expect bound: 3 pods
        expect free on a-1: 2
    """,
    "36: bound members fix a full rack": """
        node a-1 cpu=2 rack=a
        node b-1 cpu=1 rack=b
        group x min=2 rack=required
        pod x copies=2 group=x
        cycle
        expect free on a-1: 0
        pod x-2 group=x
        cycle
        expect bound: x-0=a-1 x-1=a-1
        expect message of x-2: The other members of its pod group are in "a".
        end pod x-0
        advance 20s
        cycle
        expect bound: x-1=a-1 x-2=a-1
    """,
    "37: the label of a node changes while the group waits": """
        node a-1 cpu=2
        group x min=2 rack=required
        pod x copies=2 group=x
        cycle
        expect bound: nobody
        node a-1 cpu=2 rack=a
        advance 20s
        cycle
        expect bound: 2 pods
    """,
    "44: a pod joins a running gang": """
        node a cpu=3
        group x min=2
        pod x copies=2 group=x
        cycle
        pod late group=x
        cycle
        expect bound: 3 pods
    """,
    "45: a label that names no group": """
        node a cpu=3
        pod x group=nothing
        cycle
        expect tried: nobody
        expect gated: x
    """,
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SCENARIOS.items()])
def test_scenario(text):
    play(text)
