"""What a plugin of your own imports: ``from berth import Args, Nodes, Pod``. See docs/plugins.md.

This name is Berth's own. ``plugins``, ``cache`` and ``scheduler``, in which the program lives, are
names that other distributions have too, and what they hold may change with each version.
"""

from plugins.authoring import Args, Labels, Node, Nodes, Pod
from plugins.framework.args import ArgsError

__all__ = ["Args", "ArgsError", "Labels", "Node", "Nodes", "Pod"]
