"""The objects of a manifest file: one or more documents of YAML, or JSON, by Kubernetes' rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.config import ConfigError
from scheduler.config.config_error import item, shown
from scheduler.config.document import read_document
from scheduler.what_if.question import QuestionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.config.document import Plain

_SEPARATOR: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)


def objects_of_text(text: str, source: str) -> list[tuple[msgspec.Raw, str]]:
    """Return the objects in a text, each with its place for messages: ``pod.yaml: items[2]``.

    Parameters
    ----------
    source
        The name of the file.

    Raises
    ------
    QuestionError
        When the text cannot be read; ``path`` is the place.
    """
    found = [
        (msgspec.Raw(msgspec.json.encode(each)), place) for each, place in _objects(text, source)
    ]
    if not found:
        raise QuestionError(source, "is empty")
    return found


def _objects(text: str, source: str) -> Iterator[tuple[Plain, str]]:
    documents = [text] if text.lstrip().startswith("{") else _SEPARATOR.split(text)
    filled = [
        (number, document) for number, document in enumerate(documents, 1) if _has_content(document)
    ]
    for number, document in filled:
        place = source if len(filled) == 1 else f"{source}: document {number}"
        try:
            data, mistakes = read_document(document)
        except ConfigError as error:
            mistakes, data = list(error.mistakes), None
        if mistakes:
            where = f"{place}: {mistakes[0].path}" if mistakes[0].path else place
            raise QuestionError(where, mistakes[0].why)
        yield from _items(data, place)


def _has_content(document: str) -> bool:
    lines = (line.strip() for line in document.splitlines())
    return any(line and not line.startswith("#") for line in lines)


def _items(data: Plain, place: str) -> Iterator[tuple[Plain, str]]:
    if not isinstance(data, dict):
        raise QuestionError(place, f"must be a mapping, not {shown(data)}")
    items = data.get("items")
    if not isinstance(items, list):
        yield data, place
        return
    for index, each in enumerate(items):
        yield each, f"{place}: {item('items', index)}"
