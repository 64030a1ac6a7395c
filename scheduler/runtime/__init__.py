"""The framework's runtime: a profile's plugins, run in order at each extension point.

:mod:`plugins` contains the plugins themselves, :mod:`scheduler.cycle` the order of the steps of an
attempt, and :mod:`scheduler.profiles` the set of profiles.
"""
