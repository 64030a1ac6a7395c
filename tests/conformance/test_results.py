from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.results import (
    ReportError,
    TestResult,
    not_passed,
    read_expected,
    read_report,
    table,
    write_expected,
)

if TYPE_CHECKING:
    from pathlib import Path


def spec(
    text: str, state: str, message: str = "", *, kind: str = "It", seconds: float = 1
) -> dict[str, Any]:
    return {
        "ContainerHierarchyTexts": ["[sig-scheduling] Suite", "context"],
        "LeafNodeType": kind,
        "LeafNodeText": text,
        "State": state,
        "RunTime": int(seconds * 1e9),
        "Failure": {"Message": message, "Location": {"LineNumber": 1}},
    }


def report(folder: Path, *specs: dict[str, Any]) -> Path:
    path = folder / "report.json"
    path.write_text(json.dumps([{"SuiteDescription": "e2e", "SpecReports": list(specs)}]))
    return path


@pytest.mark.parametrize(
    ("entry", "results"),
    [
        pytest.param(
            spec("fits", "passed", seconds=2.5),
            (TestResult("[sig-scheduling] Suite context fits", "passed", 2.5),),
            id="passed",
        ),
        pytest.param(
            spec("fits", "failed", "\npod is pending\nstack"),
            (TestResult("[sig-scheduling] Suite context fits", "failed", 1, "pod is pending"),),
            id="failed-with-its-first-line",
        ),
        pytest.param(spec("fits", "skipped"), (), id="left-out-by-the-focus"),
        pytest.param(
            spec("fits", "skipped", "needs 5 nodes"),
            (TestResult("[sig-scheduling] Suite context fits", "skipped", 1, "needs 5 nodes"),),
            id="skipped-itself",
        ),
        pytest.param(spec("fits", "pending"), (), id="pending"),
        pytest.param(spec("", "passed", kind="SynchronizedBeforeSuite"), (), id="no-test"),
    ],
)
def test_the_report_gives_the_selected_tests(
    tmp_path: Path, entry: dict[str, Any], results: tuple[TestResult, ...]
) -> None:
    assert read_report(report(tmp_path, entry)) == results


def test_a_test_outside_a_container_has_its_own_text_as_name(tmp_path: Path) -> None:
    entry = spec("alone", "passed") | {"ContainerHierarchyTexts": None}
    assert [result.name for result in read_report(report(tmp_path, entry))] == ["alone"]


def test_a_failed_set_up_of_the_suite_is_an_error(tmp_path: Path) -> None:
    entry = spec("", "failed", "no nodes", kind="SynchronizedBeforeSuite")
    with pytest.raises(ReportError, match="SynchronizedBeforeSuite failed: no nodes"):
        read_report(report(tmp_path, entry))


@pytest.mark.parametrize("content", [None, "", "{}", '[{"SpecReports": [{}]}]'])
def test_what_is_no_report_is_an_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ReportError, match="no report of the tests"):
        read_report(path)


def test_a_suite_without_tests_has_no_results(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text('[{"SpecReports": null}]')
    assert read_report(path) == ()


@pytest.mark.parametrize(
    ("state", "focus", "missing"),
    [
        pytest.param("passed", "a", (), id="passed"),
        pytest.param("failed", "a", ("a",), id="failed"),
        pytest.param("skipped", "a", ("a",), id="skipped-itself"),
        pytest.param("timedout", "a", ("a",), id="timed-out"),
        pytest.param("failed", r"^b\]", (), id="not-selected"),
    ],
)
def test_an_expected_test_that_was_selected_must_pass(
    state: str, focus: str, missing: tuple[str, ...]
) -> None:
    assert not_passed(["a"], [TestResult("a", state, 1)], [focus]) == missing


def test_an_expected_test_that_never_ran_did_not_pass() -> None:
    assert not_passed(["a", "b"], [TestResult("a", "passed", 1)], ["b", "a"]) == ("b",)


@pytest.mark.parametrize(
    ("focus", "names"),
    [
        pytest.param(["."], ("b",), id="all-replaced"),
        pytest.param(["^[bc]$"], ("b", "old"), id="others-stay"),
    ],
)
def test_what_is_written_is_read_again(
    tmp_path: Path, focus: list[str], names: tuple[str, ...]
) -> None:
    path = tmp_path / "expected.txt"
    path.write_text("# comment\nold\n")
    write_expected(path, [TestResult("b", "passed", 1), TestResult("c", "failed", 1)], focus)
    assert read_expected(path) == names


def test_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "expected.txt"
    path.write_text("# comment\nold\n")
    write_expected(path, [], ["."])
    assert path.read_text() == "# comment\n"


def test_the_table_names_each_test_and_sums_up() -> None:
    results = [
        TestResult("a", "passed", 61),
        TestResult("b", "failed", 2, "pod is pending"),
        TestResult("c", "passed", 3),
    ]
    assert list(table(results, ["a", "b"])) == [
        "passed       61.0 s  a",
        "failed        2.0 s  b",
        "                     pod is pending",
        "passed   +    3.0 s  c",
        "3 tests in 66 s: 1 failed, 2 passed",
        "(+ passed and is not in expected.txt)",
    ]
