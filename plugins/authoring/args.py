"""The base class for the arguments of a user's plugin, which ``pluginConfig`` sets."""

from __future__ import annotations

import msgspec


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of a plugin's arguments: immutable, camelCase in YAML, snake_case in Python.

    A field's default is the argument's default. Types are checked, and an unknown field is a
    mistake that is reported with its path. A class may define ``problems(self)``, which yields an
    :class:`plugins.framework.args.ArgsError` for each violated rule that types cannot express.
    """
