"""DynamicResources: places pods where devices can be allocated to their claims."""
