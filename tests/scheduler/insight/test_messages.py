from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from msgspec.structs import replace

from plugins.registry import PLUGINS
from scheduler.config import default_config, parse_config, running_profiles
from scheduler.insight.messages import (
    Assumed,
    Frames,
    Objects,
    Profiles,
    WireProfile,
    changed_objects,
    frame,
    objects_frame,
)
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.plugin_source import SOURCE_ATTRIBUTE, PluginSource
from scheduler.user_plugins.profile_of_directory import with_plugins
from tests.builders import node, pod
from tests.scheduler.user_plugins.sources import good
from tests.strategies import nodes, pods

if TYPE_CHECKING:
    from plugins.framework.interfaces import Plugin

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

WITH_EXTENDER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: berth}]
extenders:
- urlPrefix: http://secret:80
  filterVerb: filter
  managedResources: [{name: example.com/fpga}]
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
    found = tuple(WireProfile.of(each).effective(PLUGINS, no_code) for each in profiles)
    assert found == profiles


def no_code(source: PluginSource) -> dict[str, type[Plugin]]:
    raise AssertionError(f"{source} was not sent")


def test_code_from_the_cluster_arrives_with_the_profiles_that_use_it():
    """Plugins of one name may have other code in another profile."""
    profiles = {}
    for digest in (1, 2):
        source = PluginSource.of_text("config-map", "ns/name/p.py", good("Own", default=digest))
        classes = PluginCatalogue().load([source])
        config = with_plugins(default_config("berth"), classes)
        profiles[digest] = running_profiles(config, {**PLUGINS, **classes})[0]
    worker = PluginCatalogue()
    for profile in profiles.values():
        (sent,) = Frames().feed(frame(Profiles((WireProfile.of(profile),))))
        assert isinstance(sent, Profiles)
        found = sent.profiles[0].effective(PLUGINS, lambda source: worker.load([source]))
        assert found.points == profile.points
        code = [getattr(each.classes["Own"], SOURCE_ATTRIBUTE) for each in (found, profile)]
        assert code[0] == code[1]


def test_extenders_arrive_without_addresses():
    config = parse_config(WITH_EXTENDER, "file")
    (profile,) = running_profiles(config)
    wire = WireProfile.of(replace(profile, extenders=config.extenders))
    assert wire.extenders == (("example.com/fpga",),)
    assert b"secret" not in frame(Profiles((wire,)))


def test_a_profile_with_a_plugin_that_is_not_loaded_says_which():
    (profile,) = running_profiles(default_config("berth"))
    fewer = {name: plugin for name, plugin in PLUGINS.items() if name != "NodeResourcesFit"}
    with pytest.raises(LookupError, match="NodeResourcesFit"):
        WireProfile.of(profile).effective(fewer, no_code)


def test_objects_of_one_message_stay_in_their_order():
    sent = [node(f"n{number}").build() for number in range(5)]
    assert received("nodes", sent) == sent
    assert received("pods", [pod("p").build()])[0].metadata.name == "p"
