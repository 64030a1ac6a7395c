"""The flags, and what they cost whoever does not set them."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from scheduler.profiles.operator import OperatorOptions, add_operator_flags, operator_options


def parsed(*arguments: str) -> OperatorOptions:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_operator_flags(parser)
    return operator_options(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], OperatorOptions(), id="off"),
        pytest.param(["--scheduling-profiles"], OperatorOptions(enabled=True), id="on"),
        pytest.param(
            ["--scheduling-profiles-selector=a=b,example.com/c="],
            OperatorOptions(selector={"a": "b", "example.com/c": ""}),
            id="selected",
        ),
        pytest.param(
            ["--scheduling-profiles-names=a,b", "--scheduling-profiles-extenders=https://c/d"],
            OperatorOptions(scheduler_names=frozenset({"a", "b"}), extender_urls=("https://c/d",)),
            id="limited",
        ),
        pytest.param(
            ["--allow-python-profiles", "--python-profiles-namespace=here"],
            OperatorOptions(allow_python=True, namespace="here"),
            id="with-python",
        ),
    ],
)
def test_what_flags_mean(arguments: list[str], expected: OperatorOptions) -> None:
    assert parsed(*arguments) == expected


@pytest.mark.parametrize("text", ["a", "=b", "a=b;c", "a=b c"])
def test_what_is_no_label_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentError, match="is not LABEL=VALUE"):
        parsed(f"--scheduling-profiles-selector={text}")


@pytest.mark.parametrize(
    "url",
    [
        "extender:80",
        "ftp://a",
        "http://",
        "http://me@a",
        "http://a/../b",
        "http://a?b",
        "http://a:b",
    ],
)
def test_what_is_no_place_for_extenders_is_refused(url: str) -> None:
    with pytest.raises(argparse.ArgumentError, match="is not an http:// or https:// URL"):
        parsed(f"--scheduling-profiles-extenders={url}")


def test_kopf_is_not_imported_before_it_is_needed() -> None:
    said = "import scheduler.run_command, sys; print('kopf' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", said], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "False\n"
