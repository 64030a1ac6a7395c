"""The framework's runtime: a profile's plugins, run in order at each extension point.

The plugins themselves live in :mod:`plugins`, the order of a pod's steps in
:mod:`scheduler.cycle`, and which profiles there are in :mod:`scheduler.profiles`.
"""
