"""What the command line says of users' plugins."""

from __future__ import annotations

import argparse

from structlog.testing import capture_logs

from scheduler.user_plugins.containment import (
    ContainmentOptions,
    add_containment_flags,
    containment_options,
)


def read(*arguments: str) -> ContainmentOptions:
    parser = argparse.ArgumentParser()
    add_containment_flags(parser)
    return containment_options(parser.parse_args(arguments))


def test_without_flags_it_is_the_default():
    with capture_logs() as lines:
        assert read() == ContainmentOptions()
    assert lines == []


def test_a_flag_of_the_last_version_is_accepted_with_a_warning():
    with capture_logs() as lines:
        assert read("--plugin-memory", "128") == ContainmentOptions()
    assert [(line["log_level"], line["flag"]) for line in lines] == [("warning", "--plugin-memory")]
