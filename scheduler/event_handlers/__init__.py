"""The package applies each change that a watch reports to the cache and the queue.

It also decides which kinds are watched, and searches for changes that no watch has reported.
Maintaining a watch belongs to :mod:`scheduler.informers`.
"""
