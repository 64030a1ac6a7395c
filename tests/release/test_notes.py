from __future__ import annotations

import pytest

from tests.release.notes import release_notes
from tests.release.source import ROOT, VERSION, ReleaseError

CHANGELOG = """\
# Changelog

## [Unreleased]

### Added

- New ([how](docs/new.md#how)).

## [0.2.0] - 2026-01-01

- Old ([where](https://example.com)).

## [0.1.0] - 2025-01-01
"""


def notes(version: str, facts: str = "") -> str:
    return release_notes(CHANGELOG, version, "https://berth.example/v1", facts)


def test_the_section_of_a_version_is_taken() -> None:
    assert notes("0.2.0") == "# Berth 0.2.0\n\n- Old ([where](https://example.com)).\n"


def test_a_version_without_a_section_gets_the_unreleased_changes() -> None:
    assert "- New (" in notes("0.3.0")


def test_links_lead_into_the_source_of_the_version() -> None:
    assert "[how](https://berth.example/v1/docs/new.md#how)" in notes("0.3.0")


def test_facts_stand_below() -> None:
    assert notes("0.2.0", "There is no image for arm64.").endswith(
        "\n\nThere is no image for arm64.\n"
    )


def test_nothing_to_say_is_an_error() -> None:
    with pytest.raises(ReleaseError, match=r"CHANGELOG.md says nothing about 1.0.0"):
        release_notes("# Changelog\n", "1.0.0", "https://berth.example")


def test_the_changelog_has_notes_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "\n### " in release_notes(text, VERSION, "https://berth.example")
