"""The package writes the state of the process, and compares the cache with the watches.

Nothing here takes part in scheduling; it reads, compares and reports. Continuous measurement
belongs to :mod:`scheduler.metrics`.
"""
