"""The state of the process written out, and the cache compared with the watches.

Nothing here takes part in scheduling; it reads, compares and reports. What is measured all the
time belongs to :mod:`scheduler.metrics`.
"""
