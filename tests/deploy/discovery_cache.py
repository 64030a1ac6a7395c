"""Where kubectl and helm keep what they learned of servers: in nobody's home."""

from __future__ import annotations

import functools
import os
import tempfile


def without_traces() -> dict[str, str]:
    """Return an environment in which they keep it as long as this process lives."""
    return {**os.environ, "KUBECACHEDIR": _folder().name}


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kube-cache-")
