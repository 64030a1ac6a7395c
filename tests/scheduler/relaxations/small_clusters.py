"""Relaxations of a pod in a cluster of a few objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.config import default_config, effective_profiles
from scheduler.offline.cluster import Cluster
from scheduler.offline.offline_framework import offline_framework
from scheduler.relaxations import find_relaxations
from tests.builders import NodeBuilder, PodBuilder

if TYPE_CHECKING:
    from scheduler.relaxations import Budget, Relaxations


def cluster_with(*objects: NodeBuilder | PodBuilder) -> Cluster:
    """Return an offline cluster."""
    cluster = Cluster()
    for each in objects:
        if isinstance(each, NodeBuilder):
            cluster.add_node(each.build())
        else:
            cluster.add_pod(each.build())
    return cluster


def relaxations(
    asked: PodBuilder,
    *objects: NodeBuilder | PodBuilder,
    budget: Budget | None = None,
    placed_on: str = "",
) -> Relaxations:
    """Return what would help a pod, or what decided about it."""
    cluster = cluster_with(*objects)
    framework = offline_framework(effective_profiles(default_config()), cluster)
    snapshot, storage = cluster.snapshot(), cluster.known.storage
    return find_relaxations(framework, snapshot, storage, asked.info(), budget, placed_on)
