"""The immutable values that describe a scheduling decision and the profile that made it.

Every folder may import this package. :mod:`scheduler.cycle` makes the decisions.
"""
