"""Semantic versions as values of expressions.

*Source*: github.com/blang/semver/v4 semver.go (4.0.0); k8s.io/apiserver
pkg/cel/library/semverlib.go (0.36).
"""

from __future__ import annotations

import re

from plugins.cel.errors import CelError
from plugins.cel.go_text import go_quoted
from plugins.cel.values import UINT_MAX, Opaque, Value

_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]+")
_NUMERIC = re.compile(r"[0-9]+")


class Semver(Opaque):
    """A version; the metadata of its build does not count in comparisons."""

    __slots__ = ("major", "minor", "patch", "prerelease", "text")
    type_name = "kubernetes.Semver"
    go_native = "semver.Version"
    hashable = False

    def __init__(
        self, numbers: tuple[int, int, int], prerelease: tuple[int | str, ...], text: str
    ) -> None:
        self.major, self.minor, self.patch = numbers
        self.prerelease = prerelease
        self.text = text

    def compare(self, other: Semver) -> int:
        """Return -1, 0 or 1 by the rules of semver.org, section 11."""
        mine = (self.major, self.minor, self.patch)
        theirs = (other.major, other.minor, other.patch)
        if mine != theirs:
            return 1 if mine > theirs else -1
        if not self.prerelease or not other.prerelease:
            return bool(other.prerelease) - bool(self.prerelease)
        for one, another in zip(self.prerelease, other.prerelease, strict=False):
            if one == another:
                continue
            if isinstance(one, int):
                return 1 if isinstance(another, int) and one > another else -1
            return -1 if isinstance(another, str) and one < another else 1
        mine_count, their_count = len(self.prerelease), len(other.prerelease)
        return (mine_count > their_count) - (mine_count < their_count)

    def same(self, other: Opaque) -> bool:
        """Report whether neither comes before the other."""
        return isinstance(other, Semver) and self.compare(other) == 0

    def __str__(self) -> str:
        return self.text


def parsed(text: str) -> Semver:
    """Return the version that the text stands for.

    Raises
    ------
    CelError
        With the library's text.
    """
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major = _number(parts[0], "major", "Major")
    minor = _number(parts[1], "minor", "Minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, prerelease = rest.partition("-")
    patch = _number(patch_text, "patch", "Patch")
    identifiers = tuple(_identifier(each) for each in prerelease.split(".")) if dash else ()
    if plus:
        for each in build.split("."):
            if not each:
                raise CelError("Build meta data is empty")
            if _ALPHANUMERIC.fullmatch(each) is None:
                raise CelError(f"Invalid character(s) found in build meta data {go_quoted(each)}")
    return Semver((major, minor, patch), identifiers, text)


def _number(text: str, lower: str, upper: str) -> int:
    if text and _NUMERIC.fullmatch(text) is None:
        raise CelError(f"Invalid character(s) found in {lower} number {go_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{upper} number must not contain leading zeroes {go_quoted(text)}")
    return _uint64(text)


def _uint64(text: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _identifier(text: str) -> int | str:
    if not text:
        raise CelError("Prerelease is empty")
    if _NUMERIC.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            quoted = go_quoted(text)
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {quoted}")
        return _uint64(text)
    if _ALPHANUMERIC.fullmatch(text) is None:
        raise CelError(f"Invalid character(s) found in prerelease {go_quoted(text)}")
    return text


def normalized(text: str) -> Semver:
    """Return the version of a text that may have a leading v, fewer numbers and leading zeroes.

    Raises
    ------
    CelError
        It is no version even so.
    """
    parts = [_without_zeroes(each) for each in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parsed(".".join(parts))


def _without_zeroes(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped and stripped[0] in "0123456789" else "0" + stripped


def _of(text: str, normalize: bool = False) -> Semver:
    return normalized(text) if normalize else parsed(text)


def _is(text: str, normalize: bool = False) -> bool:
    try:
        _of(text, normalize)
    except CelError:
        return False
    return True


def _signed(number: int) -> int:
    """Return the number as Go converts an unsigned one to a signed one: it wraps around."""
    return number - 2**64 if number >= 2**63 else number


IMPLEMENTATIONS: dict[str, Value] = {
    "string_to_semver": _of,
    "string_bool_to_semver": _of,
    "is_semver_string": _is,
    "is_semver_string_bool": _is,
    "semver_is_greater_than": lambda first, second: first.compare(second) > 0,
    "semver_is_less_than": lambda first, second: first.compare(second) < 0,
    "semver_compare_to": lambda first, second: first.compare(second),
    "semver_major": lambda version: _signed(version.major),
    "semver_minor": lambda version: _signed(version.minor),
    "semver_patch": lambda version: _signed(version.patch),
}
