from __future__ import annotations

import pytest

from scheduler.decision.profile_origin import DEFAULT_ORIGIN, PolicyOrigin


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        pytest.param(DEFAULT_ORIGIN, "default@1", id="default"),
        pytest.param(PolicyOrigin("file", 4), "file@4", id="file"),
        pytest.param(
            PolicyOrigin.of_resource("gpu", 7, "u"), "schedulingprofile/gpu@7", id="resource"
        ),
    ],
)
def test_it_is_told_in_one_word(origin, text):
    assert str(origin) == text


def test_the_name_of_a_resource_is_known():
    assert PolicyOrigin.of_resource("gpu", 7, "u").resource_name == "gpu"


def test_a_file_is_no_resource():
    assert PolicyOrigin("file", 1).resource_name == ""


def test_another_object_of_the_same_name_is_another_origin():
    assert PolicyOrigin.of_resource("gpu", 1, "a") != PolicyOrigin.of_resource("gpu", 1, "b")
