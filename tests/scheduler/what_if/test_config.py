from __future__ import annotations

import pytest

from scheduler.what_if import QuestionError
from tests.scheduler.what_if.clusters import (
    HEAD,
    PACKING,
    ask,
    cluster_of,
    machine,
    manifest,
    moves,
    running,
)

TWO = (machine("n1"), machine("n2"))


def test_the_pods_that_the_new_configuration_would_have_elsewhere_move():
    cluster = cluster_of(*TWO, running("a", "n1", "2"), running("b", "n2", "1"))
    found = ask(cluster, config=PACKING)
    assert moves(found) == {"default/a": ("n1", "n2")}
    (part,) = found.parts
    assert (part.kind, part.placed, part.stayed) == ("config", 1, 1)


def test_a_pod_whose_node_is_as_good_as_any_stays():
    cluster = cluster_of(*TWO, running("a", "n1", "2"), running("b", "n2", "2"))
    default = f"{HEAD}profiles: [{{schedulerName: berth}}]"
    found = ask(cluster, config=default)
    assert (found.parts[0].placed, found.parts[0].stayed) == (0, 2)


def test_running_pods_do_not_count_as_placed():
    cluster = cluster_of(*TWO, running("a", "n1", "2"), running("b", "n2", "1"))
    found = ask(cluster, config=PACKING)
    assert (found.placed, found.nodes) == (0, {})


def test_pods_of_daemon_sets_and_of_other_schedulers_do_not_move():
    cluster = cluster_of(*TWO, running("a", "n1", kind="DaemonSet"), running("b", "n2"))
    text = PACKING.replace("schedulerName: berth", "schedulerName: other")
    assert ask(cluster, config=text).parts[0].stayed == 0


def test_a_pod_that_the_new_configuration_has_no_node_for_is_told_of():
    cluster = cluster_of(machine("n1").taint("gpu"), running("a", "n1"))
    found = ask(cluster, config=f"{HEAD}profiles: [{{schedulerName: berth}}]")
    assert found.parts[0].refused == 1
    assert "untolerated taint" in found.reason


def test_all_else_is_decided_by_the_new_configuration():
    cluster = cluster_of(*TWO, running("a", "n1"))
    found = ask(cluster, config=PACKING, objects=[manifest()], replicas=3)
    assert found.nodes == {"n1": 3}


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        pytest.param("a: [", "config", "is not YAML", id="no YAML"),
        pytest.param(
            f"{HEAD}profiles: [{{schedulerNam: x}}]",
            "config.profiles[0].schedulerNam",
            "did you mean schedulerName",
            id="a misspelled field",
        ),
    ],
)
def test_a_mistake_in_the_configuration_is_reported_with_its_path(text, path, why):
    with pytest.raises(QuestionError, match=why) as caught:
        ask(cluster_of(*TWO), config=text)
    assert caught.value.path == path


def test_what_the_time_does_not_suffice_for_is_undecided():
    found = ask(cluster_of(*TWO, running("a", "n1")), cpu_s=0.0, config=PACKING)
    assert found.parts[0].undecided == 1
