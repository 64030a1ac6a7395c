"""What observes changes of the known state: a journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Observer: TypeAlias = Callable[[str, Any, str], object]
"""Receives what happened, to which object, and on which node.

Called under the lock of the part that changed, so that the order of the calls is the order of the
changes: it must return at once, and must neither raise, take another lock nor write a log line.
"""
