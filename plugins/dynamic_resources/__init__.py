"""DynamicResources: places pods where devices can be allocated to their claims."""

from plugins.dynamic_resources.args import DynamicResourcesArgs
from plugins.dynamic_resources.extended_resources import is_in_memory
from plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources", "DynamicResourcesArgs", "is_in_memory"]
