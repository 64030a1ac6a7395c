from __future__ import annotations

from itertools import product
from textwrap import indent

import pytest

from cache import pod_states
from cache.pod_states import Effect, PodState, Stimulus, Transition, transition
from tests.text_tables import aligned

STORED = frozenset({PodState.ASSUMED, PodState.BINDING_FINISHED, PodState.ADDED})
"""Only these take up resources of a node."""

PAIRS = list(product(PodState, Stimulus))
IDS = [f"{stimulus.value} in {state.value}" for state, stimulus in PAIRS]


def render() -> str:
    """The table as text: a line for each state, a column for each stimulus, a legend."""
    rows = [["", *(stimulus.value for stimulus in Stimulus)]]
    for state in PodState:
        cells = (cell(state, transition(state, stimulus)) for stimulus in Stimulus)
        rows.append([state.value, *cells])
    signs = [f"{effect.value} {effect.name.lower().replace('_', ' ')}" for effect in Effect]
    return "\n".join([aligned(rows), "", "  ".join(signs)])


def cell(state: PodState, what: Transition) -> str:
    if what.next is state:
        return what.effect.value
    return f"{what.effect.value} {what.next.value}"


def test_the_drawing_in_the_docstring_is_the_table() -> None:
    drawing = indent(render(), "    ")
    assert pod_states.__doc__ is not None
    assert f"\n\n{drawing}\n\n" in pod_states.__doc__


@pytest.mark.parametrize(("state", "stimulus"), PAIRS, ids=IDS)
def test_every_pair_has_a_result_that_hangs_together(state: PodState, stimulus: Stimulus) -> None:
    following, effect, why = transition(state, stimulus)
    assert why
    # The state says whether the pod takes room, the effect what is done about it.
    expected = {
        (False, False): {Effect.NOTHING, Effect.REJECT},
        (False, True): {Effect.ADD_TO_NODE},
        (True, False): {Effect.REMOVE_FROM_NODE},
        (True, True): {
            Effect.SET_DEADLINE,
            Effect.CONFIRM,
            Effect.REPLACE,
            Effect.NOTHING,
            Effect.REJECT,
        },
    }
    assert effect in expected[state in STORED, following in STORED]
    if effect in (Effect.NOTHING, Effect.REJECT):
        assert following is state


@pytest.mark.parametrize("stimulus", Stimulus)
def test_states_that_are_not_stored_react_alike(stimulus: Stimulus) -> None:
    reactions = set()
    for state in PodState:
        if state not in STORED:
            following, effect, _ = transition(state, stimulus)
            reactions.add((effect, following if following in STORED else None))
    assert len(reactions) == 1


@pytest.mark.parametrize(
    ("history", "state", "last_effect"),
    [
        pytest.param("assume finish_binding add", "Added", "CONFIRM", id="as a rule"),
        pytest.param("assume add finish_binding", "Added", "NOTHING", id="watch before answer"),
        pytest.param("assume update", "Added", "CONFIRM", id="update of an assumed pod"),
        pytest.param("assume add forget", "Added", "REJECT", id="forget after confirmation"),
        pytest.param("assume forget", "Initial", "REMOVE_FROM_NODE", id="binding failed"),
        pytest.param("assume forget assume", "Assumed", "ADD_TO_NODE", id="placed once more"),
        pytest.param("assume assume", "Assumed", "REJECT", id="assumed twice"),
        pytest.param("add assume", "Added", "REJECT", id="assumed after it was bound"),
        pytest.param("assume expire", "Assumed", "REJECT", id="a binding under way"),
        pytest.param(
            "assume finish_binding expire", "Expired", "REMOVE_FROM_NODE", id="never confirmed"
        ),
        pytest.param(
            "assume finish_binding expire add", "Added", "ADD_TO_NODE", id="confirmed too late"
        ),
        pytest.param(
            "assume finish_binding add expire", "Added", "NOTHING", id="confirmed just in time"
        ),
        pytest.param("assume remove", "Deleted", "REMOVE_FROM_NODE", id="deleted while assumed"),
        pytest.param(
            "assume remove finish_binding", "Deleted", "NOTHING", id="answer for a deleted pod"
        ),
        pytest.param("assume remove forget", "Deleted", "NOTHING", id="deleted, then given up"),
        pytest.param("add", "Added", "ADD_TO_NODE", id="bound by somebody else"),
        pytest.param("add add", "Added", "REPLACE", id="seen twice, perhaps on another node"),
        pytest.param("add update remove", "Deleted", "REMOVE_FROM_NODE", id="a pod's life"),
        pytest.param("update", "Initial", "REJECT", id="update of an unknown pod"),
        pytest.param("remove", "Initial", "REJECT", id="removal of an unknown pod"),
        pytest.param("add remove remove", "Deleted", "REJECT", id="removed twice"),
    ],
)
def test_a_history_leads_where_it_should(history: str, state: str, last_effect: str) -> None:
    current = PodState.INITIAL
    effect = Effect.NOTHING
    for stimulus in history.split():
        current, effect, _ = transition(current, Stimulus(stimulus))
    assert (current.value, effect.name) == (state, last_effect)


def test_only_finished_bindings_expire() -> None:
    expiring = [state for state in PodState if transition(state, Stimulus.EXPIRE).next is not state]
    assert expiring == [PodState.BINDING_FINISHED]
