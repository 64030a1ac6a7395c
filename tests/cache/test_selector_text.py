from __future__ import annotations

import pytest

from cache.label_selectors import EVERYTHING
from cache.selector_text import parse_selector

LABELS = {"pool": "a", "zone": "x", "example.com/size": "7"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("pool=a", True),
        ("pool==a", True),
        ("pool!=a", False),
        ("pool = b", False),
        ("pool in (a,b),zone in (x)", True),
        ("pool in (b, c)", False),
        ("pool notin (b, c), zone", True),
        ("!pool", False),
        ("!spot,pool", True),
        ("example.com/size>6", True),
        ("example.com/size<7", False),
        ("pool=", False),
        ("spot in (,yes)", False),
    ],
)
def test_what_is_selected(text, matches):
    assert parse_selector(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    "text", ["pool in (b,a),!spot,zone!=x", "a=b", "size>3,size<9", "x notin (a,b)", ""]
)
def test_what_is_written_is_read_again(text):
    selector = parse_selector(text)
    assert parse_selector(str(selector)) == selector


def test_nothing_written_is_everything():
    assert parse_selector(" ") == EVERYTHING


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pool=a,", "''"),
        ("pool in a", "'pool in a'"),
        ("pool=a b", "'pool=a b'"),
        ("a/b/c=d", "'a/b/c'"),
        ("size>many", "'many'"),
        ("=a", "'=a'"),
    ],
)
def test_what_is_no_selector_is_named(text, named):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is checked
        parse_selector(text)
    assert named in str(error.value)
