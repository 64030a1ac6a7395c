from __future__ import annotations

import msgspec
import pytest

from scheduler.informers import listing
from scheduler.informers.listing import PageReader, read_objects, read_page
from scheduler.informers.object_reader import ObjectReader
from scheduler.kinds import PODS

PODS_READER = PageReader(PODS.struct)


def item(name, **fields):
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, **fields}


def body(*items, **metadata):
    return msgspec.json.encode(
        {"kind": "PodList", "metadata": {"resourceVersion": "7", **metadata}, "items": items}
    )


def told(page):
    """Return what a listing is told of the objects of a page."""
    return list(read_objects(page.objects, ObjectReader(PODS)))


def test_objects_of_an_ordinary_page_come_decoded():
    page = PODS_READER.read(body(item("a"), item("b"), **{"continue": "next"}))
    assert [each.metadata.name for each in page.objects] == ["a", "b"]
    assert (page.token, page.resource_version) == ("next", "7")


@pytest.mark.parametrize(
    ("pages", "at_once"),
    [
        pytest.param([item("a"), item("b")], True, id="ordinary objects"),
        pytest.param([], True, id="nothing"),
        pytest.param([item("a", spec={"nodeName": 5}), item("b")], False, id="a bad object"),
        pytest.param([item("a", spec={"nodeName": None}), item("b")], False, id="a null"),
        pytest.param([{"metadata": {"name": "a"}}, item("b")], True, id="an object without a UID"),
    ],
)
def test_both_ways_read_the_same(pages, at_once):
    raw, page = read_page(body(*pages)), PODS_READER.read(body(*pages))
    assert at_once == (not any(isinstance(each, msgspec.Raw) for each in page.objects))
    assert told(page) == told(raw)


def test_a_large_page_is_not_decoded_at_once(monkeypatch):
    one = body(item("a"))
    monkeypatch.setattr(listing, "_AT_ONCE_BYTES", len(one) - 1)
    (found,) = PODS_READER.read(one).objects
    assert isinstance(found, msgspec.Raw)


@pytest.mark.parametrize("answer", [b"{", b"[]", b'{"metadata": {}, "items": {}}', b"\xff"])
def test_what_is_no_list_is_refused(answer):
    with pytest.raises((msgspec.MsgspecError, ValueError)):
        PODS_READER.read(answer)
