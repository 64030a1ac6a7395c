"""The interface for users' plugins: ``from berth import Args, Nodes, Pod``. See docs/plugins.md.

Only the names exported here are stable. The packages ``plugins``, ``cache`` and ``scheduler``
contain the program and may change with each version; other distributions use these names, too.
"""

from plugins.authoring import Args, Labels, Node, Nodes, Pod
from plugins.framework.args import ArgsError

__all__ = ["Args", "ArgsError", "Labels", "Node", "Nodes", "Pod"]
