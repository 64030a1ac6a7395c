from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scheduler.config import (
    ConfigError,
    effective_profiles,
    load_config,
    parse_config,
    render_effective,
    with_election,
)
from scheduler.config.document import MAX_BYTES
from tests.scheduler.config.documents import API_VERSION, KIND, config_of, text_of

FILES = Path(__file__).parent / "files"
VALID = sorted((FILES / "valid").iterdir())

BROKEN = {
    "added-affinity-operator.yaml": [
        "profiles[0].pluginConfig[0].args.addedAffinity"
        ".requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
        ".matchExpressions[0].operator"
    ],
    "bad-duration.yaml": ["extenders[0].httpTimeout"],
    "default-constraints-without-list.yaml": ["profiles[0].pluginConfig[0].args.defaultingType"],
    "duplicate-key.yaml": ["profiles[0].schedulerName"],
    "extender-without-weight.yaml": ["extenders[1].weight", "extenders[1].bindVerb"],
    "lease-too-short.yaml": ["leaderElection.leaseDuration"],
    "negative-weight.yaml": ["profiles[0].plugins.score.enabled[0].weight"],
    "no-binder.yaml": ["profiles[0].plugins.bind"],
    "not-yaml.yaml": [""],
    "plugin-at-wrong-point.yaml": ["profiles[0].plugins.filter.enabled[0].name"],
    "removed-plugin.yaml": ["profiles[0].plugins.filter.enabled[0].name"],
    "scoring-strategy-type.yaml": ["profiles[0].pluginConfig[2].args.scoringStrategy.type"],
    "shape-not-rising.yaml": [
        "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[2]"
        ".utilization"
    ],
    "two-documents.yaml": [""],
    "two-profiles-one-name.yaml": ["profiles[2].schedulerName"],
    "unknown-field.yaml": ["profiles[0].plugins.score.enable"],
    "unknown-plugin.yaml": ["profiles[0].plugins.multiPoint.enabled[1].name"],
    "v1beta3.yaml": ["apiVersion"],
    "wrong-args-kind.yaml": ["profiles[0].pluginConfig[0].args.kind"],
    "wrong-type.yaml": [
        "leaderElection.leaderElect",
        "profiles[0].schedulerName",
        "profiles[0].plugins.score.disabled",
    ],
}


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in VALID])
def test_a_file_in_use_loads_and_what_it_comes_to_loads_again(path: Path) -> None:
    config = load_config(path)
    profiles = effective_profiles(config)
    again = effective_profiles(parse_config(render_effective(config), "rendered"))
    assert [(p.scheduler_name, p.points, p.score_weights) for p in again] == [
        (p.scheduler_name, p.points, p.score_weights) for p in profiles
    ]


@pytest.mark.parametrize(
    ("name", "paths"), [pytest.param(name, paths, id=name) for name, paths in BROKEN.items()]
)
def test_a_broken_file_is_refused_with_the_paths_of_its_mistakes(
    name: str, paths: list[str]
) -> None:
    path = FILES / "broken" / name
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert [mistake.path for mistake in caught.value.mistakes] == paths
    assert str(caught.value).startswith(f"{path}: ")


def test_every_broken_file_has_its_row() -> None:
    assert {path.name for path in (FILES / "broken").iterdir()} == set(BROKEN)


def load(name: str) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
    """Return order and weights of the last profile of a file."""
    *_, profile = effective_profiles(load_config(FILES / "valid" / name))
    return dict(profile.points), dict(profile.score_weights)


def test_a_profile_without_scoring_scores_nothing() -> None:
    points, weights = load("multi-profile.yaml")
    assert points["preScore"] == points["score"] == ()
    assert weights == {}
    assert "NodeResourcesFit" in points["filter"]


def test_disabled_scores_do_not_run_and_others_are_weighed_anew() -> None:
    points, weights = load("single-profile.yaml")
    assert "NodeResourcesBalancedAllocation" not in points["score"]
    assert points["score"][:2] == ("ImageLocality", "TaintToleration")
    assert weights["ImageLocality"] == 2
    assert weights["TaintToleration"] == 1
    assert weights["NodeAffinity"] == 2


def test_a_plugin_disabled_everywhere_may_run_at_one_point() -> None:
    points, weights = load("weights-per-point.yaml")
    assert "TaintToleration" in points["filter"]
    assert "TaintToleration" not in points["score"]
    assert points["score"][:2] == ("NodeResourcesBalancedAllocation", "ImageLocality")
    assert weights["NodeResourcesFit"] == 4
    assert weights["NodeAffinity"] == 1
    assert weights["NodeResourcesBalancedAllocation"] == 7
    assert weights["ImageLocality"] == 1


def test_anchors_and_merges_count() -> None:
    points, weights = load("anchors.yaml")
    assert weights["ImageLocality"] == 9
    assert "NodeAffinity" not in points["preScore"]


def test_the_order_is_kept_through_all_profiles() -> None:
    config = load_config(FILES / "valid" / "multi-profile.yaml")
    assert [p.scheduler_name for p in effective_profiles(config)] == [
        "spread",
        "pack",
        "no-scoring",
    ]
    assert [p.percentage_of_nodes_to_score for p in effective_profiles(config)] == [50, 100, 50]


# --- files as such ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"\xff\xfe\x00", "is not UTF-8 at byte 0", id="not-utf-8"),
        pytest.param(b"#" * (MAX_BYTES + 1), f"is larger than {MAX_BYTES} bytes", id="too-large"),
        pytest.param(b"- a\n", "must be a mapping, not a list", id="list"),
        pytest.param(b"just text\n", "must be a mapping, not 'just text'", id="text"),
        pytest.param(
            b"{}", f"2 mistakes:\n  apiVersion: is required; it must be {API_VERSION}", id="nothing"
        ),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}: cannot be read: No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path)


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text_of(), encoding="utf-8-sig")
    assert load_config(path).source == str(path)


def test_repeated_keys_are_found_together_with_other_mistakes() -> None:
    text = f"apiVersion: {API_VERSION}\nkind: {KIND}\nparallelism: 1\nparallelism: 2\ncolour: 1\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "f")
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "parallelism: stands there twice",
        "colour: unknown field",
    ]


@pytest.mark.parametrize(
    ("fields", "elects"),
    [
        pytest.param({}, False, id="off"),
        pytest.param({"leaderElection": {"leaderElect": False}}, True, id="on"),
    ],
)
def test_an_election_can_be_switched(fields: dict[str, Any], elects: bool) -> None:
    election = config_of(**fields).leader_election
    switched = with_election(config_of(**fields), elects).leader_election
    assert switched == replace(election, leader_elect=elects)
    assert switched != election


def test_an_election_switched_on_keeps_away_from_kube_schedulers_lease() -> None:
    foreign = {"leaderElect": False, "resourceName": "kube-scheduler"}
    config = with_election(config_of(leaderElection=foreign), True)
    assert config.leader_election.resource_name == "berth"
    assert config.replaced


def test_an_election_switched_on_is_checked() -> None:
    config = config_of(leaderElection={"leaderElect": False, "leaseDuration": "1s"})
    with pytest.raises(ConfigError, match=r"leaderElection\.leaseDuration"):
        with_election(config, True)
