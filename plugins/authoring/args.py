"""The arguments of a user's plugin, as its profile's ``pluginConfig`` gives them."""

from __future__ import annotations

import msgspec


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of a plugin's arguments: immutable, camelCase in YAML, snake_case in Python.

    A field's default is the argument's default; its type is checked, and a name that nobody knows
    is a mistake whose path is told. A class may have ``problems(self)``, which yields an
    :class:`plugins.framework.args.ArgsError` for each thing that types cannot say.
    """
