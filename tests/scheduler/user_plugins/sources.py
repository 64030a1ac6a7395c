"""Texts of plugins, as users would write them."""

from __future__ import annotations

from scheduler.user_plugins.plugin_source import PluginSource

GOOD = '''
from berth import Args


class {name}:
    """Prefers what costs little."""

    class Args(Args):
        label: str = "cost"

    def __init__(self, args):
        self.args = args

    def score(self, pod, nodes):
        return nodes.label_number(self.args.label, default={default})
'''


def good(name: str = "Cheap", default: float = 1) -> str:
    return GOOD.format(name=name, default=default)


def source(text: str, name: str = "NS/plugins/cheap.py") -> PluginSource:
    return PluginSource.of_text("config-map", name, text)
