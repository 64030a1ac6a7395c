"""What ``e2e.test`` reports of its tests (ginkgo's JSON), compared with the list that must pass."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

EXPECTED: Final = "expected.txt"
_NS_PER_S: Final = 1e9


class ReportError(Exception):
    """The report cannot be read, or says that the suite did not get as far as its tests."""


class TestResult(NamedTuple):
    """The outcome of one test.

    Attributes
    ----------
    name
        The whole text by which ginkgo finds it.
    state
        Ginkgo's: ``passed``, ``failed``, ``skipped``, ``timedout``, ``panicked``, ...
    duration_s
        With the set-up and the clean-up of its namespace.
    reason
        The first line of why it did not pass; empty when it did.
    """

    __test__ = False  # its name is not a promise to pytest

    name: str
    state: str
    duration_s: float
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Return whether the test ran and passed."""
        return self.state == "passed"


class _Failure(msgspec.Struct, frozen=True, rename="pascal"):
    message: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="pascal"):
    leaf_node_type: str
    leaf_node_text: str
    state: str
    container_hierarchy_texts: tuple[str, ...] | None = None
    run_time: int = 0
    failure: _Failure = _Failure()


class _Suite(msgspec.Struct, frozen=True, rename="pascal"):
    spec_reports: tuple[_Spec, ...] | None = None


def read_report(path: Path) -> tuple[TestResult, ...]:
    """Return the tests that were selected, by name, from a file of ``--ginkgo.json-report``.

    Tests that the focus left out are skipped without a reason; a test that skips itself has one.

    Raises
    ------
    ReportError
        There is no such file, it is no report, or a node before the tests failed.
    """
    try:
        suites = msgspec.json.decode(path.read_bytes(), type=tuple[_Suite, ...])
    except (OSError, msgspec.MsgspecError) as error:
        raise ReportError(f"no report of the tests: {error}") from error
    results = []
    for spec in (spec for suite in suites for spec in suite.spec_reports or ()):
        if spec.leaf_node_type != "It":
            if spec.state not in {"passed", "skipped"}:
                raise ReportError(f"{spec.leaf_node_type} {spec.state}: {spec.failure.message}")
        elif spec.state not in {"skipped", "pending"} or spec.failure.message:
            results.append(_result(spec))
    return tuple(sorted(results))


def _result(spec: _Spec) -> TestResult:
    name = " ".join((*(spec.container_hierarchy_texts or ()), spec.leaf_node_text))
    lines = spec.failure.message.strip().splitlines()
    reason = lines[0] if lines else ""
    return TestResult(name, spec.state, spec.run_time / _NS_PER_S, reason)


def read_expected(path: Path) -> tuple[str, ...]:
    """Return the names in a list, one on a line; a line that begins with ``#`` is a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def write_expected(path: Path, results: Iterable[TestResult], focus: Sequence[str]) -> None:
    """Replace the names that `focus` selects by those that passed; all else in the list stays."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    comments = [line for line in lines if line.startswith("#")]
    others = {name for name in lines if name not in comments and not _selected(name, focus)}
    names = sorted(others | {result.name for result in results if result.passed})
    path.write_text("\n".join([*comments, *filter(None, names)]) + "\n", encoding="utf-8")


def not_passed(
    expected: Sequence[str], results: Sequence[TestResult], focus: Sequence[str]
) -> tuple[str, ...]:
    """Return the expected tests that any of `focus` selects and that did not pass."""
    passed = {result.name for result in results if result.passed}
    return tuple(name for name in expected if _selected(name, focus) and name not in passed)


def _selected(name: str, focus: Sequence[str]) -> bool:
    return any(re.search(text, name) for text in focus)


def table(results: Sequence[TestResult], expected: Sequence[str]) -> Iterator[str]:
    """Yield a line for each test, and the sums: how many passed, and of how many expected."""
    known = frozenset(expected)
    for result in results:
        mark = " " if result.name in known or not result.passed else "+"
        yield f"{result.state:<9}{mark}{result.duration_s:7.1f} s  {result.name}"
        if result.reason:
            yield f"{'':21}{result.reason[:200]}"
    states = [result.state for result in results]
    counts = [f"{states.count(state)} {state}" for state in sorted(set(states))]
    duration_s = sum(result.duration_s for result in results)
    yield f"{len(results)} tests in {duration_s:.0f} s: {', '.join(counts) or 'none'}"
    if any(result.passed and result.name not in known for result in results):
        yield f"(+ passed and is not in {EXPECTED})"
