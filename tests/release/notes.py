"""The release notes: what the changelog says of a version."""

from __future__ import annotations

import re
from typing import Final

from tests.release.source import ReleaseError

_SECTION: Final = re.compile(r"^## \[([^\]]+)\](.*)$", re.MULTILINE)
_RELATIVE: Final = re.compile(r"\]\((?!https?://|#)([^)]+)\)")


def release_notes(changelog: str, version: str, sources: str, facts: str = "") -> str:
    """Return the notes of a version, in Markdown.

    Parameters
    ----------
    changelog
        The text of CHANGELOG.md, as Keep a Changelog lays it out.
    version
        Its section is taken, or the unreleased changes if it has none yet.
    sources
        The address of the source of this version, for links into it.
    facts
        What is said below them.

    Raises
    ------
    ReleaseError
        There is neither section, or nothing is in it.
    """
    marks = list(_SECTION.finditer(changelog))
    ends = [*(mark.start() for mark in marks), len(changelog)][1:]
    sections = {
        mark[1]: changelog[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False)
    }
    text = sections.get(version) or sections.get("Unreleased")
    if not text:
        raise ReleaseError(f"CHANGELOG.md says nothing about {version}, nor of unreleased changes")
    # Links of the changelog start from its folder, which the notes are not in.
    linked = _RELATIVE.sub(lambda link: f"]({sources}/{link[1]})", text)
    return f"# Berth {version}\n\n{linked}\n" + (f"\n{facts}\n" if facts else "")
