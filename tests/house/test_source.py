from __future__ import annotations

import pytest

from tests.house.source import Module

TEXT = '''"""A module.

Two paragraphs.
"""

# A comment.
import os  # and one behind code

LIMIT = 3
"""What stands below an attribute."""

TABLE = """
not a docstring

"""


class Queue:
    """A queue."""

    def __init__(self, size: int, *names: str, key: object = None, **more: object) -> None:
        self.size = size

    @property
    def first(self) -> int:
        """Return the first.

        It is one.
        """
        # Counted: it stands in the function.

        def inner() -> int:
            return 1

        return inner()


if os.name:

    async def wait() -> None: ...
'''
MODULE = Module("scheduler.queue", TEXT)


def test_code_is_what_is_no_docstring_comment_or_blank() -> None:
    lines = TEXT.splitlines()
    code = [lines[number - 1].strip() for number in sorted(MODULE.code_lines)]
    assert code == [
        "import os  # and one behind code",
        "LIMIT = 3",
        'TABLE = """',
        "not a docstring",
        "",  # within a string
        '"""',
        "class Queue:",
        "def __init__(self, size: int, *names: str, key: object = None, **more: object) -> None:",
        "self.size = size",
        "@property",
        "def first(self) -> int:",
        "def inner() -> int:",
        "return 1",
        "return inner()",
        "if os.name:",
        "async def wait() -> None: ...",
    ]


def test_docstrings_of_modules_classes_functions_and_attributes_are_counted() -> None:
    assert len(MODULE.docstring_lines) == 4 + 1 + 1 + 4


def test_functions_are_as_long_as_they_are_without_decorators_and_docstring() -> None:
    assert [(each.name, each.lines) for each in MODULE.functions] == [
        ("Queue.__init__", 2),
        ("Queue.first", 7),
        ("Queue.first.inner", 2),
        ("wait", 1),
    ]


def test_all_kinds_of_parameters_are_counted() -> None:
    assert MODULE.functions[0].parameters == 5


@pytest.mark.parametrize(
    ("module", "folder"),
    [
        pytest.param(Module("scheduler.app", ""), "scheduler", id="at the top"),
        pytest.param(Module("scheduler.client.api", ""), "scheduler.client", id="in a folder"),
        pytest.param(
            Module("scheduler.client", "", is_package=True), "scheduler.client", id="the folder's"
        ),
    ],
)
def test_a_module_lies_in_a_folder(module: Module, folder: str) -> None:
    assert module.folder == folder
