"""Configurations for tests: a document as data, with what every document needs."""

from __future__ import annotations

import json
from typing import Any

from scheduler.config import ConfigError, SchedulerConfig, parse_config

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


def config_of(**fields: Any) -> SchedulerConfig:
    """Read a configuration with these fields."""
    return parse_config(text_of(**fields), "test.yaml")


def config_of_profile(**fields: Any) -> SchedulerConfig:
    """Read a configuration of one profile with these fields."""
    return config_of(profiles=[{"schedulerName": "berth", **fields}])


def text_of(**fields: Any) -> str:
    """Write a configuration with these fields."""
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, **fields})


def mistakes_of(**fields: Any) -> list[str]:
    """Return what is wrong with a configuration with these fields, one line a mistake."""
    try:
        config_of(**fields)
    except ConfigError as error:
        return [str(mistake) for mistake in error.mistakes]
    return []


def mistakes_of_profile(**fields: Any) -> list[str]:
    """Return what is wrong with a configuration of one profile with these fields."""
    return mistakes_of(profiles=[{"schedulerName": "berth", **fields}])


def plugin_set(
    enabled: list[str | tuple[str, int]] | None = None, disabled: list[str] | None = None
) -> dict[str, Any]:
    """Write a plugin set: names, or names with weights, and names."""
    entries = [
        {"name": each} if isinstance(each, str) else {"name": each[0], "weight": each[1]}
        for each in enabled or []
    ]
    return {"enabled": entries, "disabled": [{"name": name} for name in disabled or []]}
