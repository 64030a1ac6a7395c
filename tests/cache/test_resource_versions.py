from __future__ import annotations

import pytest

from cache.resource_versions import INCOMPARABLE, parse_resource_version


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("1", 1, id="smallest"),
        pytest.param("18446744073709551615", 2**64 - 1, id="largest of etcd"),
        pytest.param("0", INCOMPARABLE, id="zero means any version"),
        pytest.param("", INCOMPARABLE, id="absent"),
        pytest.param("-1", INCOMPARABLE, id="negative"),
        pytest.param(" 1", INCOMPARABLE, id="blank"),
        pytest.param("1_0", INCOMPARABLE, id="underscore"),
        pytest.param("٣", INCOMPARABLE, id="a digit of another script"),
        pytest.param("²", INCOMPARABLE, id="superscript"),
        pytest.param("abc", INCOMPARABLE, id="opaque"),
        pytest.param("9" * 5000, INCOMPARABLE, id="longer than int() takes"),
    ],
)
def test_a_version_is_a_number_or_incomparable(text: str, number: int) -> None:
    assert parse_resource_version(text) == number
