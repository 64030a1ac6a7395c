"""What a user's class says of itself, and whether it can be a plugin."""

from __future__ import annotations

import inspect
from typing import Any, Final

import msgspec

from plugins.authoring.args import Args
from plugins.framework.interfaces import Plugin

METHODS: Final = ("filter", "filter_one", "score", "score_one")
"""What a class needs at least one of."""


class PolicyClassError(TypeError):
    """A class that cannot be a plugin; the message names the class and what is wrong."""


def is_policy(candidate: object) -> bool:
    """Tell whether something is a class that means to be a user's plugin.

    One that has a filter or a score and is not of the framework's own kind.
    """
    return (
        isinstance(candidate, type)
        and not issubclass(candidate, (Plugin, msgspec.Struct))
        and any(callable(getattr(candidate, method, None)) for method in METHODS)
    )


def policy_name(cls: type) -> str:
    """Return the name by which profiles know a user's class: its ``name``, or the class's own."""
    name = cls.__dict__.get("name", cls.__name__)
    return name if isinstance(name, str) and name else cls.__name__


def has_any(cls: type, *methods: str) -> bool:
    """Tell whether a class has one of these methods."""
    return any(callable(getattr(cls, method, None)) for method in methods)


def check_class(cls: type) -> None:
    """Look at a class as a whole.

    Raises
    ------
    PolicyClassError
        When it cannot be a plugin.
    """
    if not has_any(cls, *METHODS):
        raise PolicyClassError(
            f"{cls.__name__} has none of {', '.join(METHODS)}: it would decide nothing"
        )
    for method in (*METHODS, "signature"):
        function = getattr(cls, method, None)
        wanted = 1 if method == "signature" else 2
        if function is not None and not _accepts(function, wanted + 1):
            takes = "(self, pod)" if wanted == 1 else _TAKES[method]
            raise PolicyClassError(f"{cls.__name__}.{method} must take {takes}")
    reason = getattr(cls, "reason", "")
    if not isinstance(reason, str):
        raise PolicyClassError(f"{cls.__name__}.reason must be a text")
    name = cls.__dict__.get("name")
    if name is not None and (not isinstance(name, str) or not name):
        raise PolicyClassError(f"{cls.__name__}.name must be a text that is not empty")
    args_type_of(cls)
    if takes_args(cls) and args_type_of(cls) is None:
        raise PolicyClassError(
            f"{cls.__name__}.__init__ takes arguments, but the class has no Args: "
            "write `class Args(berth.Args)` within it"
        )


_TAKES: Final = {
    "filter": "(self, pod, nodes)",
    "filter_one": "(self, pod, node)",
    "score": "(self, pod, nodes)",
    "score_one": "(self, pod, node)",
}


def args_type_of(cls: type) -> type[msgspec.Struct] | None:
    """Return the class of its arguments; None if it takes none.

    Raises
    ------
    PolicyClassError
        When its ``Args`` is something else.
    """
    found = getattr(cls, "Args", None)
    if found is None or found is Args:
        return None
    if not isinstance(found, type) or not issubclass(found, Args):
        raise PolicyClassError(f"{cls.__name__}.Args must be a subclass of berth.Args")
    return found


def takes_args(cls: type) -> bool:
    """Tell whether its constructor wants the arguments."""
    constructor = cls.__dict__.get("__init__") or inspect.getattr_static(cls, "__init__")
    return constructor is not object.__init__ and _accepts(constructor, 2)


def _accepts(function: Any, count: int) -> bool:
    """Tell whether a function can be called with so many positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True
