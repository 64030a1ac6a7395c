"""Validation of a user's class: whether it can be a plugin, and its name and arguments."""

from __future__ import annotations

import inspect
from typing import Any, Final

import msgspec

from plugins.authoring.args import Args
from plugins.framework.interfaces import Plugin

METHODS: Final = ("filter", "filter_one", "score", "score_one")
"""The methods of which a class must define at least one."""


class PolicyClassError(TypeError):
    """A class cannot be a plugin; the message names the class and the problem."""


def is_policy(candidate: object) -> bool:
    """Return whether an object is a class that is meant as a user's plugin.

    Such a class has a filter or a score and is not a subclass of the framework's ``Plugin``.
    """
    return (
        isinstance(candidate, type)
        and not issubclass(candidate, (Plugin, msgspec.Struct))
        and any(callable(getattr(candidate, method, None)) for method in METHODS)
    )


def policy_name(cls: type) -> str:
    """Return the name of a user's class in profiles: its ``name``, else the class name."""
    name = cls.__dict__.get("name", cls.__name__)
    return name if isinstance(name, str) and name else cls.__name__


def has_any(cls: type, *methods: str) -> bool:
    """Return whether a class has one of these methods."""
    return any(callable(getattr(cls, method, None)) for method in methods)


def check_class(cls: type) -> None:
    """Validate the methods, the attributes and the arguments of a class.

    Raises
    ------
    PolicyClassError
        When the class cannot be a plugin.
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
    """Return the class of a user's class's arguments; None if it takes no arguments.

    Raises
    ------
    PolicyClassError
        When its ``Args`` is not a subclass of ``berth.Args``.
    """
    args_type = getattr(cls, "Args", None)
    if args_type is None or args_type is Args:
        return None
    if not isinstance(args_type, type) or not issubclass(args_type, Args):
        raise PolicyClassError(f"{cls.__name__}.Args must be a subclass of berth.Args")
    return args_type


def takes_args(cls: type) -> bool:
    """Return whether the constructor of a class takes the arguments."""
    constructor = cls.__dict__.get("__init__") or inspect.getattr_static(cls, "__init__")
    return constructor is not object.__init__ and _accepts(constructor, 2)


def _accepts(function: Any, count: int) -> bool:
    """Return whether a function can be called with ``count`` positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True
