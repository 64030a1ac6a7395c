from __future__ import annotations

import pytest
from hypothesis import given

from plugins.registry import PLUGINS
from scheduler.config import default_config, parse_config, running_profiles
from scheduler.insight.messages import (
    Assumed,
    Frames,
    Objects,
    WireProfile,
    changed_objects,
    frame,
    objects_frame,
)
from tests.builders import node, pod
from tests.strategies import nodes, pods

WITH_ARGS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: berth
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}]
        requestedToCapacityRatio:
          shape: [{utilization: 0, score: 0}, {utilization: 100, score: 9}]
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
  plugins:
    score:
      disabled: [{name: ImageLocality}]
"""


def received(kind: str, objects: list) -> list:
    (message,) = Frames().feed(objects_frame(kind, objects, ()))
    assert isinstance(message, Objects)
    return changed_objects(message)


@given(pods())
def test_a_pod_arrives_as_it_was_sent(sent):
    assert received("pods", [sent]) == [sent]


@given(nodes())
def test_a_node_arrives_as_it_was_sent(sent):
    assert received("nodes", [sent]) == [sent]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 1_000], ids=lambda size: f"{size} bytes at once")
def test_frames_arrive_in_parts_of_any_size(size):
    sent = [Assumed({"uid": f"n{number}"}) for number in range(3)]
    data = b"".join(map(frame, sent))
    frames = Frames()
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    assert [message for part in parts for message in frames.feed(part)] == sent


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(default_config("berth"), id="the default"),
        pytest.param(parse_config(WITH_ARGS, "file"), id="with arguments"),
    ],
)
def test_profiles_arrive_as_they_were_sent(config):
    profiles = running_profiles(config)
    assert tuple(WireProfile.of(each).effective(PLUGINS) for each in profiles) == profiles


def test_a_profile_with_a_plugin_that_is_not_loaded_says_which():
    (profile,) = running_profiles(default_config("berth"))
    fewer = {name: plugin for name, plugin in PLUGINS.items() if name != "NodeResourcesFit"}
    with pytest.raises(LookupError, match="NodeResourcesFit"):
        WireProfile.of(profile).effective(fewer)


def test_objects_of_one_message_stay_in_their_order():
    sent = [node(f"n{number}").build() for number in range(5)]
    assert received("nodes", sent) == sent
    assert received("pods", [pod("p").build()])[0].metadata.name == "p"
